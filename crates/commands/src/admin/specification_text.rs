//! Specifications of indexes as messages show them.

use pando_document::{Document, RawDocument, RawDocumentBuf, Value};
use pando_query::shell_text::document_text;

/// The specification as messages about an existing index show it.
pub(in crate::admin) fn shown(specification: &RawDocument) -> String {
    let Ok(document) = Document::from_raw(specification) else { return document_text(specification) };
    let mut shown = Document::new();
    let early = ["v", "unique", "prepareUnique", "key", "name"];
    for name in early {
        if let Some(value) = document.get(name) {
            shown.push(name, value.clone());
        }
    }
    for (name, value) in document.iter().filter(|(name, _)| !early.contains(name)) {
        shown.push(name, value.clone());
    }
    document_text(&shown.to_raw())
}

/// The specification with the version that it gets.
pub(super) fn with_version(given: &RawDocument) -> RawDocumentBuf {
    let mut document = Document::from_raw(given).unwrap_or_default();
    if document.get("v").is_none() {
        document.push("v", Value::Int32(2));
    }
    document.to_raw()
}
