//! `pando backup` and `pando restore`.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use bson::{Document, doc};
use clap::{Arg, ArgAction, ArgMatches, Command};
use pandodb::{EngineName, EngineOptions, restore_store};
use serde_json::json;

use super::encryption_arguments::OF_STORE;
use super::failure::is_folder_in_use;
use super::output::print_line;
use super::target_arguments::{
    engine_option_argument, engine_options, json_argument, required, store_arguments, target_of,
};
use crate::amounts::bytes_text;
use crate::folder_owner::warn_root_in;
use crate::transfer::{run_command, tell_at_end};

const BACKUP_EXAMPLES: &str = "Examples:
  pando backup --uri mongodb://127.0.0.1:27017 --to /backups/sunday
      all that was committed when the command began, while the server goes on
  pando backup --uri mongodb://127.0.0.1:27017 --to /backups/monday --since /backups/sunday
      what that backup has not: restore the two together
  pando backup --data ./data --to /backups/sunday
      of a folder that no server has open

The server writes the backup, so that it must run on this machine. A backup that is interrupted is none: its folder has no
MANIFEST, and the same command begins anew.

Pages are copied as they are, and damage with them: 'pando verify' of the store, or of a restored one, finds it.

Exit codes: 0 the backup is whole; 1 it is not; 2 a wrong command line.";

const RESTORE_EXAMPLES: &str = "Examples:
  pando restore /backups/sunday --to ./data
  pando restore /backups/sunday /backups/monday /backups/tuesday --to ./data
      a full backup and what was added to it, in the order in which they were made

The first start of the restored store replays its log up to the moment of the last backup.

Exit codes: 0 the store is whole; 1 there is none; 2 a wrong command line.";

pub(super) fn backup() -> Command {
    Command::new("backup")
        .about("Copy a store to another folder while it is in use")
        .args(store_arguments())
        .args(OF_STORE.arguments("the data folder"))
        .arg(Arg::new("to").long("to").value_name("DEST").required(true).help("A new or empty folder"))
        .arg(
            Arg::new("since")
                .long("since")
                .value_name("BACKUP")
                .help("The folder of an earlier backup: what it has is left out"),
        )
        .arg(json_argument())
        .after_help(BACKUP_EXAMPLES)
}

pub(super) fn restore() -> Command {
    Command::new("restore")
        .about("Make a data folder of a backup")
        .arg(
            Arg::new("backups")
                .value_name("BACKUP")
                .required(true)
                .action(ArgAction::Append)
                .num_args(1..)
                .help("A full backup, and those that add to it, in order"),
        )
        .arg(Arg::new("to").long("to").value_name("DIR").required(true).help("A new or empty folder"))
        .arg(
            Arg::new("engine")
                .long("engine")
                .value_name("ENGINE")
                .default_value(EngineName::default().as_str())
                .help("The engine of the restored store: the one that the backup was made of; a backup of lmdb, memory or tikv fits others, too"),
        )
        .arg(
            engine_option_argument()
                .help("An option of that engine, such as pd=10.0.0.1:2379; several are possible"),
        )
        .args(OF_STORE.arguments("the store that the backups were made of"))
        .arg(json_argument())
        .after_help(RESTORE_EXAMPLES)
}

