//! The collation that a wanted index takes over from its collection.

use pando_collation::TextOrder;
use pando_document::{Document, RawDocument, RawDocumentBuf, RawValue, doc};
use pando_query::shell_text::document_text;
use pando_query::text_index::specification::is_text;

use super::index_key_pattern;
use super::index_specification::COLLATION;
use crate::{CommandError, ErrorCode};

/// Gives the normalised specifications the collation that they take over. The simple one is spelled by none.
///
/// # Errors
/// An index on `_id` with another collation than its collection; one of words or of the plane with a
/// collation.
pub(super) fn taken_over(
    wanted: Vec<RawDocumentBuf>,
    of_collection: &TextOrder,
) -> Result<Vec<RawDocumentBuf>, CommandError> {
    wanted.into_iter().map(|wanted| complete(wanted, of_collection)).collect()
}

fn complete(wanted: RawDocumentBuf, of_collection: &TextOrder) -> Result<RawDocumentBuf, CommandError> {
    let given = match wanted.get(COLLATION)? {
        Some(RawValue::Document(given)) => Some(given),
        _ => None,
    };
    let Some(RawValue::Document(key)) = wanted.get("key")? else { return Ok(wanted) };
    let is_simple = |given: &RawDocument| matches!(given.get("locale"), Ok(Some(RawValue::String("simple"))));
    let inherited = of_collection.document();
    let collation: Option<&RawDocument> = match given {
        Some(given) if is_simple(given) => None,
        Some(given) => Some(given),
        None => inherited.map(|inherited| &**inherited),
    };
    if index_key_pattern::is_of_id(key) && given.is_some() && collation != inherited.map(|own| &**own) {
        return Err(other_than_ids(collation, inherited.map(|own| &**own)));
    }
    if let (Some(collation), Some(kind)) = (collation, kind_without_collation(key)) {
        return Err(CommandError::failed(
            ErrorCode::CannotCreateIndex,
            format!("Index type '{kind}' does not support collation: {}", document_text(collation)),
        ));
    }
    if given.is_none() && collation.is_none() {
        return Ok(wanted);
    }
    let mut completed = Document::from_raw(&wanted)?;
    completed.remove(COLLATION);
    if let Some(collation) = collation {
        completed.push(COLLATION, RawValue::Document(collation).to_owned());
    }
    Ok(completed.to_raw())
}

/// The kind of an index that has no collation: of words, or of cells of the plane.
fn kind_without_collation(key: &RawDocument) -> Option<&'static str> {
    let is_of_plane = || key.iter().any(|field| matches!(field, Ok((_, RawValue::String("2d")))));
    if is_text(key) {
        Some("text")
    } else if is_of_plane() {
        Some("2d")
    } else {
        None
    }
}

fn other_than_ids(index: Option<&RawDocument>, collection: Option<&RawDocument>) -> CommandError {
    let simple = doc! { "locale": "simple" }.to_raw();
    let shown = |collation: Option<&RawDocument>| document_text(collation.unwrap_or(&simple));
    CommandError::failed(
        ErrorCode::BadValue,
        format!(
            "The _id index must have the same collation as the collection. Index collation: {}, collection collation: {}",
            shown(index),
            shown(collection)
        ),
    )
}
