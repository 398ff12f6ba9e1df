//! Path: descends from the root of a version to the leaf that covers a key.

use pando_storage::BlockingMode;

use super::node::{Child, InnerNode, LeafChild, NodeSlot};
use super::view::TreeVersion;
use crate::base::SortedKeys;
use crate::error::BetreeError;
use crate::tree::tree_blocks::Blocks;

/// The leaf that a descent looks for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target<'k> {
    /// The leaf that covers this key.
    Covering(&'k [u8]),
    /// The leaf that covers the keys just before this one.
    Before(&'k [u8]),
    /// The leftmost leaf.
    First,
    /// The rightmost leaf.
    Last,
}

impl Target<'_> {
    /// The index of the child to go into, among children with these pivots; the first pivot is empty.
    pub(crate) fn among(self, pivots: &SortedKeys) -> usize {
        match self {
            Target::Covering(key) => pivots.covering(key),
            Target::Before(key) => pivots.below(key),
            Target::First => 0,
            Target::Last => pivots.len() - 1,
        }
    }
}

/// The keys of a subtree: from the first up to before the second; `None` is the end of the tree.
pub(crate) type Bounds<'v> = (Option<&'v [u8]>, Option<&'v [u8]>);

/// A leaf and the keys that it covers.
#[derive(Clone, Debug)]
pub(crate) struct LeafPlace<'v> {
    pub(crate) leaf: LeafChild,
    /// The smallest key of the leaf; `None` at the left end of the tree.
    pub(crate) lower: Option<&'v [u8]>,
    /// The key before which it ends; `None` at the right end of the tree.
    pub(crate) upper: Option<&'v [u8]>,
}

/// The leaf that a target names; `None` in a tree without leaves. `visit` gets each node on the way, the
/// index of the child that the descent takes, and that child's range. An error of `visit` ends the descent.
pub(crate) fn find_leaf<'v, E: From<BetreeError>>(
    version: &'v TreeVersion,
    blocks: &Blocks,
    target: Target<'_>,
    blocking: BlockingMode,
    mut visit: impl FnMut(&'v InnerNode, usize, Bounds<'v>) -> Result<(), E>,
) -> Result<Option<LeafPlace<'v>>, E> {
    let Some(mut child) = version.root.as_ref() else { return Ok(None) };
    let (mut lower, mut upper) = (None, None);
    loop {
        match child {
            Child::Leaf(leaf) => return Ok(Some(LeafPlace { leaf: *leaf, lower, upper })),
            Child::Inner(slot) => {
                let node = blocks.node(slot, blocking)?;
                let at = target.among(node.pivots());
                if at > 0 {
                    lower = Some(node.pivots().get(at));
                }
                if at + 1 < node.pivots().len() {
                    upper = Some(node.pivots().get(at + 1));
                }
                visit(node, at, (lower, upper))?;
                child = &node.children()[at];
            }
        }
    }
}

/// The lower bounds of all leaves that begin within `(lower, upper)`, ascending. Loads the nodes on the way.
pub(crate) fn leaf_bounds(
    version: &TreeVersion,
    blocks: &Blocks,
    lower: &[u8],
    upper: Option<&[u8]>,
) -> Result<Vec<Box<[u8]>>, BetreeError> {
    let mut bounds = Vec::new();
    if let Some(Child::Inner(slot)) = &version.root {
        collect_bounds(slot, blocks, lower, upper, &mut bounds)?;
    }
    Ok(bounds)
}

fn collect_bounds(
    slot: &NodeSlot,
    blocks: &Blocks,
    lower: &[u8],
    upper: Option<&[u8]>,
    bounds: &mut Vec<Box<[u8]>>,
) -> Result<(), BetreeError> {
    let node = blocks.node(slot, BlockingMode::MayBlock)?;
    for (at, child) in node.children().iter().enumerate() {
        let begins = node.pivots().get(at);
        if upper.is_some_and(|upper| begins >= upper) {
            break;
        }
        if at + 1 < node.pivots().len() && node.pivots().get(at + 1) <= lower {
            continue;
        }
        if begins > lower {
            bounds.push(begins.into());
        }
        if let Child::Inner(slot) = child {
            collect_bounds(slot, blocks, lower, upper, bounds)?;
        }
    }
    Ok(())
}

/// The pivots within `(lower, upper)` of one level, ascending: the level nearest to the root that has at
/// least `least` of them, or else the level of the lowest inner nodes.
pub(crate) fn upper_bounds(
    version: &TreeVersion,
    blocks: &Blocks,
    lower: &[u8],
    upper: Option<&[u8]>,
    least: usize,
) -> Result<Vec<Box<[u8]>>, BetreeError> {
    let is_within = |pivot: &[u8]| *pivot > *lower && upper.is_none_or(|upper| *pivot < *upper);
    let mut bounds: Vec<Box<[u8]>> = Vec::new();
    let mut level: Vec<(&NodeSlot, &[u8])> = match &version.root {
        Some(Child::Inner(slot)) => vec![(slot, &[])],
        _ => Vec::new(),
    };
    while bounds.len() < least && !level.is_empty() {
        bounds.clear();
        let mut below = Vec::new();
        for (slot, begins) in level {
            let node = blocks.node(slot, BlockingMode::MayBlock)?;
            for (at, child) in node.children().iter().enumerate() {
                let pivot = if at == 0 { begins } else { node.pivots().get(at) };
                let ends = (at + 1 < node.pivots().len()).then(|| node.pivots().get(at + 1));
                if is_within(pivot) {
                    bounds.push(pivot.into());
                }
                let overlaps =
                    ends.is_none_or(|ends| ends > lower) && upper.is_none_or(|upper| pivot < upper);
                if let (Child::Inner(slot), true) = (child, overlaps) {
                    below.push((&**slot, pivot));
                }
            }
        }
        level = below;
    }
    Ok(bounds)
}
