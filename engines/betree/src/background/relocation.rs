//! Relocation: writes chosen blocks of a tree anew in another place.
//!
//! | chosen | purpose |
//! |---|---|
//! | blocks behind a *ceiling*, a place in the data file | its free end can be cut off |
//! | blocks born up to a generation | none of them needs an older data key ([`super::key_rewriting`]) |
//!
//! The content of leaves, slices and inner nodes does not change. Pages are read and written again one by
//! one. The directory or index follows with the new pointers. The nodes above are replaced as a flush
//! replaces them.
//!
//! - A leaf is found by its directory. Pages of a fragmented leaf, which lie elsewhere, move when the
//!   directory does.
//! - A leaf or slice whose large values *reach* behind the ceiling moves as well, together with those values:
//!   the references to them are in its pages.
//! - The birth of a directory or index does not tell the births of pages and large values: they outlive it
//!   when a part of a leaf is rewritten. So a choice by birth reads all directories and indexes, and the
//!   pages that refer to large values. It goes by keys, so that a later step goes on where one has ended.
//! - A damaged leaf or slice stays where it is, and stops no other.
//!
//! The caller holds the tree's flush lock.

mod values;

use std::sync::Arc;

use pando_storage::{BlockingMode, ErrorKind};

use crate::base::{BlockKind, Extent, Generation, Pointer, extents_of};
use crate::error::BetreeError;
use crate::format::directory::{Directory, PageEntry};
use crate::format::inner_node::StoredSlice;
use crate::format::page::Page;
use crate::format::page_columns::columns_of;
use crate::format::slice_index::SliceIndex;
use crate::space::{Compression, ExtentWriter, SpaceError};
use crate::tree::node::{Child, InnerNode, LeafChild, NodeSlot};
use crate::tree::owned_extents::values_of;
use crate::tree::slice::{Slice, blocks_of_slice};
use crate::tree::tree_blocks::Blocks;
use crate::tree::tree_state::Tree;
use crate::tree::view::TreeVersion;

/// Leaves and slices of a tree that are remembered as damaged; more are tried again.
const UNMOVABLE_MAX: usize = 1024;

/// The blocks that are moved.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Chosen {
    /// Those that reach behind this unit, to before it.
    Beyond(u64),
    /// Those that were born up to this generation, to any place.
    BornBy(Generation),
}

/// The blocks that one step moves, and how many of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MoveLimits<'k> {
    pub(crate) chosen: Chosen,
    /// Stored bytes that are moved, or read in vain.
    pub(crate) bytes: u64,
    /// The key from which on a choice by birth goes.
    pub(crate) from: &'k [u8],
}

/// The outcome of a step.
#[derive(Debug, Default)]
pub(crate) struct Relocated {
    /// Stored bytes that were moved. A choice by place moves fewer than allowed if all of the tree lies
    /// before the ceiling, or there is no room.
    pub(crate) moved: u64,
    /// Stored bytes that were read, and not moved.
    pub(crate) read: u64,
    /// Bytes of keys and values in the leaves that a choice by birth has looked at.
    pub(crate) examined: u64,
    /// Leaves and slices that cannot be read.
    pub(crate) damaged: u64,
    /// The key from which on a choice by birth has more to do.
    pub(crate) next: Option<Vec<u8>>,
}

