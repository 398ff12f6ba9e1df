//! `pando-bench commands`: its arguments.

use crate::cli;
use crate::error::BenchError;
use crate::workload::commands::Commands;
use clap::{Arg, ArgAction, ArgMatches, Command};
use pando_document::{Document, parse_json_line};
use pando_measuring::random::Generator;
use std::path::{Path, PathBuf};
use std::sync::Once;

/// The command without arguments: a document of the first collection that `pando-bench load` fills.
const DEFAULT: &str =
    r#"{"find": "sbtest1", "filter": {"_id": {"$draw": [1, 100000]}}, "limit": 1, "singleBatch": true}"#;

const DRAWS: &str = "Places in a command that get another value in each request:
  {\"$draw\": [LOW, HIGH]}                  a whole number; further: \"as\": \"NAME\"
  {\"$drawDate\": [LOW, HIGH]}              a date, in milliseconds since 1970; further: \"as\": \"NAME\"
  {\"$drawn\": \"NAME\", \"plus\": N}           the number drawn as NAME, and N more
  {\"$drawMany\": [COUNT, LOW, HIGH]}       an array of whole numbers
  {\"$drawDouble\": [LOW, HIGH]}            a double
  {\"$drawText\": [\"PREFIX\", LOW, HIGH]}    the prefix and a whole number

Example: a range of a hundred keys, by 1 and by 32 clients
  pando-bench commands --database shop --clients 1,32 --command \\
    '{\"find\": \"items\", \"filter\": {\"key\": {\"$gte\": {\"$draw\": [0, 9900], \"as\": \"low\"}, \"$lt\": {\"$drawn\": \"low\", \"plus\": 100}}}}'";

pub fn command() -> Command {
    Command::new("commands")
        .about("Commands of your own against data of your own, with drawn values")
        .after_help(DRAWS)
        .long_about(format!(
            "Commands of your own against data of your own, with drawn values.\n\nWithout --command and --file each \
             request is\n  {DEFAULT}"
        ))
        .args(cli::server_arguments())
        .args(cli::run_arguments())
        .args(arguments())
        .mut_arg("clients", |argument| argument.default_value("1,32"))
        .arg(cli::option_of_others(
            "load",
            "commands run on data of your own, and load none: see pando-bench load",
        ))
}

fn arguments() -> Vec<Arg> {
    vec![
        cli::database_argument("sbtest"),
        cli::option("command", "JSON")
            .action(ArgAction::Append)
            .help("A command in Extended JSON; may be repeated, each is sent as often as the others"),
        cli::path("file", "FILE")
            .conflicts_with("command")
            .help("A file with a command on each line; empty lines and those that begin with # are skipped"),
        cli::seed_argument(),
    ]
}

pub fn workload(matches: &ArgMatches) -> Result<Commands, BenchError> {
    let commands = match matches.get_one::<PathBuf>("file") {
        Some(file) => of_file(file)?,
        None => of_arguments(matches)?,
    };
    let (database, seed) = (cli::value(matches, "database"), cli::value(matches, "seed"));
    Commands::new(database, &commands, Generator::Xoshiro, seed)
        .map_err(|cause| BenchError::option("command", cause))
}

fn of_arguments(matches: &ArgMatches) -> Result<Vec<Document>, BenchError> {
    let texts = matches.get_many::<String>("command").map(|texts| texts.map(String::as_str).collect());
    let texts: Vec<&str> = texts.unwrap_or_else(|| {
        // A self-check makes several workloads.
        static SAID: Once = Once::new();
        SAID.call_once(|| err_line!("no --command and no --file: each request is {DEFAULT}"));
        vec![DEFAULT]
    });
    let parsed = texts.into_iter().map(|text| {
        parse_json_line(text).map_err(|error| BenchError::option("command", format!("{error}: {text}")))
    });
    parsed.collect()
}

fn of_file(path: &Path) -> Result<Vec<Document>, BenchError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| BenchError::ReadFile { path: path.to_owned(), source })?;
    let lines = text.lines().map(str::trim).enumerate();
    let commands = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let parsed = commands.map(|(at, line)| {
        parse_json_line(line).map_err(|error| BenchError::FileForm {
            path: path.to_owned(),
            line: at + 1,
            cause: error.to_string(),
        })
    });
    parsed.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Workload;

    fn kinds(arguments: &[&str]) -> Result<Vec<String>, BenchError> {
        let all = std::iter::once(&"commands").chain(arguments);
        workload(&command().get_matches_from(all)).map(|workload| workload.kinds())
    }

    #[test]
    fn commands_are_called_by_their_comment_or_their_verb() {
        let two = ["--command", r#"{"ping": 1}"#, "--command", r#"{"find": "a", "comment": "everything"}"#];
        assert_eq!(kinds(&two).expect("sound"), ["ping", "everything"]);
        assert_eq!(kinds(&[]).expect("the default"), ["find"]);
    }

    #[test]
    fn the_help_says_what_is_sent_without_a_command() {
        let help = command().render_long_help().to_string();
        assert!(help.contains("Without --command and --file") && help.contains(DEFAULT), "{help}");
    }

    #[test]
    fn a_file_has_a_command_a_line_and_errors_name_the_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("commands.json");
        std::fs::write(&path, "# two\n{\"ping\": 1}\n\n{\"count\": \"a\"}\n").expect("it is written");
        let path_text = path.to_str().expect("UTF-8");
        assert_eq!(kinds(&["--file", path_text]).expect("sound"), ["ping", "count"]);
        std::fs::write(&path, "{\"ping\": 1}\n{oops").expect("it is written");
        assert!(matches!(kinds(&["--file", path_text]), Err(BenchError::FileForm { line: 2, .. })));
        assert!(matches!(kinds(&["--file", "/nowhere"]), Err(BenchError::ReadFile { .. })));
    }

    #[test]
    fn malformed_commands_are_refused() {
        for text in ["5", "{", r#"{"find": {"$draw": 1}}"#, "{}"] {
            assert!(matches!(kinds(&["--command", text]), Err(BenchError::Option { .. })), "{text}");
        }
    }
}
