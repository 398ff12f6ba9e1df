//! Every block that the tree writes, byte by byte: pages, leaf directories, inner nodes, indexes of slices with their
//! filters, the tree catalog, and the payloads of log records. `docs/data-file.md` says the same in prose; the golden files of the tests hold both to it.
//!
//! All of this is pure: bytes to values and back. Decoders take bytes that passed their checksum, and still trust
//! nothing: lengths are checked before they are used, and a wrong one is a [`FormatError`] that names block and field.
//! Numbers are little-endian; *varint* is LEB128 of at most 10 bytes.

pub(crate) mod catalog;
pub(crate) mod content;
pub(crate) mod directory;
pub(crate) mod filter;
pub(crate) mod inner_node;
pub(crate) mod page;
pub(crate) mod page_builder;
pub(crate) mod page_columns;
pub(crate) mod record;
pub(crate) mod slice_index;
