//! `pando options --markdown`: writes docs/configuration.md from the table of options. For those who change
//! the table.

use std::error::Error;
use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Command};

use super::output::print_line;
use crate::configuration::markdown_page;

pub(super) fn command() -> Command {
    let markdown = Arg::new("markdown")
        .long("markdown")
        .action(ArgAction::SetTrue)
        .required(true)
        .help("As the page docs/configuration.md");
    Command::new("options").about("Print the table of options").hide(true).arg(markdown)
}

pub(super) fn run(_matches: &ArgMatches) -> Result<ExitCode, Box<dyn Error>> {
    print_line!("{}", markdown_page().trim_end());
    Ok(ExitCode::SUCCESS)
}
