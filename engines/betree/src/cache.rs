//! The block cache: blocks by pointer, from memory where a copy is there, otherwise from the device.
//!
//! The cache does not know what a block means. It is generic over the types to which pages and leaf
//! directories decode ([`BlockTypes`]); the tree provides them (`tree/tree_blocks.rs`).
//!
//! # Parts
//! - [`cached_blocks`]: reads through the cache, and decodes.
//! - [`page_cache`]: decoded pages, compressed pages and directories within one limit of bytes;
//!   [`tier_sizes`] decides how pages share that memory.
//! - [`missed_block`]: a read that a caller in mode `CachedOnly` could not do, for the event loop to submit.
//! - [`large_value_reads`]: values that are stored outside of pages.
//! - [`scan_reads`]: how scans read pages. [`scan_prefetch`]: streams of pages that background workers read
//!   ahead of long scans.
//!
//! # Not here
//! - Inner nodes and slice indexes: the tree keeps them itself. So does the read-ahead of flushes
//!   (`tree/flush_read_ahead.rs`).

mod block_types;
mod cached_blocks;
mod large_value_reads;
mod missed_block;
mod page_cache;
mod scan_prefetch;
mod scan_reads;
mod stored_page;
mod tier_sizes;
#[cfg(test)]
mod toy;

pub(crate) use block_types::{BlockTypes, DecodedDirectory, DecodedPage, format_error};
pub(crate) use cached_blocks::{CachedBlocks, NewPage};
pub(crate) use large_value_reads::LargeValueRead;
pub(crate) use page_cache::{PageCache, Tier};
pub(crate) use scan_prefetch::{ChunkRequest, ScanId, StreamExtension};
pub(crate) use scan_reads::{PageWindow, ReadHint};
