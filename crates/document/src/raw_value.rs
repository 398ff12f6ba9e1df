//! One value of a document's bytes, borrowed from them.

use crate::{Decimal128, ElementType, ObjectId, RawArray, RawDocument, Timestamp, Value};

/// Bytes with a subtype. Of the old subtype 2 the bytes include the inner length, as they stand in the
/// document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawBinary<'a> {
    /// The type of the bytes, e.g. 4 for a UUID.
    pub subtype: u8,
    /// The content.
    pub bytes: &'a [u8],
}

/// A regular expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawRegex<'a> {
    /// In PCRE syntax; has no NUL.
    pub pattern: &'a str,
    /// Letters, in alphabetical order by convention; has no NUL.
    pub options: &'a str,
}

/// The deprecated pointer into another collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawDbPointer<'a> {
    /// `database.collection`.
    pub namespace: &'a str,
    /// `_id` there.
    pub id: ObjectId,
}

/// The deprecated code with variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawJavaScriptWithScope<'a> {
    /// The code.
    pub code: &'a str,
    /// Its variables.
    pub scope: &'a RawDocument,
}

/// A value, borrowed from a document's bytes. Two words and a tag: pass it by value.
#[derive(Clone, Copy, Debug)]
pub enum RawValue<'a> {
    /// 64-bit IEEE binary floating point.
    Double(f64),
    /// Text; may contain NUL.
    String(&'a str),
    /// A nested document.
    Document(&'a RawDocument),
    /// An array.
    Array(&'a RawArray),
    /// Bytes with a subtype.
    Binary(RawBinary<'a>),
    /// Deprecated.
    Undefined,
    /// Twelve bytes that identify something.
    ObjectId(ObjectId),
    /// True or false.
    Boolean(bool),
    /// Milliseconds since 1970-01-01 UTC.
    DateTime(i64),
    /// Null.
    Null,
    /// A regular expression.
    Regex(RawRegex<'a>),
    /// Deprecated.
    DbPointer(RawDbPointer<'a>),
    /// Code.
    JavaScript(&'a str),
    /// Deprecated; compares as a string.
    Symbol(&'a str),
    /// Deprecated.
    JavaScriptWithScope(RawJavaScriptWithScope<'a>),
    /// 32-bit signed integer.
    Int32(i32),
    /// MongoDB's replication timestamp.
    Timestamp(Timestamp),
    /// 64-bit signed integer.
    Int64(i64),
    /// 128-bit IEEE decimal floating point.
    Decimal128(Decimal128),
    /// Less than everything.
    MinKey,
    /// Greater than everything.
    MaxKey,
}

impl<'a> RawValue<'a> {
    /// The value's type.
    #[inline]
    pub fn element_type(&self) -> ElementType {
        match self {
            Self::Double(_) => ElementType::Double,
            Self::String(_) => ElementType::String,
            Self::Document(_) => ElementType::Document,
            Self::Array(_) => ElementType::Array,
            Self::Binary(_) => ElementType::Binary,
            Self::Undefined => ElementType::Undefined,
            Self::ObjectId(_) => ElementType::ObjectId,
            Self::Boolean(_) => ElementType::Boolean,
            Self::DateTime(_) => ElementType::DateTime,
            Self::Null => ElementType::Null,
            Self::Regex(_) => ElementType::Regex,
            Self::DbPointer(_) => ElementType::DbPointer,
            Self::JavaScript(_) => ElementType::JavaScript,
            Self::Symbol(_) => ElementType::Symbol,
            Self::JavaScriptWithScope(_) => ElementType::JavaScriptWithScope,
            Self::Int32(_) => ElementType::Int32,
            Self::Timestamp(_) => ElementType::Timestamp,
            Self::Int64(_) => ElementType::Int64,
            Self::Decimal128(_) => ElementType::Decimal128,
            Self::MinKey => ElementType::MinKey,
            Self::MaxKey => ElementType::MaxKey,
        }
    }

    /// A copy that owns its parts. For values of validated documents. Where nested bytes are malformed, the
    /// part behind the fault is left out ([`Document::from_raw`](crate::Document::from_raw) reports it
    /// instead).
    pub fn to_owned(&self) -> Value {
        Value::from(*self)
    }

    /// The text of a string; not of a symbol.
    #[inline]
    pub fn as_str(&self) -> Option<&'a str> {
        if let Self::String(text) = self { Some(text) } else { None }
    }

    /// The nested document.
    #[inline]
    pub fn as_document(&self) -> Option<&'a RawDocument> {
        if let Self::Document(document) = self { Some(document) } else { None }
    }

    /// The array.
    #[inline]
    pub fn as_array(&self) -> Option<&'a RawArray> {
        if let Self::Array(array) = self { Some(array) } else { None }
    }

    /// The boolean; other types are not coerced.
    #[inline]
    pub fn as_bool(&self) -> Option<bool> {
        if let Self::Boolean(boolean) = self { Some(*boolean) } else { None }
    }

    /// The ObjectId.
    #[inline]
    pub fn as_object_id(&self) -> Option<ObjectId> {
        if let Self::ObjectId(id) = self { Some(*id) } else { None }
    }

    /// The milliseconds of a date.
    #[inline]
    pub fn as_date_time(&self) -> Option<i64> {
        if let Self::DateTime(milliseconds) = self { Some(*milliseconds) } else { None }
    }

    /// The number, of any of the four types, if it is an integer within `i64`.
    #[inline]
    pub fn as_i64_exact(&self) -> Option<i64> {
        match self {
            Self::Int32(number) => Some(i64::from(*number)),
            Self::Int64(number) => Some(*number),
            Self::Double(number) => f64_to_i64_exact(*number),
            Self::Decimal128(number) => number.to_i64_exact(),
            _ => None,
        }
    }

    /// Whether it is of one of the four number types.
    #[inline]
    pub fn is_number(&self) -> bool {
        self.element_type().is_number()
    }

    /// Null or undefined.
    #[inline]
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null | Self::Undefined)
    }

    /// The value where a boolean is wanted, as MongoDB coerces. False are `false`, null, undefined and every
    /// zero. All else is true, NaN and an empty string too.
    #[inline]
    pub fn to_bool(&self) -> bool {
        match self {
            Self::Boolean(boolean) => *boolean,
            Self::Null | Self::Undefined => false,
            Self::Int32(number) => *number != 0,
            Self::Int64(number) => *number != 0,
            Self::Double(number) => *number != 0.0,
            Self::Decimal128(number) => !number.is_zero(),
            _ => true,
        }
    }
}

/// The integer that a double is, if it is one and fits.
#[inline]
pub(crate) fn f64_to_i64_exact(number: f64) -> Option<i64> {
    let limit = 9_223_372_036_854_775_808.0;
    (number >= -limit && number < limit && number.trunc() == number).then_some(number as i64)
}
