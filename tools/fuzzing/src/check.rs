//! Properties of documents that more than one target asserts.

use pando_document::{DOCUMENT_BYTES_MAX, Limits, RawDocument, RawValue, validate};

/// As a stored document, but as deep as it likes: an expression may build a document that only the write
/// refuses.
const SOUND: Limits = Limits { bytes_max: 4 * DOCUMENT_BYTES_MAX, nesting_max: 10_000 };

/// Asserts that a document that came out of the product is well formed.
pub fn assert_sound(document: &RawDocument) {
    if let Err(error) = validate(document.as_bytes(), &SOUND) {
        panic!("{error} in {:02x?}", document.as_bytes());
    }
}

/// Reads every field at every depth, and gives their number. Asserts that no error comes: for validated
/// documents.
pub fn walk(document: &RawDocument) -> usize {
    document.iter().map(|field| 1 + walk_value(field.expect("the document was validated").1)).sum()
}

fn walk_value(value: RawValue<'_>) -> usize {
    match value {
        RawValue::Document(inner) => walk(inner),
        RawValue::Array(inner) => {
            inner.iter().map(|value| 1 + walk_value(value.expect("the document was validated"))).sum()
        }
        RawValue::JavaScriptWithScope(code) => walk(code.scope),
        _ => 0,
    }
}