pub(super) fn run_backup(matches: &ArgMatches) -> Result<ExitCode, Box<dyn Error>> {
    let target = target_of(matches)?;
    let to = whole(&required(matches, "to"))?;
    let mut command: Document = doc! { "pandoBackup": 1, "to": &to };
    if let Some(since) = matches.get_one::<String>("since") {
        command.insert("since", whole(since)?);
    }
    let place = NewFolder::at(Path::new(&to));
    let interrupted = PathBuf::from(&to);
    tell_at_end(move || left_behind(&interrupted))?;
    let reply = run_command(&target, "admin", command).inspect_err(|_| place.remove_if_unused())?;
    let extent = if reply.get_bool("incremental").unwrap_or(false) { "incremental" } else { "full" };
    let (moment, bytes) = (reply.get_i64("moment").unwrap_or(0), reply.get_i64("bytes").unwrap_or(0));
    if matches.get_flag("json") {
        print_line!("{}", json!({ "extent": extent, "moment": moment, "bytes": bytes, "to": to }));
    } else {
        let size = bytes_text(u64::try_from(bytes).unwrap_or(0));
        print_line!("{extent} backup of everything up to commit {moment}; {size} written to {to}");
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn run_restore(matches: &ArgMatches) -> Result<ExitCode, Box<dyn Error>> {
    let engine: EngineName = required(matches, "engine").parse()?;
    let backups: Vec<PathBuf> =
        matches.get_many::<String>("backups").into_iter().flatten().map(PathBuf::from).collect();
    if let Some(missing) = backups.iter().find(|backup| !backup.is_dir()) {
        return Err(
            format!("there is no folder {}: name the folders of the backups", missing.display()).into()
        );
    }
    let to = PathBuf::from(required(matches, "to"));
    if let Some(backup) = backups.iter().find(|backup| lies_within(&to, backup)) {
        return Err(format!(
            "{} lies in the backup {}, which has to stay as it is: restore into a folder of its own",
            to.display(),
            backup.display()
        )
        .into());
    }
    let encryption = OF_STORE.load(matches)?;
    let options = EngineOptions { named: engine_options(matches), encryption, ..EngineOptions::default() };
    let place = NewFolder::at(&to);
    warn_root_in(&to);
    restore_store(engine, &backups, &to, &options).inspect_err(|error| {
        // Another restore may have made it meanwhile.
        if !is_folder_in_use(error) {
            place.remove();
        }
    })?;
    if matches.get_flag("json") {
        print_line!("{}", json!({ "to": to.display().to_string(), "backups": backups.len() }));
    } else {
        let engine = match engine {
            EngineName::Betree => String::new(),
            other => format!(" of the engine {}", other.as_str()),
        };
        print_line!("{} holds the store{engine} as it was at the moment of the last backup", to.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether a path, which may be missing, is below a folder. Links are followed as far as the path exists.
fn lies_within(path: &Path, folder: &Path) -> bool {
    let (Ok(folder), Ok(path)) = (folder.canonicalize(), std::path::absolute(path)) else { return false };
    let existing = path.ancestors().skip(1).find_map(|ancestor| ancestor.canonicalize().ok());
    existing.is_some_and(|existing| existing.starts_with(&folder))
}

/// What an interrupted backup leaves behind.
fn left_behind(to: &Path) -> String {
    let to_shown = to.display();
    if to.join("MANIFEST").exists() {
        format!("the backup in {to_shown} is whole")
    } else if to.exists() {
        format!("{to_shown} is no backup, as it has no MANIFEST: the same command begins anew")
    } else {
        format!("there is no {to_shown} yet")
    }
}

/// A folder that a command makes, and that it takes away again if it fails.
struct NewFolder {
    /// `None` for one that was there.
    path: Option<PathBuf>,
}

impl NewFolder {
    fn at(path: &Path) -> NewFolder {
        NewFolder { path: (!path.exists()).then(|| path.to_owned()) }
    }

    /// Removes it if it has no more than the lock. A backup that has begun may go on there.
    fn remove_if_unused(&self) {
        let Some(path) = &self.path else { return };
        let Ok(entries) = std::fs::read_dir(path) else { return };
        let lock = path.join("LOCK");
        if entries.filter_map(Result::ok).all(|entry| entry.path() == lock) {
            // The folder is of another user where the server has made it. It is no harm, and stays.
            let _ = std::fs::remove_file(lock);
            let _ = std::fs::remove_dir(path);
        }
    }

    /// Removes it with the parts of a store in it.
    fn remove(&self) {
        if let Some(path) = &self.path {
            // The failure itself is told.
            let _ = std::fs::remove_dir_all(path);
        }
    }
}

/// A path as the server understands it, whose own folder is another.
fn whole(path: &str) -> Result<String, Box<dyn Error>> {
    let path = std::path::absolute(Path::new(path))?;
    Ok(path.to_str().ok_or_else(|| format!("{} is not UTF-8", path.display()))?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_below_a_backup_is_told_from_its_neighbours() {
        let parent = tempfile::tempdir().unwrap();
        let backup = parent.path().join("sunday");
        std::fs::create_dir(&backup).unwrap();
        std::os::unix::fs::symlink(&backup, parent.path().join("link")).unwrap();
        for inside in ["sunday/x", "sunday/x/y", "link/x", "sunday/../sunday/x"] {
            assert!(lies_within(&parent.path().join(inside), &backup), "{inside}");
        }
        for outside in ["sunday", "sunday2", "monday/x", "sunday/../x"] {
            assert!(!lies_within(&parent.path().join(outside), &backup), "{outside}");
        }
    }

    #[test]
    fn a_folder_that_a_failed_command_has_made_is_removed_and_no_other() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("sunday");
        let new = NewFolder::at(&path);
        std::fs::create_dir(&path).unwrap();
        std::fs::write(path.join("LOCK"), "").unwrap();
        // It is there now, so that another command leaves it.
        NewFolder::at(&path).remove_if_unused();
        NewFolder::at(&path).remove();
        assert!(path.join("LOCK").exists());
        std::fs::write(path.join("extents"), "").unwrap();
        new.remove_if_unused();
        assert!(path.join("LOCK").exists() && path.join("extents").exists(), "a backup that has begun");
        std::fs::remove_file(path.join("extents")).unwrap();
        new.remove_if_unused();
        assert!(!path.exists());
        std::fs::create_dir_all(path.join("log")).unwrap();
        new.remove();
        assert!(!path.exists());
    }
}
