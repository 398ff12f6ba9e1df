//! Flush: takes the messages of a frozen buffer down a tree, into runs of inner nodes and into leaves.
//!
//! # Steps
//! 1. The messages that arrive at a node are divided among its children.
//!    [`flush_policy`](crate::tree::flush_policy) decides the action for each child: keep, buffer, or flush.
//! 2. A child that is flushed gets the arriving messages together with all its slices. The slices of all such
//!    children are read at once and merged with the arriving messages. The same begins one level below; a
//!    leaf is rewritten, or appended to.
//! 3. The messages that are buffered become one run, a slice for each child. A child with too many slices has
//!    its newest ones merged with the arriving messages.
//! 4. The new children make a new node, or several where they are more than the fanout, or none. Neighbours
//!    that have become small are united. At the top a level is added or removed.
//! 5. One step takes a bounded number of bytes down to leaves, the largest children first. The rest is
//!    overdue: the caller has it flushed in later steps
//!    ([`partial_flush_step`](crate::tree::partial_flush_step)), each of which is as short.
//!
//! ```text
//!  frozen buffer   a c f m p x
//!         |  flush
//!    [ node: children A B C ]      A: due   -> slices of A + "a c" go down
//!      runs: r2 [A|B|C]            B: small -> "f m" become a slice of run r3
//!            r1 [A| |C]            C: small -> "p x" become a slice of run r3
//! ```
//!
//! Old nodes, slices and leaves stay as they are for their readers, and are freed after the result is
//! installed. A flush that fails frees all blocks that it wrote, and is tried again later.
//!
//! # Invariants
//! - Of one tree, one flush is under way at a time: the version that it starts from is the newest when it
//!   ends.
//! - Messages that are flushed to a child are merged with *all* messages pending for it on the way:
//!   timestamps descend from level to level.
//! - Only a child without slices is divided, so that a slice never covers two children. A step may change a
//!   node without the messages pending for it above. Such a node stays one node, with more children than the
//!   fanout if need be.
//! - A leaf is united only with one under the same parent: keys find it then without a change to any other
//!   node.

use std::sync::Arc;

use pando_storage::{BlockingMode, TreeId};

use super::large_value_writer::LargeValues;
use super::leaf_merge::{LeafFigures, LeafMerge, LeafParts};
use super::leaf_writer::NewLeaf;
use super::messages::{Messages, Span};
use super::node::{Child, InnerNode, LeafChild, NodeSlot, Part};
use super::slice::Slices;
use super::view::TreeVersion;
use crate::base::{Extent, Pointer, UNIT_BYTES};
use crate::error::BetreeError;
use crate::options::tree_settings::TreeSettings;
use crate::tree::flush_debt::Moved;
use crate::tree::flush_policy::{ChildAction, ChildActions, LARGE_FACTOR, Load, StepLimit, decide};
use crate::tree::flush_read_ahead::SlicePages;
use crate::tree::pending_slices::{BufferedMessages, pending_bytes};
use crate::tree::tree_blocks::Blocks;
use crate::tree::version_retention::{Dropped, Retained};

/// The input of a flush.
#[derive(Clone, Copy)]
pub(crate) struct FlushInput<'f> {
    pub(crate) blocks: &'f Blocks,
    pub(crate) tree: TreeId,
    pub(crate) settings: TreeSettings,
    pub(crate) version: &'f TreeVersion,
    pub(crate) messages: &'f Messages,
    pub(crate) retained: &'f Retained,
}

/// A node with overdue messages, or with none any more. It begins at `key` and has this height.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Overdue {
    pub(crate) key: Box<[u8]>,
    pub(crate) height: u8,
    pub(crate) bytes: usize,
}

