//! `pando verify`.

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use bson::doc;
use clap::{Arg, ArgAction, ArgMatches, Command};
use pando_commands::{ByteSize, ByteSizeError};
use pandodb::{EngineName, EngineOptions, StoreReport, VerifyDepth, engine_of_folder, verify_store_with};
use serde_json::json;

use super::encryption_arguments::OF_STORE;
use super::failure::UsageError;
use super::login_arguments::{self, login_arguments};
use super::output::print_line;
use super::target_arguments::{json_argument, refuse_uri};
use crate::amounts::{bytes_text, counted};
use crate::folder_owner::warn_root_in;
use crate::transfer::{TargetChoice, run_command};

const EXAMPLES: &str = "Examples:
  pando verify ./data
      read every block of the store in ./data; nothing is changed
  pando verify ./data --collections
      then open it and compare every document with its index entries
  pando verify --uri mongodb://127.0.0.1:27017 --bytes-per-second 50000000
      read every block of a running server's store, at most 50 MB of it a second

Exit codes: 0 nothing is wrong; 1 something is, and the messages say what; 2 a wrong command line.";

pub(super) fn command() -> Command {
    Command::new("verify")
        .about("Check every pointer, checksum, count and extent of a store")
        .arg(Arg::new("folder").value_name("DIR").help("The data folder of a store that is not open"))
        // As the other commands have it.
        .arg(
            Arg::new("data")
                .long("data")
                .value_name("DIR")
                .hide(true)
                .conflicts_with_all(["folder", "uri", "rate"]),
        )
        .arg(
            Arg::new("uri")
                .long("uri")
                .value_name("URI")
                .conflicts_with_all(["folder", "collections"])
                .help("A running server, such as mongodb://127.0.0.1:27017"),
        )
        .arg(
            Arg::new("rate")
                .long("bytes-per-second")
                .value_name("SIZE")
                .requires("uri")
                // A demand for what another argument excludes is passed over.
                .conflicts_with("folder")
                .value_parser(bytes_per_second)
                .help("Bytes that a server reads in a second at most, such as 50MB"),
        )
        .arg(
            Arg::new("collections")
                .long("collections")
                .action(ArgAction::SetTrue)
                .help("Compare documents with index entries, too; replays the log"),
        )
        .args(login_arguments())
        .args(OF_STORE.arguments("the store"))
        .arg(json_argument())
        .after_help(EXAMPLES)
}

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode, Box<dyn Error>> {
    if let Some(uri) = matches.get_one::<String>("uri") {
        OF_STORE.refuse_for_server(matches)?;
        return verify_server(matches, login_arguments::completed(uri, matches)?);
    }
    let folder = matches.get_one::<String>("folder").or_else(|| matches.get_one::<String>("data"));
    let folder = folder.ok_or(UsageError::new(
        "name the store: a data folder that no server has open, as in 'pando verify ./data', or --uri for a running server, \
         such as --uri mongodb://127.0.0.1:27017",
    ))?;
    refuse_uri(folder)?;
    login_arguments::refuse_for_folder(matches)?;
    let folder = PathBuf::from(folder);
    let depth = if matches.get_flag("collections") { VerifyDepth::Collections } else { VerifyDepth::Blocks };
    let options = EngineOptions { encryption: OF_STORE.load(matches)?, ..EngineOptions::default() };
    // The blocks of betree are read without a change of the folder.
    if depth == VerifyDepth::Collections || engine_of_folder(&folder) != EngineName::Betree {
        warn_root_in(&folder);
    }
    let report = verify_store_with(&folder, depth, &options)?;
    if matches.get_flag("json") {
        print_line!("{}", as_json(&report));
    } else {
        print(&report);
    }
    Ok(if report.is_sound() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A size of at least a byte.
fn bytes_per_second(text: &str) -> Result<i64, String> {
    let size: ByteSize = text.parse().map_err(|error: ByteSizeError| error.to_string())?;
    match i64::try_from(size.bytes()) {
        Ok(bytes) if bytes > 0 => Ok(bytes),
        _ => Err("expected at least a byte".to_owned()),
    }
}

/// Has a running server check its own store.
fn verify_server(matches: &ArgMatches, uri: String) -> Result<ExitCode, Box<dyn Error>> {
    let mut command = doc! { "pandoVerify": 1 };
    if let Some(bytes_per_second) = matches.get_one::<i64>("rate") {
        command.insert("bytesPerSecond", *bytes_per_second);
    }
    let reply = run_command(&TargetChoice::Uri(uri), "admin", command)?;
    let number = |name| reply.get_i64(name).map_or(0, |number| u64::try_from(number).unwrap_or(0));
    let problems = reply.get_array("problems").map(Vec::as_slice).unwrap_or_default();
    let problems: Vec<&str> = problems.iter().filter_map(bson::Bson::as_str).collect();
    let (trees, entries, bytes) = (number("trees"), number("entries"), number("bytes"));
    if matches.get_flag("json") {
        let result = json!({
            "sound": problems.is_empty(), "trees": trees, "entries": entries, "bytes": bytes, "problems": problems,
        });
        print_line!("{result}");
    } else {
        print_line!("{trees} trees, {entries} entries, {} read", bytes_text(bytes));
        print_problems(&problems, AfterDamage::Readable);
    }
    Ok(if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn as_json(report: &StoreReport) -> serde_json::Value {
    let collections = report.collections.iter().map(|(namespace, collection)| {
        let indexes: serde_json::Map<String, serde_json::Value> =
            collection.entries.iter().map(|(name, entries)| (name.clone(), (*entries).into())).collect();
        json!({ "namespace": namespace, "documents": collection.documents, "indexEntries": indexes })
    });
    json!({
        "sound": report.is_sound(),
        "trees": report.trees,
        "pages": report.pages,
        "entries": report.entries,
        "usedBytes": report.used_bytes,
        "fileBytes": report.file_bytes,
        "logRecords": report.log_records,
        "collections": collections.collect::<Vec<_>>(),
        "problems": report.problems,
        "opens": !report.is_closed_by_damage,
        "remarks": report.remarks,
    })
}

fn print(report: &StoreReport) {
    print_line!(
        "{} trees, {} pages, {} entries; {} of {} in use; {} log records to replay",
        report.trees,
        report.pages,
        report.entries,
        bytes_text(report.used_bytes),
        bytes_text(report.file_bytes),
        report.log_records
    );
    for (namespace, collection) in &report.collections {
        let indexes: Vec<String> =
            collection.entries.iter().map(|(name, entries)| format!("{name} {entries}")).collect();
        let listed = if indexes.is_empty() { "no index".to_owned() } else { indexes.join(", ") };
        print_line!("{namespace}: {}; entries: {listed}", counted(collection.documents, "document"));
    }
    for remark in &report.remarks {
        print_line!("remark: {remark}");
    }
    let problems: Vec<&str> = report.problems.iter().map(String::as_str).collect();
    let after = if report.is_closed_by_damage { AfterDamage::Closed } else { AfterDamage::Readable };
    print_problems(&problems, after);
}

/// What a store with damage still does.
enum AfterDamage {
    Readable,
    Closed,
}

fn print_problems(problems: &[&str], after: AfterDamage) {
    for problem in problems {
        print_line!("damage: {problem}");
    }
    if problems.is_empty() {
        print_line!("sound");
    } else {
        let (count, them) = match problems.len() {
            1 => ("one problem".to_owned(), "it names"),
            count => (format!("{count} problems"), "they name"),
        };
        match after {
            AfterDamage::Readable => {
                print_line!("{count}: restore what {them} from a backup; the rest stays readable");
            }
            AfterDamage::Closed => {
                print_line!(
                    "{count}: the store does not open as it is; restore a backup into another folder"
                );
            }
        }
    }
}
