//! The limit of nesting of documents that are computed.
//!
//! MongoDB refuses a deeper document where it leaves a pipeline or is sorted. Here no computed value is
//! deeper, so that no walk over a value exhausts the stack of its thread. A stored document is less deep, so
//! that a reply has room around it.

use pando_document::{Limits, NESTING_MAX, RawArray, RawDocument, RawValue};

use crate::error::{ErrorCode, QueryError};

/// Bytes of a document without fields.
const EMPTY_BYTES: usize = 5;
/// The least bytes of a document within another: its type, the end of its name, and itself.
const LEVEL_BYTES: usize = 2 + EMPTY_BYTES;

/// Refuses a document, or an array as its own document, of more than 200 levels.
#[inline]
pub(crate) fn check(document: &RawDocument) -> Result<(), QueryError> {
    if may_nest_deeper(document, NESTING_MAX - 1) && nests_deeper(document, NESTING_MAX - 1) {
        return Err(too_deep());
    }
    Ok(())
}

/// Refuses a document that nests deeper than one that a client inserts.
#[inline]
pub(crate) fn check_stored(document: &RawDocument) -> Result<(), QueryError> {
    let within_max = Limits::STORED.nesting_max;
    if may_nest_deeper(document, within_max) && nests_deeper(document, within_max) {
        return Err(QueryError::new(
            ErrorCode::Overflow,
            format!("Document exceeds maximum nesting depth of {within_max}"),
        ));
    }
    Ok(())
}

#[cold]
fn too_deep() -> QueryError {
    QueryError::new(
        ErrorCode::Overflow,
        format!(
            "cannot convert document to BSON because it exceeds the limit of {NESTING_MAX} levels of nesting"
        ),
    )
}

/// Whether a document has room for more levels within it than so many.
#[inline]
fn may_nest_deeper(document: &RawDocument, within_max: usize) -> bool {
    document.as_bytes().len() >= EMPTY_BYTES + LEVEL_BYTES * (within_max + 1)
}

/// Whether documents lie within one another deeper than `within_max`, where 0 allows none within the
/// outermost. Small parts are not looked into.
fn nests_deeper(document: &RawDocument, within_max: usize) -> bool {
    for value in RawArray::from_document(document).iter().map_while(Result::ok) {
        let inner = match value {
            RawValue::Document(inner) => inner,
            RawValue::Array(inner) => inner.as_document(),
            RawValue::JavaScriptWithScope(code) => code.scope,
            _ => continue,
        };
        let Some(within_max) = within_max.checked_sub(1) else { return true };
        if may_nest_deeper(inner, within_max) && nests_deeper(inner, within_max) {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use pando_document::{Document, Value, doc};

    use super::*;

    /// A document with so many others within one another, arrays among them.
    fn nested(levels: usize) -> Document {
        let innermost = Value::Document(Document::new());
        let value = (1..levels).fold(innermost, |inner, level| match level % 3 {
            0 => Value::Array(vec![Value::Int32(1), inner]),
            _ => Value::Document(doc! { "": inner }),
        });
        let mut document = doc! { "text": ("x".repeat(5_000)) };
        if levels > 0 {
            document.push("", value);
        }
        document
    }

    #[test]
    fn a_document_nests_as_deep_as_its_deepest_part() {
        for levels in [0, 1, 2, 3, 50, 150, 199] {
            let document = nested(levels).to_raw();
            assert!(!nests_deeper(&document, levels), "{levels}");
            assert!(levels == 0 || nests_deeper(&document, levels - 1), "{levels}");
            assert!(check(&document).is_ok(), "{levels}");
        }
        assert!(check(&nested(200).to_raw()).is_err());
        assert!(check_stored(&nested(180).to_raw()).is_ok() && check_stored(&nested(181).to_raw()).is_err());
    }

    #[test]
    fn the_least_document_of_a_depth_is_looked_into() {
        let empty = Value::Document(Document::new());
        let deep = (0..200).fold(empty, |inner, _| Value::Document(doc! { "": inner }));
        let Value::Document(deep) = deep else { unreachable!("it was made as one") };
        let deep = deep.to_raw();
        assert_eq!(deep.as_bytes().len(), EMPTY_BYTES + LEVEL_BYTES * 200);
        assert_eq!(check(&deep).map_err(|error| error.code()), Err(Some(ErrorCode::Overflow)));
    }
}
