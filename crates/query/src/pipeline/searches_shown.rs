//! The work of a stage in another collection, as `explain` shows it.

use pando_document::{Document, Value};

use super::Searches;
use super::measured::long;

/// Adds the figures to the stage as it is shown, where the run was measured.
pub(super) fn show(searches: Option<&Searches>, shown: &mut Document) {
    let Some(searches) = searches else { return };
    shown.push("totalDocsExamined", long(searches.documents_examined));
    shown.push("totalKeysExamined", long(searches.keys_examined));
    shown.push("collectionScans", long(searches.collection_scans));
    let indexes = searches.indexes.iter().map(|name| Value::String(name.clone()));
    shown.push("indexesUsed", Value::Array(indexes.collect()));
}
