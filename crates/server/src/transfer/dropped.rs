//! The drop of a collection before an import, and what is lost with it beside the documents.
//!
//! `--drop` removes indexes, a validator and other options as well. The import makes only those again that a
//! dump describes, so that the rest has to be told.

use bson::{Bson, Document, doc};

use super::dump::{Description, index};
use super::error::TransferError;
use super::import_plan::Unit;
use super::target::Target;

const NAMESPACE_NOT_FOUND: i32 = 26;

/// Drops a collection, if it is there.
pub(super) fn drop_collection(unit: &Unit, target: &mut dyn Target) -> Result<(), TransferError> {
    match target.run(&unit.database, doc! { "drop": &unit.collection }, None) {
        Ok(_) | Err(TransferError::Refused { code: NAMESPACE_NOT_FOUND, .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// A remark on the indexes and options of a collection that are lost with a drop of it; `None` where nothing
/// is. It is also `None` for a user who may drop the collection and not look at it.
pub(super) fn lost_with_drop(unit: &Unit, target: &mut dyn Target) -> Result<Option<String>, TransferError> {
    let list = doc! { "listCollections": 1, "filter": { "name": &unit.collection } };
    let Some(found) = first_batch(target, unit, list)?.into_iter().next() else { return Ok(None) };
    let namespace = unit.namespace();
    let kind = found.get_str("type").unwrap_or("collection");
    if kind == "view" {
        return Ok(Some(format!("dropped: {namespace}, which was a view")));
    }
    let mut options = found.get_document("options").cloned().unwrap_or_default();
    let is_series = options.remove("timeseries").is_some();
    let indexes = first_batch(target, unit, doc! { "listIndexes": &unit.collection })?;
    let parts = [
        named("index", "indexes", &lost_indexes(indexes, &unit.description)),
        named("option", "options", &lost_options(&options, &unit.description)),
    ];
    let parts = parts.into_iter().flatten().collect::<Vec<_>>().join(" and ");
    let is_series = is_series && !unit.is_time_series();
    Ok(match (is_series, parts.as_str()) {
        (false, "") => None,
        (true, "") => Some(format!("dropped: {namespace}, which was a time series")),
        (true, parts) => Some(format!(
            "dropped: {namespace}, which was a time series, with {parts}, which this import does not make again"
        )),
        (false, parts) => {
            Some(format!("dropped with {namespace}: {parts}, which this import does not make again"))
        }
    })
}

/// The names of indexes that the dump does not describe.
fn lost_indexes(indexes: Vec<Document>, description: &Description) -> Vec<String> {
    let key_of = |index: &Document| index.get("key").cloned();
    let lost = indexes.into_iter().filter_map(|found| index(Bson::Document(found)));
    let lost = lost.filter(|one| !description.indexes.iter().any(|other| key_of(other) == key_of(one)));
    lost.map(|one| one.get_str("name").unwrap_or("without a name").to_owned()).collect()
}

/// The names of options that the dump does not describe.
fn lost_options(options: &Document, description: &Description) -> Vec<String> {
    let lost = options.keys().filter(|name| !description.options.contains_key(name));
    lost.cloned().collect()
}

/// `its indexes a_1, b_1`.
fn named(one: &str, several: &str, names: &[String]) -> Option<String> {
    let noun = if names.len() == 1 { one } else { several };
    (!names.is_empty()).then(|| format!("its {noun} {}", names.join(", ")))
}

/// The documents of a reply to a command that lists; none where the server refuses it.
fn first_batch(
    target: &mut dyn Target,
    unit: &Unit,
    command: Document,
) -> Result<Vec<Document>, TransferError> {
    let mut reply = match target.run(&unit.database, command, None) {
        Ok(reply) => reply,
        Err(TransferError::Refused { .. }) => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let batch = reply.get_document_mut("cursor").ok().and_then(|cursor| cursor.remove("firstBatch"));
    let Some(Bson::Array(documents)) = batch else { return Ok(Vec::new()) };
    let documents = documents.into_iter().filter_map(|one| match one {
        Bson::Document(document) => Some(document),
        _ => None,
    });
    Ok(documents.collect())
}
