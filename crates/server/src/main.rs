//! The program `pando`: reads its command line and does what it says.

use std::process::ExitCode;

use pando_server::program;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    pando_environment::allocator::configure();
    program::run(std::env::args_os())
}
