//! Order-preserving key bytes: values become bytes whose order under `memcmp` is MongoDB's order of the
//! values.
//!
//! # Terms
//! - *Part*: the bytes of one value in a key. A compound key is its parts, one after the other.
//! - *Lead byte*: the first byte of a part, which names the bracket of types and, of a number, sign and size.
//! - *Type bits*: the information that the bytes lose, because values that compare equal must have equal
//!   bytes. It is the number type, the trailing zeros of a decimal, -0, and symbol or string. They are stored
//!   beside the key, and empty where all is as usual.
//!
//! # Invariants
//! - `encode(a) < encode(b)` exactly if [`compare`](pando_document::compare()) says `a < b`, and bytes are
//!   equal exactly if it says equal.
//! - No part is a prefix of another part. So compound keys compare part by part, and all keys that start with
//!   given parts are the keys that start with those bytes.
//! - Lead bytes lie between 0x08 and 0xF0, of a descending part between 0x0F and 0xF7. So 0x00 is below and
//!   0xFF above every continuation of a key.
//! - [`decode`] of key and type bits gives the values that were encoded, bit by bit, with two exceptions.
//!   Every NaN of a type comes back as one NaN. Decimals in a non-canonical encoding come back in the
//!   canonical one.
//! - Decoding hostile bytes gives an error and allocates no more than a small multiple of their number.
//!
//! # Layout
//! As it stands on disk; `docs/key-format.md` is the same with examples. A descending part is the ascending
//! one with every bit inverted. All integers are big-endian.
//!
//! | value | lead byte | payload |
//! |---|---|---|
//! | MinKey | 08 | |
//! | undefined, and `[]` where it is what an array index has for an empty array | 10 | |
//! | null, and a missing field in an index | 18 | |
//! | number | 20–37 | see below |
//! | string, symbol | 60 | text |
//! | document | 68 | fields, 00 |
//! | array | 70 | parts, 00 |
//! | binary | 78 | length, subtype, bytes |
//! | ObjectId | 80 | 12 bytes |
//! | false, true | 88, 89 | |
//! | date | 90 | milliseconds, 8 bytes, top bit inverted |
//! | timestamp | 98 | time, increment, 4 bytes each |
//! | regular expression | A0 | text, text |
//! | DbPointer | A8 | length, namespace, 12 bytes |
//! | code | B0 | text |
//! | code with scope | B8 | text, fields, 00 |
//! | MaxKey | F0 | |
//!
//! - *text*: UTF-8 with 00 written as 01 01 and 01 as 01 02, then 00. Under a collation the sort key of a
//!   string or symbol stands there, written in the same way ([`encode_by`]).
//! - *length*: one byte up to FE; else FF and four bytes.
//! - *field*: the bracket (the lead byte; 20 for any number, 88 for either boolean), the name, 00, then the
//!   payload; of numbers and booleans the whole part, since their lead byte says more than the bracket.
//!
//! ## Numbers
//! By the exact value, whatever the type. Of a negative number the payload is that of its magnitude,
//! inverted.
//!
//! | number | lead byte | payload |
//! |---|---|---|
//! | NaN | 20 | |
//! | -∞, ∞ | 21, 37 | |
//! | magnitude from 2^63 | 22, 36 | *double*, *rest* |
//! | magnitude from 1 to below 2^63 | 2B - n, 2D + n | *whole* in n bytes, *fraction*, *rest* |
//! | magnitude below 1 | 2B, 2D | *double*, *rest* |
//! | 0 | 2C | |
//!
//! - *double*: eight bytes: the IEEE bits of the greatest double that is not above the magnitude, shifted
//!   left by one (the sign is not needed), and 1 in the lowest bit if a rest follows.
//! - *whole*: the whole part, shifted left by one, and 1 in the lowest bit if something follows; in as few
//!   bytes as it needs.
//! - *fraction*: of a whole part with b bits, b < 53: the first 53 - b bits of the fraction or more, in
//!   groups of seven bits, ceil((53 - b) / 7) groups at most. A group is a byte: seven bits, then 1 if
//!   something follows. Where the fraction has no more ones, no more groups are written.
//! - *rest*: the rest of a decimal whose value is no double. From 1 to 2^63 these are the digits behind the
//!   decimal point; else two bytes with the places before the decimal point (+ 6200; negative where zeros
//!   follow the point), and all digits. Digits are written in pairs, the last with a 0 if need be: twice the
//!   pair, plus 1 if another follows.
//!
//! Two bytes for integers up to 127 in magnitude, three up to 32,767, nine or ten for a double with a
//! fraction or a huge one, fewer for halves and quarters.
//!
//! ## Type bits
//! Bits from the top of each byte; trailing zeros are not stored and are read as zeros. Strings and symbols
//! have one bit (1: symbol); numbers have what follows; everything else has none. Nested values come in the
//! order of their bytes.
//!
//! | number | bits |
//! |---|---|
//! | of its commonest type: Int32 if it fits, else Int64 if it fits, else double; with *rest*: decimal without trailing zeros | 0 |
//! | double, not 0 | 10 |
//! | Int64 | 110 |
//! | decimal, not 0, without *rest* | 111 *zeros* |
//! | decimal with *rest* and trailing zeros | 1 *zeros* |
//! | double ±0 | 10, sign |
//! | decimal ±0 | 111, sign, exponent + 6176 in 14 bits |
//! | decimal ±∞ or NaN (double: 0) | 1 |
//!
//! *zeros*: how many trailing zeros the coefficient has beyond the shortest; five bits up to 30, else 31 and
//! two bits more.
//!
//! # Not here
//! Index entries of arrays and missing fields, and primary keys: `catalog`. Bounds of queries: `query`.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod bounds;
mod decode;
mod decode_number;
mod encode;
mod error;
mod lead_byte;
mod magnitude;
mod number_bits;
mod reader;
mod skip;
mod type_bits;

pub use bounds::{bracket_lead_bytes, encode_empty_array};
pub use decode::{decode, decode_sort_keys};
pub use encode::{TextKeys, encode, encode_by};
pub use error::DecodeError;
pub use skip::parts_length;
pub use type_bits::TypeBits;

/// Whether lesser values come first or last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Lesser values first.
    Ascending,
    /// Greater values first: every bit of the part is inverted.
    Descending,
}

impl Direction {
    /// The byte that the ascending bytes are combined with by exclusive or.
    pub(crate) fn mask(self) -> u8 {
        match self {
            Self::Ascending => 0x00,
            Self::Descending => 0xFF,
        }
    }

    /// The other direction.
    pub fn reversed(self) -> Self {
        match self {
            Self::Ascending => Self::Descending,
            Self::Descending => Self::Ascending,
        }
    }
}
