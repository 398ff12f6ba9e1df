//! Every block that the tree writes, byte by byte: pages, leaf directories, inner nodes, indexes of slices with their
//! filters, the tree catalog, and the payloads of log records. `docs/data-file.md` says the same in prose; the golden files of the tests hold both to it.
//!
//! All of this is pure: bytes to values and back. Decoders take bytes that passed their checksum, and still trust
//! nothing: lengths are checked before they are used, and a wrong one is a [`FormatError`] that names block and field.
//! Numbers are little-endian; *varint* is LEB128 of at most 10 bytes.

pub(crate) mod catalog;
pub(crate) mod content;
pub(crate) mod deleted_ranges;
pub(crate) mod directory;
mod fields;
pub(crate) mod filter;
pub(crate) mod inner_node;
pub(crate) mod page;
pub(crate) mod page_builder;
pub(crate) mod page_columns;
pub(crate) mod record;
pub(crate) mod slice_index;

pub(crate) use fields::{Fields, varint_len, write_bytes, write_varint};

/// The version of the formats in this folder. It is frozen: every later program reads and writes stores of it (`tests/formats.rs`). What a
/// format that is not in it needs gets a feature bit of the superblock or another version beside it.
pub(crate) const FORMAT_VERSION: u8 = 1;

/// Why bytes are not what they should be. Never carries user data.
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
    /// A number is not one that can stand there.
    #[error("{block}: {field} is {found}, at most {limit} is possible here")]
    OutOfRange {
        /// The block.
        block: &'static str,
        /// The field.
        field: &'static str,
        /// What stands there.
        found: u64,
        /// The largest number that could.
        limit: u64,
    },
    /// A newer program wrote it.
    #[error("{block} has format version {found}, this program knows {FORMAT_VERSION}")]
    Version {
        /// The block.
        block: &'static str,
        /// The version that stands there.
        found: u8,
    },
    /// A field has a meaning that only newer programs know, or none.
    #[error("{block}: {field} has the unknown value {found}")]
    Unknown {
        /// The block.
        block: &'static str,
        /// The field.
        field: &'static str,
        /// What stands there.
        found: u64,
    },
    /// Keys, offsets or times do not stand in order.
    #[error("{block}: {field} number {at} is out of order")]
    Disorder {
        /// The block.
        block: &'static str,
        /// The field.
        field: &'static str,
        /// Which of them.
        at: usize,
    },
    /// Bytes remain after the last field.
    #[error("{block} has {bytes} bytes after its end")]
    Trailing {
        /// The block.
        block: &'static str,
        /// How many.
        bytes: usize,
    },
    /// A pointer within the block is not one.
    #[error("{block}: the pointer {at} cannot be read: {reason}")]
    Pointer {
        /// The block.
        block: &'static str,
        /// Which of them.
        at: usize,
        /// What is wrong with it.
        reason: crate::space::PointerError,
    },
}
