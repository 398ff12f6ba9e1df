//! `pando import`.

use std::error::Error;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;

use bson::{Document, doc};
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, Command};

use super::damage_report::damaged_lines;
use super::failure::UsageError;
use super::field_arguments::{field_arguments, named_fields};
use super::import_report::{Words, as_json, same_id_advice, stopped_lines, summary};
use super::login_arguments;
use super::output::print_line;
use super::target_arguments::{hidden_switch, json_argument, target_arguments, target_or_default};
use crate::error_text::tell_line;
use crate::transfer::{
    AfterFault, Blanks, ColumnType, EXIT_CODE_INTERRUPTED, End, Existing, FormatChoice, Import,
    ImportOptions, InputFormat, ResumePoint, RowOptions, Source, Talk, TransferError, TypeMismatch,
    TypedColumn, TypedNames, WriteMode, Writing, import,
};

const EXAMPLES: &str = "Examples:
  pando import cities.jsonl.gz --db atlas
      into the collection atlas.cities of the server on this machine
  pando import cities.csv --db atlas --collection places --types zip=string --data ./data
      into a folder that no server has open; the column zip stays text
  zcat cities.json.gz | pando import - -d atlas -c cities --mode upsert --upsert-fields name,country
      from standard input; documents with the same name and country are replaced
  pando import ./dump
      what mongodump has written: all databases, with options and indexes

Lines that cannot be read and documents that are refused are reported with their line and counted; the rest is
imported. However the import ends, it says how many documents are in, where it stopped, and the command that goes on
from there without doubles. A damaged file of a folder stops no other file; the end names each, with the command that
imports its rest. The flags of mongoimport are accepted, too.

Exit codes: 0 everything is in; 1 something is not, and the messages say what; 2 a wrong command line;
130 interrupted (Ctrl-C).";

pub(super) fn command() -> Command {
    Command::new("import")
        .about(
            "Bring documents into a collection: JSON, CSV, TSV, BSON, or a dump of mongodump; possibly gzip",
        )
        .arg(
            Arg::new("file")
                .value_name("FILE")
                .help("A file, a folder of mongodump, or - for standard input; gzip is recognised"),
        )
        .args(target_arguments())
        .mut_arg("collection", |collection| collection.help("The collection [default: the name of the file]"))
        .args(input_arguments())
        .args(row_arguments())
        .args(write_arguments())
        .arg(json_argument())
        .arg(Arg::new("quiet").long("quiet").action(ArgAction::SetTrue).help("No progress, no summary"))
        .after_help(EXAMPLES)
}

fn input_arguments() -> Vec<Arg> {
    vec![
        Arg::new("format")
            .long("format")
            .alias("type")
            .value_name("FORMAT")
            .value_parser(PossibleValuesParser::new(InputFormat::NAMES))
            .help("The input's format [default: found out from its name and its content]"),
        Arg::new("file-flag").long("file").value_name("FILE").hide(true).conflicts_with("file"),
        hidden_switch("jsonArray").help("The input is a JSON array"),
        Arg::new("resume")
            .long("resume")
            .value_name("POINT")
            .help("Go on where an import of the same, unchanged input stopped; it has named the point. With --drop collections of the files behind it are dropped"),
    ]
}

fn row_arguments() -> Vec<Arg> {
    let [fields, field_file] = field_arguments();
    vec![
        Arg::new("types")
            .long("types")
            .value_name("COLUMN=TYPE,…")
            .value_delimiter(',')
            .help(format!("CSV and TSV: types of columns [types: {}]", ColumnType::NAMES)),
        fields
            .value_name("COLUMN,…")
            .help("CSV and TSV: the columns, for an input whose first line does not name them"),
        field_file,
        hidden_switch("headerline"),
        hidden_switch("columnsHaveTypes"),
        Arg::new("ignore-blanks")
            .long("ignore-blanks")
            .alias("ignoreBlanks")
            .action(ArgAction::SetTrue)
            .help("CSV and TSV: no field for an empty text"),
        Arg::new("type-mismatch").long("parseGrace").hide(true).value_parser(PossibleValuesParser::new([
            "autoCast",
            "skipField",
            "skipRow",
            "stop",
        ])),
    ]
}

