//! Partial flush step: takes messages pending in one inner node down, without any arriving from above.
//!
//! There are two reasons. Messages are overdue, since a flush takes a bounded number of bytes down
//! ([`crate::tree::flush`]). Or reads had to merge the same slices again and again, while nobody commits.
//!
//! # Steps
//! 1. Descend from the root to the node that covers a key, at a height. Messages pending on this way stay
//!    where they are: they are newer than all below.
//! 2. In the node, flush the largest due children within the limit of the step, or the one child that was
//!    asked for.
//! 3. Make the nodes on the way anew.
//!
//! # Invariants
//! - One child of the node stays where it is, so that no node vanishes for which messages are pending above.
//! - A node with messages pending for it above stays one node ([`Division::Forbidden`]).

use std::sync::Arc;

use pando_storage::BlockingMode;

use crate::error::BetreeError;
use crate::tree::flush::{Division, Flush, FlushInput, Flushed, parts_of};
use crate::tree::flush_policy::ChildAction;
use crate::tree::messages::Span;
use crate::tree::node::{Child, InnerNode, NodeSlot, Part};
use crate::tree::pending_slices::pending_bytes;

/// The children that a step flushes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PartialFlush {
    /// The due children of the node, the largest first.
    Due,
    /// The child that covers the key.
    Child,
}

/// The node that covers a key, at a height.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'p> {
    pub(crate) key: &'p [u8],
    pub(crate) height: u8,
}

/// Runs a step. If there is no such node, or no child to flush, the root stays the old one.
pub(crate) fn partial_flush(
    input: FlushInput<'_>,
    place: Place<'_>,
    what: PartialFlush,
) -> Result<Flushed, BetreeError> {
    // A step above the lowest nodes may take twice the pending target of a leaf on to leaves, without a
    // quota. That is a small part of the bytes that it moves.
    let to_leaves = 2 * input.settings.leaf_pending_target();
    Flush::new(input, to_leaves)?.into_flushed(|step| step.partial_flush(place, what))
}

impl Flush<'_> {
    fn partial_flush(&mut self, place: Place<'_>, what: PartialFlush) -> Result<Option<Child>, BetreeError> {
        let root = self.input.version.root.as_ref();
        let Some(Child::Inner(slot)) = root else { return Ok(root.cloned()) };
        match self.partly_flushed(slot, &[], place, what, Division::AsNeeded)? {
            Some(top) => self.root_over(top, slot.height()),
            None => Ok(root.cloned()),
        }
    }

    /// The replacement of a node; `None` if it stays as it is.
    fn partly_flushed(
        &mut self,
        slot: &Arc<NodeSlot>,
        lower: &[u8],
        place: Place<'_>,
        what: PartialFlush,
        division: Division,
    ) -> Result<Option<Vec<Part>>, BetreeError> {
        let node = self.input.blocks.node(slot, BlockingMode::MayBlock)?;
        let at = node.pivots().covering(place.key);
        let parts = if node.height() > place.height {
            let Child::Inner(below) = &node.children()[at] else { return Ok(None) };
            let below_lower = node.part(at, lower).lower;
            // Slices pending for the child must not cover two children: then it stays one node.
            let below_division =
                if node.slices(at).is_empty() { Division::AsNeeded } else { Division::Forbidden };
            let Some(new) = self.partly_flushed(below, &below_lower, place, what, below_division)? else {
                return Ok(None);
            };
            self.replaced_nodes.push(Arc::clone(slot));
            with_child_replaced(node, lower, at, new)
        } else {
            if node.height() < place.height {
                return Ok(None);
            }
            let arriving = vec![Span::empty(); node.children().len()];
            let actions = match what {
                PartialFlush::Due => self.due(node, lower, &arriving)?,
                PartialFlush::Child => only(node, at),
            };
            if !actions.contains(&ChildAction::Flush) {
                return Ok(None);
            }
            self.changed(slot, node, lower, &arriving, &actions, BlockingMode::CachedOnly)?
        };
        assert!(!parts.is_empty(), "one child stays, so that there is a node");
        Ok(Some(match division {
            Division::AsNeeded => self.divided_node(node.height(), parts),
            Division::Forbidden => {
                let lower = parts[0].lower.clone();
                let slot = NodeSlot::dirty(InnerNode::new(node.height(), parts));
                vec![Part { lower, child: Child::Inner(Arc::new(slot)), slices: Vec::new() }]
            }
        }))
    }

    /// The actions for the due children of a node. If all children are due, the smallest one stays.
    fn due(
        &mut self,
        node: &InnerNode,
        lower: &[u8],
        arriving: &[Span<'_>],
    ) -> Result<Vec<ChildAction>, BetreeError> {
        let mut actions = self.actions(node, lower, arriving, BlockingMode::CachedOnly)?;
        if actions.iter().all(|action| *action == ChildAction::Flush) {
            let size = |at: &usize| node.slices(*at).iter().map(|slice| pending_bytes(slice)).sum::<usize>();
            let smallest = (0..actions.len()).min_by_key(size).expect("a node has a child");
            actions[smallest] = ChildAction::Keep;
            self.take_back(node.height(), size(&smallest));
        }
        Ok(actions)
    }
}

/// The actions that flush one child, if it has slices and is not the only child.
fn only(node: &InnerNode, at: usize) -> Vec<ChildAction> {
    let mut actions = vec![ChildAction::Keep; node.children().len()];
    if actions.len() > 1 && !node.slices(at).is_empty() {
        actions[at] = ChildAction::Flush;
    }
    actions
}

/// A node's parts, with others in the place of one child. The slices of the child pass to its replacement.
fn with_child_replaced(node: &InnerNode, lower: &[u8], at: usize, new: Vec<Part>) -> Vec<Part> {
    let pending = node.slices(at);
    assert!(pending.is_empty() || new.len() == 1, "a child with slices stays one node");
    let mut new = new.into_iter();
    let mut parts = Vec::with_capacity(node.children().len() + new.len());
    for (place, part) in parts_of(node, lower).enumerate() {
        if place != at {
            parts.push(part);
            continue;
        }
        let first = parts.len();
        parts.extend(new.by_ref());
        if let Some(replacement) = parts.get_mut(first) {
            replacement.lower = part.lower;
            replacement.slices.extend(part.slices);
        }
    }
    parts
}
