//! Range delete step: removes versions that a range delete covers from the nodes and leaves of a tree, from
//! left to right.
//!
//! The caller has flushed every buffer that may hold older versions, and every snapshot sees the range
//! delete.
//!
//! # Steps
//! 1. In each node on the way: slices within the range that are older go, and only their index is read. Other
//!    slices with older messages are merged into one without them. So no older message comes down from above
//!    any more.
//! 2. A leaf within the range that is older goes, and only its directory is read; messages pending for it
//!    become the leaf. A leaf with newer entries, or across an end of the range, is rewritten without the
//!    older ones and with the pending messages.
//! 3. Large values of blocks that go unread are freed: only the pages that refer to them are read.
//! 4. A node without any children left goes; messages pending for it above become its subtree.
//! 5. Once the step has rewritten its bytes, it ends before the next leaf. All keys before that leaf are
//!    done, at every level.
//!
//! # Invariants
//! - No message is written for a deleted key: a delete in a leaf would lie below older messages.
//! - A node with messages pending for it above stays one node.

use std::sync::Arc;

use bytes::Bytes;
use pando_storage::{BlockingMode, CommitTimestamp};

use crate::base::KeySpan;
use crate::error::BetreeError;
use crate::format::directory::Directory;
use crate::tree::flush::{Flush, FlushInput, Flushed, leaf_parts};
use crate::tree::leaf_merge::blocks_of_leaf;
use crate::tree::messages::Span;
use crate::tree::node::{Child, InnerNode, LeafChild, NodeSlot, Part};
use crate::tree::owned_extents::values_of;
use crate::tree::pending_slices::{BufferedMessages, PendingMessages, pending_bytes};
use crate::tree::slice::{Slice, blocks_of_slice};

/// A rewritten leaf costs as much as this number of leaves that are dropped unread.
const UNREAD_DIVISOR: usize = 8;

/// The range delete to apply, and the bound of the step.
#[derive(Debug)]
pub(crate) struct RangeDeleteWork<'w> {
    pub(crate) span: &'w KeySpan,
    /// Versions older than this are removed.
    pub(crate) time: CommitTimestamp,
    /// The approximate bytes of leaves and slices that the step may rewrite.
    pub(crate) bytes_max: usize,
}

/// The result of a step.
#[derive(Debug, Default)]
pub(crate) struct RangeDeleteStep {
    pub(crate) flushed: Flushed,
    /// The key at which it ended; `None` if all is done.
    pub(crate) reached: Option<Bytes>,
    /// Leaves and slices that were dropped unread.
    pub(crate) leaves: u64,
    pub(crate) slices: u64,
}

/// A step under way.
struct Progress<'w> {
    work: RangeDeleteWork<'w>,
    spent: usize,
    is_begun: bool,
    reached: Option<Bytes>,
    leaves: u64,
    slices: u64,
}

impl Progress<'_> {
    /// Whether the child that begins at `lower` is left to the next step. A step clears at least one leaf, so
    /// that it makes progress.
    fn leaves_to_next(&mut self, lower: &[u8]) -> bool {
        if self.is_begun && self.spent >= self.work.bytes_max {
            self.reached.get_or_insert_with(|| Bytes::copy_from_slice(lower));
        }
        self.reached.is_some()
    }
}

/// Runs a step.
pub(crate) fn range_delete_step(
    input: FlushInput<'_>,
    work: RangeDeleteWork<'_>,
) -> Result<RangeDeleteStep, BetreeError> {
    let mut progress = Progress { work, spent: 0, is_begun: false, reached: None, leaves: 0, slices: 0 };
    let flushed = Flush::new(input, 0)?.into_flushed(|step| step.clear_range(&mut progress))?;
    let Progress { reached, leaves, slices, .. } = progress;
    Ok(RangeDeleteStep { flushed, reached, leaves, slices })
}

