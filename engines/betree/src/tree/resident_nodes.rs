//! Letting go of what the tree's inner structure takes in memory, where that is more than its part.
//!
//! # Terms
//! - *Skeleton*: the inner nodes that are in memory, and the indexes of slices: what leads to pages. It is loaded as it is visited.
//! - *Used*: visited since the last time it was looked through, as a clock's hand finds it.
//!
//! # Steps
//! 1. From the root down, a node that a checkpoint has written becomes one that is on disk only; so does the index of a slice, which
//!    always is on disk, too. Which of them: see [`Choice`].
//! 2. A node above one that has changed is made anew in memory, with the same content: it stays as clean or as dirty as it was.
//! 3. The caller puts the new root in the place of the old one. Who still reads the old one keeps its memory until then.
//!
//! # Invariants
//! - A dirty node is never let go, and nothing on disk changes.
//! - The caller keeps merges and checkpoints of the tree away: a node that became clean meanwhile would be written twice.

use std::sync::Arc;

use crate::tree::node::{Child, InnerNode, NodeSlot, Part};
use crate::tree::slice::Slice;

/// What may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// What has not been used lately.
    Unused,
    /// Nodes up to a height with all that belongs to them, used or not: the lower, the more there are, and the fewer reads come by each.
    UpTo(u8),
}

/// Memory of the skeleton, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SkeletonBytes {
    pub(crate) nodes: usize,
    pub(crate) indexes: usize,
}

impl SkeletonBytes {
    /// Of a subtree.
    pub(crate) fn of(child: &Child) -> SkeletonBytes {
        let mut sum = SkeletonBytes::default();
        sum.add(child);
        sum
    }

    fn add(&mut self, child: &Child) {
        let Child::Inner(slot) = child else { return };
        let Some(node) = slot.loaded() else { return };
        self.nodes += node.heap_bytes();
        self.indexes += node.all_slices().map(|slice| slice.index_bytes()).sum::<usize>();
        node.children().iter().for_each(|child| self.add(child));
    }

    /// These and others together.
    #[must_use]
    pub(crate) fn and(self, other: SkeletonBytes) -> SkeletonBytes {
        SkeletonBytes { nodes: self.nodes + other.nodes, indexes: self.indexes + other.indexes }
    }

    pub(crate) fn total(self) -> usize {
        self.nodes + self.indexes
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
pub(crate) struct Shedding {
    choice: Choice,
    wanted: usize,
    shed: SkeletonBytes,
    /// At which child each node is begun with, so that not always the same keys have to wait for the device.
    turn: usize,
}

impl Shedding {
    pub(crate) fn new(choice: Choice, wanted: usize, turn: usize) -> Shedding {
        Shedding { choice, wanted, shed: SkeletonBytes::default(), turn }
    }

    /// What was let go.
    pub(crate) fn shed(&self) -> SkeletonBytes {
        self.shed
    }

    pub(crate) fn is_done(&self) -> bool {
        self.shed.total() >= self.wanted
    }

    /// The root in place of this one; `None` if nothing is let go. The root itself stays.
    pub(crate) fn root(&mut self, root: &Child) -> Option<Child> {
        let Child::Inner(slot) = root else { return None };
        slot.take_used();
        self.within(slot).map(Child::Inner)
    }

    fn child(&mut self, slot: &Arc<NodeSlot>) -> Option<Arc<NodeSlot>> {
        slot.loaded()?;
        let was_used = slot.take_used();
        let may_go = match self.choice {
            Choice::Unused => !was_used,
            Choice::UpTo(height) => slot.height() <= height,
        };
        if may_go
            && !self.is_done()
            && let Some(bare) = slot.without_content()
        {
            self.shed = self.shed.and(SkeletonBytes::of(&Child::Inner(Arc::clone(slot))));
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
                    self.shed.indexes += slice.index_bytes();
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
        let may_go = match self.choice {
            Choice::Unused => !was_used,
            Choice::UpTo(height) => node.height() <= height,
        };
        may_go && !self.is_done() && slice.index().is_some()
    }
}
