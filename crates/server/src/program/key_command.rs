//! `pando key`: the keys of an encrypted store.

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Command};
use pandodb::{DataKeys, rotate_keys};
use serde_json::json;

use super::encryption_arguments::{NEW, OF_STORE};
use super::failure::UsageError;
use super::output::print_line;
use super::target_arguments::{json_argument, required};

const EXAMPLES: &str = "Examples:
  pando key rotate --data ./data --encryption-key-file old.key --new-encryption-key-file new.key
      the store opens with new.key from now on, and with old.key no more
  pando key rotate --data ./data --encryption-key-file my.key --new-data-key
      the same master key; blocks and log records that are written from now on are sealed under a new data key

No server may have the folder open. No block is rewritten, so that a rotation takes a moment. Backups that were made before
still take the key that they were made with. To have every block under a new data key, copy the store with 'pando copy'.

Exit codes: 0 done; 1 an error, and the message says what; 2 a wrong command line.";

pub(super) fn command() -> Command {
    Command::new("key")
        .about("Rotate the keys of an encrypted store")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("rotate")
                .about("Wrap the data keys under another master key, or add a data key")
                .arg(
                    Arg::new("data")
                        .long("data")
                        .value_name("DIR")
                        .required(true)
                        .help("A data folder that no server has open"),
                )
                .args(OF_STORE.arguments("the store as it is"))
                .args(NEW.arguments("the store from now on"))
                .arg(
                    Arg::new("new-data-key")
                        .long("new-data-key")
                        .action(ArgAction::SetTrue)
                        .help("Make a data key for all blocks and log records from now on"),
                )
                .arg(json_argument()),
        )
        .after_help(EXAMPLES)
}

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode, Box<dyn Error>> {
    match matches.subcommand() {
        Some(("rotate", matches)) => rotate(matches),
        other => unreachable!("clap lets no other subcommand through: {other:?}"),
    }
}

fn rotate(matches: &ArgMatches) -> Result<ExitCode, Box<dyn Error>> {
    let folder = PathBuf::from(required(matches, "data"));
    let old = OF_STORE.load(matches)?.ok_or_else(|| {
        UsageError::new("name the present key with --encryption-key-file or --encryption-key-command")
    })?;
    let (new, adds) = (NEW.load(matches)?, matches.get_flag("new-data-key"));
    if new.is_none() && !adds {
        return Err(UsageError::new(
            "name the new master key with --new-encryption-key-file, or ask for a data key with --new-data-key",
        )
        .into());
    }
    let data_keys = if adds { DataKeys::Added } else { DataKeys::Kept };
    let keys = rotate_keys(&folder, &old, new.as_ref(), data_keys)?;
    if matches.get_flag("json") {
        print_line!("{}", json!({ "data": folder.display().to_string(), "dataKeys": keys }));
    } else {
        print_line!(
            "{} opens with {}; it has {keys} data keys",
            folder.display(),
            new.unwrap_or(old).source.describe()
        );
    }
    Ok(ExitCode::SUCCESS)
}
