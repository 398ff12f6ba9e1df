//! The types a BSON value can have, their bytes and their names in `$type`.

/// The type of a value, with its byte on the wire.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ElementType {
    /// 64-bit IEEE binary floating point.
    Double = 0x01,
    /// UTF-8 text.
    String = 0x02,
    /// A nested document.
    Document = 0x03,
    /// An array.
    Array = 0x04,
    /// Bytes with a subtype.
    Binary = 0x05,
    /// Deprecated.
    Undefined = 0x06,
    /// Twelve bytes that identify something.
    ObjectId = 0x07,
    /// True or false.
    Boolean = 0x08,
    /// Signed milliseconds since 1970-01-01 UTC.
    DateTime = 0x09,
    /// Null.
    Null = 0x0A,
    /// A regular expression and its options.
    Regex = 0x0B,
    /// Deprecated: namespace and ObjectId.
    DbPointer = 0x0C,
    /// Code.
    JavaScript = 0x0D,
    /// Deprecated: text that sorts with strings.
    Symbol = 0x0E,
    /// Deprecated: code with variables.
    JavaScriptWithScope = 0x0F,
    /// 32-bit signed integer.
    Int32 = 0x10,
    /// MongoDB's replication timestamp.
    Timestamp = 0x11,
    /// 64-bit signed integer.
    Int64 = 0x12,
    /// 128-bit IEEE decimal floating point.
    Decimal128 = 0x13,
    /// Greater than everything.
    MaxKey = 0x7F,
    /// Less than everything.
    MinKey = 0xFF,
}

impl ElementType {
    /// Every type, in the order of the bytes.
    pub const ALL: [ElementType; 21] = [
        Self::Double,
        Self::String,
        Self::Document,
        Self::Array,
        Self::Binary,
        Self::Undefined,
        Self::ObjectId,
        Self::Boolean,
        Self::DateTime,
        Self::Null,
        Self::Regex,
        Self::DbPointer,
        Self::JavaScript,
        Self::Symbol,
        Self::JavaScriptWithScope,
        Self::Int32,
        Self::Timestamp,
        Self::Int64,
        Self::Decimal128,
        Self::MaxKey,
        Self::MinKey,
    ];

    /// The type with this byte, if there is one.
    #[inline]
    pub fn from_byte(byte: u8) -> Option<ElementType> {
        match byte {
            0x01..=0x13 => Some(Self::ALL[usize::from(byte) - 1]),
            0x7F => Some(Self::MaxKey),
            0xFF => Some(Self::MinKey),
            _ => None,
        }
    }

    /// The byte in front of an element's name.
    #[inline]
    pub fn as_byte(self) -> u8 {
        self as u8
    }

    /// The number that `$type` takes: the byte, with MinKey as -1.
    pub fn number(self) -> i32 {
        if self == Self::MinKey { -1 } else { i32::from(self.as_byte()) }
    }

    /// The name that `$type` takes and gives.
    pub fn alias(self) -> &'static str {
        match self {
            Self::Double => "double",
            Self::String => "string",
            Self::Document => "object",
            Self::Array => "array",
            Self::Binary => "binData",
            Self::Undefined => "undefined",
            Self::ObjectId => "objectId",
            Self::Boolean => "bool",
            Self::DateTime => "date",
            Self::Null => "null",
            Self::Regex => "regex",
            Self::DbPointer => "dbPointer",
            Self::JavaScript => "javascript",
            Self::Symbol => "symbol",
            Self::JavaScriptWithScope => "javascriptWithScope",
            Self::Int32 => "int",
            Self::Timestamp => "timestamp",
            Self::Int64 => "long",
            Self::Decimal128 => "decimal",
            Self::MaxKey => "maxKey",
            Self::MinKey => "minKey",
        }
    }

    /// The type with this `$type` name. `"number"` is four types, so it is none here.
    pub fn from_alias(alias: &str) -> Option<ElementType> {
        Self::ALL.into_iter().find(|kind| kind.alias() == alias)
    }

    /// Int32, Int64, Double or Decimal128.
    #[inline]
    pub fn is_number(self) -> bool {
        matches!(self, Self::Double | Self::Int32 | Self::Int64 | Self::Decimal128)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_is_found_by_its_byte_and_by_its_alias() {
        for kind in ElementType::ALL {
            assert_eq!(ElementType::from_byte(kind.as_byte()), Some(kind));
            assert_eq!(ElementType::from_alias(kind.alias()), Some(kind));
        }
        let known = (0..=255).filter(|byte| ElementType::from_byte(*byte).is_some()).count();
        assert_eq!(known, ElementType::ALL.len());
    }
}
