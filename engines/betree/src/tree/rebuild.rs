//! Makes the inner nodes above changed leaves anew: the old ones stay as they are for whoever still reads them.
//!
//! 1. Down: only nodes above an edit are visited.
//! 2. Up: a node's children are gathered with their pivots; a node without children goes; one with more than the fanout is
//!    split into equal parts; two neighbours of which one is nearly empty become one.
//! 3. At the top a level is added or taken away.
//!
//! # Invariants
//! - A node that takes another's place keeps its pivot, so that no key changes its way but by going to a neighbour under the
//!   same parent.

use std::sync::Arc;

use pando_storage::Patience;

use super::merge::LeafEdit;
use super::node::{Child, InnerNode, NodeSlot};
use crate::cache::Blocks;
use crate::error::BetreeError;
use crate::space::Pointer;

/// A new root, and the stored nodes that it does without.
#[derive(Debug, Default)]
pub(crate) struct Rebuilt {
    pub(crate) root: Option<Child>,
    /// Inner nodes on disk that the new version has no more.
    pub(crate) replaced: Vec<Pointer>,
}

type Children = Vec<(Box<[u8]>, Child)>;

/// Puts the edits (ascending by lower bound) into effect.
pub(crate) fn rebuild(
    root: Option<&Child>,
    edits: Vec<LeafEdit>,
    fanout: usize,
    blocks: &Blocks,
) -> Result<Rebuilt, BetreeError> {
    let mut work = Work { fanout, blocks, replaced: Vec::new() };
    let mut edits = edits.into_iter().peekable();
    let mut top = match root {
        Some(Child::Inner(slot)) => work.rebuild_node(slot, &[], None, &mut edits)?,
        Some(Child::Leaf(_)) | None => edits.next().map(leaves_of).unwrap_or_default(),
    };
    assert!(edits.next().is_none(), "every edit names a leaf of the tree");
    let mut height = match root {
        Some(Child::Inner(slot)) => slot.height(),
        _ => 0,
    };
    while top.len() > 1 {
        height += 1;
        top = work.nodes_over(height, top);
    }
    let mut root = top.pop().map(|(_, child)| child);
    while let Some(Child::Inner(slot)) = &root {
        let node = blocks.node(slot, Patience::MayBlock)?;
        if node.children().len() > 1 {
            break;
        }
        let only = node.children()[0].clone();
        work.replaced.extend(slot.stored());
        root = Some(only);
    }
    Ok(Rebuilt { root, replaced: work.replaced })
}

struct Work<'b> {
    fanout: usize,
    blocks: &'b Blocks,
    replaced: Vec<Pointer>,
}

impl Work<'_> {
    /// What takes the place of a node that covers `[lower, upper)`: itself if no edit falls into it.
    fn rebuild_node(
        &mut self,
        slot: &Arc<NodeSlot>,
        lower: &[u8],
        upper: Option<&[u8]>,
        edits: &mut std::iter::Peekable<std::vec::IntoIter<LeafEdit>>,
    ) -> Result<Children, BetreeError> {
        if edits.peek().is_none_or(|edit| upper.is_some_and(|upper| *edit.lower >= *upper)) {
            return Ok(vec![(lower.into(), Child::Inner(Arc::clone(slot)))]);
        }
        let node = self.blocks.node(slot, Patience::MayBlock)?;
        let mut children = Children::with_capacity(node.children().len() + 4);
        for (at, child) in node.children().iter().enumerate() {
            let begins = if at == 0 { lower } else { node.pivots().get(at) };
            let ends = if at + 1 < node.pivots().len() { Some(node.pivots().get(at + 1)) } else { upper };
            match child {
                Child::Inner(below) => children.extend(self.rebuild_node(below, begins, ends, edits)?),
                Child::Leaf(leaf) => match edits.next_if(|edit| *edit.lower == *begins) {
                    Some(edit) => children.extend(leaves_of(edit)),
                    None => children.push((begins.into(), Child::Leaf(*leaf))),
                },
            }
        }
        self.replaced.extend(slot.stored());
        if node.height() > 1 {
            self.unite_small(&mut children)?;
        }
        if let Some(first) = children.first_mut() {
            // Whatever the first child is now, it covers the keys from where this node begins.
            first.0 = lower.into();
        }
        Ok(self.nodes_over(node.height(), children))
    }

    /// Nodes over these children, as few as the fanout allows, of nearly equal size.
    fn nodes_over(&self, height: u8, children: Children) -> Children {
        if children.is_empty() {
            return children;
        }
        let parts = children.len().div_ceil(self.fanout);
        let mut nodes = Children::with_capacity(parts);
        let total = children.len();
        let mut children = children.into_iter();
        for part in 0..parts {
            let count = total * (part + 1) / parts - total * part / parts;
            let group: Children = children.by_ref().take(count).collect();
            let lower = group[0].0.clone();
            let node = NodeSlot::dirty(InnerNode::new(height, group));
            nodes.push((lower, Child::Inner(Arc::new(node))));
        }
        nodes
    }

    /// Makes one of two neighbouring nodes where one has become small and both fit well into one.
    fn unite_small(&mut self, children: &mut Children) -> Result<(), BetreeError> {
        let mut at = 0;
        while at + 1 < children.len() {
            let (Child::Inner(left), Child::Inner(right)) = (&children[at].1, &children[at + 1].1) else {
                unreachable!("all children of a node above height 1 are inner nodes");
            };
            if !self.is_small(left) && !self.is_small(right) {
                at += 1;
                continue;
            }
            let left_node = self.blocks.node(left, Patience::MayBlock)?;
            let right_node = self.blocks.node(right, Patience::MayBlock)?;
            if left_node.children().len() + right_node.children().len() > self.fanout / 4 * 3 {
                at += 1;
                continue;
            }
            let mut both = gather(left_node, &children[at].0);
            both.extend(gather(right_node, &children[at + 1].0));
            self.replaced.extend(left.stored());
            self.replaced.extend(right.stored());
            let united = NodeSlot::dirty(InnerNode::new(left_node.height(), both));
            children[at].1 = Child::Inner(Arc::new(united));
            children.remove(at + 1);
        }
        Ok(())
    }

    /// Whether a node made by this rebuild has few children. Others are left alone: looking at them would read them.
    fn is_small(&self, slot: &NodeSlot) -> bool {
        match slot.loaded() {
            Some(node) if slot.stored().is_none() => node.children().len() <= self.fanout / 4,
            _ => false,
        }
    }
}

fn leaves_of(edit: LeafEdit) -> Children {
    edit.leaves.into_iter().map(|leaf| (leaf.lower, Child::Leaf(leaf.child))).collect()
}

/// The children of a node with their pivots, the first being where the node begins.
fn gather(node: &InnerNode, lower: &[u8]) -> Children {
    let mut pivots = node.pivots().iter().map(Box::from);
    pivots.next();
    std::iter::once(lower.into()).chain(pivots).zip(node.children().iter().cloned()).collect()
}
