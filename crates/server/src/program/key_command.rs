//! `pando key`: the keys of an encrypted store.

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use bson::doc;
use clap::{Arg, ArgAction, ArgMatches, Command};
use pandodb::{DataKeys, rotate_keys};
use serde_json::json;

use super::encryption_arguments::{NEW, OF_STORE};
use super::failure::UsageError;
use super::output::print_line;
use super::target_arguments::{json_argument, required, store_arguments, target_of};
use crate::amounts::{bytes_text, counted};
use crate::folder_owner::warn_root_in;
use crate::transfer::run_command;

const EXAMPLES: &str = "Examples:
  pando key rotate --data ./data --encryption-key-file old.key --new-encryption-key-file new.key
      the store opens with new.key from now on, and with old.key no more
  pando key rotate --data ./data --encryption-key-file my.key --new-data-key
      the same master key; blocks and log records that are written from now on are sealed under a new data key
  pando key status --uri mongodb://127.0.0.1:27017
      how many data keys there are, and how far the server is with rewriting older blocks

No server may have the folder open during a rotation, which takes a moment. The next server rewrites what older data keys have
sealed, in the background, and forgets these keys at the end. Backups that were made before still take the key that they were
made with.

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
        .subcommand(
            Command::new("status")
                .about("Tell the data keys of a store, and how far its rewriting under the newest one is")
                .args(store_arguments())
                .args(OF_STORE.arguments("the data folder"))
                .arg(json_argument()),
        )
        .after_help(EXAMPLES)
}

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode, Box<dyn Error>> {
    match matches.subcommand() {
        Some(("rotate", matches)) => rotate(matches),
        Some(("status", matches)) => status(matches),
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
    warn_root_in(&folder);
    let keys = rotate_keys(&folder, &old, new.as_ref(), data_keys)?;
    if matches.get_flag("json") {
        print_line!("{}", json!({ "data": folder.display().to_string(), "dataKeys": keys }));
    } else {
        print_line!(
            "{} opens with {}; it has {}",
            folder.display(),
            new.unwrap_or(old).source.describe(),
            counted(keys as u64, "data key")
        );
    }
    Ok(ExitCode::SUCCESS)
}

fn status(matches: &ArgMatches) -> Result<ExitCode, Box<dyn Error>> {
    let reply = run_command(&target_of(matches)?, "admin", doc! { "serverStatus": 1 })?;
    let security = reply.get_document("security");
    let Ok(section) = security.and_then(|security| security.get_document("encryptionAtRest")) else {
        return Err("the store is not encrypted; 'pando copy' makes an encrypted one of it".into());
    };
    let rewriting = section.get_document("rewriting")?;
    let figure = |name: &str| u64::try_from(rewriting.get_i64(name).unwrap_or(0)).unwrap_or(0);
    let (keys, phase) = (u64::try_from(section.get_i64("dataKeys")?)?, rewriting.get_str("phase")?);
    let (done, total, rewritten) = (figure("doneBytes"), figure("totalBytes"), figure("rewrittenBytes"));
    if matches.get_flag("json") {
        print_line!(
            "{}",
            json!({
                "dataKeys": keys, "phase": phase, "passes": figure("passes"), "doneBytes": done, "totalBytes": total,
                "rewrittenBytes": rewritten, "damaged": figure("damaged"), "failures": figure("failures"),
            })
        );
    } else if phase == "none" {
        print_line!("{}; nothing is to be rewritten", counted(keys, "data key"));
    } else {
        print_line!(
            "{}; {phase}: pass {}, {} of {} looked at, {} rewritten",
            counted(keys, "data key"),
            figure("passes"),
            bytes_text(done.min(total)),
            bytes_text(total),
            bytes_text(rewritten)
        );
    }
    Ok(ExitCode::SUCCESS)
}