/// Moves some of a tree's blocks.
pub(crate) fn relocate(
    blocks: &Blocks,
    tree: &Tree,
    limits: MoveLimits<'_>,
) -> Result<Relocated, BetreeError> {
    let before = tree.view_owned();
    let Some(root) = &before.version.root else { return Ok(Relocated::default()) };
    let mut mover = Mover {
        blocks,
        tree,
        limits,
        outcome: Relocated::default(),
        written: Vec::new(),
        replaced: Vec::new(),
        nodes: Vec::new(),
    };
    match mover.child(root) {
        Ok(root) => {
            let outcome = std::mem::take(&mut mover.outcome);
            if let Some(root) = root {
                mover.install(root);
            }
            Ok(outcome)
        }
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
    limits: MoveLimits<'m>,
    outcome: Relocated,
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

impl<'m> Mover<'m> {
    /// Whether a block is to be moved.
    fn is_chosen(&self, pointer: &Pointer) -> bool {
        match self.limits.chosen {
            Chosen::Beyond(ceiling) => pointer.extent().end() > ceiling && self.goes_on(),
            Chosen::BornBy(generation) => pointer.birth() <= generation,
        }
    }

    /// Whether a leaf or slice with large values of this reach is to be looked at.
    fn may_have_chosen(&self, head: &Pointer, reach: u64) -> bool {
        match self.limits.chosen {
            Chosen::Beyond(_) => self.is_chosen(head) || self.reaches_out(reach),
            Chosen::BornBy(_) => true,
        }
    }

    /// Whether large values of this reach lie behind the ceiling.
    fn reaches_out(&self, reach: u64) -> bool {
        matches!(self.limits.chosen, Chosen::Beyond(ceiling) if reach > ceiling) && self.goes_on()
    }

    /// Whether the step may do more.
    fn goes_on(&self) -> bool {
        self.outcome.moved + self.outcome.read < self.limits.bytes
    }

    /// Whether the step comes to a child of a node. A choice by birth notes the first to which it does not
    /// come any more.
    fn comes_to(&mut self, node: &InnerNode, at: usize) -> bool {
        if matches!(self.limits.chosen, Chosen::Beyond(_)) {
            return true;
        }
        let is_behind = at + 1 < node.children().len() && node.pivots().get(at + 1) <= self.limits.from;
        if is_behind || self.outcome.next.is_some() {
            return false;
        }
        let is_first = at == 0 || node.pivots().get(at) <= self.limits.from;
        if !is_first && !self.goes_on() {
            self.outcome.next = Some(node.pivots().get(at).to_vec());
            return false;
        }
        true
    }

    /// A subtree in its new place; `None` where no part of it has moved.
    fn child(&mut self, child: &Child) -> Result<Option<Child>, BetreeError> {
        match child {
            Child::Leaf(leaf) if self.may_have_chosen(&leaf.directory, leaf.reach) => {
                self.unless_damaged(&leaf.directory, |mover| mover.leaf(leaf))
            }
            Child::Leaf(_) => Ok(None),
            Child::Inner(slot) => self.inner(slot),
        }
    }

    fn inner(&mut self, slot: &Arc<NodeSlot>) -> Result<Option<Child>, BetreeError> {
        let blocks = self.blocks;
        let node = blocks.node(slot, BlockingMode::MayBlock)?;
        let mut has_moved = slot.stored().is_some_and(|pointer| self.is_chosen(&pointer));
        let mut parts = Vec::with_capacity(node.children().len());
        for at in 0..node.children().len() {
            let mut part = node.part(at, b"");
            if self.comes_to(node, at) {
                if let Some(moved) = self.child(&part.child)? {
                    (part.child, has_moved) = (moved, true);
                }
                for slice in &mut part.slices {
                    let (head, reach) = (slice.stored().index, slice.reach());
                    if self.may_have_chosen(&head, reach)
                        && let Some(moved) = self.unless_damaged(&head, |mover| mover.slice(slice))?
                    {
                        (*slice, has_moved) = (Arc::new(moved), true);
                    }
                }
            }
            parts.push(part);
        }
        if !has_moved {
            return Ok(None);
        }
        // The next checkpoint writes it, before the ceiling if it can.
        self.outcome.moved += slot.stored().map_or(0, |pointer| u64::from(pointer.disk_length()));
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
            self.outcome.damaged += 1;
            return Ok(None);
        }
        let (moved, written, replaced) = (self.outcome.moved, self.written.len(), self.replaced.len());
        match move_it(self) {
            Err(error) if error.kind() == ErrorKind::Corrupt => {
                let mut unmovable = self.tree.unmovable.lock();
                if unmovable.len() < UNMOVABLE_MAX {
                    unmovable.insert(head.address());
                }
                drop(unmovable);
                self.outcome.damaged += 1;
                self.outcome.read += u64::from(head.disk_length());
                self.outcome.moved = moved;
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
        self.outcome.examined += leaf.content_bytes;
        if !self.has_chosen(&leaf.directory, &directory)? {
            return Ok(None);
        }
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
        if !self.has_chosen(&stored.index, &index.pages)? {
            return Ok(None);
        }
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

    /// Whether any block of a leaf or slice is chosen by its birth. A choice by place knows without reading.
    fn has_chosen(&mut self, head: &Pointer, directory: &Directory) -> Result<bool, BetreeError> {
        if matches!(self.limits.chosen, Chosen::Beyond(_))
            || self.is_chosen(head)
            || directory.pages().iter().any(|page| self.is_chosen(&page.pointer))
        {
            return Ok(true);
        }
        self.outcome.read += u64::from(head.disk_length());
        for page in directory.pages().iter().filter(|page| page.large_bytes > 0) {
            let pointer = &page.pointer;
            let page = decoded(pointer, Page::decode(self.blocks.store().read_block(pointer)?))?;
            self.outcome.read += u64::from(pointer.disk_length());
            if values_of(&page).flatten().any(|piece| self.is_chosen(&piece)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// A writer to the places that a move goes to.
    fn writer(&self) -> ExtentWriter<'m> {
        let (store, tree) = (self.blocks.store(), self.tree.id);
        match self.limits.chosen {
            Chosen::Beyond(_) => store.relocation_writer(tree),
            Chosen::BornBy(_) => store.extent_writer(tree),
        }
    }

    /// Whether a move that finds no room leaves the blocks where they are. By birth they must move.
    fn may_stay(&self, error: &SpaceError) -> bool {
        matches!(self.limits.chosen, Chosen::Beyond(_)) && matches!(error, SpaceError::NoSpace { .. })
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
        let mut writer = self.writer();
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
        if let Chosen::Beyond(ceiling) = self.limits.chosen
            && old_head.extent().end() <= ceiling
            && moved_values == 0
        {
            return Ok(None);
        }
        let placed = match writer.place_with_directory(head(directory).len()) {
            Err(error) if self.may_stay(&error) => {
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
        self.outcome.moved += pointers.iter().map(|pointer| u64::from(pointer.disk_length())).sum::<u64>();
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
