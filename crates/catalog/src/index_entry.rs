//! The bytes of an index entry in an engine.
//!
//! ```text
//! not unique   key:   field bytes | primary key
//!              value: empty                                 every part is of its commonest type
//!                     0x00 | type bits                      otherwise
//!                     0x01 | u16 LE length of field bytes    the field bytes were cut
//! unique       key:   field bytes
//!              value: u16 LE length of primary key | primary key | type bits
//! clustering   key:   as above
//!              value: u32 LE length of the value above | value above | document
//! ```
//!
//! In a collection with partitions each key stands behind the number of one (`partitions`).
//!
//! Field bytes longer than [`FIELD_BYTES_MAX`] are *cut* to exactly that length: their first bytes and a hash
//! of the whole.
//!
//! A unique index keeps the primary key in the value. The engine's rule "the first to update a key wins" is
//! then the rule of uniqueness, and the check is one `get` (docs/decisions/0004-unique-index-entries.md).
//!
//! The encoding of each field says where it ends ([`pando_keyorder::parts_length`]); so the reader of a key
//! finds the primary key behind the fields.

use pando_keyorder::Direction;
use pando_storage::KEY_BYTES_MAX;

use crate::index_description::{EntryContents, Truncation, Uniqueness};
use crate::partitions::PREFIX_BYTES;
use crate::primary_key::{HASH_BYTES, PRIMARY_KEY_BYTES_MAX, cut};

/// Longest field bytes in an entry: with the longest primary key behind them they fill
/// the longest storage key.
pub const FIELD_BYTES_MAX: usize = KEY_BYTES_MAX - PRIMARY_KEY_BYTES_MAX;

/// Bytes of cut field bytes that are their own first bytes; the hash follows.
pub const CUT_PREFIX_BYTES: usize = FIELD_BYTES_MAX - HASH_BYTES;

const TYPE_BITS_FOLLOW: u8 = 0;
const FIELDS_WERE_CUT: u8 = 1;

/// A key and a value for the engine.
pub(crate) struct EncodedEntry {
    pub key: Vec<u8>,
    pub value: Vec<u8>,
}

impl EncodedEntry {
    /// The entry in a collection with partitions: its key stands behind these bytes.
    #[inline]
    pub(crate) fn behind(mut self, prefix: Option<&[u8; PREFIX_BYTES]>) -> EncodedEntry {
        if let Some(prefix) = prefix {
            self.key.splice(..0, *prefix);
        }
        self
    }
}

/// The entry of a document's key. `fields` are the whole field bytes.
pub(crate) fn encode(
    uniqueness: Uniqueness,
    fields: &[u8],
    type_bits: &[u8],
    primary_key: &[u8],
) -> EncodedEntry {
    let mut key = Vec::with_capacity(fields.len() + primary_key.len());
    key.extend_from_slice(fields);
    cut(&mut key, FIELD_BYTES_MAX);
    let truncated = if key.len() == FIELD_BYTES_MAX { Truncation::Truncated } else { Truncation::Whole };
    let mut value = Vec::new();
    match uniqueness {
        Uniqueness::Unique => {
            value.extend_from_slice(&length_bytes(primary_key));
            value.extend_from_slice(primary_key);
            if truncated == Truncation::Whole {
                value.extend_from_slice(type_bits);
            }
        }
        Uniqueness::NotUnique | Uniqueness::Prepared => {
            if truncated == Truncation::Truncated {
                value.push(FIELDS_WERE_CUT);
                value.extend_from_slice(&length_bytes(&key));
            } else if !type_bits.is_empty() {
                value.push(TYPE_BITS_FOLLOW);
                value.extend_from_slice(type_bits);
            }
            key.extend_from_slice(primary_key);
        }
    }
    EncodedEntry { key, value }
}

/// The value of a clustering index's entry, out of that of any other index.
pub(crate) fn value_with_document(plain: &[u8], document: &[u8]) -> Vec<u8> {
    let length = u32::try_from(plain.len()).expect("field bytes are cut, so their type bits are few");
    let mut value = Vec::with_capacity(4 + plain.len() + document.len());
    value.extend_from_slice(&length.to_le_bytes());
    value.extend_from_slice(plain);
    value.extend_from_slice(document);
    value
}

/// The plain value and the document in the value of a clustering index's entry; in another index the value
/// is plain.
pub(crate) fn split_document(
    contents: EntryContents,
    value: &[u8],
) -> Result<(&[u8], Option<&[u8]>), &'static str> {
    if contents != EntryContents::Copy {
        return Ok((value, None));
    }
    let (length, rest) =
        value.split_first_chunk::<4>().ok_or("the value of a clustering entry begins with a length")?;
    let length = usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX);
    let (plain, document) =
        rest.split_at_checked(length).ok_or("the value of a clustering entry ends before its document")?;
    Ok((plain, Some(document)))
}

/// An entry taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodedEntry<'a> {
    /// Field bytes (cut ones where [`truncated`](DecodedEntry::truncated) says so).
    pub fields: &'a [u8],
    /// The primary key of the document.
    pub primary_key: &'a [u8],
    /// The type bits that the field bytes lose.
    pub type_bits: &'a [u8],
    /// Whether the field bytes were cut, and cannot be decoded.
    pub truncated: Truncation,
    /// The document, in a clustering index.
    pub document: Option<&'a [u8]>,
}

