//! The sort key of a document.
//!
//! # Rules (observed on MongoDB 6.0)
//! - A missing field sorts as null, an empty array before null.
//! - An array sorts by its least element, descending by its greatest. It is unwound once: `[[1]]` sorts as
//!   the array `[1]`.
//! - Where several paths go through one array they go through it together, and the least key of all elements
//!   counts. Two different arrays in one pattern have no meaning. All this is [`pando_catalog::expansion`]'s,
//!   as it is for indexes.
//! - A `$sort` by `_id` alone takes arrays as the whole values that they are: documents have none there, but
//!   groups do. Accumulators, and windows with partitions, go through them.
//!
//! # Steps
//! 1. Each path is followed through documents. While none meets an array, the parts are
//!    encoded at once: no allocation.
//! 2. Else the arrays are gone through, each combination giving a whole key; the least one stays.

use pando_catalog::expansion::{End, ExpansionError, end_without_arrays, expand};
use pando_collation::TextOrder;
use pando_document::{RawDocument, RawValue};
use pando_keyorder::{TypeBits, encode_empty_array};

use super::SortPart;
use super::fault::SortFault;
use crate::error::QueryError;

/// Appends the sort key of a document.
pub(super) fn append(
    parts: &[SortPart],
    order: &TextOrder,
    document: &RawDocument,
    out: &mut Vec<u8>,
) -> Result<(), QueryError> {
    if let [part] = parts
        && part.path.as_str() == "_id"
    {
        let end = document.get("_id")?.map_or(End::Missing, End::Value);
        encode_part(order, end, part, out, &mut TypeBits::discarded());
        return Ok(());
    }
    append_unwound(parts, order, document, out)
}

/// The same where an array at `_id` is gone through as any other.
pub(super) fn append_unwound(
    parts: &[SortPart],
    order: &TextOrder,
    document: &RawDocument,
    out: &mut Vec<u8>,
) -> Result<(), QueryError> {
    let start = out.len();
    let mut type_bits = TypeBits::discarded();
    for part in parts {
        let Some(end) = end_without_arrays(document, part.path.as_str())? else {
            out.truncate(start);
            return append_least(parts, order, document, out);
        };
        encode_part(order, end, part, out, &mut type_bits);
    }
    Ok(())
}

/// Appends the least key of a document with arrays.
fn append_least(
    parts: &[SortPart],
    order: &TextOrder,
    document: &RawDocument,
    out: &mut Vec<u8>,
) -> Result<(), QueryError> {
    let paths: Vec<&str> = parts.iter().map(|part| part.path.as_str()).collect();
    let mut least: Option<Vec<u8>> = None;
    expand::<QueryError>(document, &paths, &mut |_, _| {}, &mut |ends| {
        let mut key = Vec::with_capacity(32);
        let mut type_bits = TypeBits::discarded();
        for (end, part) in ends.iter().zip(parts) {
            encode_part(order, *end, part, &mut key, &mut type_bits);
        }
        if least.as_ref().is_none_or(|have| key < *have) {
            least = Some(key);
        }
        Ok(())
    })?;
    out.extend_from_slice(&least.expect("an expansion gives at least one combination"));
    Ok(())
}

#[inline]
fn encode_part(
    order: &TextOrder,
    end: End<'_>,
    part: &SortPart,
    out: &mut Vec<u8>,
    type_bits: &mut TypeBits,
) {
    match end {
        End::Value(value) => order.encode(value, part.direction, out, type_bits),
        End::Missing => order.encode(RawValue::Null, part.direction, out, type_bits),
        End::EmptyArray => encode_empty_array(part.direction, out),
    }
}

impl From<ExpansionError> for QueryError {
    fn from(error: ExpansionError) -> QueryError {
        match error {
            ExpansionError::ParallelArrays { .. } => {
                QueryError::bad_value("cannot sort with keys that are parallel arrays")
            }
            ExpansionError::AmbiguousField { .. } => SortFault::AmbiguousField.error(error.to_string()),
            ExpansionError::Document(error) => error.into(),
        }
    }
}
