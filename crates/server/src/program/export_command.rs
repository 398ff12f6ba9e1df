//! `pando export`.

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use bson::Document;
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, Command};
use serde_json::json;

use super::failure::{UsageError, error_lines};
use super::field_arguments::{field_arguments, named_fields};
use super::target_arguments::{hidden_switch, json_argument, target_arguments, target_or_default};
use crate::amounts::{bytes_text, count_text, counted, rate, time_text};
use crate::error_text::{error_text, tell_line};
use crate::transfer::{
    CsvHeader, EXIT_CODE_INTERRUPTED, Export, ExportEnd, ExportFormat, Exported, JsonDialect, JsonFrame,
    JsonLayout, JsonStyle, Talk, TargetChoice, database_of, export,
};

const EXAMPLES: &str = "Examples:
  pando export --db atlas --collection cities --out cities.jsonl.gz
      from the server on this machine; a name that ends in .gz is packed
  pando export --db atlas --collection cities --data ./data --query '{\"country\": \"NL\"}'
      from a folder that no server has open, to standard output
  pando export -d atlas -c cities --format csv --fields name,place.lat --sort '{\"name\": 1}' --limit 100

The flags of mongoexport are accepted, too.

Exit codes: 0 every document is in the output, or its reader has seen enough (| head); 1 an error, and the message
says how far the output goes; 2 a wrong command line; 130 interrupted (Ctrl-C).";

pub(super) fn command() -> Command {
    Command::new("export")
        .about(
            "Write the documents of a collection as JSON lines (relaxed Extended JSON), a JSON array, or CSV",
        )
        .args(target_arguments())
        .mut_arg("collection", |collection| collection.help("The collection; it has to be named"))
        .args(query_arguments())
        .args(output_arguments())
        .arg(json_argument().help("Print the result to standard error as one JSON object"))
        .arg(Arg::new("quiet").long("quiet").action(ArgAction::SetTrue).help("No progress, no summary"))
        .after_help(EXAMPLES)
}

fn query_arguments() -> Vec<Arg> {
    vec![
        Arg::new("query")
            .long("query")
            .short('q')
            .value_name("JSON")
            .help("Which documents: a filter [default: all]"),
        Arg::new("query-file")
            .long("query-file")
            .alias("queryFile")
            .value_name("FILE")
            .hide(true)
            .conflicts_with("query"),
        Arg::new("sort").long("sort").value_name("JSON").help("Their order, such as '{\"name\": 1}'"),
        Arg::new("skip")
            .long("skip")
            .value_name("COUNT")
            .value_parser(clap::value_parser!(i64).range(0..))
            .help("Pass over so many"),
        Arg::new("limit")
            .long("limit")
            .value_name("COUNT")
            .value_parser(clap::value_parser!(i64).range(0..))
            .help("No more than so many; 0 is no limit"),
        hidden_switch("allowDiskUse"),
        Arg::new("assert-exists")
            .long("assert-exists")
            .alias("assertExists")
            .action(ArgAction::SetTrue)
            .help("End with exit code 1 if the collection is not there"),
        hidden_switch("forceTableScan"),
        hidden_switch("slaveOk").short('k'),
    ]
}

