//! The vocabulary of the engine: ids and addresses, log positions, pointers, key spans, field encoding,
//! counters, durable folders.
//!
//! Every other room stands on this one. It uses none of them.

mod address;
mod codec;
pub(crate) mod columns;
mod counter;
mod durable_folder;
mod fields;
mod format_error;
mod key_span;
mod lock_waits;
mod log_position;
mod pointer;
mod record_kind;
mod sorted_keys;

pub(crate) use address::{
    BLOCK_BYTES_MAX, BlockAddress, Extent, FileId, GRAIN_BYTES, Generation, StoreId, UNIT_BYTES, extents_of,
};
pub(crate) use codec::{BUILT_CODECS, Codec, FEATURE_ENCRYPTED, FEATURE_MORE_CODECS, FEATURE_PATCHES};
pub(crate) use columns::{Columns, Rows};
pub(crate) use counter::{Counter, stripe};
pub(crate) use durable_folder::create_durable_folder;
pub(crate) use fields::{Fields, varint_len, write_bytes, write_varint};
pub(crate) use format_error::FORMAT_VERSION;
pub use format_error::FormatError;
pub(crate) use key_span::{BOUND_BYTES_MAX, KeySpan};
pub(crate) use lock_waits::{LockWaits, WaitFor};
pub(crate) use log_position::LogPosition;
pub use pointer::PointerError;
pub(crate) use pointer::{BLOCK_HEADER_BYTES, BlockKind, Pointer, PointerFields};
pub(crate) use record_kind::RecordKind;
pub(crate) use sorted_keys::SortedKeys;