fn write_arguments() -> Vec<Arg> {
    vec![
        Arg::new("mode")
            .long("mode")
            .value_name("MODE")
            .value_parser(PossibleValuesParser::new(WriteMode::NAMES))
            .help("insert [default]; upsert: insert or replace; merge: insert or set fields; delete"),
        hidden_switch("upsert").conflicts_with("mode"),
        Arg::new("upsert-fields")
            .long("upsert-fields")
            .alias("upsertFields")
            .value_name("FIELD,…")
            .value_delimiter(',')
            .help("The fields by which upsert, merge and delete find a document [default: _id]"),
        Arg::new("drop")
            .long("drop")
            .action(ArgAction::SetTrue)
            .help("Drop the collection, with its indexes and options, before the first document"),
        Arg::new("stop-on-error")
            .long("stop-on-error")
            .alias("stopOnError")
            .action(ArgAction::SetTrue)
            .help("Stop at the first document that is refused or unreadable"),
        Arg::new("write-concern")
            .long("write-concern")
            .alias("writeConcern")
            .value_name("CONCERN")
            .hide(true),
        Arg::new("bypassDocumentValidation")
            .long("bypass-document-validation")
            .alias("bypassDocumentValidation")
            .action(ArgAction::SetTrue)
            .help("Take documents that the validator of their collection refuses, such as those that are older than it"),
        hidden_switch("maintainInsertionOrder"),
        Arg::new("numInsertionWorkers").long("numInsertionWorkers").short('j').hide(true),
        Arg::new("numDecodingWorkers").long("numDecodingWorkers").hide(true),
        Arg::new("batch-size")
            .long("batch-size")
            .alias("batchSize")
            .hide(true)
            .value_parser(clap::value_parser!(u16).range(1..)),
    ]
}

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode, Box<dyn Error>> {
    let text = |name| matches.get_one::<String>(name).cloned();
    let writing = writing_of(matches)?;
    let quiet = matches.get_flag("quiet");
    let existing = if matches.get_flag("drop") { Existing::Dropped } else { Existing::Kept };
    let resume = resume_point(text("resume"))?;
    if existing == Existing::Dropped && resume.as_ref().is_some_and(|point| point.place.is_none()) {
        let sentence = "--drop would take the documents before the point of --resume away: leave it out";
        return Err(UsageError::new(sentence).into());
    }
    let imported = import(&Import {
        source: source_of(matches)?,
        format: format_of(matches),
        target: target_or_default(matches)?,
        database: text("db"),
        collection: text("collection"),
        rows: rows_of(matches)?,
        options: ImportOptions {
            writing: writing.clone(),
            existing,
            resume,
            batch_records: matches.get_one::<u16>("batch-size").map(|size| usize::from(*size)),
            talk: if quiet { Talk::Quiet } else { Talk::All },
        },
    })
    .map_err(wrong_arguments)?;
    for remark in &imported.remarks {
        tell_line!("{remark}");
    }
    if matches.get_flag("json") {
        print_line!("{}", as_json(&imported));
    } else if !quiet {
        print_line!("{}", summary(&imported, writing.mode, &Words { done: "imported", record: "line" }));
    }
    if let Some(advice) = same_id_advice(&imported).filter(|_| !quiet) {
        tell_line!("{advice}");
    }
    let command_line: Vec<String> = std::env::args().collect();
    let source = file_argument(matches).map(String::as_str).unwrap_or_default();
    for line in damaged_lines(&imported.damaged, &command_line, source) {
        tell_line!("{line}");
    }
    for line in stopped_lines(&imported, &command_line) {
        tell_line!("{line}");
    }
    Ok(match imported.end {
        End::Interrupted => ExitCode::from(EXIT_CODE_INTERRUPTED),
        _ if imported.is_complete() => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

/// A collection that nothing names is a wrong command line, and so is a flag that the input has no use for.
fn wrong_arguments(error: TransferError) -> Box<dyn Error> {
    match error {
        TransferError::NoCollection | TransferError::NoRows { .. } => {
            UsageError::new(error.to_string()).into()
        }
        _ => error.into(),
    }
}

/// The input as the command line names it.
fn file_argument(matches: &ArgMatches) -> Option<&String> {
    matches.get_one::<String>("file").or_else(|| matches.get_one::<String>("file-flag"))
}

fn source_of(matches: &ArgMatches) -> Result<Source, UsageError> {
    match file_argument(matches).map(String::as_str) {
        Some(path) if path != "-" => Ok(Source::File(PathBuf::from(path))),
        None if std::io::stdin().is_terminal() => {
            Err(UsageError::new("name a file, a folder of mongodump, or - for standard input"))
        }
        // A read of the password would take some of the documents with it.
        _ if login_arguments::OF_STORE.is_from_standard_input(matches) => Err(UsageError::new(
            "--password-file -: standard input has the documents; name a file with the password",
        )),
        _ => Ok(Source::Standard),
    }
}

fn format_of(matches: &ArgMatches) -> Option<FormatChoice> {
    if matches.get_flag("jsonArray") {
        return Some(FormatChoice::Exact(InputFormat::JsonArray));
    }
    let name = matches.get_one::<String>("format")?;
    Some(InputFormat::of_name(name).map_or(FormatChoice::Json, FormatChoice::Exact))
}

/// The point at which an import or a copy goes on.
pub(super) fn resume_point(text: Option<String>) -> Result<Option<ResumePoint>, UsageError> {
    let point = text.map(|point| point.parse::<ResumePoint>()).transpose();
    point.map_err(|reason| UsageError::new(format!("--resume: {reason}")))
}

/// A column and its type, as `--types` names them.
fn typed(text: &str) -> Result<TypedColumn, UsageError> {
    let (name, of_type) = text.split_once('=').ok_or_else(|| {
        UsageError::new(format!("--types: expected COLUMN=TYPE, such as zip=string, and found '{text}'"))
    })?;
    let column_type =
        ColumnType::of_name(of_type).map_err(|reason| UsageError::new(format!("--types: {reason}")))?;
    Ok(TypedColumn { name: name.to_owned(), column_type })
}

fn rows_of(matches: &ArgMatches) -> Result<RowOptions, Box<dyn Error>> {
    let named = named_fields(matches)?;
    let types = matches.get_many::<String>("types").unwrap_or_default();
    Ok(RowOptions {
        names: named.filter(|_| !matches.get_flag("headerline")),
        types: types.map(|text| typed(text)).collect::<Result<_, _>>()?,
        key_fields: matches.get_many::<String>("upsert-fields").unwrap_or_default().cloned().collect(),
        typed_names: if matches.get_flag("columnsHaveTypes") { TypedNames::Yes } else { TypedNames::No },
        blanks: if matches.get_flag("ignore-blanks") { Blanks::LeftOut } else { Blanks::Kept },
        mismatch: match matches.get_one::<String>("type-mismatch").map(String::as_str) {
            Some("autoCast") => TypeMismatch::Detect,
            Some("skipField") => TypeMismatch::SkipField,
            Some("stop") => TypeMismatch::Stop,
            _ => TypeMismatch::SkipRow,
        },
    })
}

fn writing_of(matches: &ArgMatches) -> Result<Writing, Box<dyn Error>> {
    let mut writing = Writing::default();
    let fields: Option<Vec<String>> =
        matches.get_many::<String>("upsert-fields").map(|fields| fields.cloned().collect());
    let named = matches.get_one::<String>("mode").and_then(|name| WriteMode::of_name(name));
    // As with mongoimport, fields to find a document by mean that it is replaced.
    let implied = matches.get_flag("upsert") || fields.is_some();
    writing.mode = named.unwrap_or(if implied { WriteMode::Upsert } else { WriteMode::Insert });
    writing.key_fields = fields.unwrap_or(writing.key_fields);
    if let Some(concern) = matches.get_one::<String>("write-concern") {
        writing.write_concern = write_concern(concern)?;
    }
    if matches.get_flag("bypassDocumentValidation") {
        writing.command_fields.insert("bypassDocumentValidation", true);
    }
    if matches.get_flag("stop-on-error") {
        writing.after_fault = AfterFault::Stop;
    }
    Ok(writing)
}

/// `majority`, a number, or a document.
fn write_concern(text: &str) -> Result<Document, Box<dyn Error>> {
    if text.trim_start().starts_with('{') {
        let fields: serde_json::Map<_, _> = serde_json::from_str(text)
            .map_err(|error| format!("--write-concern: expected a JSON object: {error}"))?;
        return Ok(fields.try_into()?);
    }
    Ok(text.parse::<i32>().map_or_else(|_| doc! { "w": text }, |nodes| doc! { "w": nodes }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_type_or_point_is_a_wrong_command_line() {
        for wrong in ["zip", "zip=str"] {
            let error: UsageError = typed(wrong).unwrap_err();
            assert!(error.to_string().starts_with("--types: "), "{error}");
        }
        assert_eq!(typed("zip=string").unwrap().name, "zip");
        let error: UsageError = resume_point(Some("foo".to_owned())).unwrap_err();
        assert!(error.to_string().starts_with("--resume: "), "{error}");
        assert_eq!(resume_point(None).unwrap(), None);
    }
}
