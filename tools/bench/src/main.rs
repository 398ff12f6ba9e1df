//! The benchmark lab: workloads against any server that speaks MongoDB's wire protocol, with what they cost.
//!
//! # Terms
//! - *Client*: a connection and the script it follows; it has one request under way at a time (a closed loop).
//! - *Worker*: a thread of this tool that drives many clients.
//! - *Window*: the part of a run that is measured: after connecting and warm-up, before draining.
//! - *Ceiling*: what the same clients reach against a server that does nothing.
//! - *Flagged*: a run with a miss or a failure; it is no measurement.
//!
//! # The life of a run
//! 1. [`cli`] turns arguments into a workload and a plan; [`command`] is the subcommand.
//! 2. [`target`] and [`counters`] find the server, its process, and where its I/O is counted.
//! 3. [`workload`] loads the documents, and gives each client its script.
//! 4. [`run`] connects all clients, lets [`client`] work, and samples the counters at the edges of the window.
//! 5. [`report`] divides by operations, prints the table and its doubts, and writes a file per run.
//!
//! # Invariants
//! - Any server is treated alike: this tool knows the protocol and nothing of what is behind it.
//! - Every draw hangs on the seed: the same call asks for the same keys.
//!
//! Not here: rates from an open loop; engines without a server (`tools/bench-engine`).

mod cli;
mod client;
mod command;
mod counters;
mod error;
mod histogram;
mod random;
mod report;
mod run;
mod target;
mod workload;

use std::process::ExitCode;

fn main() -> ExitCode {
    let matches = cli::command().get_matches();
    let outcome = match matches.subcommand() {
        Some(("load", matches)) => {
            command::load::run(&cli::server_options(matches), &cli::load_options(matches))
        }
        Some((_, matches)) => command::point::run(&cli::point_options(matches)),
        None => return ExitCode::from(2),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("pando-bench: {error}");
        let mut source = std::error::Error::source(&error);
        while let Some(cause) = source {
            eprintln!("  because: {cause}");
            source = cause.source();
        }
        ExitCode::from(2)
    })
}
