//! Errors in key bytes.

/// Why bytes are not a key, or do not go with their type bits. Keys are only decoded where they were stored,
/// so any of these means that stored data is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// A part goes beyond the last byte.
    #[error("the key ends within a part, at byte {offset}")]
    Truncated {
        /// Bytes there are.
        offset: usize,
    },
    /// No value has this lead byte.
    #[error("no value starts with {lead_byte:#04x} (byte {offset} of the key)")]
    UnknownLeadByte {
        /// The byte, as an ascending part has it.
        lead_byte: u8,
        /// Where it stands.
        offset: usize,
    },
    /// A payload that no value has.
    #[error("no value has the bytes before byte {offset} of the key")]
    ImpossiblePayload {
        /// Where the payload was given up.
        offset: usize,
    },
    /// The type bits name a type that does not have the number.
    #[error("the type bits do not go with the number that ends at byte {offset} of the key")]
    ImpossibleType {
        /// Where the number ends.
        offset: usize,
    },
    /// Text that is not UTF-8.
    #[error("text that ends at byte {offset} of the key is not UTF-8")]
    InvalidUtf8 {
        /// Where the text ends.
        offset: usize,
    },
    /// Documents deeper than any stored document.
    #[error("documents in the key are nested deeper than {nesting_max} levels")]
    TooDeep {
        /// The limit.
        nesting_max: usize,
    },
    /// More bytes than the parts asked for.
    #[error("the key goes on after its last part, at byte {offset}")]
    TrailingBytes {
        /// Where the last part ends.
        offset: usize,
    },
}
