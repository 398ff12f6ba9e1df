//! Storage engines side by side: betree, and the bare libraries RocksDB, LMDB, redb and fjall, in process,
//! without a server.
//!
//! # Terms
//! - *Peer*: an engine as this tool sees it. *Phase*: what one process measures of one peer. *Workload*: a
//!   part of a phase.
//! - *Cache*: what a peer's own caches and write buffers may take. *Cap*: what a process may take in all,
//!   page cache of the kernel included: the cache and the *headroom*. *Scale*: bytes of documents in
//!   multiples of the cache.
//! - *Drained*: no work is left to do in the background.
//!
//! # The life of a run
//! 1. [`cli`] turns arguments into a [`running::Run`].
//! 2. [`running`] starts a process for each phase of each peer, in a [`memory_group`] where the phase is
//!    capped.
//! 3. [`measuring`] is that process: it opens a [`peer`], goes through [`workloads`], and reads the
//!    [`counters`] around them.
//! 4. [`report`] sets the figures side by side, with what is wanted of betree: tables, a page, a chart.
//!
//! # Invariants
//! - All peers get the same [`data`], the same batches, the same times, and a sync of what they wrote every
//!   100 ms.
//! - Every answer is checked: a wrong one ends the phase, and there is no figure.
//!
//! Not here: servers and the wire (`tools/bench`).

mod batch;
mod bench;
mod cli;
mod counters;
mod data;
mod error;
mod figures;
mod measuring;
mod memory_group;
mod peer;
mod peers;
mod random;
mod report;
mod running;
mod setup;
mod workloads;

use std::path::PathBuf;
use std::process::ExitCode;

use crate::error::BenchError;

/// As the server has it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    pando_environment::allocator::configure();
    let matches = cli::command().get_matches();
    let outcome = match matches.subcommand() {
        Some(("all", matches)) => all(matches),
        Some(("report", matches)) => {
            let folder = matches.get_one::<PathBuf>("folder").expect("it is required");
            running::report_again(folder).map(|results| {
                print!("{}", report::text(&results));
                ExitCode::SUCCESS
            })
        }
        Some((_, matches)) => {
            cli::task_of(matches).and_then(|task| measuring::run(&task)).map(|()| ExitCode::SUCCESS)
        }
        None => Ok(ExitCode::from(2)),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("pando-bench-engine: {}", report::with_causes(&error));
        ExitCode::from(2)
    })
}

/// A phase that failed is no measurement, and must not pass for one in a script.
fn all(matches: &clap::ArgMatches) -> Result<ExitCode, BenchError> {
    let results = running::run(&cli::run_of(matches)?)?;
    print!("{}", report::text(&results));
    Ok(if results.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}
