//! Read-ahead of flushes: the blocks that a flush step will visit, read together.
//!
//! A node has dozens of children, and the slices of each child stand in blocks of their own. Where the data
//! is much larger than memory, these blocks and their indexes are on disk. A step that reads them one after
//! the other waits for the device a hundred times.
//!
//! # Steps
//! 1. Read the uncached inner nodes, slice indexes and directories ([`NextBlocks`]) together. Nodes and
//!    indexes stay in memory; directories stay as long as the cache has room.
//! 2. Read the pages of the slices ([`SlicePages`]) together. The step takes them as it visits the slices.
//!
//! The slices of a leaf that the step unites with its neighbour are not known in advance. Their blocks are
//! read when the step visits them.
//!
//! # Invariants
//! - No page is left when the step ends.

use hashbrown::HashMap;
use pando_storage::{BlockingMode, HeldMemory};

use super::node::NodeSlot;
use super::slice::Slice;
use super::tree_blocks::{Blocks, decode_node, decode_slice_index};
use crate::base::{BlockAddress, Pointer};
use crate::error::BetreeError;
use crate::format::page::Page;

/// The blocks below a node that a flush step will visit next.
#[derive(Debug, Default)]
pub(crate) struct NextBlocks<'n> {
    pub(crate) nodes: Vec<&'n NodeSlot>,
    /// Slices, whose indexes are read.
    pub(crate) slices: Vec<&'n Slice>,
    /// Directories of leaves.
    pub(crate) directories: Vec<Pointer>,
}

/// A block that is not in memory, and the place for its content.
#[derive(Clone, Copy)]
struct UncachedBlock<'n> {
    pointer: Pointer,
    place: ContentPlace<'n>,
}

#[derive(Clone, Copy)]
enum ContentPlace<'n> {
    Node(&'n NodeSlot),
    Index(&'n Slice),
    Directory,
}

impl<'n> NextBlocks<'n> {
    fn uncached(&self, blocks: &Blocks) -> Vec<UncachedBlock<'n>> {
        let nodes = self.nodes.iter().filter(|slot| slot.loaded().is_none()).filter_map(|slot| {
            Some(UncachedBlock { pointer: slot.stored()?, place: ContentPlace::Node(slot) })
        });
        let indexes = self
            .slices
            .iter()
            .filter(|slice| slice.index().is_none())
            .map(|slice| UncachedBlock { pointer: slice.stored().index, place: ContentPlace::Index(slice) });
        let directories = self.directories.iter().filter(|pointer| !blocks.has_directory(pointer));
        let directories =
            directories.map(|pointer| UncachedBlock { pointer: *pointer, place: ContentPlace::Directory });
        let mut uncached: Vec<_> = nodes.chain(indexes).chain(directories).collect();
        uncached.sort_by_key(|block| block.pointer.address());
        uncached
    }
}

/// Pages of slices that were read ahead, by the address of the slice's index.
#[derive(Debug, Default)]
pub(crate) struct SlicePages(HashMap<BlockAddress, CountedPages>);

#[derive(Debug)]
struct CountedPages {
    pages: Vec<Page>,
    held: HeldMemory,
}

impl SlicePages {
    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes the pages of a slice out, if they were read ahead.
    pub(crate) fn take(&mut self, slice: &Slice) -> Option<Vec<Page>> {
        self.0.remove(&slice.stored().index.address()).map(|counted| counted.pages)
    }
}

impl Blocks {
    /// Reads those of the blocks that are not in memory.
    pub(crate) fn read_next_blocks(&self, next: &NextBlocks<'_>) -> Result<(), BetreeError> {
        let uncached = next.uncached(self);
        if uncached.is_empty() {
            return Ok(());
        }
        self.cache().flush_reads.add(uncached.len() as u64);
        let pointers: Vec<Pointer> = uncached.iter().map(|block| block.pointer).collect();
        let mut outcome = Ok(());
        self.store().read_scattered(&pointers, |at, _, payload| {
            if outcome.is_ok() {
                outcome = self.keep_block(uncached[at], payload);
            }
        })?;
        outcome
    }

    fn keep_block(
        &self,
        UncachedBlock { pointer, place }: UncachedBlock<'_>,
        payload: &[u8],
    ) -> Result<(), BetreeError> {
        let raw = self.store().decompress(&pointer, payload)?;
        match place {
            ContentPlace::Node(slot) => {
                slot.fill(decode_node(&pointer, slot.height(), &raw)?);
            }
            ContentPlace::Index(slice) => {
                slice.fill(decode_slice_index(&pointer, &raw)?, &self.index_memory);
            }
            ContentPlace::Directory => self.insert_directory(&pointer, &raw)?,
        }
        Ok(())
    }

    /// Reads the pages of slices.
    pub(crate) fn read_slices(&self, slices: &[&Slice], pages: &mut SlicePages) -> Result<(), BetreeError> {
        let mut wanted = Vec::new();
        for slice in slices {
            let index = self.slice_index(slice, BlockingMode::MayBlock)?;
            let address = slice.stored().index.address();
            wanted.extend(index.pages.pages().iter().enumerate().map(|(at, entry)| (entry, address, at)));
        }
        // The slices belong to several runs. Within a run they stand side by side.
        wanted.sort_by_key(|(entry, ..)| entry.pointer.address());
        let read = self.pages_once(wanted.iter().map(|(entry, ..)| &entry.pointer))?;
        let mut read: Vec<_> =
            wanted.into_iter().zip(read).map(|((_, slice, at), page)| (slice, at, page)).collect();
        read.sort_by_key(|(slice, at, _)| (*slice, *at));
        for (slice, _, page) in read {
            let of_slice = pages.0.entry(slice);
            let of_slice =
                of_slice.or_insert_with(|| CountedPages { pages: Vec::new(), held: self.accounts.hold(0) });
            let bytes = of_slice.held.bytes() + page.heap_bytes();
            self.accounts.set(&mut of_slice.held, bytes);
            of_slice.pages.push(page);
        }
        Ok(())
    }
}
