//! Errors of Extended JSON.

/// Why text is not Extended JSON, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{fault} (byte {offset})")]
pub struct JsonError {
    /// Bytes from the start of the text.
    pub offset: usize,
    /// The fault.
    pub fault: JsonFault,
}

impl JsonError {
    /// Whether the text is right as far as it goes: with more text it may become a document.
    pub fn is_incomplete(&self) -> bool {
        self.fault == JsonFault::Incomplete
    }
}

/// The kinds of faults.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JsonFault {
    /// The text ends too early.
    #[error("the JSON ends in the middle of a value")]
    Incomplete,
    /// A character that cannot stand here.
    #[error("expected {expected}")]
    Unexpected {
        /// The text that could have stood here.
        expected: &'static str,
    },
    /// An escape, a character or a half of a surrogate pair that no string has.
    #[error("a string contains an invalid escape or control character")]
    InvalidString,
    /// A name with a NUL character, which BSON cannot hold.
    #[error("a field name contains a NUL character")]
    NulInName,
    /// A number beyond what a double holds.
    #[error("the number is too large")]
    NumberTooLarge,
    /// A `$…` document whose content is not what the type needs.
    #[error("{name} does not have the content that Extended JSON gives it")]
    InvalidType {
        /// The `$…` name.
        name: &'static str,
    },
    /// Too many levels.
    #[error("nested deeper than {nesting_max} levels")]
    TooDeep {
        /// The limit.
        nesting_max: usize,
    },
    /// More text after the value.
    #[error("there is more text after the value")]
    TrailingText,
}
