//! The benchmark lab: workloads against any server that speaks MongoDB's wire protocol, or an engine in this process, with what
//! they cost.
//!
//! # Terms
//! - *Client*: a connection and what it does; it has one request under way at a time.
//! - *Unit*: what a client does and a latency is taken of: a query, a transaction, a batch. *Operation*: what the rate counts:
//!   a unit, or each document of a batch.
//! - *Worker*: a thread of this tool that drives many clients.
//! - *Window*: the part of a run that is measured: after connecting and warm-up, before draining.
//! - *Ceiling*: what the same clients reach against a server that does nothing.
//! - *Closed loop*: a client begins when its last unit is over. *Open loop*: units begin by schedule, and late ones count so.
//! - *Flagged*: a run with a failure, or a miss that must not be; it is no measurement.
//!
//! # The life of a run
//! 1. [`cli`] turns arguments into a workload and a plan; [`command`] is the subcommand.
//! 2. [`target`] and [`counters`] find the server, its process, and where its I/O is counted.
//! 3. [`workload`] loads the data, and gives each client its script.
//! 4. [`run`] connects all clients, lets [`client`] work, and samples the counters at the edges of the window.
//! 5. [`report`] divides by operations, prints the table and its doubts, and writes a file per run.
//!
//! # Invariants
//! - Any server is treated alike: this tool knows the protocol and nothing of what is behind it.
//! - Every draw hangs on the seed: the same call asks for the same keys.
//!
//! Not here: engines without a server (`tools/bench-engine`).

mod address;
mod cli;
mod client;
mod command;
mod counters;
mod error;
mod histogram;
mod interrupt;
mod launch;
mod random;
mod report;
mod run;
mod self_check;
#[cfg(feature = "mysql")]
mod sql;
mod suite;
mod target;
mod why;
mod workload;

use std::process::ExitCode;

/// As in the server, so that an engine in this process runs as it does there.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    pando_environment::allocator::configure();
    if let Err(error) = interrupt::listen() {
        return told(&error);
    }
    let arguments = command::linkbench::with_long_options(std::env::args_os());
    let arguments = match cli::scale::with_scale(arguments.into_iter().collect()) {
        Ok(arguments) => arguments,
        Err(error) => return told(&error),
    };
    let matches = cli::command().get_matches_from(arguments);
    let measures = ["point", "sysbench", "kv", "iibench", "linkbench", "load"];
    let target = matches.subcommand().filter(|(name, _)| measures.contains(name));
    if let Some(Err(error)) = target.map(|(_, matches)| cli::check_target(matches)) {
        return told(&error);
    }
    let outcome = match matches.subcommand() {
        Some(("load", matches)) => command::load::run(matches),
        Some(("sysbench", matches)) => command::sysbench::run(matches),
        Some(("kv", matches)) => command::kv::run(matches),
        Some(("iibench", matches)) => command::iibench::run(matches),
        Some(("linkbench", matches)) => command::linkbench::run(matches),
        Some(("compare", matches)) => command::compare::run(matches),
        Some(("report", matches)) => command::report::run(matches),
        Some(("suite", matches)) => command::suite::run(matches),
        Some(("self-check", matches)) => command::self_check::run(matches),
        Some((_, matches)) => command::point::run(matches),
        None => return ExitCode::from(2),
    };
    outcome.unwrap_or_else(|error| told(&error))
}

/// Says what went wrong, with its causes.
fn told(error: &error::BenchError) -> ExitCode {
    eprintln!("pando-bench: {error}");
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        eprintln!("  because: {cause}");
        source = cause.source();
    }
    ExitCode::from(2)
}
