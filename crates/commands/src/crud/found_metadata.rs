//! Metadata of the document that a `findAndModify` has found, for its projection.
//!
//! The kinds are derived from the plan and the document as it was found: `findAndModify` shows figures of
//! that also beside the new document. A record id is null there, as in MongoDB.

use pando_document::{Document, RawDocument, RawDocumentBuf, Value};
use pando_query::QueryError;
use pando_query::execute::nearest;
use pando_query::filter::Filter;
use pando_query::metadata::{Metadata, MetadataSet};
use pando_query::plan::{Access, Plan, ReturnedKey};

use crate::{CommandError, ErrorCode};

/// Refuses the sort key.
pub(super) fn check(asked: MetadataSet) -> Result<(), CommandError> {
    if asked.has(Metadata::SortKey) {
        let reason = "Cannot use a $meta sortKey projection in findAndModify commands.";
        return Err(CommandError::failed(ErrorCode::BadValue, reason));
    }
    Ok(())
}

/// The hidden fields of a document that was found by a plan.
pub(super) fn hidden_fields(
    kinds: MetadataSet,
    plan: &Plan,
    filter: &Filter,
    found: &RawDocument,
) -> Result<Document, QueryError> {
    let mut fields = Document::new();
    for kind in kinds.iter() {
        if let Some(value) = value(kind, plan, filter, found)? {
            fields.push(kind.field(), value);
        }
    }
    Ok(fields)
}

fn value(
    kind: Metadata,
    plan: &Plan,
    filter: &Filter,
    found: &RawDocument,
) -> Result<Option<Value>, QueryError> {
    Ok(match (kind, &plan.access) {
        (Metadata::TextScore, Access::Text(search)) => Some(Value::Double(search.search.score_of(found)?)),
        (Metadata::GeoDistance | Metadata::GeoPoint, Access::Near(_)) => {
            let Some((path, near)) = filter.near() else { return Ok(None) };
            let nearest = nearest(path, &near.query, found)?;
            nearest.map(|(distance, place)| match kind {
                Metadata::GeoDistance => Value::Double(distance),
                _ => place.to_owned(),
            })
        }
        // A lookup by `_id` goes through no index there.
        (Metadata::IndexKey, Access::Id(_)) => None,
        (Metadata::IndexKey, access) => match ReturnedKey::of(access) {
            Some(key) => Some(Value::Document(key.of_document(found)?)),
            None => None,
        },
        (Metadata::RecordId, _) => Some(Value::Null),
        _ => None,
    })
}

/// A document with hidden fields.
pub(super) fn with_fields(document: &RawDocument, fields: &Document) -> Result<RawDocumentBuf, QueryError> {
    let mut whole = Document::from_raw(document)?;
    for (name, value) in fields.iter() {
        whole.push(name, value.clone());
    }
    Ok(whole.to_raw())
}
