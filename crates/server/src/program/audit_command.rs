//! `pando audit verify`: checks the chain of an audit trail.

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Arg, ArgMatches, Command};
use serde_json::json;

use super::output::print_line;
use super::target_arguments::{json_argument, required};
use crate::amounts::counted;
use crate::audit_file::{Verified, verify};
use crate::error_text::tell_line;

pub(super) fn command() -> Command {
    Command::new("audit")
        .about("Check an audit trail")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("verify")
                .about("Check that no line of a chained audit trail was changed, left out or moved")
                .arg(Arg::new("file").value_name("FILE").required(true).help("The file of --audit-path"))
                .arg(
                    Arg::new("previous")
                        .long("previous")
                        .value_name("CHAIN")
                        .help("The last chain of the file before, for a file that logRotate has begun"),
                )
                .arg(json_argument())
                .after_help("The exit code is 0 for a sound file, 1 for one that is not, has no lines or cannot be read."),
        )
}

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode, Box<dyn Error>> {
    let Some(("verify", matches)) = matches.subcommand() else {
        unreachable!("clap lets no other subcommand through")
    };
    let file = PathBuf::from(required(matches, "file"));
    let previous = matches.get_one::<String>("previous").map(String::as_str);
    let verified = verify(&file, previous, |fault| tell_line!("pando: {fault}"))?;
    let is_sound = verified.lines > 0 && verified.faults == 0;
    let code = if is_sound { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    if matches.get_flag("json") {
        let Verified { lines, faults, last } = verified;
        print_line!("{}", json!({ "sound": is_sound, "lines": lines, "faults": faults, "lastChain": last }));
        return Ok(code);
    }
    if verified.lines == 0 {
        tell_line!("pando: {} has no lines: nothing is proved", file.display());
        return Ok(code);
    }
    if verified.last.is_empty() {
        // The fault has been told in a sentence.
        return Ok(code);
    }
    if verified.faults > 0 {
        tell_line!(
            "pando: {} is not sound: {} of {}; the last chain is {}",
            file.display(),
            verified.faults,
            counted(verified.lines, "line"),
            verified.last
        );
        return Ok(code);
    }
    print_line!("{} is sound: {}, the last with the chain", file.display(), counted(verified.lines, "line"));
    print_line!("{}", verified.last);
    Ok(code)
}
