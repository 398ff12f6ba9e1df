//! The buffer flusher: takes a frozen write buffer of one partition down its tree.
//!
//! 1. *Sweep*: superseded versions leave the buffer; if that frees enough, the buffer is not flushed yet.
//! 2. *Freeze*: with the gate closed, the active buffer becomes the frozen one and an empty one takes new
//!    writes. A full partition is divided in two: the flush of a small buffer is short, and all buffers
//!    together hold as much.
//! 3. *Flush* ([`crate::tree::flush`]) into runs and leaves. Only a commit that finds no room waits for it.
//! 4. *Install* the new version of the tree.
//!
//! Not here: the choice of the buffer ([`super::flush_scheduler`]), and partial flushes below the buffers
//! ([`super::partial_flush`]).

use std::ops::Bound;
use std::sync::Arc;

use pando_environment::Clock;
use pando_environment::sync::MutexGuard;
use pando_storage::{ErrorKind, Lsn};

use super::backlog::Backlog;
use super::flush_monitor::FlushMonitor;
use super::write_buffers::WriteBuffers;
use crate::commit_order::{CommitGate, Visibility};
use crate::counters::Counters;
use crate::error::BetreeError;
use crate::options::live_options::LiveOptions;
use crate::tree::buffer::{Buffer, PruneBounds, SharedBuffer};
use crate::tree::flush::{FlushFigures, FlushInput, flush_with};
use crate::tree::large_value_writer::write_large_values;
use crate::tree::messages::Messages;
use crate::tree::path::{leaf_bounds, upper_bounds};
use crate::tree::tree_blocks::Blocks;
use crate::tree::tree_state::Tree;
use crate::tree::view::{Frozen, Partition, TreeView};

/// Leaves under one partition of a tree without runs. A partition with more is divided, so that each flush is
/// short.
const PARTITION_LEAVES: usize = 32;

/// Partitions of a tree that has runs.
const PARTITIONS_MAX: usize = 64;

/// The divisor of a buffer's bytes: a sweep that frees that part puts the flush off.
const SWEPT_DIVISOR: usize = 16;

/// See the module's head.
pub(crate) struct BufferFlusher {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) options: Arc<LiveOptions>,
    pub(crate) blocks: Arc<Blocks>,
    pub(crate) gate: Arc<CommitGate>,
    pub(crate) visibility: Arc<Visibility>,
    pub(crate) buffers: Arc<WriteBuffers>,
    pub(crate) backlog: Arc<Backlog>,
    pub(crate) monitor: Arc<FlushMonitor>,
    pub(crate) counters: Arc<Counters>,
}

/// How a look for background work ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// A step was done.
    Made,
    /// There is no work, or other threads do it.
    Nothing,
}

impl BufferFlusher {
    /// Flushes all buffered writes of a tree that belong to records up to `target`.
    pub(crate) fn flush_up_to(&self, tree: &Arc<Tree>, target: Lsn) -> Result<(), BetreeError> {
        let flushing = tree.lock_flush();
        while self.flush_step_up_to(tree, &flushing, target)? == Progress::Made {}
        Ok(())
    }

    /// Flushes one partition that has writes up to a place in the log.
    pub(crate) fn flush_step_up_to(
        &self,
        tree: &Arc<Tree>,
        flushing: &MutexGuard<'_, ()>,
        target: Lsn,
    ) -> Result<Progress, BetreeError> {
        let view = tree.view_owned();
        let due =
            |partition: &Arc<Partition>| partition.first_unflushed().is_some_and(|first| first <= target);
        let Some(at) = view.partitions.iter().position(due) else { return Ok(Progress::Nothing) };
        self.flush_partition(tree, flushing, &view, at)?;
        Ok(Progress::Made)
    }

    /// Drops superseded versions from an active buffer. Returns whether that makes a flush unnecessary for
    /// now.
    pub(crate) fn sweep(&self, tree: &Tree, partition: &Partition) -> bool {
        let before = partition.active.bytes();
        self.visibility.refresh();
        let oldest = self.visibility.oldest_known();
        let dropped = partition.active.sweep(PruneBounds { oldest, ranges: &tree.view().ranges });
        self.counters.swept_bytes.add(dropped as u64);
        self.buffers.hot_set.note(0, -(dropped as i64));
        self.buffers.remove(dropped);
        let is_enough = dropped >= before / SWEPT_DIVISOR;
        if is_enough {
            self.monitor.announce_room();
        }
        is_enough
    }

