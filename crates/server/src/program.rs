//! The command line of the program, with one file for each subcommand.

mod audit_command;
mod backup_command;
mod completions_command;
mod copy_command;
mod damage_report;
mod encryption_arguments;
mod export_command;
mod failure;
mod field_arguments;
mod import_command;
mod import_report;
mod key_command;
mod login_arguments;
mod options_page;
mod output;
mod ping_command;
mod serve_command;
mod target_arguments;
mod user_command;
mod verify_command;

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{ArgMatches, Command};

use failure::{FailureForm, UsageError, address_of_holder, folder_in_use, print_failure};

use crate::configuration::ConfigurationError;
use crate::error_text::tell_line;
use crate::file_modes::restrict_files;
use crate::serve::ServeError;
use crate::transfer::TransferError;
use crate::version::version_text;

const EXAMPLES: &str = "Examples:
  pando serve --data ./data
      keep data in ./data and listen on 127.0.0.1:27017
  pando serve --engine memory --listen 127.0.0.1:0
      try something out: nothing is kept, the port is chosen
  pando serve --config /etc/pando.toml --cache 4GiB
      options from a file, one of them overruled
  mongosh mongodb://127.0.0.1:27017
      talk to it

Exit codes: 0 done; 1 an error, and the message says what; 2 a wrong command line, or a wrong configuration of the server; 130 interrupted
(Ctrl-C).";

/// Subcommands whose output is about the program and has no data of anybody.
const ABOUT_THE_PROGRAM: [&str; 3] = ["completions", "man", "options"];

/// The exit code for a wrong command line or configuration: trying again does not help.
const EXIT_CODE_USAGE: u8 = 2;

/// Has a write beyond the file size limit of the process (`ulimit -f`) fail, as one to a full disk does. The
/// signal that comes with it would end the process.
fn survive_file_size_limit() {
    // A handler, whatever it does, has the write return its error. Without one all is as before.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default());
}

/// Runs the program with these arguments, the first of which is its own name.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    survive_file_size_limit();
    let matches = match command_line().try_get_matches_from(arguments) {
        Ok(matches) => matches,
        Err(error) => {
            // Help and version come here, too, and go to standard output with a code of 0.
            let code = u8::try_from(error.exit_code()).unwrap_or(EXIT_CODE_USAGE);
            let _ = error.print();
            return ExitCode::from(code);
        }
    };
    match dispatch(&matches) {
        Ok(code) => match output::lost() {
            Some(error) if code == ExitCode::SUCCESS => {
                tell_line!(
                    "error: standard output cannot be written ({error}): its lines are lost; what they tell of is done"
                );
                ExitCode::FAILURE
            }
            Some(_) | None => code,
        },
        Err(error) => {
            print_failure(error.as_ref(), form_of(&matches));
            if is_wrong_command_line(error.as_ref()) {
                return ExitCode::from(EXIT_CODE_USAGE);
            }
            let folder = folder_in_use(error.as_ref()).filter(|_| matches.subcommand_name() != Some("serve"));
            if let Some(folder) = folder {
                let flag = if matches.subcommand_name() == Some("copy") { "" } else { "--uri " };
                tell_line!(
                    "  or reach the server that has it open, at its address in place of the folder: {flag}{}",
                    address_of_holder(folder)
                );
            }
            ExitCode::FAILURE
        }
    }
}

/// The form in which a command tells of its failure: as it tells of its result.
fn form_of(matches: &ArgMatches) -> FailureForm {
    let mut innermost = matches;
    while let Some((_, inner)) = innermost.subcommand() {
        innermost = inner;
    }
    let is_json = matches!(innermost.try_get_one::<bool>("json"), Ok(Some(true)));
    match matches.subcommand_name() {
        _ if !is_json => FailureForm::Lines,
        // Its documents are on standard output.
        Some("export") => FailureForm::JsonInPlace,
        _ => FailureForm::LinesAndJson,
    }
}

/// Whether the command line or the configuration is the fault, and not the state of a store or a file.
fn is_wrong_command_line(error: &(dyn std::error::Error + 'static)) -> bool {
    let is_wrong_uri = error.downcast_ref().is_some_and(TransferError::is_wrong_uri);
    let is_wrong_for_server = error.downcast_ref().is_some_and(ServeError::is_wrong_configuration);
    error.is::<UsageError>() || error.is::<ConfigurationError>() || is_wrong_uri || is_wrong_for_server
}

fn dispatch(matches: &ArgMatches) -> Result<ExitCode, Box<dyn std::error::Error>> {
    // A store, a backup or an export that a tool makes is as secret as one that the server makes.
    if matches.subcommand_name().is_some_and(|name| !ABOUT_THE_PROGRAM.contains(&name)) {
        restrict_files();
    }
    match matches.subcommand() {
        Some(("serve", matches)) => serve_command::run(matches),
        Some(("import", matches)) => import_command::run(matches),
        Some(("copy", matches)) => copy_command::run(matches),
        Some(("export", matches)) => export_command::run(matches),
        Some(("backup", matches)) => backup_command::run_backup(matches),
        Some(("restore", matches)) => backup_command::run_restore(matches),
        Some(("user", matches)) => user_command::run(matches),
        Some(("audit", matches)) => audit_command::run(matches),
        Some(("verify", matches)) => verify_command::run(matches),
        Some(("ping", matches)) => ping_command::run(matches),
        Some(("key", matches)) => key_command::run(matches),
        Some(("completions", matches)) => completions_command::run_completions(&command_line(), matches),
        Some(("man", matches)) => completions_command::run_man(command_line(), matches),
        Some(("options", matches)) => options_page::run(matches),
        other => unreachable!("clap lets no other subcommand through: {other:?}"),
    }
}

fn command_line() -> Command {
    Command::new("pando")
        .version(version_text())
        .about("Pando, a document database that speaks MongoDB's wire protocol.")
        .after_help(EXAMPLES)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(serve_command::command(EXAMPLES))
        .subcommand(import_command::command())
        .subcommand(copy_command::command())
        .subcommand(export_command::command())
        .subcommand(backup_command::backup())
        .subcommand(backup_command::restore())
        .subcommand(user_command::command())
        .subcommand(verify_command::command())
        .subcommand(ping_command::command())
        .subcommand(key_command::command())
        .subcommand(audit_command::command())
        .subcommand(completions_command::completions())
        .subcommand(completions_command::man())
        .subcommand(options_page::command())
}