/// The result of a flush.
#[derive(Debug, Default)]
pub(crate) struct Flushed {
    pub(crate) root: Option<Child>,
    /// Extents of new leaves, runs and large values.
    pub(crate) written: Vec<Extent>,
    /// Blocks of leaves, slices and large values that the new root does not use, grouped by owner.
    pub(crate) replaced: Vec<Vec<Pointer>>,
    /// Inner nodes that the new root does not use. A checkpoint may be writing them at this moment.
    pub(crate) replaced_nodes: Vec<Arc<NodeSlot>>,
    /// The nodes that the flush visited, with the bytes that it left to later steps there.
    pub(crate) overdue: Vec<Overdue>,
    pub(crate) figures: FlushFigures,
}

/// The work of a flush.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FlushFigures {
    pub(crate) leaves: LeafFigures,
    /// Slices written, and entries in them.
    pub(crate) slices: u64,
    pub(crate) slice_entries: u64,
    /// Bytes on the device of leaves, and of runs.
    pub(crate) leaf_bytes: u64,
    pub(crate) run_bytes: u64,
    /// Large values written, and their bytes on the device.
    pub(crate) large_values: u64,
    pub(crate) large_bytes: u64,
    /// Bytes that were flushed from each level.
    pub(crate) moved: Moved,
    /// The number of leaves and inner nodes that splits added. Leaves made by appends do not count.
    pub(crate) leaf_splits: u64,
    pub(crate) node_splits: u64,
}

/// Flushes messages whose large values are [written](super::large_value_writer::write_large_values). The
/// limit of the step for leaves is `to_leaves` bytes ([`StepLimit`]). After an error all blocks of the flush
/// and of the large values are free again.
pub(crate) fn flush_with(
    input: FlushInput<'_>,
    large: LargeValues,
    to_leaves: usize,
) -> Result<Flushed, BetreeError> {
    let flushed = Flush::new(input, to_leaves).and_then(|flush| flush.into_flushed(|flush| flush.run()));
    if flushed.is_err() {
        large.written.iter().for_each(|extent| input.blocks.store().abandon(*extent));
    }
    let mut flushed = flushed?;
    flushed.figures.large_values += large.count;
    flushed.figures.large_bytes += large.bytes();
    flushed.written.extend(large.written);
    Ok(flushed)
}

/// Whether nodes hold pending messages. Small trees do not: they are faster to read then, and cheap to write.
fn has_runs(input: &FlushInput<'_>) -> Result<bool, BetreeError> {
    match &input.version.root {
        Some(Child::Inner(slot)) if input.settings.buffer_percent > 0 => {
            let node = input.blocks.node(slot, BlockingMode::MayBlock)?;
            Ok(node.height() > 1 || node.children().len() * 8 > input.settings.fanout)
        }
        _ => Ok(false),
    }
}

/// A flush under way, or another step that changes a tree: a partial flush or a range delete step.
pub(super) struct Flush<'f> {
    pub(super) input: FlushInput<'f>,
    pub(super) leaves: LeafMerge<'f>,
    has_runs: bool,
    /// Bytes that may still be flushed to leaves, and to large ones (see the flush policy).
    to_leaves: usize,
    to_large_leaves: usize,
    pub(super) replaced: Vec<Vec<Pointer>>,
    pub(super) replaced_nodes: Vec<Arc<NodeSlot>>,
    pub(super) run_extents: Vec<Extent>,
    overdue: Vec<Overdue>,
    /// Large values of merged slices that no message refers to any more.
    pub(super) dropped: Dropped,
    /// Pages of slices that were read ahead.
    pub(super) pages_ahead: SlicePages,
    pub(super) figures: FlushFigures,
}

/// Whether several nodes may take the place of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Division {
    AsNeeded,
    /// Slices are pending for the node above it: it must stay exactly one node.
    Forbidden,
}

