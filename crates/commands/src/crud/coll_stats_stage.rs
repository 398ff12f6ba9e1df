//! The stage `$collStats`: one document about the collection instead of its documents. It stands first in a
//! pipeline, if at all.

use pando_catalog::Bytes;
use pando_document::{DocumentWriter, RawArray, RawDocument, RawDocumentBuf, RawValue};

use crate::arguments::Argument;
use crate::context::Context;
use crate::diagnostic::coll_stats::{CollectionSize, write_size};
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
    let Some(found) = context.catalog().collection(context.database, collection) else {
        return Err(CommandError::failed(
            ErrorCode::NamespaceNotFound,
            format!(
                "Unable to retrieve storageStats in $collStats stage :: caused by :: Collection [{namespace}] not found."
            ),
        ));
    };
    let size = CollectionSize::of(context, &found)?;
    let mut bytes = Vec::new();
    let mut writer = DocumentWriter::begin(&mut bytes);
    writer.append_str("ns", &namespace.to_string());
    writer.append_str("host", &context.shared.options.address);
    writer.append_date_time("localTime", context.shared.now_ms());
    for field in argument.iter() {
        match field? {
            ("storageStats", RawValue::Document(options)) => write_storage(&size, options, &mut writer)?,
            ("count", _) => {
                writer.append_i64("count", i64::try_from(size.counts.documents).unwrap_or(i64::MAX))
            }
            // Latencies and executions are not counted by collection.
            ("latencyStats" | "queryExecStats", _) => {}
            (name, _) => {
                return Err(CommandError::failed(
                    ErrorCode::IdlUnknownField,
                    format!("BSON field '$collStats.{name}' is an unknown field."),
                ));
            }
        }
    }
    writer.finish();
    Ok(Bytes::from(bytes))
}

fn write_storage(
    size: &CollectionSize,
    options: &RawDocument,
    writer: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    let scale = match options.get("scale")? {
        Some(scale) => Argument::of_value("$collStats.storageStats", "scale", scale)
            .at_least(1)?
            .map_or(1, i64::unsigned_abs),
        None => 1,
    };
    let mut storage = writer.document("storageStats");
    write_size(size, scale, &mut storage);
    storage.finish();
    Ok(())
}
