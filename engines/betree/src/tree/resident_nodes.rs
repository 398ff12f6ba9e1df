//! Releases resident inner nodes and filters of a tree, where they take more memory than their limit
//! ([`crate::memory::ResidentLimit`]).
//!
//! # Terms
//! - *Resident*: inner nodes that are in memory, and indexes of slices with their filters. They are loaded as they are visited.
//! - *Used*: visited since the last look, as with the hand of a clock.
//!
//! # Steps
//! 1. From the root down, a node that a checkpoint has written is replaced by its pointer; so is the index of a slice, which is
//!    always on disk, too. [`Releasable`] says which of them.
//! 2. A node above one that has changed is made anew in memory, with the same content: it stays as clean or as dirty as it was.
//! 3. The new root takes the place of the old one. Who still reads the old one keeps its memory until then.
//!
//! # Invariants
//! - A dirty node is never released, and nothing on disk changes.
//! - Flushes and checkpoints of the tree are kept away: a node that became clean meanwhile would be written twice.

use std::sync::Arc;

use crate::memory::{Releasable, ResidentBytes, ResidentTree};
use crate::tree::node::{Child, InnerNode, NodeSlot, Part};
use crate::tree::slice::Slice;
use crate::tree::tree_state::Tree;
use crate::tree::view::Version;

/// What a subtree has in memory.
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
            let version = Arc::new(Version { root: Some(root) });
            let view = before.with_version(before.partitions.clone(), version);
            // Whoever reads the old version needs what the new one will free: versions are reclaimed in order.
            installed.retire(&before.version, &[]);
            self.set_view(&mut installed, view);
        }
        release.released
    }
}

/// What a node is to have in place of what it has.
enum Lighter {
    Child(Arc<NodeSlot>),
    /// The slice in this place, without its index.
    Slice(usize),
}

/// Lets go of so many bytes, tree by tree, until there are so many or nothing is left that may go.
#[derive(Debug)]
struct Release {
    releasable: Releasable,
    wanted: usize,
    released: ResidentBytes,
    /// At which child each node is begun with, so that not always the same keys have to wait for the device.
    turn: usize,
}

impl Release {
    fn new(releasable: Releasable, wanted: usize, turn: usize) -> Release {
        Release { releasable, wanted, released: ResidentBytes::default(), turn }
    }

    fn is_done(&self) -> bool {
        self.released.total() >= self.wanted
    }

    /// The root in place of this one; `None` if nothing is let go. The root itself stays.
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

    /// The node with less below it.
    fn within(&mut self, slot: &Arc<NodeSlot>) -> Option<Arc<NodeSlot>> {
        let node = slot.loaded()?;
        let mut lighter: Vec<(usize, Lighter)> = Vec::new();
        let (count, turn) = (node.children().len(), self.turn);
        for at in (0..count).map(|step| (step + turn) % count) {
            if self.is_done() {
                break;
            }
            if let Child::Inner(below) = &node.children()[at]
                && let Some(below) = self.child(below)
            {
                lighter.push((at, Lighter::Child(below)));
            }
            for (place, slice) in node.slices(at).iter().enumerate() {
                if self.may_go_without_index(slice, node) {
                    self.released.indexes += slice.index_bytes();
                    lighter.push((at, Lighter::Slice(place)));
                }
            }
        }
        if lighter.is_empty() {
            return None;
        }
        let mut parts: Vec<Part> = (0..count).map(|at| node.part(at, &[])).collect();
        for (at, lighter) in lighter {
            match lighter {
                Lighter::Child(below) => parts[at].child = Child::Inner(below),
                Lighter::Slice(place) => {
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
