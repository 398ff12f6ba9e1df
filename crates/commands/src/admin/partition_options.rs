//! The option `partitionBy` of `create`, `collMod` and `convertToPartitioned`: partitions that follow the
//! time (`pando_catalog`, `partition_schedule`).

use pando_catalog::{Collection, Namespace, PartitionSchedule};
use pando_document::{Document, RawDocument, RawDocumentBuf, RawValue, Value};

use super::index_key_pattern;
use crate::context::Context;
use crate::{CommandError, ErrorCode};

/// Completes the options of a collection with the options that `partitionBy` stands for: `partitioned`, and a
/// primary key that begins with its field where none is given.
pub(super) fn complete(options: &mut Document) -> Result<(), CommandError> {
    let Some(Value::Document(by)) = options.get("partitionBy") else { return Ok(()) };
    let field = by.get("field").and_then(Value::as_str).map(str::to_owned);
    if options.get("partitioned").is_none() {
        options.push("partitioned", Value::Boolean(true));
    }
    let given = field.filter(|field| field != "_id" && options.get("primaryKey").is_none());
    if let Some(field) = given {
        let mut key = Document::new();
        key.push(field, Value::Int32(1));
        key.push("_id", Value::Int32(1));
        index_key_pattern::check(&key.to_raw())
            .map_err(|(code, reason)| CommandError::failed(code, reason))?;
        options.push("primaryKey", Value::Document(key));
    }
    Ok(())
}

/// Refuses a schedule that cannot be kept.
pub(super) fn check(options: &RawDocument) -> Result<(), CommandError> {
    PartitionSchedule::of_options(options)
        .map(|_| ())
        .map_err(|reason| CommandError::failed(ErrorCode::InvalidOptions, reason))
}

/// Changes the schedule of a collection: the fields that `change` has.
pub(super) fn change(
    context: &Context<'_>,
    namespace: &Namespace,
    change: &RawDocument,
) -> Result<(), CommandError> {
    context.catalog().change_options(namespace, context.operation, |collection| changed(collection, change))
}

fn changed(collection: &Collection, change: &RawDocument) -> Result<RawDocumentBuf, CommandError> {
    let mut options = Document::from_raw(collection.options())?;
    let Some(Value::Document(mut by)) = options.get("partitionBy").cloned() else {
        return Err(CommandError::failed(
            ErrorCode::InvalidOptions,
            "collMod changes 'partitionBy' only where the collection has it; convertToPartitioned gives it to one that has not",
        ));
    };
    for field in change.iter() {
        let (name, value) = field?;
        by.remove(name);
        if !matches!(value, RawValue::Null) {
            by.push(name, value.to_owned());
        }
    }
    options.insert("partitionBy", Value::Document(by));
    let options = options.to_raw();
    check(&options)?;
    Ok(options)
}
