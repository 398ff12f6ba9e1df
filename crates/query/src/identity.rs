//! Identity of values: same type and same bytes. It decides whether a write changes anything.
//!
//! Stricter than comparison: 1 and 1.0, 0.0 and −0.0, Decimal 1.0 and 1.00 are equal but not identical.

use pando_document::RawValue;

/// Same type and same bytes.
pub(crate) fn is_identical(a: RawValue<'_>, b: RawValue<'_>) -> bool {
    use RawValue as V;
    match (a, b) {
        (V::Double(a), V::Double(b)) => a.to_bits() == b.to_bits(),
        (V::String(a), V::String(b))
        | (V::Symbol(a), V::Symbol(b))
        | (V::JavaScript(a), V::JavaScript(b)) => a == b,
        (V::Document(a), V::Document(b)) => a.as_bytes() == b.as_bytes(),
        (V::Array(a), V::Array(b)) => a.as_document().as_bytes() == b.as_document().as_bytes(),
        (V::Binary(a), V::Binary(b)) => a.subtype == b.subtype && a.bytes == b.bytes,
        (V::ObjectId(a), V::ObjectId(b)) => a == b,
        (V::Boolean(a), V::Boolean(b)) => a == b,
        (V::DateTime(a), V::DateTime(b)) | (V::Int64(a), V::Int64(b)) => a == b,
        (V::Int32(a), V::Int32(b)) => a == b,
        (V::Regex(a), V::Regex(b)) => a.pattern == b.pattern && a.options == b.options,
        (V::DbPointer(a), V::DbPointer(b)) => a.namespace == b.namespace && a.id == b.id,
        (V::JavaScriptWithScope(a), V::JavaScriptWithScope(b)) => {
            a.code == b.code && a.scope.as_bytes() == b.scope.as_bytes()
        }
        (V::Timestamp(a), V::Timestamp(b)) => a == b,
        (V::Decimal128(a), V::Decimal128(b)) => a.to_le_bytes() == b.to_le_bytes(),
        (V::Undefined, V::Undefined)
        | (V::Null, V::Null)
        | (V::MinKey, V::MinKey)
        | (V::MaxKey, V::MaxKey) => true,
        _ => false,
    }
}