fn output_arguments() -> Vec<Arg> {
    let [fields, field_file] = field_arguments();
    vec![
        Arg::new("out").long("out").short('o').value_name("FILE").help("Where to [default: standard output]"),
        Arg::new("format")
            .long("format")
            .alias("type")
            .value_name("FORMAT")
            .value_parser(PossibleValuesParser::new(["json", "jsonl", "json-array", "csv"]))
            .help("The form of the output [default: csv for a file NAME.csv, else jsonl]"),
        fields.value_name("FIELD,…").help("The fields to write; needed for CSV"),
        field_file,
        hidden_switch("csv"),
        hidden_switch("jsonArray"),
        Arg::new("pretty").long("pretty").action(ArgAction::SetTrue).help("JSON on several lines, indented"),
        Arg::new("json-format")
            .long("json-format")
            .alias("jsonFormat")
            .value_name("DIALECT")
            .value_parser(PossibleValuesParser::new(["relaxed", "canonical"]))
            .help("Extended JSON: canonical keeps the type of every number [default: relaxed]"),
        hidden_switch("noHeaderLine"),
    ]
}

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode, Box<dyn Error>> {
    let text = |name| matches.get_one::<String>(name);
    let target = target_or_default(matches)?;
    let from_uri = match &target {
        TargetChoice::Uri(uri) => database_of(uri),
        TargetChoice::Data(_) | TargetChoice::Cluster(_) => None,
    };
    let quiet = matches.get_flag("quiet");
    let fields = named_fields(matches)?;
    let format = format_of(matches, fields.clone())?;
    let projection = fields.map(|fields| projection_of(&fields, &format));
    let request = Export {
        file: text("out").filter(|path| *path != "-").map(PathBuf::from),
        format,
        target,
        database: text("db").cloned().or(from_uri).unwrap_or_else(|| "test".to_owned()),
        collection: text("collection")
            .cloned()
            .ok_or(UsageError::new("name the collection with --collection"))?,
        filter: filter_of(matches)?,
        find_fields: find_fields(matches, projection)?,
        talk: if quiet { Talk::Quiet } else { Talk::All },
    };
    let exported = export(&request)?;
    let namespace = format!("{}.{}", request.database, request.collection);
    if matches.get_flag("json") {
        tell_line!("{}", as_json(&exported, &namespace));
    } else {
        report(&exported, &namespace, quiet_of(quiet));
    }
    if !exported.collection_exists && matches.get_flag("assert-exists") {
        return Ok(ExitCode::FAILURE);
    }
    Ok(match exported.end {
        ExportEnd::Complete | ExportEnd::ReaderGone => ExitCode::SUCCESS,
        ExportEnd::Interrupted => ExitCode::from(EXIT_CODE_INTERRUPTED),
        ExportEnd::Failed(_) => ExitCode::FAILURE,
    })
}

fn quiet_of(quiet: bool) -> Talk {
    if quiet { Talk::Quiet } else { Talk::All }
}

fn report(exported: &Exported, namespace: &str, talk: Talk) {
    let Exported { documents, bytes, elapsed, .. } = *exported;
    if !exported.collection_exists {
        tell_line!("there is no collection {namespace}; nothing is exported");
    }
    match &exported.end {
        ExportEnd::Complete if talk == Talk::All && exported.collection_exists => tell_line!(
            "{} exported from {namespace}; {} in {} ({} documents/s, {}/s)",
            counted(documents, "document"),
            bytes_text(bytes),
            time_text(elapsed),
            count_text(rate(documents, elapsed)),
            bytes_text(rate(bytes, elapsed))
        ),
        ExportEnd::Complete | ExportEnd::ReaderGone => {}
        ExportEnd::Interrupted => {
            tell_line!("pando: interrupted; the output has the first {documents} documents of {namespace}");
        }
        ExportEnd::Failed(error) => {
            error_lines(error).iter().for_each(|line| tell_line!("{line}"));
            tell_line!(
                "  the output is not complete: it has at most the first {documents} documents of {namespace}"
            );
        }
    }
}

fn as_json(exported: &Exported, namespace: &str) -> serde_json::Value {
    let error = match &exported.end {
        ExportEnd::Complete | ExportEnd::ReaderGone => None,
        ExportEnd::Interrupted => Some("interrupted".to_owned()),
        ExportEnd::Failed(error) => Some(error_text(error)),
    };
    json!({
        "complete": matches!(exported.end, ExportEnd::Complete),
        "namespace": namespace,
        "collectionExists": exported.collection_exists,
        "documents": exported.documents,
        "bytes": exported.bytes,
        "seconds": exported.elapsed.as_secs_f64(),
        "error": error,
    })
}

/// The format that is named, or that of the ending of the file's name. A name that ends otherwise is JSON.
fn format_of(matches: &ArgMatches, fields: Option<Vec<String>>) -> Result<ExportFormat, UsageError> {
    let name = matches.get_one::<String>("format").map(String::as_str);
    let is_named = name.is_some() || matches.get_flag("csv") || matches.get_flag("jsonArray");
    let by_ending = matches.get_one::<String>("out").filter(|path| !is_named && is_csv(path));
    if name == Some("csv") || matches.get_flag("csv") || by_ending.is_some() {
        let fields = fields.ok_or_else(|| {
            let other = match by_ending {
                Some(path) => format!("; {path} is CSV by its name: for JSON there, say --format jsonl"),
                None => String::new(),
            };
            UsageError::new(format!(
                "CSV needs its columns: name them with --fields, such as --fields name,place.lat{other}"
            ))
        })?;
        let header = if matches.get_flag("noHeaderLine") { CsvHeader::LeftOut } else { CsvHeader::Written };
        return Ok(ExportFormat::Csv { fields, header });
    }
    let array = name == Some("json-array") || matches.get_flag("jsonArray");
    let canonical = matches.get_one::<String>("json-format").is_some_and(|dialect| dialect == "canonical");
    Ok(ExportFormat::Json {
        layout: JsonLayout {
            frame: if array { JsonFrame::Array } else { JsonFrame::Lines },
            style: if matches.get_flag("pretty") { JsonStyle::Pretty } else { JsonStyle::Compact },
        },
        dialect: if canonical { JsonDialect::Canonical } else { JsonDialect::Relaxed },
    })
}

