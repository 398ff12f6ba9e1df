//! The command line of the program, and which part of it does what.

mod failure;
mod options_page;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{ArgMatches, Command};

use crate::configuration::serve_arguments;
pub use failure::print_failure;

const EXAMPLES: &str = "Examples:
  pando serve --data ./data
      keep data in ./data and listen on 127.0.0.1:27017
  pando serve --engine memory --listen 127.0.0.1:0
      try something out: nothing is kept, the port is chosen
  pando serve --config /etc/pando.toml --cache 4GiB
      options from a file, one of them overruled
  mongosh mongodb://127.0.0.1:27017
      talk to it";

/// Runs the program with these arguments, the first of which is its own name.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let matches = match command_line().try_get_matches_from(arguments) {
        Ok(matches) => matches,
        Err(error) => {
            // Help and version come here, too, and go to standard output with a code of 0.
            let code = u8::try_from(error.exit_code()).unwrap_or(2);
            let _ = error.print();
            return ExitCode::from(code);
        }
    };
    match dispatch(&matches) {
        Ok(code) => code,
        Err(error) => {
            print_failure(error.as_ref());
            ExitCode::FAILURE
        }
    }
}

fn dispatch(matches: &ArgMatches) -> Result<ExitCode, Box<dyn std::error::Error>> {
    match matches.subcommand() {
        Some(("options", matches)) => options_page::run(matches),
        other => unreachable!("clap lets no other subcommand through: {other:?}"),
    }
}

fn command_line() -> Command {
    Command::new("pando")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Pando, a document database that speaks MongoDB's wire protocol.")
        .after_help(EXAMPLES)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("serve")
                .about("Serve a data folder to MongoDB clients")
                .args(serve_arguments())
                .after_help(EXAMPLES),
        )
        .subcommand(options_page::command())
}
