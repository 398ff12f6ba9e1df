//! `pando completions` and `pando man`: pages for shells and for `man`, made from the command line itself.

use std::error::Error;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Arg, ArgMatches, Command, value_parser};
use clap_complete::Shell;
use clap_mangen::Man;

use super::output::print_line;

const COMPLETIONS_EXAMPLES: &str = "Examples:
  pando completions bash > /etc/bash_completion.d/pando
  pando completions zsh > ~/.zfunc/_pando
  pando completions fish > ~/.config/fish/completions/pando.fish";

const MAN_EXAMPLES: &str = "Examples:
  pando man --to /usr/local/share/man/man1
      a page for the program and one for each of its commands: man pando, man pando-import
  pando man | man -l -
      read the page of the program without installing it";

pub(super) fn completions() -> Command {
    Command::new("completions")
        .about("Print the completions of a shell")
        .arg(
            Arg::new("shell")
                .value_name("SHELL")
                .required(true)
                .value_parser(value_parser!(Shell))
                .help("The shell"),
        )
        .after_help(COMPLETIONS_EXAMPLES)
}

pub(super) fn man() -> Command {
    Command::new("man")
        .about("Write the manual pages, or print that of the program")
        .arg(Arg::new("to").long("to").value_name("DIR").help("The folder for all pages"))
        .after_help(MAN_EXAMPLES)
}

pub(super) fn run_completions(program: &Command, matches: &ArgMatches) -> Result<ExitCode, Box<dyn Error>> {
    if let Some(shell) = matches.get_one::<Shell>("shell") {
        let mut text = Vec::new();
        clap_complete::generate(*shell, &mut offered(program), "pando", &mut text);
        io::stdout().write_all(&text)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The command line without the arguments that help does not show: flags in the spelling of other programs,
/// for scripts that have them.
fn offered(command: &Command) -> Command {
    let mut shown = Command::new(command.get_name().to_owned());
    if let Some(about) = command.get_about() {
        shown = shown.about(about.clone());
    }
    let arguments = command.get_arguments().filter(|argument| !argument.is_hide_set());
    let inner = command.get_subcommands().filter(|inner| !inner.is_hide_set());
    shown.args(arguments.cloned()).subcommands(inner.map(offered))
}

pub(super) fn run_man(program: Command, matches: &ArgMatches) -> Result<ExitCode, Box<dyn Error>> {
    // `help` as a command of its own would have a page that says nothing.
    let program = program.disable_help_subcommand(true);
    match matches.get_one::<String>("to").map(PathBuf::from) {
        Some(folder) => {
            std::fs::create_dir_all(&folder)
                .and_then(|()| clap_mangen::generate_to(program, &folder))
                .map_err(|error| format!("cannot write manual pages into {}: {error}", folder.display()))?;
            print_line!("manual pages are in {}", folder.display());
        }
        None => {
            let mut text = Vec::new();
            Man::new(program).render(&mut text)?;
            io::stdout().write_all(&text)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
