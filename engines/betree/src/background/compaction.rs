//! Compaction on demand: takes all buffered and pending messages into the leaves, and gives the freed room
//! back.
//!
//! 1. Buffers are flushed, as for a checkpoint, and range deletes that every snapshot sees are applied.
//! 2. Level by level, from the root down, and from left to right, the messages pending for a child are
//!    flushed into it. Each step flushes one child, as [`super::partial_flush`] does, so that other threads
//!    wait no longer than for any other step. Commits may bring new messages meanwhile.
//! 3. Checkpoints, after which the replaced blocks are free.
//!
//! An interruption ends it between two steps; the flushes that were made stay. The checkpoint at the end is
//! one step.
//!
//! Compaction rewrites each leaf for which messages are pending. It is for data at rest: under random writes
//! the next writes undo it. After random inserts at ten times the cache it made the store no smaller; quiet
//! times had flushed most of them already.

use std::sync::Arc;

use pando_storage::{Operation, TreeId};

use super::buffer_flush::{BufferFlusher, Progress};
use super::partial_flush::PartialFlushes;
use super::range_delete_applier::RangeDeleteApplier;
use crate::commit_order::CommitGate;
use crate::error::BetreeError;
use crate::tree::flush_debt::Payment;
use crate::tree::node::Child;
use crate::tree::partial_flush_step::{PartialFlush, Place};
use crate::tree::pending_children::next_pending_child;
use crate::tree::registry::TreeRegistry;
use crate::tree::tree_blocks::Blocks;
use crate::tree::tree_state::Tree;

/// See the module's head.
pub(crate) struct Compaction {
    pub(crate) blocks: Arc<Blocks>,
    pub(crate) trees: Arc<TreeRegistry>,
    pub(crate) gate: Arc<CommitGate>,
    pub(crate) flusher: Arc<BufferFlusher>,
    pub(crate) partial_flushes: Arc<PartialFlushes>,
    pub(crate) range_delete_applier: Arc<RangeDeleteApplier>,
}

impl Compaction {
    /// Flushes all pending messages of these trees into leaves; of all trees if none is named. An
    /// interruption ends it between two steps.
    pub(crate) fn compact(&self, trees: &[TreeId], operation: &Operation) -> Result<(), BetreeError> {
        let check = || operation.check_now().map_err(|reason| BetreeError::Substrate(reason.into()));
        let trees: Vec<Arc<Tree>> = match trees {
            [] => self.trees.in_order().into_iter().filter(|tree| !tree.is_dropped()).collect(),
            named => named.iter().map(|tree| self.trees.live(*tree)).collect::<Result<_, _>>()?,
        };
        for tree in trees {
            let target = self.gate.last_lsn();
            while self.flusher.flush_step_up_to(&tree, &tree.lock_flush(), target)? == Progress::Made {
                check()?;
            }
            while self.range_delete_applier.apply_next(&tree)? == Progress::Made {
                check()?;
            }
            let Some(Child::Inner(root)) = tree.view().version.root.clone() else { continue };
            for height in (1..=root.height()).rev() {
                self.compact_level(&tree, height, &check)?;
            }
        }
        check()
    }

    /// Flushes the messages pending in the nodes of a height.
    fn compact_level(
        &self,
        tree: &Arc<Tree>,
        height: u8,
        check: &dyn Fn() -> Result<(), BetreeError>,
    ) -> Result<(), BetreeError> {
        let mut from = Vec::new();
        loop {
            self.gate.check_open()?;
            check()?;
            if tree.is_dropped() {
                return Ok(());
            }
            let flushing = tree.lock_flush();
            let view = tree.view_owned();
            let Some(key) = next_pending_child(&view.version, &self.blocks, height, &from)? else {
                return Ok(());
            };
            drop(view);
            let place = Place { key: &key, height };
            self.partial_flushes.flush_at(tree, &flushing, place, PartialFlush::Child, Payment::Free)?;
            // The smallest greater key.
            from = [&key, &[0][..]].concat();
        }
    }
}
