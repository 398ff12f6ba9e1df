//! The benchmark lab: workloads against any server that speaks MongoDB's wire protocol, or against an engine
//! in this process, with the cost of what they did. A protocol of another crate can be added:
//! `tools/bench-mysql` is the same program with MySQL's.
//!
//! # Terms
//! - *Client*: a connection with its work. It has one request under way at a time.
//! - *Unit*: the piece of work that a latency is taken of: a query, a transaction, a batch. *Operation*: the
//!   thing that the rate counts: a unit, or each document of a batch.
//! - *Worker*: a thread of this tool that drives many clients.
//! - *Window*: the part of a run that is measured: after connecting and warm-up, before draining.
//! - *Ceiling*: the rate of the same clients against a server that does no work.
//! - *Closed loop*: a client begins its next unit when the last one is over. *Open loop*: units begin by
//!   schedule, and waiting counts.
//! - *Flagged*: a run with a failure, or with a miss that must not be. It is no measurement.
//!
//! # The life of a run
//! 1. [`cli`] and [`command`] turn arguments into a [`protocol::Job`] and a plan.
//! 2. [`launch`] starts the server if it is asked to. The [`protocol`] finds the server,
//!    `pando_measuring::counters` its process and the best counter of its I/O.
//! 3. [`workload`] loads the data, and gives each client its script.
//! 4. [`run`] connects all clients, lets [`client`] work, and samples the counters at the edges of the
//!    window.
//! 5. [`report`] divides by operations, prints the table and its warnings, and writes a file for each run.
//!
//! # Invariants
//! - Every server is treated alike: this tool knows the protocol and none of the engines behind it.
//! - Every draw follows from the seed: the same call asks for the same keys.
//!
//! # Modules
//! A module may use those behind its arrow. Each one also uses [`error`], which uses none.
//!
//! ```arrows
//! client -> error
//! cli -> client, error, launch, protocol, run, target, workload
//! command -> cli, client, error, launch, protocol, report, run, target, why, workload
//! interrupt -> error
//! launch -> error, interrupt
//! protocol -> error, target, why, workload
//! report -> client, error, launch, run, target, why
//! run -> client, error, interrupt
//! self_check -> cli, client, command, error, protocol, run, target, workload
//! suite -> cli, client, command, error, interrupt, launch, report, target
//! target -> client, error
//! why -> client, error, target
//! workload -> client, error, report, run, target
//! ```
//!
//! Not here: engines without a server (`tools/bench-engine`), counters, histograms, generators and charts
//! (`tools/measuring`).

#![deny(clippy::print_stdout, clippy::print_stderr)]

#[macro_use]
mod output;

pub mod cli;
pub mod client;
mod command;
pub mod error;
mod interrupt;
mod launch;
pub mod protocol;
mod report;
pub mod run;
mod self_check;
mod suite;
pub mod target;
pub mod why;
pub mod workload;

use clap::Command;
use command::{Call, SUBJECTS};
use error::BenchError;
use protocol::Protocol;
use std::process::ExitCode;

/// A subcommand that measures no workload.
struct Other {
    name: &'static str,
    command: fn() -> Command,
    run: fn(Call<'_>) -> Result<ExitCode, BenchError>,
}

const OTHERS: [Other; 5] = [
    Other { name: "load", command: command::load::command, run: command::load::run },
    Other { name: "compare", command: command::compare::command, run: command::compare::run },
    Other { name: "report", command: command::report::command, run: command::report::run },
    Other { name: "suite", command: suite::command::command, run: suite::command::run },
    Other { name: "self-check", command: self_check::command::command, run: self_check::command::run },
];

const EXAMPLES: &str = "Examples:
  pando-bench point --collections 2 --docs 50000 --clients 1,8 --out runs/a
      load documents into the server on this machine, if they are not there, then find them by _id
  pando-bench point --uri mongodb://127.0.0.1:27018 --collections 2 --docs 50000 --clients 1,8 --out runs/b
      the same of another server
  pando-bench compare runs/a runs/b
      the ratios of the two
  pando-bench report runs/a
      a page with charts: runs/a/report.html

Exit codes: 0 measured; 1 a run is flagged, and the message says why; 2 the tool could not run.";

fn command_line() -> Command {
    Command::new("pando-bench")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Measures any server that speaks MongoDB's wire protocol: see docs/benchmarks.md.")
        .after_help(EXAMPLES)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands(SUBJECTS.iter().map(|subject| (subject.command)()))
        .subcommands(OTHERS.iter().map(|other| (other.command)()))
}

/// Runs the program, with one more protocol than MongoDB's if it is given.
pub fn run_program(protocol: Option<&dyn Protocol>) -> ExitCode {
    let code = run_arguments(protocol).unwrap_or_else(|error| {
        err_line!("pando-bench: {error}");
        let causes = std::iter::successors(std::error::Error::source(&error), |cause| cause.source());
        causes.for_each(|cause| err_line!("  because: {cause}"));
        ExitCode::from(2)
    });
    match output::lost() {
        Some(reason) if code == ExitCode::SUCCESS => {
            err_line!(
                "pando-bench: standard output cannot be written ({reason}): its lines are lost; results are kept"
            );
            ExitCode::FAILURE
        }
        _ => code,
    }
}

fn run_arguments(protocol: Option<&dyn Protocol>) -> Result<ExitCode, BenchError> {
    interrupt::listen()?;
    let arguments = command::linkbench::with_long_options(std::env::args_os());
    let arguments = command::scale::with_scale(arguments)?;
    let matches = command_line().get_matches_from(arguments);
    let Some((name, matches)) = matches.subcommand() else { return Ok(ExitCode::from(2)) };
    let call = Call { matches, protocol };
    if let Some(subject) = SUBJECTS.iter().find(|subject| subject.name == name) {
        cli::check_target(matches)?;
        return command::run(call, subject);
    }
    if name == "load" {
        cli::check_target(matches)?;
    }
    let other = OTHERS.iter().find(|other| other.name == name);
    other.map_or(Ok(ExitCode::from(2)), |other| (other.run)(call))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_definition_of_the_command_line_is_sound() {
        super::command_line().debug_assert();
    }
}
