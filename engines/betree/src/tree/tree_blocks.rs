//! The blocks of a store as its trees read them. Pages and directories come through the block cache, inner
//! nodes and slice indexes through their own slots.
//!
//! # Terms
//! - *Slot*: the place of an inner node ([`NodeSlot`]) or of a slice index ([`Slice`]) in memory. The first
//!   visit fills it. It stays filled until [`resident_nodes`](super::resident_nodes) replaces it.
//! - *One-time read*: a read that does not fill the slot, because its result is unlikely to be used again.
//!
//! # Not here
//! - The read-ahead of flushes: [`flush_read_ahead`](super::flush_read_ahead).

use std::ops::Deref;
use std::sync::Arc;

use bytes::Bytes;
use pando_storage::{BlockingMode, MemoryAccount};

use super::node::{InnerNode, NodeSlot};
use super::slice::Slice;
use crate::base::{BlockKind, Counter, FormatError, Pointer};
use crate::cache::{
    BlockTypes, CachedBlocks, DecodedDirectory, DecodedPage, LargeValueRead, ReadHint, format_error,
};
use crate::error::BetreeError;
use crate::format::content::LargeReference;
use crate::format::directory::Directory;
use crate::format::inner_node::StoredInnerNode;
use crate::format::page::Page;
use crate::format::slice_index::SliceIndex;
use crate::space::BlockStore;

/// The types to which a tree's pages and directories decode.
pub(crate) struct TreeBlocks;

impl BlockTypes for TreeBlocks {
    type Page = Page;
    type Directory = Directory;
}

/// The page cache of a store.
pub(crate) type PageCache = crate::cache::PageCache<TreeBlocks>;

impl DecodedPage for Page {
    fn from_block(raw: Bytes) -> Result<Page, FormatError> {
        Page::decode(raw)
    }

    fn check_kind(&self, pointer: &Pointer) -> Result<(), FormatError> {
        if self.has_merges() && pointer.kind() == BlockKind::Page {
            return Err(FormatError::Disorder { block: "page of a leaf", field: "merge", at: 0 });
        }
        Ok(())
    }

    fn heap_bytes(&self) -> usize {
        self.heap_bytes()
    }
}

impl DecodedDirectory for Directory {
    fn from_block(raw: &[u8]) -> Result<Directory, FormatError> {
        Directory::decode(raw)
    }

    fn heap_bytes(&self) -> usize {
        self.heap_bytes()
    }
}

/// A node or an index: borrowed from its slot, or the result of a one-time read.
pub(crate) enum SlotOrRead<'s, T> {
    Slot(&'s T),
    Read(T),
}

impl<T> Deref for SlotOrRead<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        match self {
            SlotOrRead::Slot(content) => content,
            SlotOrRead::Read(content) => content,
        }
    }
}

/// See the module's head. Dereferences to the block cache, which reads pages and directories.
pub(crate) struct Blocks {
    cached: CachedBlocks<TreeBlocks>,
    /// Memory of slice indexes.
    pub(crate) index_memory: MemoryAccount,
    /// Pages of slices that lookups read because the slice's filter let the key through.
    pub(crate) probes: Counter,
    /// Of these, the pages that did not have the key.
    pub(crate) false_positives: Counter,
    /// Slices that a lookup skipped because of their filters.
    pub(crate) skipped_probes: Counter,
}

impl Deref for Blocks {
    type Target = CachedBlocks<TreeBlocks>;

    fn deref(&self) -> &CachedBlocks<TreeBlocks> {
        &self.cached
    }
}

impl Blocks {
    pub(crate) fn new(store: Arc<BlockStore>, cache: PageCache) -> Blocks {
        Blocks {
            cached: CachedBlocks::new(store, cache),
            index_memory: MemoryAccount::default(),
            probes: Counter::default(),
            false_positives: Counter::default(),
            skipped_probes: Counter::default(),
        }
    }

    /// Returns the content of an inner node.
    pub(crate) fn node<'s>(
        &self,
        slot: &'s NodeSlot,
        blocking: BlockingMode,
    ) -> Result<&'s InnerNode, BetreeError> {
        slot.note_use();
        if let Some(node) = slot.loaded() {
            return Ok(node);
        }
        self.miss_slot(blocking)?;
        Ok(slot.fill(self.read_node(slot)?))
    }

    fn read_node(&self, slot: &NodeSlot) -> Result<InnerNode, BetreeError> {
        let pointer = slot.stored().expect("a node is in memory or on disk");
        decode_node(&pointer, slot.height(), &self.store().read_block(&pointer)?)
    }

    /// Returns the content of an inner node. A one-time read if it is not in memory.
    pub(crate) fn node_once<'s>(&self, slot: &'s NodeSlot) -> Result<SlotOrRead<'s, InnerNode>, BetreeError> {
        match slot.loaded() {
            Some(node) => Ok(SlotOrRead::Slot(node)),
            None => self.read_node(slot).map(SlotOrRead::Read),
        }
    }

    /// Returns the index of a slice.
    pub(crate) fn slice_index<'s>(
        &self,
        slice: &'s Slice,
        blocking: BlockingMode,
    ) -> Result<&'s SliceIndex, BetreeError> {
        slice.note_use();
        if let Some(index) = slice.index() {
            return Ok(index);
        }
        self.miss_slot(blocking)?;
        Ok(slice.fill(self.read_index(slice)?, &self.index_memory))
    }

    fn read_index(&self, slice: &Slice) -> Result<SliceIndex, BetreeError> {
        let pointer = &slice.stored().index;
        decode_slice_index(pointer, &self.store().read_block(pointer)?)
    }

    /// Returns the index of a slice. A one-time read if it is not in memory.
    pub(crate) fn slice_index_once<'s>(
        &self,
        slice: &'s Slice,
    ) -> Result<SlotOrRead<'s, SliceIndex>, BetreeError> {
        match slice.index() {
            Some(index) => Ok(SlotOrRead::Slot(index)),
            None => self.read_index(slice).map(SlotOrRead::Read),
        }
    }

    /// Counts a miss of a slot in mode `MayBlock`. In mode `CachedOnly` a blocking thread must repeat the
    /// request: such misses are too rare for an asynchronous read of their own.
    fn miss_slot(&self, blocking: BlockingMode) -> Result<(), BetreeError> {
        match blocking {
            BlockingMode::CachedOnly => Err(BetreeError::WouldBlock(None)),
            BlockingMode::MayBlock => {
                self.cache().misses.add(1);
                Ok(())
            }
        }
    }

    /// Returns a large value for a point query.
    pub(crate) fn large_value(
        &self,
        reference: &LargeReference<Bytes>,
        blocking: BlockingMode,
    ) -> Result<Bytes, BetreeError> {
        // The decoder has checked that the length is within the limit of a value.
        let mut value = vec![0; reference.length() as usize];
        let read = LargeValueRead { pieces: reference.pieces(), target: &mut value };
        self.read_large_values([read], ReadHint::Normal, blocking)?;
        Ok(Bytes::from(value))
    }
}

pub(super) fn decode_node(pointer: &Pointer, height: u8, raw: &[u8]) -> Result<InnerNode, BetreeError> {
    StoredInnerNode::decode(raw)
        .and_then(|stored| stored.check_height(height))
        .map(InnerNode::from_stored)
        .map_err(|source| format_error(pointer, source))
}

pub(super) fn decode_slice_index(pointer: &Pointer, raw: &[u8]) -> Result<SliceIndex, BetreeError> {
    SliceIndex::decode(raw).map_err(|source| format_error(pointer, source))
}
