//! The ends of each bracket of types: ranges never leave the bracket of their literal.
//!
//! An empty string, document or array has the same key bytes in every order of strings, for none of it is
//! there to compare. The empty string is the least one in each.

use std::sync::LazyLock;

use pando_collation::TextOrder;
use pando_document::{
    CanonicalType, ObjectId, RawArray, RawBinary, RawDbPointer, RawDocument, RawJavaScriptWithScope,
    RawRegex, RawValue, Timestamp,
};

use super::interval::Cut;

/// The cut before the least value of a bracket. Of numbers that is -∞: NaN stands
/// below, and no range holds it.
pub(super) fn lower(bracket: CanonicalType) -> Cut {
    Cut::before(least(bracket), &TextOrder::SIMPLE)
}

/// The cut after the greatest value of a bracket.
pub(super) fn upper(bracket: CanonicalType) -> Cut {
    match bracket {
        CanonicalType::MinKey | CanonicalType::Undefined | CanonicalType::Null | CanonicalType::MaxKey => {
            Cut::after(least(bracket), &TextOrder::SIMPLE)
        }
        CanonicalType::Number => Cut::after(RawValue::Double(f64::INFINITY), &TextOrder::SIMPLE),
        CanonicalType::ObjectId => {
            Cut::after(RawValue::ObjectId(ObjectId::from_bytes([0xFF; 12])), &TextOrder::SIMPLE)
        }
        CanonicalType::Boolean => Cut::after(RawValue::Boolean(true), &TextOrder::SIMPLE),
        CanonicalType::DateTime => Cut::after(RawValue::DateTime(i64::MAX), &TextOrder::SIMPLE),
        CanonicalType::Timestamp => Cut::after(
            RawValue::Timestamp(Timestamp { time: u32::MAX, increment: u32::MAX }),
            &TextOrder::SIMPLE,
        ),
        // These have no greatest value: the least of the next bracket ends them.
        CanonicalType::String => lower(CanonicalType::Document),
        CanonicalType::Document => lower(CanonicalType::Array),
        CanonicalType::Array => lower(CanonicalType::Binary),
        CanonicalType::Binary => lower(CanonicalType::ObjectId),
        CanonicalType::Regex => lower(CanonicalType::DbPointer),
        CanonicalType::DbPointer => lower(CanonicalType::JavaScript),
        CanonicalType::JavaScript => lower(CanonicalType::JavaScriptWithScope),
        CanonicalType::JavaScriptWithScope => lower(CanonicalType::MaxKey),
    }
}

/// Whether a cut in either direction is at the end of some bracket, so that a range to
/// it is open on that side.
pub(super) fn is_end(cut: &Cut) -> bool {
    static ENDS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
        let ascending = EVERY.iter().flat_map(|bracket| [lower(*bracket).bytes, upper(*bracket).bytes]);
        ascending.flat_map(|bytes| [bytes.iter().map(|byte| !byte).collect(), bytes]).collect()
    });
    ENDS.contains(&cut.bytes)
}

const EVERY: [CanonicalType; 17] = [
    CanonicalType::MinKey,
    CanonicalType::Undefined,
    CanonicalType::Null,
    CanonicalType::Number,
    CanonicalType::String,
    CanonicalType::Document,
    CanonicalType::Array,
    CanonicalType::Binary,
    CanonicalType::ObjectId,
    CanonicalType::Boolean,
    CanonicalType::DateTime,
    CanonicalType::Timestamp,
    CanonicalType::Regex,
    CanonicalType::DbPointer,
    CanonicalType::JavaScript,
    CanonicalType::JavaScriptWithScope,
    CanonicalType::MaxKey,
];

fn least(bracket: CanonicalType) -> RawValue<'static> {
    match bracket {
        CanonicalType::MinKey => RawValue::MinKey,
        CanonicalType::Undefined => RawValue::Undefined,
        CanonicalType::Null => RawValue::Null,
        CanonicalType::Number => RawValue::Double(f64::NEG_INFINITY),
        CanonicalType::String => RawValue::String(""),
        CanonicalType::Document => RawValue::Document(RawDocument::empty()),
        CanonicalType::Array => RawValue::Array(RawArray::from_document(RawDocument::empty())),
        CanonicalType::Binary => RawValue::Binary(RawBinary { subtype: 0, bytes: &[] }),
        CanonicalType::ObjectId => RawValue::ObjectId(ObjectId::from_bytes([0; 12])),
        CanonicalType::Boolean => RawValue::Boolean(false),
        CanonicalType::DateTime => RawValue::DateTime(i64::MIN),
        CanonicalType::Timestamp => RawValue::Timestamp(Timestamp { time: 0, increment: 0 }),
        CanonicalType::Regex => RawValue::Regex(RawRegex { pattern: "", options: "" }),
        CanonicalType::DbPointer => {
            RawValue::DbPointer(RawDbPointer { namespace: "", id: ObjectId::from_bytes([0; 12]) })
        }
        CanonicalType::JavaScript => RawValue::JavaScript(""),
        CanonicalType::JavaScriptWithScope => {
            RawValue::JavaScriptWithScope(RawJavaScriptWithScope { code: "", scope: RawDocument::empty() })
        }
        CanonicalType::MaxKey => RawValue::MaxKey,
    }
}