    pub(crate) fn flush_partition(
        &self,
        tree: &Arc<Tree>,
        _flushing: &MutexGuard<'_, ()>,
        view: &TreeView,
        at: usize,
    ) -> Result<(), BetreeError> {
        let began = self.clock.monotonic();
        let outcome = self.flush_frozen(tree, view, at);
        let time = self.clock.monotonic().since(began);
        match &outcome {
            Ok(_) => self.counters.flushes.add(1),
            Err(error) => {
                self.counters.failed_flushes.add(1);
                if error.kind() == ErrorKind::Corrupt {
                    self.monitor.note_damage(tree);
                }
            }
        }
        self.counters.flush_nanos.add(time.as_nanos() as u64);
        self.monitor.note_flush(&outcome, time);
        outcome.map(|_| ())
    }

    /// Flushes the frozen buffer of a partition, and freezes it first if needed. Returns the bytes that it
    /// had.
    fn flush_frozen(&self, tree: &Arc<Tree>, view: &TreeView, at: usize) -> Result<usize, BetreeError> {
        let frozen = match &view.partitions[at].frozen {
            Some(frozen) => Arc::clone(frozen),
            None => self.freeze(tree, view, at)?,
        };
        let before = tree.view_owned();
        let retained = self.visibility.retained();
        let retained = retained.with_ranges(Arc::clone(&tree.view().ranges));
        let bytes = frozen.buffer.bytes();
        let mut messages = Messages::of_buffer(&frozen.buffer.read(), &retained);
        let _held = self.blocks.accounts.hold(messages.memory_bytes());
        let settings = tree.settings();
        let large = write_large_values(&mut messages, &self.blocks, tree.id, settings)?;
        let to_leaves = tree.flush_debt.lock().allowed_to_leaves(messages.span().bytes());
        let input = FlushInput {
            blocks: &self.blocks,
            tree: tree.id,
            settings,
            version: &before.version,
            messages: &messages,
            retained: &retained,
        };
        let mut flushed = flush_with(input, large, to_leaves)?;
        drop(before);
        self.counters.flushed_entries.add(messages.span().len() as u64);
        self.count_flush(flushed.figures);
        tree.growth.note(flushed.figures.leaves);
        let overdue = std::mem::take(&mut flushed.overdue);
        tree.flush_debt.lock().note(messages.span().bytes(), flushed.figures.moved, overdue);
        tree.install(&self.blocks, Some(&frozen), flushed);
        self.backlog.note_overdue(tree);
        self.buffers.remove(bytes);
        self.monitor.announce_room();
        Ok(bytes)
    }

    pub(crate) fn count_flush(&self, figures: FlushFigures) {
        let counters = &self.counters;
        counters.written_leaves.add(figures.leaves.leaves);
        counters.leaf_splits.add(figures.leaf_splits);
        counters.node_splits.add(figures.node_splits);
        counters.leaf_entries.add(figures.leaves.entries);
        counters.leaf_bytes.add(figures.leaf_bytes);
        counters.slices.add(figures.slices);
        counters.slice_entries.add(figures.slice_entries);
        counters.run_bytes.add(figures.run_bytes);
        counters.large_values.add(figures.large_values);
        counters.large_bytes.add(figures.large_bytes);
    }

    /// The lower bounds of the partitions that replace one: more than one if it has become too large for one
    /// buffer.
    fn divided(&self, tree: &Tree, view: &TreeView, at: usize) -> Result<Vec<Box<[u8]>>, BetreeError> {
        let lower = &view.partitions[at].lower;
        let mut lowers = vec![lower.clone()];
        if tree.settings().buffer_percent == 0 {
            let bounds = leaf_bounds(&view.version, &self.blocks, lower, view.upper_of(at))?;
            if bounds.len() >= PARTITION_LEAVES {
                // A partition begins after every half of a full one's leaves, so that neither half is full at
                // once.
                let half = PARTITION_LEAVES / 2;
                lowers.extend(bounds.into_iter().skip(half - 1).step_by(half));
            }
            return Ok(lowers);
        }
        // Buffers that are flushed before they are full show that memory is short. More buffers would only be
        // smaller.
        let active = &view.partitions[at].active;
        let is_full = active.bytes() >= self.options.partition_bytes(&tree.settings());
        if is_full && view.partitions.len() < PARTITIONS_MAX {
            let mut bounds = upper_bounds(&view.version, &self.blocks, lower, view.upper_of(at), 4)?;
            if let Some(middle) = middle_of(&active.read(), &bounds) {
                lowers.push(bounds.swap_remove(middle));
            }
        }
        Ok(lowers)
    }

