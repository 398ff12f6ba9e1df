//! Owned extents: all space in the data file that a subtree owns, so that a dropped tree can be reclaimed.
//!
//! The walk reads every directory and every index. Of the pages it reads only those that refer to large
//! values.

use bytes::Bytes;

use crate::base::{Extent, Generation, Pointer, extents_of};
use crate::error::BetreeError;
use crate::format::content::Content;
use crate::format::directory::Directory;
use crate::format::page::Page;
use crate::tree::leaf_merge::blocks_of_leaf;
use crate::tree::node::Child;
use crate::tree::slice::blocks_of_slice;
use crate::tree::tree_blocks::Blocks;

/// See the module's head.
#[derive(Debug, Default)]
pub(crate) struct Owners {
    /// The extents of every leaf, slice and inner node, each with its owner's birth. A large tree has many.
    pub(crate) extents: Vec<(Extent, Generation)>,
    /// The extents of large values, which may be many. Adjacent ones are united, with the birth of the
    /// oldest.
    pub(crate) values: Vec<(Extent, Generation)>,
}

impl Owners {
    /// Adds all extents of a subtree, and drops its blocks from the page cache. The blocks that the walk
    /// reads do not enter the cache, since the tree may be larger than memory.
    pub(crate) fn collect(&mut self, blocks: &Blocks, child: &Child) -> Result<(), BetreeError> {
        match child {
            Child::Leaf(leaf) => {
                let directory = blocks.directory_once(&leaf.directory)?;
                if leaf.reach > 0 {
                    self.collect_values(blocks, &directory)?;
                }
                self.add(blocks, &blocks_of_leaf(leaf, &directory));
            }
            Child::Inner(slot) => {
                let node = blocks.node_once(slot)?;
                node.children().iter().try_for_each(|child| self.collect(blocks, child))?;
                for slice in node.all_slices() {
                    let index = blocks.slice_index_once(slice)?;
                    self.add(blocks, &blocks_of_slice(slice, &index));
                    if slice.reach() > 0 {
                        self.collect_values(blocks, &index.pages)?;
                    }
                }
                self.add(blocks, slot.stored().as_slice());
            }
        }
        Ok(())
    }

    /// Adds the blocks of one owner.
    fn add(&mut self, blocks: &Blocks, owned: &[Pointer]) {
        owned.iter().for_each(|pointer| blocks.forget(pointer));
        let Some(birth) = owned.iter().map(Pointer::birth).max() else { return };
        self.extents.extend(extents_of(owned).into_iter().map(|extent| (extent, birth)));
    }

    fn collect_values(&mut self, blocks: &Blocks, directory: &Directory) -> Result<(), BetreeError> {
        for entry in directory.pages().iter().filter(|entry| entry.large_bytes > 0) {
            let page = decode(&entry.pointer, blocks.store().read_block(&entry.pointer)?)?;
            for pieces in values_of(&page) {
                let Some(birth) = pieces.iter().map(Pointer::birth).max() else { continue };
                extents_of(&pieces).into_iter().for_each(|extent| self.add_value(extent, birth));
            }
        }
        Ok(())
    }

    fn add_value(&mut self, extent: Extent, birth: Generation) {
        match self.values.last_mut() {
            Some((last, oldest)) if last.end() == extent.start() && last.file() == extent.file() => {
                *last = Extent::new(last.file(), last.start(), extent.end() - last.start());
                *oldest = birth.min(*oldest);
            }
            _ => self.values.push((extent, birth)),
        }
    }
}

fn decode(pointer: &Pointer, raw: Bytes) -> Result<Page, BetreeError> {
    let offset = pointer.address().byte_offset();
    Page::decode(raw).map_err(|source| BetreeError::Format { offset, source })
}

/// The pieces of each large value that a page refers to.
pub(crate) fn values_of(page: &Page) -> impl Iterator<Item = Vec<Pointer>> + '_ {
    (0..page.len()).filter_map(|at| match page.content(&page.entry(at)) {
        Content::Large(reference) => Some(reference.pieces().collect()),
        Content::Deleted | Content::Value(_) | Content::Merge(_) => None,
    })
}
