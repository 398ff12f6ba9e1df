//! The primary key of a document: order-preserving bytes of its `_id`, or of other fields, or its record id,
//! by the layout of its collection (`layout`).
//!
//! A key stands in the primary tree and at the end of every index entry, so it is kept short: at most
//! [`PRIMARY_KEY_BYTES_MAX`] bytes. A longer key is *cut*: its first bytes, and a 128-bit hash (xxh3) of the
//! whole. Cut keys with the same first bytes lose their order. The collection records that a key was cut
//! ([`Truncation::Truncated`](crate::Truncation) of `_id_`), so that plans check and sort again.

use pando_collation::TextOrder;
use pando_document::RawValue;
use pando_keyorder::{Direction, TypeBits};

/// Longest primary key, in bytes: leaves three quarters of the longest storage key to an index's fields.
pub const PRIMARY_KEY_BYTES_MAX: usize = 475;

/// Bytes of the hash that ends a cut key.
pub(crate) const HASH_BYTES: usize = 16;

/// The key of a document in the primary tree.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PrimaryKey {
    bytes: Vec<u8>,
}

impl PrimaryKey {
    /// Bytes of a cut key that are the key's own first bytes; the hash follows.
    pub const CUT_PREFIX_BYTES: usize = PRIMARY_KEY_BYTES_MAX - HASH_BYTES;

    /// The key of an `_id`, in a collection without a collation.
    pub fn of(id: RawValue<'_>) -> PrimaryKey {
        PrimaryKey::in_order(id, &TextOrder::SIMPLE)
    }

    /// The key of an `_id`, with strings in this order.
    #[inline]
    pub fn in_order(id: RawValue<'_>, order: &TextOrder) -> PrimaryKey {
        let mut bytes = Vec::with_capacity(24);
        // The document itself holds the exact `_id`, so what the key loses need not be kept.
        let mut type_bits = TypeBits::discarded();
        order.encode(id, Direction::Ascending, &mut bytes, &mut type_bits);
        PrimaryKey::of_bytes(bytes)
    }

    /// The key whose whole bytes are these.
    pub(crate) fn of_bytes(mut bytes: Vec<u8>) -> PrimaryKey {
        cut(&mut bytes, PRIMARY_KEY_BYTES_MAX);
        PrimaryKey { bytes }
    }

    /// The key of a record id.
    pub(crate) fn of_record(record: u64) -> PrimaryKey {
        PrimaryKey { bytes: record.to_be_bytes().to_vec() }
    }

    /// Whether the key had to be cut.
    pub(crate) fn is_cut(&self) -> bool {
        self.bytes.len() == PRIMARY_KEY_BYTES_MAX
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes, owned.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// Cuts bytes longer than `bytes_max` to exactly that length: their first bytes and a hash of the whole.
pub(crate) fn cut(bytes: &mut Vec<u8>, bytes_max: usize) {
    if bytes.len() < bytes_max {
        return;
    }
    let hash = xxhash_rust::xxh3::xxh3_128(bytes);
    bytes.truncate(bytes_max - HASH_BYTES);
    bytes.extend_from_slice(&hash.to_be_bytes());
    assert_eq!(bytes.len(), bytes_max, "a cut key has exactly the longest length");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_ids_stay_different_and_short_ones_stay_whole() {
        let long_a = "x".repeat(5_000) + "a";
        let long_b = "x".repeat(5_000) + "b";
        let a = PrimaryKey::of(RawValue::String(&long_a));
        let b = PrimaryKey::of(RawValue::String(&long_b));
        assert_ne!(a, b);
        assert!(a.is_cut() && a.as_bytes().len() == PRIMARY_KEY_BYTES_MAX);
        assert!(!PrimaryKey::of(RawValue::Int32(7)).is_cut());
        assert!(PrimaryKey::of(RawValue::Int32(7)) < PrimaryKey::of(RawValue::Double(7.5)));
    }
}
