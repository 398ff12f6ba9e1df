//! The kind of a log record. The log treats it as a number; `format` gives it a meaning.

/// The kind of a record. The engine numbers its kinds from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RecordKind(u8);

impl RecordKind {
    /// The kind of this number.
    ///
    /// # Panics
    /// At 0, which no record has, so that zeros never look like one.
    pub(crate) const fn new(number: u8) -> RecordKind {
        assert!(number != 0, "no record has kind 0");
        RecordKind(number)
    }

    pub(crate) const fn number(self) -> u8 {
        self.0
    }
}
