//! `pando export`.

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Arg, ArgMatches, Command};

use super::target_arguments::{required, target_arguments, target_of};
use crate::transfer::{Export, export};

const EXAMPLES: &str = "Examples:
  pando export --db atlas --collection cities --uri mongodb://127.0.0.1:27017 --out cities.jsonl
  pando export --db atlas --collection cities --data ./data --query '{\"country\": \"NL\"}'";

pub(super) fn command() -> Command {
    Command::new("export")
        .about("Write the documents of a collection as JSON lines (relaxed Extended JSON)")
        .args(target_arguments())
        .arg(Arg::new("out").long("out").value_name("FILE").help("Where to [default: standard output]"))
        .arg(
            Arg::new("query")
                .long("query")
                .value_name("JSON")
                .default_value("{}")
                .help("Which documents: a filter"),
        )
        .after_help(EXAMPLES)
}

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode, Box<dyn Error>> {
    let query: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(&required(matches, "query"))?;
    let count = export(&Export {
        file: matches.get_one::<String>("out").map(PathBuf::from),
        target: target_of(matches),
        database: required(matches, "db"),
        collection: required(matches, "collection"),
        filter: query.try_into()?,
    })?;
    eprintln!("{count} documents exported");
    Ok(ExitCode::SUCCESS)
}
