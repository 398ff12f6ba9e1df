//! The stored form of every block of a tree and of every log record, byte by byte.
//!
//! | block | module |
//! |---|---|
//! | page of a leaf or run | [`page`], [`page_builder`], [`page_columns`], [`content`] |
//! | directory, inner node, slice index | [`directory`], [`inner_node`], [`slice_index`], [`filter`] |
//! | tree catalog | [`catalog`] |
//! | payload of a log record | [`record_payload`] |
//!
//! `docs/data-file.md` says the same in prose. The golden files of the tests hold both to it.
//!
//! All of this is pure: bytes to values and back. Decoders get bytes that passed their checksum, and still
//! trust none of them: they check each length before they use it. A wrong one is a
//! [`FormatError`](crate::base::FormatError) that names block and field. Numbers are little-endian; *varint*
//! is LEB128 of at most 10 bytes.
//!
//! Not here: the headers of blocks and the superblock (`space`), the headers of log records and segments
//! (`log`).

pub(crate) mod catalog;
pub(crate) mod content;
pub(crate) mod directory;
pub(crate) mod filter;
pub(crate) mod inner_node;
pub(crate) mod page;
pub(crate) mod page_builder;
pub(crate) mod page_columns;
pub(crate) mod record_payload;
pub(crate) mod slice_index;