    /// Freezes the active buffer of a partition.
    pub(crate) fn freeze(&self, tree: &Tree, view: &TreeView, at: usize) -> Result<Arc<Frozen>, BetreeError> {
        let lowers = self.divided(tree, view, at)?;
        let mut fresh: Vec<(Box<[u8]>, Arc<SharedBuffer>)> =
            lowers.into_iter().map(|lower| (lower, Arc::new(SharedBuffer::new()))).collect();
        let mut installed = tree.installed.lock();
        let _gate = self.gate.close();
        // Only flushes change partitions, and the caller holds the flush lock: the place is still the same.
        let current = tree.view_owned();
        let partition = &current.partitions[at];
        let cut = self.gate.last_lsn();
        let frozen = Arc::new(Frozen { buffer: Arc::clone(&partition.active), cut });
        let mut partitions = current.partitions.clone();
        let flushed_lsn = partition.flushed_lsn;
        let replacements = fresh.drain(..).map(|(lower, active)| {
            Arc::new(Partition { lower, active, frozen: Some(Arc::clone(&frozen)), flushed_lsn })
        });
        partitions.splice(at..=at, replacements);
        tree.set_view(&mut installed, TreeView::new(partitions, Arc::clone(&current.version)));
        Ok(frozen)
    }
}

/// The bound that divides a buffer best. `None` if no bound leaves a fourth on either side, as where all
/// writes arrive at the end.
fn middle_of(buffer: &Buffer, bounds: &[Box<[u8]>]) -> Option<usize> {
    let count = buffer.len();
    let all = || buffer.range(Bound::Unbounded, Bound::Unbounded);
    let (median, _) = all().nth(count / 2)?;
    let after = bounds.partition_point(|bound| **bound <= *median);
    let below = |at: usize| buffer.range(Bound::Unbounded, Bound::Excluded(&*bounds[at])).count();
    [after.checked_sub(1), Some(after)]
        .into_iter()
        .flatten()
        .filter(|at| *at < bounds.len())
        .map(|at| (below(at), at))
        .filter(|(below, _)| (count / 4..=count / 4 * 3).contains(below) && count > 3)
        .min_by_key(|(below, _)| below.abs_diff(count / 2))
        .map(|(_, at)| at)
}

#[cfg(all(test, shuttle))]
mod schedules;

#[cfg(test)]
mod tests {
    use pando_storage::{CommitTimestamp, SnapshotTimestamp};

    use crate::background::buffer_flush::*;
    use crate::range_deletes::DeletedRanges;
    use crate::tree::buffer::{BufferedVersion, DeleteOrMerge, OwnedChange};

    fn buffer(keys: impl Iterator<Item = u8>) -> Buffer {
        let mut buffer = Buffer::default();
        for key in keys {
            let version = BufferedVersion {
                timestamp: CommitTimestamp::new(1),
                change: OwnedChange::Other(DeleteOrMerge::Delete),
            };
            let bounds = PruneBounds { oldest: SnapshotTimestamp::ZERO, ranges: &DeletedRanges::default() };
            buffer.push(&[key], version, bounds);
        }
        buffer
    }

    #[test]
    fn a_buffer_is_divided_near_its_middle_and_not_at_all_where_all_comes_at_one_end() {
        let bounds: Vec<Box<[u8]>> = [10, 20, 30, 40].map(|key| [key].into()).into();
        assert_eq!(middle_of(&buffer(0..50), &bounds), Some(1));
        assert_eq!(middle_of(&buffer(15..34), &bounds), Some(1));
        assert_eq!(middle_of(&buffer(22..39), &bounds), Some(2));
        assert_eq!(middle_of(&buffer(41..90), &bounds), None);
        assert_eq!(middle_of(&buffer(0..9), &bounds), None);
        assert_eq!(middle_of(&buffer(0..50), &[]), None);
        assert_eq!(middle_of(&buffer(0..0), &bounds), None);
    }
}
