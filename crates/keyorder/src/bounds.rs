//! Bytes that bound ranges of keys, where no value's own part does.

use std::ops::RangeInclusive;

use pando_document::{CanonicalType, RawValue};

use crate::{Direction, TypeBits, encode, lead_byte};

/// The lead bytes of all values of a bracket, in the order of the keys. A range that is open to one side
/// within its bracket starts at the first of these bytes, or ends before the one after the last. NaN is the
/// least number, so ranges of numbers that leave it out start at the part of -∞.
pub fn bracket_lead_bytes(canonical: CanonicalType, direction: Direction) -> RangeInclusive<u8> {
    let (first, last) = (lead_byte::first_of(canonical), lead_byte::last_of(canonical));
    match direction {
        Direction::Ascending => first..=last,
        Direction::Descending => !last..=!first,
    }
}

/// Appends the part that stands in an index for a field that is an empty array: below null, the same as
/// undefined. An array as a value of its own, e.g. within an array, is encoded by [`encode`] and stands with
/// the arrays.
pub fn encode_empty_array(direction: Direction, out: &mut Vec<u8>) {
    encode(RawValue::Undefined, direction, out, &mut TypeBits::new());
}
