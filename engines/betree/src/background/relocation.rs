//! Relocation: moves blocks towards the front of the data file, so that its free end can be cut off.
//!
//! Leaves, slices and inner nodes whose blocks lie behind a *ceiling* are written anew before it. Their
//! content does not change. Pages are read and written again one by one. The directory or index follows with
//! the new pointers. The nodes above are replaced as a flush replaces them.
//!
//! - A leaf is found by its directory. Pages of a fragmented leaf, which lie elsewhere, move when the
//!   directory does.
//! - A leaf or slice whose large values *reach* behind the ceiling moves as well, together with those values:
//!   the references to them are in its pages.
//! - A damaged leaf or slice stays where it is, and stops no other.
//!
//! The caller holds the tree's flush lock.

mod values;

use std::sync::Arc;

use pando_storage::{BlockingMode, ErrorKind};

use crate::base::{BlockKind, Extent, Pointer, extents_of};
use crate::error::BetreeError;
use crate::format::directory::{Directory, PageEntry};
use crate::format::inner_node::StoredSlice;
use crate::format::page_columns::columns_of;
use crate::format::slice_index::SliceIndex;
use crate::space::{Compression, SpaceError};
use crate::tree::node::{Child, InnerNode, LeafChild, NodeSlot};
use crate::tree::slice::{Slice, blocks_of_slice};
use crate::tree::tree_blocks::Blocks;
use crate::tree::tree_state::Tree;
use crate::tree::view::TreeVersion;

/// Leaves and slices of a tree that are remembered as damaged; more are tried again.
const UNMOVABLE_MAX: usize = 1024;

/// The most that one step moves, and the place before which it moves it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MoveLimits {
    /// The unit before which everything is to lie.
    pub(crate) ceiling: u64,
    /// Stored bytes.
    pub(crate) bytes: u64,
}

/// Moves some of a tree's blocks. Returns the stored bytes that it moved. Fewer than allowed mean that all of
/// the tree lies before the ceiling, or that there is no room.
pub(crate) fn relocate(blocks: &Blocks, tree: &Tree, limits: MoveLimits) -> Result<u64, BetreeError> {
    let before = tree.view_owned();
    let Some(root) = &before.version.root else { return Ok(0) };
    let mut mover = Mover {
        blocks,
        tree,
        limits,
        moved: 0,
        tried: 0,
        written: Vec::new(),
        replaced: Vec::new(),
        nodes: Vec::new(),
    };
    let outcome = mover.child(root);
    let moved = mover.moved;
    match outcome {
        Ok(Some(root)) => {
            mover.install(root);
            Ok(moved)
        }
        Ok(None) => Ok(0),
        Err(error) => {
            // No pointer leads to the written blocks.
            mover.written.iter().for_each(|extent| blocks.store().abandon(*extent));
            Err(error)
        }
    }
}

struct Mover<'m> {
    blocks: &'m Blocks,
    tree: &'m Tree,
    limits: MoveLimits,
    moved: u64,
    /// Stored bytes that were read and found no room, or damaged.
    tried: u64,
    written: Vec<Extent>,
    /// The blocks of leaves, slices and large values that have moved, by owner.
    replaced: Vec<Vec<Pointer>>,
    nodes: Vec<Arc<NodeSlot>>,
}

/// The blocks of a leaf or slice in their new place.
struct Moved {
    /// The directory or index.
    head: Pointer,
    /// The pages as they are there.
    pages: Directory,
    reach: u64,
}

