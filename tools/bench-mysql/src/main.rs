//! The benchmark lab for servers of MySQL's protocol: the program `pando-bench` with the targets `mysql://`.
//!
//! A kept driver does the talking, with prepared statements. It waits for each reply, so each client has a
//! thread. It also costs more than the lab's own client of MongoDB's protocol: compare servers of one
//! protocol by it, and look at the client's CPU time.
//!
//! - [`protocol`]: what the lab asks of a protocol: the server of a URI, and the workloads over it.
//! - [`server`]: the servers (one, or several over the same data), and what they say about themselves.
//! - [`engine`]: the storage engine of the tables, and the settings that the posts ran it with.
//! - [`checkpoints`]: what each engine says of its checkpoints.
//! - [`measured_run`]: the part of a run that all workloads share; [`waits`]: what the server's threads
//!   waited for.
//! - [`kv`], [`sysbench`], [`iibench`], [`linkbench`]: the workloads; [`insert`]: loading by INSERTs of many
//!   rows.
//! - [`null_server`]: a server that answers at once, to measure the driver and this program.
//!
//! Not here: the frame of a run, reports and suites (`tools/bench`). A second package keeps the driver's
//! crates out of every other build.

mod checkpoints;
mod driver;
mod engine;
mod iibench;
mod insert;
mod kv;
mod linkbench;
mod measured_run;
mod null_server;
mod protocol;
mod server;
mod sysbench;
mod waits;

use std::process::ExitCode;

/// As in `pando-bench`, so that figures of the two programs compare.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    pando_environment::allocator::configure();
    pando_bench::run_program(Some(&protocol::MySql))
}
