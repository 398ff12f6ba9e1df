//! `pando verify`.

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Command};
use pandodb::{StoreReport, VerifyDepth, verify_store};

const EXAMPLES: &str = "Examples:
  pando verify ./data
      read every block of the store in ./data; nothing is changed
  pando verify ./data --collections
      then open it and compare every document with its index entries

Ends with 0 where nothing is wrong, with 1 where something is, and says what.";

pub(super) fn command() -> Command {
    Command::new("verify")
        .about("Check every pointer, checksum, count and extent of a store that is not open")
        .arg(Arg::new("folder").value_name("DIR").required(true).help("The data folder"))
        .arg(
            Arg::new("collections")
                .long("collections")
                .action(ArgAction::SetTrue)
                .help("Compare documents with index entries, too; replays the log"),
        )
        .after_help(EXAMPLES)
}

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode, Box<dyn Error>> {
    let folder = PathBuf::from(matches.get_one::<String>("folder").map_or("", String::as_str));
    let depth = if matches.get_flag("collections") { VerifyDepth::Collections } else { VerifyDepth::Blocks };
    let report = verify_store(&folder, depth)?;
    print(&report);
    Ok(if report.is_sound() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
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
    for problem in &report.problems {
        println!("damage: {problem}");
    }
    if report.is_sound() {
        println!("sound");
    } else {
        println!(
            "{} problems: restore what they name from a backup; the rest stays readable",
            report.problems.len()
        );
    }
}
