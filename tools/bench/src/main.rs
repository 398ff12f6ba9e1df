//! The benchmark lab for servers of MongoDB's protocol and for engines in this process: see the library
//! beside this file.

use std::process::ExitCode;

/// As in the server, so that an engine in this process runs as it does there.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    pando_environment::allocator::configure();
    pando_bench::run_program(None)
}