/// Whether the name of a file says that it is CSV, compressed or not.
fn is_csv(path: &str) -> bool {
    let name = path.to_ascii_lowercase();
    let plain = name.strip_suffix(".gz").or(name.strip_suffix(".zst")).unwrap_or(&name);
    plain.ends_with(".csv")
}

fn filter_of(matches: &ArgMatches) -> Result<Document, Box<dyn Error>> {
    match (matches.get_one::<String>("query"), matches.get_one::<String>("query-file")) {
        (Some(text), _) => Ok(json_document("--query", text)?),
        (None, Some(path)) => {
            let text =
                std::fs::read_to_string(path).map_err(|error| format!("cannot read {path}: {error}"))?;
            Ok(json_document(path, &text)?)
        }
        (None, None) => Ok(Document::new()),
    }
}

fn find_fields(matches: &ArgMatches, projection: Option<Document>) -> Result<Document, Box<dyn Error>> {
    let mut find = Document::new();
    if let Some(sort) = matches.get_one::<String>("sort") {
        find.insert("sort", json_document("--sort", sort)?);
    }
    for name in ["skip", "limit"] {
        if let Some(count) = matches.get_one::<i64>(name).filter(|count| **count > 0) {
            find.insert(name, *count);
        }
    }
    if matches.get_flag("allowDiskUse") {
        find.insert("allowDiskUse", true);
    }
    if let Some(projection) = projection {
        find.insert("projection", projection);
    }
    Ok(find)
}

/// The projection that gives at least the fields. It has no position of an array element, which a projection
/// does not know, and no field within another one of it, which the server refuses.
///
/// CSV takes its fields out of the documents by itself, positions included. So it needs the whole array: a
/// projection into it leaves out elements, which moves the others.
fn projection_of(fields: &[String], format: &ExportFormat) -> Document {
    let is_position = |step: &&str| step.parse::<usize>().is_ok();
    let path_of = |field: &String| {
        let mut steps = field.split('.');
        let first = steps.next().unwrap_or_default();
        let inner: Vec<&str> = match format {
            ExportFormat::Csv { .. } => steps.take_while(|step| !is_position(step)).collect(),
            ExportFormat::Json { .. } => steps.filter(|step| !is_position(step)).collect(),
        };
        [&[first], &inner[..]].concat().join(".")
    };
    let paths: Vec<String> = fields.iter().map(path_of).collect();
    let lies_within = |path: &str, outer: &String| {
        path.strip_prefix(outer.as_str()).is_some_and(|rest| rest.starts_with('.'))
    };
    let outermost = paths.iter().filter(|path| !paths.iter().any(|outer| lies_within(path, outer)));
    outermost.map(|path| (path.clone(), bson::Bson::Int32(1))).collect()
}

fn json_document(name: &str, text: &str) -> Result<Document, UsageError> {
    let fields: serde_json::Map<String, serde_json::Value> = serde_json::from_str(text).map_err(|error| {
        UsageError::new(format!(
            "{name}: expected a JSON object with quoted names, such as {{\"country\": \"NL\"}}: {error}"
        ))
    })?;
    Document::try_from(fields).map_err(|error| UsageError::new(format!("{name}: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn projected(fields: &[&str], format: &ExportFormat) -> Vec<String> {
        let fields: Vec<String> = fields.iter().map(|field| (*field).to_owned()).collect();
        projection_of(&fields, format).keys().cloned().collect()
    }

    #[test]
    fn a_projection_has_neither_positions_nor_fields_within_others() {
        let csv = ExportFormat::Csv { fields: Vec::new(), header: CsvHeader::Written };
        assert_eq!(projected(&["arr.0", "arr.1.1.x", "e.x", "e", "ee"], &csv), ["arr", "e", "ee"]);
        assert_eq!(projected(&["a.b.1.c", "a.d", "0", "a.d"], &csv), ["a.b", "a.d", "0"]);
        let layout = JsonLayout { frame: JsonFrame::Lines, style: JsonStyle::Compact };
        let json = ExportFormat::Json { layout, dialect: JsonDialect::Relaxed };
        assert_eq!(projected(&["a.1.b", "c", "c.d"], &json), ["a.b", "c"]);
    }
}
