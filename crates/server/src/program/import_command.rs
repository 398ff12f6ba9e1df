//! `pando import`.

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgMatches, Command};

use super::target_arguments::{required, target_arguments, target_of};
use crate::transfer::{Import, InputFormat, import};

const EXAMPLES: &str = "Examples:
  pando import cities.jsonl.gz --db atlas --collection cities --uri mongodb://127.0.0.1:27017
  pando import cities.csv --db atlas --collection cities --data ./data

Lines that cannot be read and documents that are refused are reported with their line and counted; the rest is
imported, and the exit code is 1.";

pub(super) fn command() -> Command {
    Command::new("import")
        .about(
            "Insert the documents of a file (JSON lines, JSON array or CSV, possibly gzip) into a collection",
        )
        .arg(Arg::new("file").value_name("FILE").required(true).help("The file; gzip is recognised"))
        .args(target_arguments())
        .arg(
            Arg::new("format")
                .long("format")
                .value_name("FORMAT")
                .value_parser(PossibleValuesParser::new(InputFormat::NAMES))
                .help("The file's format [default: found out from its name and first byte]"),
        )
        .after_help(EXAMPLES)
}

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode, Box<dyn Error>> {
    let format = matches.get_one::<String>("format").and_then(|name| InputFormat::of_name(name));
    let imported = import(&Import {
        file: PathBuf::from(required(matches, "file")),
        format,
        target: target_of(matches),
        database: required(matches, "db"),
        collection: required(matches, "collection"),
    })?;
    println!(
        "{} documents imported, {} lines unreadable, {} documents refused",
        imported.inserted, imported.unreadable, imported.refused
    );
    let complete = imported.unreadable == 0 && imported.refused == 0;
    Ok(if complete { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