/// Takes an entry with a plain value apart; `Err` says what does not fit.
pub fn decode<'a>(
    uniqueness: Uniqueness,
    directions: &[Direction],
    key: &'a [u8],
    value: &'a [u8],
) -> Result<DecodedEntry<'a>, &'static str> {
    match uniqueness {
        Uniqueness::Unique => {
            let (primary_key, type_bits) = split_at_length(value)?;
            let truncated =
                if key.len() == FIELD_BYTES_MAX { Truncation::Truncated } else { Truncation::Whole };
            Ok(DecodedEntry { fields: key, primary_key, type_bits, truncated, document: None })
        }
        Uniqueness::NotUnique | Uniqueness::Prepared => decode_not_unique(directions, key, value),
    }
}

fn decode_not_unique<'a>(
    directions: &[Direction],
    key: &'a [u8],
    value: &'a [u8],
) -> Result<DecodedEntry<'a>, &'static str> {
    let (field_bytes, type_bits, truncated) = match value.split_first() {
        None => (whole_length(directions, key)?, &[][..], Truncation::Whole),
        Some((&TYPE_BITS_FOLLOW, type_bits)) => {
            (whole_length(directions, key)?, type_bits, Truncation::Whole)
        }
        Some((&FIELDS_WERE_CUT, length)) => {
            let length: [u8; 2] =
                length.try_into().map_err(|_| "the length of cut field bytes is two bytes")?;
            (usize::from(u16::from_le_bytes(length)), &[][..], Truncation::Truncated)
        }
        Some(_) => return Err("the value of an entry begins with 0 or 1"),
    };
    let (fields, primary_key) =
        key.split_at_checked(field_bytes).ok_or("the key ends before its field bytes do")?;
    Ok(DecodedEntry { fields, primary_key, type_bits, truncated, document: None })
}

/// Bytes of the fields at the beginning of a key.
fn whole_length(directions: &[Direction], key: &[u8]) -> Result<usize, &'static str> {
    pando_keyorder::parts_length(key, directions).map_err(|_| "a field of the key does not decode")
}

/// A length as it stands in values.
pub(crate) fn length_bytes(bytes: &[u8]) -> [u8; 2] {
    u16::try_from(bytes.len()).expect("keys are at most 1,900 bytes").to_le_bytes()
}

fn split_at_length(value: &[u8]) -> Result<(&[u8], &[u8]), &'static str> {
    let (length, rest) =
        value.split_first_chunk::<2>().ok_or("the value of a unique entry begins with a length")?;
    rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))
        .ok_or("the value ends before its primary key does")
}

#[cfg(test)]
mod tests {
    use pando_document::RawValue;
    use pando_keyorder::TypeBits;

    use super::*;

    fn key_of(text: &str) -> Vec<u8> {
        let mut key = Vec::new();
        pando_keyorder::encode(RawValue::String(text), Direction::Ascending, &mut key, &mut TypeBits::new());
        key
    }

    const ONE_FIELD: &[Direction] = &[Direction::Ascending];

    #[test]
    fn entries_come_apart_as_they_were_put_together() {
        for uniqueness in [Uniqueness::Unique, Uniqueness::NotUnique] {
            for bits in [&[][..], &[1, 2][..]] {
                let fields = key_of("hello");
                let entry = encode(uniqueness, &fields, bits, b"the-key");
                let decoded = decode(uniqueness, ONE_FIELD, &entry.key, &entry.value).unwrap();
                assert_eq!((decoded.fields, decoded.primary_key), (fields.as_slice(), &b"the-key"[..]));
                assert_eq!((decoded.type_bits, decoded.truncated), (bits, Truncation::Whole));
            }
        }
    }

    #[test]
    fn long_field_bytes_are_cut_and_the_primary_key_is_still_found() {
        let fields = key_of(&"x".repeat(9_000));
        let primary_key = vec![7; PRIMARY_KEY_BYTES_MAX];
        for uniqueness in [Uniqueness::Unique, Uniqueness::NotUnique] {
            let entry = encode(uniqueness, &fields, &[], &primary_key);
            assert!(entry.key.len() <= KEY_BYTES_MAX);
            let decoded = decode(uniqueness, ONE_FIELD, &entry.key, &entry.value).unwrap();
            assert_eq!(
                (decoded.primary_key, decoded.truncated),
                (primary_key.as_slice(), Truncation::Truncated)
            );
        }
    }

    #[test]
    fn a_short_entry_with_common_types_has_an_empty_value() {
        assert!(encode(Uniqueness::NotUnique, &key_of("a"), &[], b"k").value.is_empty());
    }

    #[test]
    fn a_clustering_entry_is_a_plain_one_and_a_document() {
        for plain in [&b""[..], b"\x00\x01"] {
            let value = value_with_document(plain, b"document");
            assert_eq!(split_document(EntryContents::Copy, &value), Ok((plain, Some(&b"document"[..]))));
            assert_eq!(split_document(EntryContents::Reference, &value), Ok((&*value, None)));
        }
        for damaged in [&b"\x01\0\0"[..], b"\x05\0\0\0abc", b"\xFF\xFF\xFF\xFF"] {
            assert!(split_document(EntryContents::Copy, damaged).is_err());
        }
    }

    #[test]
    fn damaged_entries_are_errors() {
        for (key, value) in [
            (&b""[..], &b""[..]),
            (b"\xFF\xFF", b""),
            (b"abc", b"\x02"),
            (b"abc", b"\x01\xFF\xFF"),
            (b"abc", b"\x01"),
        ] {
            assert!(decode(Uniqueness::NotUnique, ONE_FIELD, key, value).is_err());
        }
        for value in [&b""[..], b"\x01", b"\x05\x00ab"] {
            assert!(decode(Uniqueness::Unique, ONE_FIELD, b"abc", value).is_err());
        }
    }
}
