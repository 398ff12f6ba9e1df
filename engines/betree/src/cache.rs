//! Blocks by pointer: out of memory if they are there, from the device otherwise.

mod blocks;
mod large_values;
mod missed_block;
mod page_cache;
mod read_ahead;
mod scan_ahead;
mod scan_reads;
mod shares;
mod stored_page;

pub(crate) use blocks::{Blocks, NewPage};
pub(crate) use large_values::Wanted;
pub(crate) use page_cache::{PageCache, Tier};
pub(crate) use read_ahead::{Ahead, SlicePages};
pub(crate) use scan_ahead::{Extension, WantedPages};
pub(crate) use scan_reads::{ScanPace, Stretch};
