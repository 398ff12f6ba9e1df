//! Space return: gives free room of the data file back to the device, and moves blocks inwards where much of
//! the file is free.

use std::sync::Arc;

use pando_environment::sync::atomic::{AtomicBool, Ordering};

use super::relocation::{Chosen, MoveLimits, relocate};
use super::write_buffers::WriteBuffers;
use crate::counters::Counters;
use crate::error::BetreeError;
use crate::tree::registry::TreeRegistry;
use crate::tree::tree_blocks::Blocks;

/// Bytes that are moved at once, to make the file shorter.
const MOVE_BYTES: u64 = 8 << 20;

/// See the module's head.
pub(crate) struct SpaceReturn {
    blocks: Arc<Blocks>,
    trees: Arc<TreeRegistry>,
    buffers: Arc<WriteBuffers>,
    counters: Arc<Counters>,
    /// Blocks were moved since the last checkpoint, which frees the places where they lay.
    moved: AtomicBool,
}

impl SpaceReturn {
    pub(crate) fn new(
        blocks: &Arc<Blocks>,
        trees: &Arc<TreeRegistry>,
        buffers: &Arc<WriteBuffers>,
        counters: &Arc<Counters>,
    ) -> SpaceReturn {
        SpaceReturn {
            blocks: Arc::clone(blocks),
            trees: Arc::clone(trees),
            buffers: Arc::clone(buffers),
            counters: Arc::clone(counters),
            moved: AtomicBool::new(false),
        }
    }

    /// Whether blocks were moved since the last checkpoint.
    pub(crate) fn has_moved(&self) -> bool {
        self.moved.load(Ordering::Relaxed)
    }

    /// The same for a checkpoint that begins. Resets the mark.
    pub(crate) fn take_moved(&self) -> bool {
        self.moved.swap(false, Ordering::Relaxed)
    }

    /// Restores the mark after a checkpoint failed that had taken it.
    pub(crate) fn restore_moved(&self, moved: bool) {
        self.moved.fetch_or(moved, Ordering::Relaxed);
    }

    /// Gives a little of the free room back to the device, and moves some of the blocks at the end of the
    /// file. After a failure the store is as it was.
    pub(crate) fn return_some(&self) {
        let store = self.blocks.store();
        match self.move_inward() {
            Ok(0) => {}
            Ok(bytes) => {
                self.counters.moved_bytes.add(bytes);
                self.moved.store(true, Ordering::Relaxed);
            }
            Err(_) => self.counters.failed_returns.add(1),
        }
        match store.cut_free_end().and_then(|cut| Ok(cut + store.punch_next()?)) {
            Ok(bytes) => self.counters.returned_bytes.add(bytes),
            Err(_) => self.counters.failed_returns.add(1),
        }
    }

    /// Gives all of the free room back to the device that can be given back without moving anything.
    pub(crate) fn return_all(&self) {
        match self.blocks.store().give_back_all() {
            Ok(bytes) => self.counters.returned_bytes.add(bytes),
            Err(_) => self.counters.failed_returns.add(1),
        }
    }

    /// Moves blocks at the end of the file inwards, if much of it is free and no commit waits for flushes.
    /// Returns the bytes moved.
    fn move_inward(&self) -> Result<u64, BetreeError> {
        let Some(ceiling) = self.blocks.store().plan_ceiling() else { return Ok(0) };
        let mut moved = 0;
        for tree in self.trees.in_order() {
            if moved >= MOVE_BYTES || self.buffers.bytes() > self.buffers.flush_from() {
                break;
            }
            if !tree.is_dropped()
                && let Some(_flushing) = tree.try_lock_flush()
            {
                let chosen = Chosen::Beyond(ceiling);
                let limits = MoveLimits { chosen, bytes: MOVE_BYTES - moved, from: b"" };
                moved += relocate(&self.blocks, &tree, limits)?.moved;
            }
        }
        Ok(moved)
    }
}
