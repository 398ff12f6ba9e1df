//! Slice: the sorted messages of a run for one child of an inner node; immutable, read page by page.
//!
//! # Terms
//! - *Run*: the messages that one flush writes into an inner node: its slices, side by side in one extent. A
//!   run has no record of its own: the node owns each slice, and frees it alone once it is flushed.
//! - *Index* of a slice: its page pointers and its filter. It is read when first needed and stays in memory,
//!   until the indexes of a store exceed their limit ([`crate::tree::resident_nodes`]).
//!
//! # Invariants
//! - Every entry carries its timestamp; versions of one key stand newest first.
//! - Of two slices of one child, the first in the node has only newer versions of any key that both have.

use pando_environment::sync::OnceLock;
use std::sync::Arc;

use pando_storage::{HeldMemory, MemoryAccount};

use super::node::Used;
use crate::base::Pointer;
use crate::format::inner_node::StoredSlice;
use crate::format::slice_index::SliceIndex;

/// The slices of a child, newest first.
pub(crate) type Slices = Vec<Arc<Slice>>;

/// An index, and its share of the memory account.
#[derive(Debug)]
struct Loaded {
    index: SliceIndex,
    held: HeldMemory,
}

impl Loaded {
    fn new(index: SliceIndex, memory: &MemoryAccount) -> Loaded {
        let held = memory.hold(size_of::<Slice>() + index.heap_bytes());
        Loaded { index, held }
    }
}

/// See the module's head.
#[derive(Debug)]
pub(crate) struct Slice {
    stored: StoredSlice,
    loaded: OnceLock<Loaded>,
    used: Used,
}

impl Slice {
    /// A slice whose index has not been read.
    pub(crate) fn on_disk(stored: StoredSlice) -> Slice {
        Slice { stored, loaded: OnceLock::new(), used: Used::default() }
    }

    /// A slice that was just written.
    pub(crate) fn written(stored: StoredSlice, index: SliceIndex, memory: &MemoryAccount) -> Slice {
        Slice { stored, loaded: OnceLock::from(Loaded::new(index, memory)), used: Used::default() }
    }

    pub(crate) fn stored(&self) -> &StoredSlice {
        &self.stored
    }

    /// Entries: versions of keys.
    pub(crate) fn entries(&self) -> u64 {
        self.stored.entries
    }

    /// Bytes of keys and values.
    pub(crate) fn content_bytes(&self) -> u64 {
        self.stored.content_bytes
    }

    /// Bytes of keys, values and references as they stand in its pages.
    pub(crate) fn in_page_bytes(&self) -> u64 {
        self.stored.in_page_bytes
    }

    /// The end, in units, of the last large value of the slice; 0 without any.
    pub(crate) fn reach(&self) -> u64 {
        self.stored.reach
    }

    /// The index, if it is in memory.
    pub(crate) fn index(&self) -> Option<&SliceIndex> {
        self.loaded.get().map(|loaded| &loaded.index)
    }

    /// Bytes that the index takes in memory; 0 while it is not there.
    pub(crate) fn index_bytes(&self) -> usize {
        self.loaded.get().map_or(0, |loaded| loaded.held.bytes())
    }

    pub(crate) fn note_use(&self) {
        self.used.note();
    }

    /// Whether it was used since the last call.
    pub(crate) fn take_used(&self) -> bool {
        self.used.take()
    }

    /// Keeps an index that was read. Of two threads that load at the same time, one wins.
    pub(crate) fn fill(&self, index: SliceIndex, memory: &MemoryAccount) -> &SliceIndex {
        &self.loaded.get_or_init(|| Loaded::new(index, memory)).index
    }
}

/// The blocks of a slice: its pages and its index.
pub(crate) fn blocks_of_slice(slice: &Slice, index: &SliceIndex) -> Vec<Pointer> {
    index.pages.pages().iter().map(|page| page.pointer).chain([slice.stored.index]).collect()
}

#[cfg(all(test, shuttle))]
mod schedules;
