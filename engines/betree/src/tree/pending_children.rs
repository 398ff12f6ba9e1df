//! Pending children: finds, from left to right, the children with pending messages. Compaction flushes them
//! one after the other.

use std::sync::Arc;

use pando_storage::BlockingMode;

use crate::error::BetreeError;
use crate::tree::node::{Child, NodeSlot};
use crate::tree::tree_blocks::Blocks;
use crate::tree::view::TreeVersion;

/// The lower bound of the next child with pending messages, at `from` or after. Only children of nodes of
/// this height count, and only those that are not the only child of their node. Loads the nodes on the way.
pub(crate) fn next_pending_child(
    version: &TreeVersion,
    blocks: &Blocks,
    height: u8,
    from: &[u8],
) -> Result<Option<Box<[u8]>>, BetreeError> {
    match &version.root {
        Some(Child::Inner(root)) => next_in(root, &[], blocks, height, from),
        _ => Ok(None),
    }
}

fn next_in(
    slot: &Arc<NodeSlot>,
    lower: &[u8],
    blocks: &Blocks,
    height: u8,
    from: &[u8],
) -> Result<Option<Box<[u8]>>, BetreeError> {
    let node = blocks.node(slot, BlockingMode::MayBlock)?;
    if node.height() < height {
        return Ok(None);
    }
    let pivots = node.pivots();
    for at in pivots.covering(from)..pivots.len() {
        let begins = if at == 0 { lower } else { pivots.get(at) };
        let found = match &node.children()[at] {
            Child::Inner(below) if node.height() > height => next_in(below, begins, blocks, height, from)?,
            _ => (begins >= from && pivots.len() > 1 && !node.slices(at).is_empty()).then(|| begins.into()),
        };
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}
