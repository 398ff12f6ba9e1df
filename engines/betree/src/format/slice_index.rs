//! The index of a slice: its pages, the keys that each of them covers, and the slice's filter.
//!
//! # Layout
//! ```text
//! u8      format version
//! varint  blocks of the filter, then 32 B each (eight u32): see `filter`
//!         the rest is laid out as a leaf directory, but that its pages are pages of a run
//! ```
//! A page of a run is laid out like a page of a leaf, and every entry carries its timestamp. The separator of
//! the first page is empty: the page covers the child's keys from their lower end on.

use super::directory::Directory;
use super::filter::Filter;
use crate::base::BlockKind;
use crate::base::{FORMAT_VERSION, Fields, FormatError};

const BLOCK: &str = "slice index";

/// The index of a slice in memory.
#[derive(Clone, Debug)]
pub(crate) struct SliceIndex {
    pub(crate) pages: Directory,
    pub(crate) filter: Filter,
}

impl SliceIndex {
    /// Heap memory in bytes.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.pages.heap_bytes() + self.filter.heap_bytes()
    }

    /// The exact length of what [`encode`](SliceIndex::encode) writes, for a filter and a directory's length.
    pub(crate) fn encoded_bytes(filter: &Filter, directory_bytes: usize) -> usize {
        1 + filter.encoded_bytes() + directory_bytes
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = vec![FORMAT_VERSION];
        self.filter.encode(&mut out);
        out.extend_from_slice(&self.pages.encode());
        out
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<SliceIndex, FormatError> {
        let mut fields = Fields::new(BLOCK, bytes);
        fields.version()?;
        let filter = Filter::decode(&mut fields)?;
        let rest = fields.bytes(fields.remaining(), "pages")?;
        let pages = Directory::decode_of(rest, BLOCK, BlockKind::RunPage)?;
        Ok(SliceIndex { pages, filter })
    }
}

#[cfg(test)]
mod tests;