impl Mover<'_> {
    fn reaches_beyond_ceiling(&self, pointer: &Pointer) -> bool {
        pointer.extent().end() > self.limits.ceiling && self.goes_on()
    }

    /// Whether large values of this reach lie behind the ceiling.
    fn reaches_out(&self, reach: u64) -> bool {
        reach > self.limits.ceiling && self.goes_on()
    }

    /// Whether the step may do more.
    fn goes_on(&self) -> bool {
        self.moved + self.tried < self.limits.bytes
    }

    /// A subtree in its new place; `None` where no part of it has moved.
    fn child(&mut self, child: &Child) -> Result<Option<Child>, BetreeError> {
        match child {
            Child::Leaf(leaf)
                if self.reaches_beyond_ceiling(&leaf.directory) || self.reaches_out(leaf.reach) =>
            {
                self.unless_damaged(&leaf.directory, |mover| mover.leaf(leaf))
            }
            Child::Leaf(_) => Ok(None),
            Child::Inner(slot) => self.inner(slot),
        }
    }

    fn inner(&mut self, slot: &Arc<NodeSlot>) -> Result<Option<Child>, BetreeError> {
        let blocks = self.blocks;
        let node = blocks.node(slot, BlockingMode::MayBlock)?;
        let mut has_moved = slot.stored().is_some_and(|pointer| self.reaches_beyond_ceiling(&pointer));
        let mut parts = Vec::with_capacity(node.children().len());
        for at in 0..node.children().len() {
            let mut part = node.part(at, b"");
            if let Some(moved) = self.child(&part.child)? {
                (part.child, has_moved) = (moved, true);
            }
            for slice in &mut part.slices {
                if (self.reaches_beyond_ceiling(&slice.stored().index) || self.reaches_out(slice.reach()))
                    && let Some(moved) =
                        self.unless_damaged(&slice.stored().index, |mover| mover.slice(slice))?
                {
                    (*slice, has_moved) = (Arc::new(moved), true);
                }
            }
            parts.push(part);
        }
        if !has_moved {
            return Ok(None);
        }
        // The next checkpoint writes it, before the ceiling if it can.
        self.moved += slot.stored().map_or(0, |pointer| u64::from(pointer.disk_length()));
        self.nodes.push(Arc::clone(slot));
        Ok(Some(Child::Inner(Arc::new(NodeSlot::dirty(InnerNode::new(node.height(), parts))))))
    }

    /// Moves a leaf or slice. One that cannot be read stays where it is, now and later; its readers get the
    /// error.
    fn unless_damaged<T>(
        &mut self,
        head: &Pointer,
        move_it: impl FnOnce(&mut Self) -> Result<Option<T>, BetreeError>,
    ) -> Result<Option<T>, BetreeError> {
        if self.tree.unmovable.lock().contains(&head.address()) {
            return Ok(None);
        }
        let (moved, written, replaced) = (self.moved, self.written.len(), self.replaced.len());
        match move_it(self) {
            Err(error) if error.kind() == ErrorKind::Corrupt => {
                let mut unmovable = self.tree.unmovable.lock();
                if unmovable.len() < UNMOVABLE_MAX {
                    unmovable.insert(head.address());
                }
                drop(unmovable);
                self.tried += u64::from(head.disk_length());
                self.moved = moved;
                self.abandon_from(written);
                self.replaced.truncate(replaced);
                Ok(None)
            }
            outcome => outcome,
        }
    }

    fn leaf(&mut self, leaf: &LeafChild) -> Result<Option<Child>, BetreeError> {
        let raw = self.blocks.store().read_block(&leaf.directory)?;
        let directory = decoded(&leaf.directory, Directory::decode(&raw))?;
        let head = |pages: &Directory| pages.encode();
        let Some(moved) = self.blocks_of(&directory, (&leaf.directory, BlockKind::Page), head)? else {
            return Ok(None);
        };
        self.replaced.push(pointers(&directory, leaf.directory));
        Ok(Some(Child::Leaf(LeafChild { directory: moved.head, reach: moved.reach, ..*leaf })))
    }

    fn slice(&mut self, slice: &Arc<Slice>) -> Result<Option<Slice>, BetreeError> {
        let stored = *slice.stored();
        let raw = self.blocks.store().read_block(&stored.index)?;
        let index = decoded(&stored.index, SliceIndex::decode(&raw))?;
        let head =
            |pages: &Directory| SliceIndex { pages: pages.clone(), filter: index.filter.clone() }.encode();
        let Some(moved) = self.blocks_of(&index.pages, (&stored.index, BlockKind::RunPage), head)? else {
            return Ok(None);
        };
        self.replaced.push(blocks_of_slice(slice, &index));
        let stored = StoredSlice { index: moved.head, reach: moved.reach, ..stored };
        let index = SliceIndex { pages: moved.pages, filter: index.filter };
        Ok(Some(Slice::written(stored, index, &self.blocks.index_memory)))
    }

    /// Writes pages and their directory or index in another place; `None` where there is no room before the
    /// ceiling.
    fn blocks_of(
        &mut self,
        directory: &Directory,
        (old_head, page_kind): (&Pointer, BlockKind),
        head: impl Fn(&Directory) -> Vec<u8>,
    ) -> Result<Option<Moved>, BetreeError> {
        let store = self.blocks.store();
        let settings = self.tree.settings();
        let compression = match page_kind {
            BlockKind::RunPage => settings.run_compression,
            _ => settings.compression,
        };
        let mut writer = store.relocation_writer(self.tree.id);
        let (mut indexes, mut reach, mut moved_values) = (Vec::with_capacity(directory.pages().len()), 0, 0);
        let (first_written, first_replaced) = (self.written.len(), self.replaced.len());
        for page in directory.pages() {
            let raw = store.read_block(&page.pointer)?;
            if page.large_bytes == 0 {
                indexes.push(writer.append_rows(page_kind, compression, &raw, columns_of(&raw))?);
                continue;
            }
            let page = self.page_with_values(&page.pointer, raw)?;
            (reach, moved_values) = (reach.max(page.reach), moved_values + page.moved);
            indexes.push(writer.append_rows(page_kind, compression, &page.raw, columns_of(&page.raw))?);
        }
        if old_head.extent().end() <= self.limits.ceiling && moved_values == 0 {
            return Ok(None);
        }
        let placed = match writer.place_with_directory(head(directory).len()) {
            Err(SpaceError::NoSpace { .. }) => {
                self.abandon_from(first_written);
                self.replaced.truncate(first_replaced);
                return Ok(None);
            }
            placed => placed?,
        };
        let entries = directory.pages().iter().zip(&indexes);
        let pages = entries.map(|(page, at)| PageEntry { pointer: placed.pointer(*at), ..*page }).collect();
        let separators = (0..directory.pages().len()).map(|at| directory.separator(at));
        let pages = Directory::new(separators, pages, directory.content_bytes())
            .with_filter(directory.filter().clone());
        let (head, _pages) =
            placed.finish_with_directory(old_head.kind(), Compression::None, &head(&pages))?;
        let pointers = pointers(&pages, head);
        self.moved += pointers.iter().map(|pointer| u64::from(pointer.disk_length())).sum::<u64>();
        self.written.extend(extents_of(&pointers));
        Ok(Some(Moved { head, pages, reach }))
    }

    /// Abandons the written extents from this number on.
    fn abandon_from(&mut self, first: usize) {
        for extent in self.written.drain(first..) {
            self.blocks.store().abandon(extent);
        }
    }

    /// Puts the moved tree in the place of the old.
    fn install(self, root: Child) {
        let (tree, blocks) = (self.tree, self.blocks);
        let mut installed = tree.installed.lock();
        let before = tree.view_owned();
        let version = Arc::new(TreeVersion { root: Some(root) });
        let view = before.with_version(before.partitions.clone(), version);
        installed.change.attach(self.written);
        let mut owners = self.replaced;
        // A checkpoint writes nodes under this lock, so a node that is not stored now will not be.
        owners.extend(self.nodes.iter().filter_map(|slot| slot.stored()).map(|pointer| vec![pointer]));
        installed.retire(&before.version, &owners);
        tree.set_view(&mut installed, view);
        drop(before);
        owners.iter().flatten().for_each(|pointer| blocks.forget(pointer));
        installed.reclaim(blocks);
    }
}

fn pointers(directory: &Directory, head: Pointer) -> Vec<Pointer> {
    directory.pages().iter().map(|page| page.pointer).chain([head]).collect()
}

fn decoded<T>(pointer: &Pointer, outcome: Result<T, crate::base::FormatError>) -> Result<T, BetreeError> {
    let offset = pointer.address().byte_offset();
    outcome.map_err(|source| BetreeError::Format { offset, source })
}
