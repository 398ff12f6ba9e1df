//! `pando verify`.

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use bson::doc;
use clap::{Arg, ArgAction, ArgMatches, Command};
use pandodb::{StoreReport, VerifyDepth, verify_store};

use crate::transfer::{TargetChoice, run_command};

const EXAMPLES: &str = "Examples:
  pando verify ./data
      read every block of the store in ./data; nothing is changed
  pando verify ./data --collections
      then open it and compare every document with its index entries
  pando verify --uri mongodb://127.0.0.1:27017 --bytes-per-second 50000000
      read every block of a running server's store, at most 50 MB of it a second

Ends with 0 where nothing is wrong, with 1 where something is, and says what.";

pub(super) fn command() -> Command {
    Command::new("verify")
        .about("Check every pointer, checksum, count and extent of a store")
        .arg(Arg::new("folder").value_name("DIR").help("The data folder of a store that is not open"))
        .arg(
            Arg::new("uri")
                .long("uri")
                .value_name("URI")
                .required_unless_present("folder")
                .conflicts_with_all(["folder", "collections"])
                .help("A running server, such as mongodb://127.0.0.1:27017"),
        )
        .arg(
            Arg::new("rate")
                .long("bytes-per-second")
                .value_name("COUNT")
                .requires("uri")
                .value_parser(clap::value_parser!(i64).range(1..))
                .help("How much a server reads in a second at most"),
        )
        .arg(
            Arg::new("collections")
                .long("collections")
                .action(ArgAction::SetTrue)
                .help("Compare documents with index entries, too; replays the log"),
        )
        .after_help(EXAMPLES)
}

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode, Box<dyn Error>> {
    if let Some(uri) = matches.get_one::<String>("uri") {
        return verify_server(uri, matches.get_one::<i64>("rate").copied());
    }
    let folder = PathBuf::from(matches.get_one::<String>("folder").map_or("", String::as_str));
    let depth = if matches.get_flag("collections") { VerifyDepth::Collections } else { VerifyDepth::Blocks };
    let report = verify_store(&folder, depth)?;
    print(&report);
    Ok(if report.is_sound() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Has a running server check its own store.
fn verify_server(uri: &str, bytes_per_second: Option<i64>) -> Result<ExitCode, Box<dyn Error>> {
    let mut command = doc! { "pandoVerify": 1 };
    if let Some(bytes_per_second) = bytes_per_second {
        command.insert("bytesPerSecond", bytes_per_second);
    }
    let reply = run_command(&TargetChoice::Uri(uri.to_owned()), "admin", command)?;
    let number = |name| reply.get_i64(name).unwrap_or(0);
    println!("{} trees, {} entries, {} bytes read", number("trees"), number("entries"), number("bytes"));
    let problems = reply.get_array("problems").map(Vec::as_slice).unwrap_or_default();
    let problems: Vec<&str> = problems.iter().filter_map(bson::Bson::as_str).collect();
    print_problems(&problems);
    Ok(if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn print(report: &StoreReport) {
    println!(
        "{} trees, {} pages, {} entries; {} of {} bytes in use; {} log records to replay",
        report.trees, report.pages, report.entries, report.used_bytes, report.file_bytes, report.log_records
    );
    for (namespace, collection) in &report.collections {
        let indexes: Vec<String> =
            collection.entries.iter().map(|(name, entries)| format!("{name} {entries}")).collect();
        let listed = if indexes.is_empty() { "no index".to_owned() } else { indexes.join(", ") };
        println!("{namespace}: {} documents; entries: {listed}", collection.documents);
    }
    let problems: Vec<&str> = report.problems.iter().map(String::as_str).collect();
    print_problems(&problems);
}

fn print_problems(problems: &[&str]) {
    for problem in problems {
        println!("damage: {problem}");
    }
    if problems.is_empty() {
        println!("sound");
    } else {
        println!(
            "{} problems: restore what they name from a backup; the rest stays readable",
            problems.len()
        );
    }
}
