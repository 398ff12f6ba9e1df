//! What a step of a merge is about to visit, read at once.
//!
//! A node has dozens of children. What waits for each stands in blocks of its own, and where data is far larger than memory, they are on
//! disk, and so is what leads to them. Read one after the other as the step comes by, they would make it wait for the device a hundred times.
//!
//! 1. What leads on ([`Ahead`]: inner nodes, indexes of slices, directories of leaves): all that are missing, together. Nodes and indexes
//!    stay in memory; directories as long as there is room for them.
//! 2. The pages of the slices ([`SlicePages`]), together. The step takes them out as it comes by.
//!
//! A leaf that is united with its neighbour was not foreseen: what waits for it is read when it is its turn.
//!
//! # Invariants
//! - Nothing is left of the pages when the step ends.

use std::sync::Arc;

use hashbrown::HashMap;
use pando_storage::{BlockingMode, HeldMemory};

use super::blocks::{Blocks, decode_directory, decode_node, decode_slice_index};
use super::page_cache::BlockKey;
use crate::base::{BlockAddress, Pointer};
use crate::error::BetreeError;
use crate::format::page::Page;
use crate::tree::node::NodeSlot;
use crate::tree::slice::Slice;

/// What leads on from a node.
#[derive(Debug, Default)]
pub(crate) struct Ahead<'n> {
    pub(crate) nodes: Vec<&'n NodeSlot>,
    pub(crate) slices: Vec<&'n Slice>,
    /// Of leaves.
    pub(crate) directories: Vec<Pointer>,
}

/// Something of it that is missing.
#[derive(Clone, Copy)]
enum Missing<'n> {
    Node(&'n NodeSlot),
    Index(&'n Slice),
    Directory,
}

impl<'n> Ahead<'n> {
    fn missing(&self, blocks: &Blocks) -> Vec<(Pointer, Missing<'n>)> {
        let nodes = self.nodes.iter().filter(|slot| slot.loaded().is_none());
        let nodes = nodes.filter_map(|slot| Some((slot.stored()?, Missing::Node(slot))));
        let slices = self.slices.iter().filter(|slice| slice.index().is_none());
        let slices = slices.map(|slice| (slice.stored().index, Missing::Index(slice)));
        let directories = self.directories.iter();
        let directories = directories.filter(|pointer| !blocks.cache().has_directory(&BlockKey::of(pointer)));
        let directories = directories.map(|pointer| (*pointer, Missing::Directory));
        let mut missing: Vec<_> = nodes.chain(slices).chain(directories).collect();
        missing.sort_by_key(|(pointer, _)| pointer.address());
        missing
    }
}

/// Pages of slices that were read ahead, by the address of the slice's index.
#[derive(Debug, Default)]
pub(crate) struct SlicePages(HashMap<BlockAddress, HeldPages>);

#[derive(Debug)]
struct HeldPages {
    pages: Vec<Page>,
    held: HeldMemory,
}

impl SlicePages {
    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The pages of a slice, if they are here; then no longer.
    pub(crate) fn take(&mut self, slice: &Slice) -> Option<Vec<Page>> {
        self.0.remove(&slice.stored().index.address()).map(|held| held.pages)
    }
}

impl Blocks {
    /// Reads what is missing of what leads on.
    pub(crate) fn load(&self, ahead: &Ahead<'_>) -> Result<(), BetreeError> {
        let missing = ahead.missing(self);
        if missing.is_empty() {
            return Ok(());
        }
        self.cache().flush_reads.add(missing.len() as u64);
        let pointers: Vec<Pointer> = missing.iter().map(|(pointer, _)| *pointer).collect();
        let mut outcome = Ok(());
        self.store().read_scattered(&pointers, |place, pointer, payload| {
            if outcome.is_ok() {
                outcome = self.take_ahead(missing[place].1, pointer, payload);
            }
        })?;
        outcome
    }

    fn take_ahead(&self, what: Missing<'_>, pointer: &Pointer, payload: &[u8]) -> Result<(), BetreeError> {
        let raw = self.store().decompress(pointer, payload)?;
        match what {
            Missing::Node(slot) => {
                slot.fill(decode_node(pointer, slot.height(), &raw)?);
            }
            Missing::Index(slice) => {
                slice.fill(decode_slice_index(pointer, &raw)?, &self.index_memory);
            }
            Missing::Directory => {
                let directory = Arc::new(decode_directory(pointer, &raw)?);
                self.cache().insert_directory(BlockKey::of(pointer), directory);
            }
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
        // Of several runs, side by side in each.
        wanted.sort_by_key(|(entry, ..)| entry.pointer.address());
        let read = self.pages(wanted.iter().map(|(entry, ..)| *entry))?;
        let mut read: Vec<_> =
            wanted.into_iter().zip(read).map(|((_, slice, at), page)| (slice, at, page)).collect();
        read.sort_by_key(|(slice, at, _)| (*slice, *at));
        for (slice, _, page) in read {
            let of_slice = pages.0.entry(slice);
            let of_slice =
                of_slice.or_insert_with(|| HeldPages { pages: Vec::new(), held: self.accounts.hold(0) });
            let bytes = of_slice.held.bytes() + page.heap_bytes();
            self.accounts.set(&mut of_slice.held, bytes);
            of_slice.pages.push(page);
        }
        Ok(())
    }
}
