//! The lead bytes of the layout, and the marks within payloads.

use pando_document::{CanonicalType, ElementType, canonical_type};

pub(crate) const MIN_KEY: u8 = 0x08;
pub(crate) const UNDEFINED: u8 = 0x10;
pub(crate) const NULL: u8 = 0x18;
/// Also the bracket of all numbers within documents.
pub(crate) const NAN: u8 = 0x20;
pub(crate) const ZERO: u8 = 0x2C;
pub(crate) const STRING: u8 = 0x60;
pub(crate) const DOCUMENT: u8 = 0x68;
pub(crate) const ARRAY: u8 = 0x70;
pub(crate) const BINARY: u8 = 0x78;
pub(crate) const OBJECT_ID: u8 = 0x80;
/// Also the bracket of both booleans within documents.
pub(crate) const FALSE: u8 = 0x88;
pub(crate) const TRUE: u8 = 0x89;
pub(crate) const DATE_TIME: u8 = 0x90;
pub(crate) const TIMESTAMP: u8 = 0x98;
pub(crate) const REGEX: u8 = 0xA0;
pub(crate) const DB_POINTER: u8 = 0xA8;
pub(crate) const JAVASCRIPT: u8 = 0xB0;
pub(crate) const JAVASCRIPT_WITH_SCOPE: u8 = 0xB8;
pub(crate) const MAX_KEY: u8 = 0xF0;

// Distances of a number's lead byte from ZERO: above it if positive, below it if negative.
pub(crate) const SMALL: u8 = 1;
/// Plus the bytes of *whole*, 1 to 8.
pub(crate) const WHOLE: u8 = 1;
pub(crate) const LARGE: u8 = 10;
pub(crate) const INFINITE: u8 = 11;

/// Ends text, fields and the parts of an array.
pub(crate) const END: u8 = 0x00;
/// Stands in text before what would be END or ESCAPE, which is written one greater.
pub(crate) const ESCAPE: u8 = 0x01;
/// Stands for a length that needs four bytes.
pub(crate) const LONG: u8 = 0xFF;

/// The byte that stands for a value's bracket within documents; of types other than numbers and booleans the
/// lead byte.
#[inline]
pub(crate) fn bracket(kind: ElementType) -> u8 {
    first_of(canonical_type(kind))
}

/// The least lead byte of a bracket.
pub(crate) fn first_of(canonical: CanonicalType) -> u8 {
    match canonical {
        CanonicalType::MinKey => MIN_KEY,
        CanonicalType::Undefined => UNDEFINED,
        CanonicalType::Null => NULL,
        CanonicalType::Number => NAN,
        CanonicalType::String => STRING,
        CanonicalType::Document => DOCUMENT,
        CanonicalType::Array => ARRAY,
        CanonicalType::Binary => BINARY,
        CanonicalType::ObjectId => OBJECT_ID,
        CanonicalType::Boolean => FALSE,
        CanonicalType::DateTime => DATE_TIME,
        CanonicalType::Timestamp => TIMESTAMP,
        CanonicalType::Regex => REGEX,
        CanonicalType::DbPointer => DB_POINTER,
        CanonicalType::JavaScript => JAVASCRIPT,
        CanonicalType::JavaScriptWithScope => JAVASCRIPT_WITH_SCOPE,
        CanonicalType::MaxKey => MAX_KEY,
    }
}

/// The greatest lead byte of a bracket.
pub(crate) fn last_of(canonical: CanonicalType) -> u8 {
    match canonical {
        CanonicalType::Number => ZERO + INFINITE,
        CanonicalType::Boolean => TRUE,
        _ => first_of(canonical),
    }
}
