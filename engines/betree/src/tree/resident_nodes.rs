//! Resident nodes: releases inner nodes and slice indexes of a tree from memory, when they exceed their limit
//! ([`crate::memory::ResidentLimit`]).
//!
//! # Terms
//! - *Resident*: inner nodes, and indexes of slices with their filters, that are in memory. They are loaded
//!   as they are visited.
//! - *Used*: visited since the last look, as in the CLOCK algorithm.
//!
//! # Steps
//! 1. From the root down, a node that a checkpoint has written is replaced by its pointer. The same is done
//!    with the index of a slice, which is always on disk as well. [`Releasable`] says which of them may go.
//! 2. A node above a changed one is made anew in memory with the same content: it stays as clean or as dirty
//!    as it was.
//! 3. The new root replaces the old one. Readers of the old root keep its memory until they are done.
//!
//! # Invariants
//! - A dirty node is never released, and no block on disk changes.
//! - Flushes and checkpoints of the tree are kept away: a node that became clean meanwhile would be written
//!   twice.

use std::sync::Arc;

use crate::memory::{Releasable, ResidentBytes, ResidentTree};
use crate::tree::node::{Child, InnerNode, NodeSlot, Part};
use crate::tree::slice::Slice;
use crate::tree::tree_state::Tree;
use crate::tree::view::TreeVersion;

/// The memory of a subtree's resident nodes and indexes.
pub(crate) fn resident_bytes_of(child: &Child) -> ResidentBytes {
    let Child::Inner(slot) = child else { return ResidentBytes::default() };
    let Some(node) = slot.loaded() else { return ResidentBytes::default() };
    let own = ResidentBytes {
        nodes: node.heap_bytes(),
        indexes: node.all_slices().map(|slice| slice.index_bytes()).sum::<usize>(),
    };
    node.children().iter().map(resident_bytes_of).fold(own, ResidentBytes::and)
}

impl ResidentTree for Tree {
    fn resident_bytes(&self) -> ResidentBytes {
        self.view().version.root.as_ref().map_or_else(ResidentBytes::default, resident_bytes_of)
    }

    fn height(&self) -> u8 {
        match &self.view().version.root {
            Some(Child::Inner(slot)) => slot.height(),
            _ => 0,
        }
    }

    fn release(&self, releasable: Releasable, wanted: usize, turn: usize) -> ResidentBytes {
        let Some(_flushing) = self.try_lock_flush() else { return ResidentBytes::default() };
        // A checkpoint writes nodes under this lock.
        let mut installed = self.installed.lock();
        let before = self.view_owned();
        let mut release = Release::new(releasable, wanted, turn);
        let root = before.version.root.as_ref().and_then(|root| release.root(root));
        if let Some(root) = root {
            let version = Arc::new(TreeVersion { root: Some(root) });
            let view = before.with_version(before.partitions.clone(), version);
            // The old version uses blocks that later flushes will free. Versions are reclaimed in order, so
            // it stands in the list even though it frees none itself.
            installed.retire(&before.version, &[]);
            self.set_view(&mut installed, view);
        }
        release.released
    }
}

/// A part of a node that replaces its resident counterpart.
enum Released {
    /// This child, on disk only or with less in memory below it.
    Child(Arc<NodeSlot>),
    /// The slice at this position, without its index.
    Slice(usize),
}

/// A release under way: it ends once `wanted` bytes are released.
#[derive(Debug)]
struct Release {
    releasable: Releasable,
    wanted: usize,
    released: ResidentBytes,
    /// The child that each node begins with. It varies, so that not always the same keys wait for the device.
    turn: usize,
}

impl Release {
    fn new(releasable: Releasable, wanted: usize, turn: usize) -> Release {
        Release { releasable, wanted, released: ResidentBytes::default(), turn }
    }

    fn is_done(&self) -> bool {
        self.released.total() >= self.wanted
    }

    /// The new root; `None` if no memory is released. The root itself stays in memory.
    fn root(&mut self, root: &Child) -> Option<Child> {
        let Child::Inner(slot) = root else { return None };
        slot.take_used();
        self.within(slot).map(Child::Inner)
    }

    fn child(&mut self, slot: &Arc<NodeSlot>) -> Option<Arc<NodeSlot>> {
        slot.loaded()?;
        let was_used = slot.take_used();
        let may_go = match self.releasable {
            Releasable::Unused => !was_used,
            Releasable::UpTo(height) => slot.height() <= height,
        };
        if may_go
            && !self.is_done()
            && let Some(bare) = slot.without_content()
        {
            self.released = self.released.and(resident_bytes_of(&Child::Inner(Arc::clone(slot))));
            return Some(Arc::new(bare));
        }
        self.within(slot)
    }

    /// The node with less in memory below it; `None` if no memory is released.
    fn within(&mut self, slot: &Arc<NodeSlot>) -> Option<Arc<NodeSlot>> {
        let node = slot.loaded()?;
        let mut replacements: Vec<(usize, Released)> = Vec::new();
        let (count, turn) = (node.children().len(), self.turn);
        for at in (0..count).map(|step| (step + turn) % count) {
            if self.is_done() {
                break;
            }
            if let Child::Inner(below) = &node.children()[at]
                && let Some(below) = self.child(below)
            {
                replacements.push((at, Released::Child(below)));
            }
            for (place, slice) in node.slices(at).iter().enumerate() {
                if self.may_go_without_index(slice, node) {
                    self.released.indexes += slice.index_bytes();
                    replacements.push((at, Released::Slice(place)));
                }
            }
        }
        if replacements.is_empty() {
            return None;
        }
        let mut parts: Vec<Part> = (0..count).map(|at| node.part(at, &[])).collect();
        for (at, replacement) in replacements {
            match replacement {
                Released::Child(below) => parts[at].child = Child::Inner(below),
                Released::Slice(place) => {
                    let slice = &mut parts[at].slices[place];
                    *slice = Arc::new(Slice::on_disk(*slice.stored()));
                }
            }
        }
        Some(Arc::new(slot.with_content(InnerNode::new(node.height(), parts).with_reads_of(node))))
    }

    fn may_go_without_index(&self, slice: &Slice, node: &InnerNode) -> bool {
        let was_used = slice.take_used();
        let may_go = match self.releasable {
            Releasable::Unused => !was_used,
            Releasable::UpTo(height) => node.height() <= height,
        };
        may_go && !self.is_done() && slice.index().is_some()
    }
}