impl<'f> Flush<'f> {
    /// A step that may flush `to_leaves` bytes to leaves.
    pub(super) fn new(input: FlushInput<'f>, to_leaves: usize) -> Result<Flush<'f>, BetreeError> {
        Ok(Flush {
            leaves: LeafMerge::new(input.blocks, input.tree, input.settings, input.retained),
            input,
            has_runs: has_runs(&input)?,
            to_leaves,
            to_large_leaves: input.messages.span().bytes(),
            replaced: Vec::new(),
            replaced_nodes: Vec::new(),
            run_extents: Vec::new(),
            overdue: Vec::new(),
            dropped: Dropped::new(),
            pages_ahead: SlicePages::default(),
            figures: FlushFigures::default(),
        })
    }

    /// Runs the step. After an error it frees the blocks that the step wrote.
    pub(super) fn into_flushed(
        mut self,
        step: impl FnOnce(&mut Flush<'f>) -> Result<Option<Child>, BetreeError>,
    ) -> Result<Flushed, BetreeError> {
        match step(&mut self) {
            Ok(root) => Ok(self.finish(root)),
            Err(error) => {
                for extent in self.run_extents.iter().chain(self.leaves.written()) {
                    self.input.blocks.store().abandon(*extent);
                }
                Err(error)
            }
        }
    }

    fn run(&mut self) -> Result<Option<Child>, BetreeError> {
        let messages = self.input.messages.span();
        let root = self.input.version.root.as_ref();
        if messages.is_empty() {
            return Ok(root.cloned());
        }
        let (top, height) = match root {
            None => (leaf_parts(self.leaves.grow_from_nothing(&[], messages)?), 0),
            Some(Child::Leaf(leaf)) => (self.root_leaf(leaf, messages)?, 0),
            Some(Child::Inner(slot)) => {
                (self.node(slot, &[], BlockingMode::MayBlock, messages)?, slot.height())
            }
        };
        self.root_over(top, height)
    }

    /// The root over nodes or leaves of this height.
    pub(super) fn root_over(
        &mut self,
        mut top: Vec<Part>,
        mut height: u8,
    ) -> Result<Option<Child>, BetreeError> {
        while top.len() > 1 {
            height += 1;
            top = self.nodes_over(height, top);
        }
        self.without_lone_levels(top.pop().map(|part| part.child))
    }

    fn finish(self, root: Option<Child>) -> Flushed {
        assert!(self.pages_ahead.is_empty(), "every slice that was read ahead is merged");
        let leaves = self.leaves.figures();
        let LeafParts { mut written, mut replaced, large, dropped } = self.leaves.into_parts();
        let bytes = |extents: &[Extent]| {
            extents.iter().map(|extent| (extent.end() - extent.start()) * UNIT_BYTES).sum()
        };
        let figures = FlushFigures {
            leaves,
            leaf_bytes: bytes(&written),
            run_bytes: bytes(&self.run_extents),
            large_values: large.count,
            large_bytes: large.bytes(),
            ..self.figures
        };
        written.extend(self.run_extents);
        written.extend(large.written);
        replaced.extend(self.replaced);
        replaced.extend(dropped.iter().chain(&self.dropped).map(|value| value.pieces().collect()));
        Flushed {
            root,
            written,
            replaced,
            replaced_nodes: self.replaced_nodes,
            overdue: self.overdue,
            figures,
        }
    }

    fn root_leaf(&mut self, leaf: &LeafChild, messages: Span<'_>) -> Result<Vec<Part>, BetreeError> {
        if let Some(leaves) = self.leaves.append(&[], leaf, messages)? {
            return Ok(leaf_parts(leaves));
        }
        self.leaves.begin(&[], leaf, messages)?;
        self.leaves.add(leaf, messages)?;
        let leaves = self.leaves.end()?;
        self.figures.leaf_splits += leaves.len().saturating_sub(1) as u64;
        Ok(leaf_parts(leaves))
    }

    /// Removes top levels: a root with one child and no pending messages is replaced by the child.
    fn without_lone_levels(&mut self, mut root: Option<Child>) -> Result<Option<Child>, BetreeError> {
        while let Some(Child::Inner(slot)) = &root {
            let node = self.input.blocks.node(slot, BlockingMode::MayBlock)?;
            if node.children().len() > 1 || !node.slices(0).is_empty() {
                break;
            }
            let only = node.children()[0].clone();
            self.replaced_nodes.push(Arc::clone(slot));
            root = Some(only);
        }
        Ok(root)
    }

    /// The replacement of a node that begins at `lower`, after these messages (at least one) arrived.
    /// `at_end` says whether leaves may be read only to find out whether messages append to them: that pays
    /// at the right end of the tree.
    fn node(
        &mut self,
        slot: &Arc<NodeSlot>,
        lower: &[u8],
        at_end: BlockingMode,
        messages: Span<'_>,
    ) -> Result<Vec<Part>, BetreeError> {
        let node = self.input.blocks.node(slot, BlockingMode::MayBlock)?;
        let arriving = divide(node, messages);
        let actions = self.actions(node, lower, &arriving, at_end)?;
        let mut parts = self.changed(slot, node, lower, &arriving, &actions, at_end)?;
        if node.height() > 1 {
            self.unite_small(&mut parts)?;
        }
        Ok(self.divided_node(node.height(), parts))
    }

    /// The parts of a node after the actions for its children were carried out.
    pub(super) fn changed(
        &mut self,
        slot: &Arc<NodeSlot>,
        node: &InnerNode,
        lower: &[u8],
        arriving: &[Span<'_>],
        actions: &[ChildAction],
        at_end: BlockingMode,
    ) -> Result<Vec<Part>, BetreeError> {
        self.read_ahead(node, arriving, actions)?;
        let (mut parts, mut buffered) = (Vec::with_capacity(actions.len() + 4), Vec::new());
        let mut at = 0;
        while at < actions.len() {
            let mut part = node.part(at, lower);
            match actions[at] {
                ChildAction::Keep => parts.push(part),
                ChildAction::Buffer => {
                    let messages =
                        self.merge_into_new_slice(&mut part.slices, arriving[at], node.height())?;
                    buffered.push(BufferedMessages { part: parts.len(), messages });
                    parts.push(part);
                }
                ChildAction::Flush => match &part.child {
                    Child::Leaf(leaf) => {
                        let below = self.merge_leaves(node, at, &part.lower, leaf, arriving)?;
                        parts.extend(leaf_parts(below.leaves));
                        at += below.taken;
                        continue;
                    }
                    Child::Inner(below) => {
                        let pending = self.merge_with_slices(&part.slices, arriving[at])?;
                        let blocking = blocking_at(at, actions.len(), at_end);
                        parts.extend(self.node(below, &part.lower, blocking, pending.span())?);
                    }
                },
            }
            at += 1;
        }
        self.write_run(&mut parts, buffered)?;
        self.replaced_nodes.push(Arc::clone(slot));
        if let Some(first) = parts.first_mut() {
            // The new first child covers the keys from the node's lower bound on.
            first.lower = lower.into();
        }
        Ok(parts)
    }

    pub(super) fn actions(
        &mut self,
        node: &InnerNode,
        lower: &[u8],
        arriving: &[Span<'_>],
        at_end: BlockingMode,
    ) -> Result<Vec<ChildAction>, BetreeError> {
        let target = self.pending_target(node.height());
        let mut loads = Vec::with_capacity(arriving.len());
        for (at, span) in arriving.iter().enumerate() {
            let slices = node.slices(at);
            let mut load = Load {
                pending: slices.iter().map(|slice| pending_bytes(slice)).sum(),
                slices: slices.len(),
                arriving: span.bytes(),
                appends: false,
            };
            if target > 0
                && slices.is_empty()
                && let (Some(first), Some(last)) = (span.first_key(), span.last_key())
            {
                let blocking = blocking_at(at, arriving.len(), at_end);
                load.appends = self.appends(&node.children()[at], first, last, blocking)?;
            }
            loads.push(load);
        }
        let limit = match node.height() {
            1 => StepLimit {
                bytes: self.to_leaves,
                // A lone child is never flushed by a step of its own.
                at_least_one: self.to_leaves > 0 || loads.len() == 1,
                large_from: target.saturating_mul(LARGE_FACTOR),
                large_bytes_max: self.to_large_leaves,
            },
            // Inner nodes get as many bytes as arrive; more in later steps.
            _ => StepLimit {
                bytes: loads.iter().map(|load| load.arriving).sum(),
                at_least_one: true,
                large_from: usize::MAX,
                large_bytes_max: 0,
            },
        };
        let ChildActions { actions, moved, overdue } = decide(&loads, target, limit);
        if node.height() == 1 {
            self.to_leaves = self.to_leaves.saturating_sub(moved);
            self.to_large_leaves = self.to_large_leaves.saturating_sub(moved);
        }
        self.figures.moved.add(node.height(), moved);
        // The caller also needs the nodes where no message is overdue any more.
        self.overdue.push(Overdue { key: lower.into(), height: node.height(), bytes: overdue });
        Ok(actions)
    }

    /// Corrects the counts: messages of a node of this height stay, which were counted as flushed.
    pub(super) fn take_back(&mut self, height: u8, bytes: usize) {
        self.figures.moved.remove(height, bytes);
        if height == 1 {
            self.to_leaves += bytes;
            self.to_large_leaves += bytes;
        }
    }

    /// The pending target of the children of a node of this height.
    pub(super) fn pending_target(&self, height: u8) -> usize {
        let settings = &self.input.settings;
        match (self.has_runs, height) {
            (false, _) => 0,
            (true, 1) => settings.leaf_pending_target(),
            (true, _) => (settings.run_bytes / 2).max(1),
        }
    }

    /// Whether keys from `first` to `last` only append to a leaf, and no messages are pending on the way.
    fn appends(
        &self,
        child: &Child,
        first: &[u8],
        last: &[u8],
        blocking: BlockingMode,
    ) -> Result<bool, BetreeError> {
        match child {
            Child::Leaf(leaf) => self.leaves.appends(leaf, first, blocking),
            Child::Inner(slot) => {
                let node = self.input.blocks.node(slot, BlockingMode::MayBlock)?;
                let at = node.pivots().covering(first);
                if node.pivots().covering(last) != at || !node.slices(at).is_empty() {
                    return Ok(false);
                }
                let blocking = blocking_at(at, node.children().len(), blocking);
                self.appends(&node.children()[at], first, last, blocking)
            }
        }
    }

    /// Flushes to a leaf. Small leaves that follow are merged with it.
    fn merge_leaves(
        &mut self,
        node: &InnerNode,
        at: usize,
        lower: &[u8],
        leaf: &LeafChild,
        arriving: &[Span<'_>],
    ) -> Result<Below, BetreeError> {
        let pending = self.merge_with_slices(node.slices(at), arriving[at])?;
        if let Some(leaves) = self.leaves.append(lower, leaf, pending.span())? {
            return Ok(Below { leaves, taken: 1 });
        }
        self.leaves.begin(lower, leaf, pending.span())?;
        self.leaves.add(leaf, pending.span())?;
        let mut taken = 1;
        while let Some(Child::Leaf(next)) = node.children().get(at + taken)
            && self.leaves.can_take(next)?
        {
            let pending = self.merge_with_slices(node.slices(at + taken), arriving[at + taken])?;
            self.leaves.add(next, pending.span())?;
            taken += 1;
        }
        let leaves = self.leaves.end()?;
        self.figures.leaf_splits += leaves.len().saturating_sub(taken) as u64;
        Ok(Below { leaves, taken })
    }

    /// The replacement of one node: a node over these parts, or several, or none.
    pub(super) fn divided_node(&mut self, height: u8, parts: Vec<Part>) -> Vec<Part> {
        let nodes = self.nodes_over(height, parts);
        self.figures.node_splits += nodes.len().saturating_sub(1) as u64;
        nodes
    }

    /// Nodes over these parts, as few as the fanout allows, of nearly equal size.
    pub(super) fn nodes_over(&self, height: u8, parts: Vec<Part>) -> Vec<Part> {
        nodes_over(self.input.settings.fanout, height, parts)
    }

    /// Makes one of two neighbouring nodes where one has become small and both fit well into one.
    pub(super) fn unite_small(&mut self, parts: &mut Vec<Part>) -> Result<(), BetreeError> {
        let blocks = self.input.blocks;
        let mut at = 0;
        while at + 1 < parts.len() {
            let (Child::Inner(left), Child::Inner(right)) = (&parts[at].child, &parts[at + 1].child) else {
                unreachable!("all children of a node above height 1 are inner nodes");
            };
            if !self.is_small(left) && !self.is_small(right) {
                at += 1;
                continue;
            }
            let left_node = blocks.node(left, BlockingMode::MayBlock)?;
            let right_node = blocks.node(right, BlockingMode::MayBlock)?;
            if left_node.children().len() + right_node.children().len() > self.input.settings.fanout / 4 * 3 {
                at += 1;
                continue;
            }
            let both =
                parts_of(left_node, &parts[at].lower).chain(parts_of(right_node, &parts[at + 1].lower));
            let united = NodeSlot::dirty(InnerNode::new(left_node.height(), both.collect()));
            self.replaced_nodes.extend([Arc::clone(left), Arc::clone(right)]);
            let right = parts.remove(at + 1);
            parts[at].child = Child::Inner(Arc::new(united));
            // No key is in slices of both: any order is right.
            parts[at].slices.extend(right.slices);
        }
        Ok(())
    }

    /// Whether a node made by this flush has few children. Nodes on disk do not count as small: counting
    /// their children would read them.
    fn is_small(&self, slot: &NodeSlot) -> bool {
        match slot.loaded() {
            Some(node) if slot.stored().is_none() => node.children().len() <= self.input.settings.fanout / 4,
            _ => false,
        }
    }
}

/// New leaves, and the number of old ones that they replace.
struct Below {
    leaves: Vec<NewLeaf>,
    taken: usize,
}

/// The messages for each child of a node.
fn divide<'m>(node: &InnerNode, messages: Span<'m>) -> Vec<Span<'m>> {
    let mut rest = messages;
    let pivots = node.pivots();
    let mut arriving = Vec::with_capacity(pivots.len());
    for at in 0..pivots.len() {
        let ends = (at + 1 < pivots.len()).then(|| pivots.get(at + 1));
        let (here, after) = rest.split_at(ends);
        arriving.push(here);
        rest = after;
    }
    arriving
}

/// Whether a child may be read for a question: the last child may if its node may.
pub(super) fn blocking_at(at: usize, count: usize, of_node: BlockingMode) -> BlockingMode {
    if at + 1 == count { of_node } else { BlockingMode::CachedOnly }
}

/// Nodes over these parts, as few as the fanout allows, of nearly equal size.
pub(super) fn nodes_over(fanout: usize, height: u8, parts: Vec<Part>) -> Vec<Part> {
    let count = parts.len().div_ceil(fanout);
    let mut nodes = Vec::with_capacity(count);
    let total = parts.len();
    let mut parts = parts.into_iter();
    for node in 0..count {
        let size = total * (node + 1) / count - total * node / count;
        let group: Vec<Part> = parts.by_ref().take(size).collect();
        let lower = group[0].lower.clone();
        let slot = NodeSlot::dirty(InnerNode::new(height, group));
        nodes.push(Part { lower, child: Child::Inner(Arc::new(slot)), slices: Slices::new() });
    }
    nodes
}

pub(super) fn leaf_parts(leaves: Vec<NewLeaf>) -> Vec<Part> {
    let part =
        |leaf: NewLeaf| Part { lower: leaf.lower, child: Child::Leaf(leaf.child), slices: Slices::new() };
    leaves.into_iter().map(part).collect()
}

/// The parts of a node that begins at `lower`.
pub(super) fn parts_of<'n>(node: &'n InnerNode, lower: &'n [u8]) -> impl Iterator<Item = Part> + 'n {
    (0..node.children().len()).map(move |at| node.part(at, lower))
}

#[cfg(test)]
mod tests;
