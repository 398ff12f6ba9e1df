//! The version of the on-disk format, and the error of a block or record that cannot be decoded.

use super::PointerError;

/// The version of the formats in `format`. It is frozen: every later program reads and writes stores of it
/// (`tests/formats.rs`). An addition to the format takes a feature bit of the superblock, or another version
/// beside it.
pub(crate) const FORMAT_VERSION: u8 = 1;

/// The reason why bytes cannot be decoded. It never carries user data.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// The bytes end within a field.
    #[error("{block} ends within its {field}")]
    Truncated {
        /// The block.
        block: &'static str,
        /// The field.
        field: &'static str,
    },
    /// A number is out of its range.
    #[error("{block}: {field} is {found}, at most {limit} is possible here")]
    OutOfRange {
        /// The block.
        block: &'static str,
        /// The field.
        field: &'static str,
        /// The value found.
        found: u64,
        /// The largest number that could.
        limit: u64,
    },
    /// A newer program wrote the block.
    #[error("{block} has format version {found}, this program knows {FORMAT_VERSION}")]
    Version {
        /// The block.
        block: &'static str,
        /// The version found.
        found: u8,
    },
    /// A field has a value that this program does not know.
    #[error("{block}: {field} has the unknown value {found}")]
    Unknown {
        /// The block.
        block: &'static str,
        /// The field.
        field: &'static str,
        /// The value found.
        found: u64,
    },
    /// Keys, offsets or timestamps are out of order.
    #[error("{block}: {field} number {at} is out of order")]
    Disorder {
        /// The block.
        block: &'static str,
        /// The field.
        field: &'static str,
        /// The index of the wrong one.
        at: usize,
    },
    /// Bytes remain after the last field.
    #[error("{block} has {bytes} bytes after its end")]
    Trailing {
        /// The block.
        block: &'static str,
        /// The number of bytes.
        bytes: usize,
    },
    /// Bytes within the block that should be a pointer are none.
    #[error("{block}: the pointer {at} cannot be read: {reason}")]
    Pointer {
        /// The block.
        block: &'static str,
        /// The index of the wrong one.
        at: usize,
        /// The reason.
        reason: PointerError,
    },
}
