//! Errors in the bytes of a document.

use crate::ElementType;

/// Why bytes are not a document. Offsets count bytes from the start of the document that was looked at.
/// Errors repeat no content, so that they may be logged. The cure is always the same: refuse the bytes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// Even the empty document has 5 bytes.
    #[error("a document has at least 5 bytes, here are {bytes}")]
    TooShort {
        /// Bytes that were given.
        bytes: usize,
    },
    /// The length at the front is not the number of bytes.
    #[error("the document declares {declared} bytes and has {bytes}")]
    LengthMismatch {
        /// The length prefix.
        declared: i32,
        /// Bytes that were given.
        bytes: usize,
    },
    /// The last byte is not zero.
    #[error("the document does not end with a zero byte")]
    NotTerminated,
    /// A zero byte where an element should start, before the end.
    #[error("the document ends at offset {offset}, before its last byte")]
    EndsEarly {
        /// Where the zero byte stands.
        offset: usize,
    },
    /// No BSON type has this byte.
    #[error("unknown type byte {type_byte:#04x} at offset {offset}")]
    UnknownType {
        /// The byte found.
        type_byte: u8,
        /// Where it stands.
        offset: usize,
    },
    /// A field name runs into the end of the document.
    #[error("the field name at offset {offset} has no end")]
    UnterminatedName {
        /// Where the name starts.
        offset: usize,
    },
    /// A value that does not fit into its document, or whose inner lengths contradict each other.
    #[error("malformed {} value at offset {offset}", kind.alias())]
    MalformedValue {
        /// The type that the element declares.
        kind: ElementType,
        /// Where the value starts.
        offset: usize,
    },
    /// A name or a string that is not UTF-8.
    #[error("text at offset {offset} is not UTF-8")]
    InvalidUtf8 {
        /// Where the text starts.
        offset: usize,
    },
    /// More bytes than [`Limits::bytes_max`](crate::Limits).
    #[error("the document has {bytes} bytes, at most {bytes_max} are allowed")]
    TooLarge {
        /// Bytes that were given.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// Deeper than [`Limits::nesting_max`](crate::Limits).
    #[error("documents are nested deeper than {nesting_max} levels")]
    TooDeep {
        /// The limit.
        nesting_max: usize,
    },
}
