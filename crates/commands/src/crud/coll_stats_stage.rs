//! The stage `$collStats`: one document about the collection instead of its documents. It stands first in a
//! pipeline, if at all.

use pando_catalog::{Bytes, Collection};
use pando_document::{DocumentWriter, RawArray, RawDocument, RawDocumentBuf, RawValue};

use crate::arguments::Argument;
use crate::context::Context;
use crate::diagnostic::coll_stats::{CollectionSize, scaled, write_series, write_size, write_trees};
use crate::diagnostic::latency_document::{Histograms, write_latencies};
use crate::error::Execution;
use crate::{CommandError, ErrorCode};

/// The argument of the stage, and the stages behind it, where a pipeline begins with it.
pub(super) fn split(pipeline: &RawArray) -> Result<Option<(&RawDocument, RawDocumentBuf)>, CommandError> {
    let Some(argument) = first_stage(pipeline, "$collStats")? else { return Ok(None) };
    let RawValue::Document(argument) = argument else {
        return Err(CommandError::failed(
            ErrorCode::Location(40166),
            format!(
                "$collStats must take a nested object but found: $collStats: {}",
                pando_query::shell_text::value_text(argument)
            ),
        ));
    };
    Ok(Some((argument, stages_behind_first(pipeline)?)))
}

/// The argument of the first stage of a pipeline, if it has this name.
pub(super) fn first_stage<'p>(
    pipeline: &'p RawArray,
    name: &str,
) -> Result<Option<RawValue<'p>>, CommandError> {
    match pipeline.iter().next().transpose()?.and_then(|first| first.as_document()) {
        Some(first) => Ok(first.get(name)?),
        None => Ok(None),
    }
}

/// A pipeline without its first stage.
pub(super) fn stages_behind_first(pipeline: &RawArray) -> Result<RawDocumentBuf, CommandError> {
    let mut rest = Vec::new();
    let mut writer = DocumentWriter::begin(&mut rest);
    for (at, stage) in pipeline.iter().skip(1).enumerate() {
        writer.append(&at.to_string(), stage?);
    }
    writer.finish();
    Ok(RawDocumentBuf::from_vec(rest)?)
}

/// The one document that the stage gives.
pub(super) fn document(
    context: &Context<'_>,
    collection: &str,
    argument: &RawDocument,
) -> Result<Bytes, CommandError> {
    let namespace = context.namespace(collection)?;
    // The figures of a time series are those of its buckets.
    let series = context.series(collection)?.map(|(buckets, _)| buckets);
    let is_series = series.is_some();
    let found = context.catalog().collection(context.database, collection).or(series);
    let needs_collection = argument.iter().flatten().any(|(name, _)| name != "latencyStats");
    if found.is_none() && needs_collection && context.view(collection)?.is_some() {
        return Err(Execution::Aggregate.fault(CommandError::failed(
            ErrorCode::CommandNotSupportedOnView,
            format!("Namespace {namespace} is a view, not a collection"),
        )));
    }
    // A collection that does not exist has latencies, all of them 0, and no other figures.
    let existing = |figures: &str| {
        found.as_ref().ok_or_else(|| {
            CommandError::failed(
                ErrorCode::NamespaceNotFound,
                format!(
                    "Unable to retrieve {figures} in $collStats stage :: caused by :: Collection [{namespace}] not found."
                ),
            )
        })
    };
    let mut bytes = Vec::new();
    let mut writer = DocumentWriter::begin(&mut bytes);
    match found.as_ref().filter(|_| is_series && needs_collection) {
        Some(buckets) => writer.append_str("ns", buckets.full_name()),
        None => writer.append_str("ns", &namespace.to_string()),
    }
    writer.append_str("host", &context.shared.machine_name());
    writer.append_date_time("localTime", context.shared.now_ms());
    for field in argument.iter() {
        let (name, value) = field?;
        if !matches!(name, "storageStats" | "count" | "latencyStats" | "queryExecStats") {
            return Err(unknown_field(name));
        }
        let options = options_of(name, value)?;
        match name {
            "storageStats" => {
                write_storage(context, existing(name)?, options, &mut writer)?;
            }
            "count" => {
                require_empty(options)?;
                let counts = context.catalog().counts(existing(name)?, context.operation)?;
                writer.append("count", scaled(counts.documents, 1));
            }
            "latencyStats" => write_latency(found.as_deref(), options, &mut writer)?,
            _ => {
                require_empty(options)?;
                write_scans(existing(name)?, &mut writer);
            }
        }
    }
    writer.finish();
    Ok(Bytes::from(bytes))
}

fn unknown_field(path: &str) -> CommandError {
    let sentence = format!("BSON field '$collStats.{path}' is an unknown field.");
    CommandError::failed(ErrorCode::IdlUnknownField, sentence)
}

/// The options of one part of the stage.
fn options_of<'d>(name: &str, value: RawValue<'d>) -> Result<&'d RawDocument, CommandError> {
    value.as_document().ok_or_else(|| {
        CommandError::failed(
            ErrorCode::TypeMismatch,
            format!(
                "BSON field '$collStats.{name}' is the wrong type '{}', expected type 'object'",
                value.element_type().alias()
            ),
        )
    })
}

fn require_empty(options: &RawDocument) -> Result<(), CommandError> {
    if options.is_empty() {
        return Ok(());
    }
    let text = pando_query::shell_text::value_text(RawValue::Document(options));
    Err(CommandError::failed(ErrorCode::Location(31170), format!("expected an empty object, but got {text}")))
}

fn write_latency(
    collection: Option<&Collection>,
    options: &RawDocument,
    writer: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    let mut histograms = Histograms::Hidden;
    for option in options.iter() {
        match option? {
            ("histograms", RawValue::Boolean(true)) => histograms = Histograms::Shown,
            ("histograms", RawValue::Boolean(false)) => {}
            ("histograms", other) => {
                return Err(CommandError::failed(
                    ErrorCode::TypeMismatch,
                    format!(
                        "Field 'histograms' should be a boolean value, but found: {}",
                        other.element_type().alias()
                    ),
                ));
            }
            (name, _) => return Err(unknown_field(&format!("latencyStats.{name}"))),
        }
    }
    let mut latencies = writer.document("latencyStats");
    let figures = |class| collection.map(|found| found.activity().latencies(class)).unwrap_or_default();
    write_latencies(figures, histograms, &mut latencies);
    latencies.finish();
    Ok(())
}

/// Scans of the whole collection. There are no tailable cursors.
fn write_scans(collection: &Collection, writer: &mut DocumentWriter<'_>) {
    let scans = i64::try_from(collection.activity().scans()).unwrap_or(i64::MAX);
    let mut executions = writer.document("queryExecStats");
    let mut document = executions.document("collectionScans");
    document.append_i64("total", scans);
    document.append_i64("nonTailable", scans);
    document.finish();
    executions.finish();
}

fn write_storage(
    context: &Context<'_>,
    collection: &Collection,
    options: &RawDocument,
    writer: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    let scale = match options.get("scale")? {
        Some(scale) => Argument::of_value("$collStats.storageStats", "scale", scale)
            .at_least(1)?
            .map_or(1, i64::unsigned_abs),
        None => 1,
    };
    let size = CollectionSize::of(context, collection)?;
    let mut storage = writer.document("storageStats");
    if collection.options().get("timeseries")?.is_some() {
        write_series(collection, &size, &mut storage);
    }
    write_size(&size, scale, &mut storage);
    write_trees(context, collection, &mut storage)?;
    storage.finish();
    Ok(())
}
