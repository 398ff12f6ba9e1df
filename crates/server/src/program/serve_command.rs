//! `pando serve`.

use std::error::Error;
use std::process::ExitCode;

use clap::{ArgMatches, Command};

use crate::configuration::{Sources, serve_arguments};
use crate::serve::serve;

pub(super) fn command(examples: &'static str) -> Command {
    Command::new("serve")
        .about("Serve a data folder to MongoDB clients")
        .args(serve_arguments())
        .after_help(examples)
}

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode, Box<dyn Error>> {
    let configuration = Sources::from_matches(matches).resolve(|variable| std::env::var_os(variable))?;
    serve(&configuration)?;
    Ok(ExitCode::SUCCESS)
}
