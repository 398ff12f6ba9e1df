//! Blocks by pointer: out of memory if they are there, from the device otherwise.

mod blocks;
mod missed_block;
mod page_cache;

pub(crate) use blocks::{Blocks, Retention};
pub(crate) use page_cache::PageCache;