impl Flush<'_> {
    fn clear_range(&mut self, progress: &mut Progress<'_>) -> Result<Option<Child>, BetreeError> {
        let Some(root) = self.input.version.root.clone() else { return Ok(None) };
        let (parts, height) = match &root {
            Child::Leaf(leaf) => {
                let part = Part { lower: Box::default(), child: root.clone(), slices: Vec::new() };
                (Some(self.cleared_leaf(leaf, part, None, progress)?), 0)
            }
            Child::Inner(slot) => {
                let children = self.cleared_children(slot, &[], None, progress)?;
                (children.map(|children| self.nodes_over(slot.height(), children)), slot.height())
            }
        };
        match parts {
            None => Ok(Some(root)),
            Some(parts) => self.root_over(parts, height),
        }
    }

    /// The children of a node without the deleted versions; `None` if they stay as they are.
    fn cleared_children(
        &mut self,
        slot: &Arc<NodeSlot>,
        lower: &[u8],
        upper: Option<&[u8]>,
        progress: &mut Progress<'_>,
    ) -> Result<Option<Vec<Part>>, BetreeError> {
        let node = self.input.blocks.node(slot, BlockingMode::MayBlock)?;
        let (mut parts, mut is_changed) = (Vec::with_capacity(node.children().len()), false);
        for at in 0..node.children().len() {
            let mut part = node.part(at, lower);
            let ends = if at + 1 < node.pivots().len() { Some(node.pivots().get(at + 1)) } else { upper };
            if !progress.work.span.overlaps(&part.lower, ends) || progress.leaves_to_next(&part.lower) {
                parts.push(part);
                continue;
            }
            is_changed |= self.drop_old_slices(&mut part, ends, progress)?;
            match part.child.clone() {
                Child::Leaf(leaf) => {
                    is_changed = true;
                    parts.extend(self.cleared_leaf(&leaf, part, ends, progress)?);
                }
                Child::Inner(below) => {
                    is_changed |= self.clear_slices(&mut part, progress)?;
                    let begins = part.lower.clone();
                    match self.cleared_children(&below, &begins, ends, progress)? {
                        None => parts.push(part),
                        Some(children) => {
                            is_changed = true;
                            parts.extend(self.replacement_of(part, children, below.height())?);
                        }
                    }
                }
            }
        }
        if !is_changed {
            return Ok(None);
        }
        self.replaced_nodes.push(Arc::clone(slot));
        if let Some(first) = parts.first_mut() {
            // The new first child covers the keys from the node's lower bound on.
            first.lower = lower.into();
        }
        if node.height() > 1 {
            self.unite_small(&mut parts)?;
        }
        Ok(Some(parts))
    }

    /// The replacement of an inner node whose children have become these.
    fn replacement_of(
        &mut self,
        part: Part,
        children: Vec<Part>,
        height: u8,
    ) -> Result<Vec<Part>, BetreeError> {
        if part.slices.is_empty() {
            return Ok(self.nodes_over(height, children));
        }
        if !children.is_empty() {
            let node = NodeSlot::dirty(InnerNode::new(height, children));
            return Ok(vec![Part { child: Child::Inner(Arc::new(node)), ..part }]);
        }
        let pending = self.merge_with_slices(&part.slices, Span::empty())?;
        let mut parts = leaf_parts(self.leaves.grow_from_nothing(&part.lower, pending.span())?);
        for height in 1..=height {
            parts = self.nodes_over(height, parts);
        }
        Ok(parts)
    }

    /// The replacement of a leaf that the range overlaps, and of the messages pending for it.
    fn cleared_leaf(
        &mut self,
        leaf: &LeafChild,
        part: Part,
        upper: Option<&[u8]>,
        progress: &mut Progress<'_>,
    ) -> Result<Vec<Part>, BetreeError> {
        progress.is_begun = true;
        let blocks = self.input.blocks;
        let directory = blocks.directory(&leaf.directory, BlockingMode::MayBlock)?;
        let pending = self.merge_with_slices(&part.slices, Span::empty())?;
        let leaf_bytes = self.input.settings.leaf_bytes;
        let is_older = directory.pages().iter().all(|page| page.newest < progress.work.time);
        if is_older && progress.work.span.covers(&part.lower, upper) {
            progress.leaves += 1;
            progress.spent += leaf_bytes / UNREAD_DIVISOR + pending.span().bytes();
            self.replaced.push(blocks_of_leaf(leaf, &directory));
            if leaf.reach > 0 {
                self.free_values(&directory)?;
            }
            return Ok(leaf_parts(self.leaves.grow_from_nothing(&part.lower, pending.span())?));
        }
        progress.spent += leaf_bytes + pending.span().bytes();
        self.leaves.begin(&part.lower, leaf, pending.span())?;
        self.leaves.add(leaf, pending.span())?;
        Ok(leaf_parts(self.leaves.end()?))
    }

    /// Drops the slices that lie within the range and are older. Returns whether there were any.
    fn drop_old_slices(
        &mut self,
        part: &mut Part,
        upper: Option<&[u8]>,
        progress: &mut Progress<'_>,
    ) -> Result<bool, BetreeError> {
        if !progress.work.span.covers(&part.lower, upper) {
            return Ok(false);
        }
        let is_old = |slice: &Arc<Slice>| slice.stored().newest < progress.work.time;
        let (old, kept) = std::mem::take(&mut part.slices).into_iter().partition::<Vec<_>, _>(is_old);
        part.slices = kept;
        for slice in &old {
            let index = self.input.blocks.slice_index(slice, BlockingMode::MayBlock)?;
            self.replaced.push(blocks_of_slice(slice, index));
            if slice.reach() > 0 {
                self.free_values(&index.pages)?;
            }
        }
        progress.slices += old.len() as u64;
        progress.spent += old.len() * self.input.settings.page_bytes;
        Ok(!old.is_empty())
    }

    /// Merges the slices of a child into one without older messages, if they may have any. Returns whether
    /// they may.
    fn clear_slices(&mut self, part: &mut Part, progress: &mut Progress<'_>) -> Result<bool, BetreeError> {
        if part.slices.iter().all(|slice| slice.stored().oldest >= progress.work.time) {
            return Ok(false);
        }
        progress.spent += part.slices.iter().map(|slice| pending_bytes(slice)).sum::<usize>();
        let slices = std::mem::take(&mut part.slices);
        let messages: PendingMessages<'_> = self.merge_with_slices(&slices, Span::empty())?;
        if !messages.span().is_empty() {
            let mut parts = [part.clone()];
            self.write_run(&mut parts, vec![BufferedMessages { part: 0, messages }])?;
            let [cleaned] = parts;
            *part = cleaned;
        }
        Ok(true)
    }

    /// Frees the large values of a dropped leaf or slice.
    fn free_values(&mut self, directory: &Directory) -> Result<(), BetreeError> {
        for entry in directory.pages().iter().filter(|entry| entry.large_bytes > 0) {
            let pages = self.input.blocks.pages_once([&entry.pointer])?;
            self.replaced.extend(pages.iter().flat_map(values_of));
        }
        Ok(())
    }
}
