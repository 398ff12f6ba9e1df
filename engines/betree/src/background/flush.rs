//! Which buffer is flushed next, and the steps from a full buffer to a new version.
//!
//! 1. *Choose*: what earlier flushes left behind and have paid for ([`crate::background::partial_flush`]), else a full partition, else (where memory
//!    runs short) the largest, else one whose writes have grown old ([`crate::background::buffer_age`]). If there is nothing of it, range deletes are worked
//!    in ([`crate::background::range_deletes`]), and then what late writes or reads want.
//! 2. *Sweep*: what was overwritten in the buffer goes; if that was enough of it, the buffer is not flushed yet.
//! 3. *Freeze*: behind the gate, its active buffer becomes the frozen one and an empty one takes new writes. A partition that
//!    is full is divided in two: of many small buffers each flush is short, and all together hold as much.
//! 4. *Flush* ([`crate::tree::flush`]) into runs and leaves, at leisure: nobody waits but who wants room.
//! 5. *Install* the new version.

use pando_environment::sync::atomic::Ordering;
use std::ops::Bound;
use std::sync::Arc;

use pando_environment::Step;
use pando_environment::sync::MutexGuard;
use pando_storage::Lsn;

use crate::core::Core;
use crate::error::BetreeError;
use crate::tree::buffer::{Buffer, SharedBuffer};
use crate::tree::flush::{FlushFigures, FlushInput, flush_with};
use crate::tree::large_values::put_out;
use crate::tree::messages::Messages;
use crate::tree::path::{leaf_bounds, upper_bounds};
use crate::tree::tree_state::Tree;
use crate::tree::view::{Frozen, Partition, TreeView};

/// Leaves under one partition of a tree without runs; with more it is divided, so that each merge is short.
const PARTITION_LEAVES: usize = 32;

/// Partitions of a tree that has runs.
const PARTITIONS_MAX: usize = 64;

/// Trees that are chosen at once where memory runs short: looking through all of them takes its time where they are many.
const HEAVY_MAX: usize = 64;

/// A sweep that frees one byte in so many puts the merge off.
const SWEPT_SHARE: usize = 16;

/// How long a merger rests after a failure: a full disk does not get room by being asked at once again.
pub(crate) const RETRY: std::time::Duration = std::time::Duration::from_millis(500);

/// How a look for work ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    Merged,
    /// There is nothing to merge, or others are at it.
    Nothing,
}

impl Core {
    /// One step of a merging task.
    pub(crate) fn merge_step(&self) -> Step {
        if let Some(failed) = self.last_merge_failure() {
            // However often it is woken: a full disk is not asked again at once.
            let rest = RETRY.saturating_sub(self.environment.clock().monotonic().since(failed));
            if !rest.is_zero() {
                return Step::Wait(rest);
            }
        }
        match self.merge_one() {
            Ok(Progress::Merged) => {
                // Buffers fill within a second, between two looks of the checkpointer.
                self.blocks.cache().note_others(self.bytes_beside_pages() as u64);
                Step::Again
            }
            Ok(Progress::Nothing) => Step::Sleep,
            Err(_) => Step::Wait(RETRY),
        }
    }

    /// Merges one partition, or does another step of background work, if one is due.
    pub(crate) fn merge_one(&self) -> Result<Progress, BetreeError> {
        self.hot_set.look(self.buffer_budget() as u64 / 4);
        // A digest that fails keeps no flush from being tried.
        if matches!(self.digest_one(), Ok(Progress::Merged)) || self.merge_one_full()? == Progress::Merged {
            return Ok(Progress::Merged);
        }
        if self.buffered_bytes() > self.merge_from()
            && let Some(tree) = self.take_heavy()
            && let Some(merging) = tree.try_lock_merging()
            && self.merge_largest(&tree, &merging, 1)? == Progress::Merged
        {
            return Ok(Progress::Merged);
        }
        if self.merge_one_aged()? == Progress::Merged || self.work_in_one()? == Progress::Merged {
            return Ok(Progress::Merged);
        }
        self.drain_one()
    }

    /// Merges all that a tree has buffered of records up to `target`.
    pub(crate) fn merge_up_to(&self, tree: &Arc<Tree>, target: Lsn) -> Result<(), BetreeError> {
        let merging = tree.lock_merging();
        loop {
            let view = tree.view_to_keep();
            let due =
                |partition: &Arc<Partition>| partition.first_unmerged().is_some_and(|first| first <= target);
            let Some(at) = view.partitions.iter().position(due) else { return Ok(()) };
            self.merge_partition(tree, &merging, &view, at)?;
        }
    }

    /// Merges a full partition, if there is one in a tree that nobody is merging.
    fn merge_one_full(&self) -> Result<Progress, BetreeError> {
        let listed = self.full.lock().len();
        for _ in 0..listed {
            let Some(tree) = self.take_full() else { break };
            let Some(merging) = tree.try_lock_merging() else {
                self.note_full(&tree);
                continue;
            };
            let outcome = self.merge_largest(&tree, &merging, self.full_from(&tree));
            drop(merging);
            if outcome.is_err() || self.has_full_partition(&tree) {
                self.note_full(&tree);
            }
            // Somebody may have merged it since it was listed: then the next one is full, perhaps.
            if outcome? == Progress::Merged {
                return Ok(Progress::Merged);
            }
        }
        Ok(Progress::Nothing)
    }

    /// A tree that has a full partition and that nobody is merging. Those that somebody is at stay in the list.
    fn take_full(&self) -> Option<Arc<Tree>> {
        let mut full = self.full.lock();
        let at = full.iter().position(|tree| tree.try_lock_merging().is_some())?;
        Some(full.swap_remove(at))
    }

    fn has_full_partition(&self, tree: &Tree) -> bool {
        let full_from = self.full_from(tree);
        tree.view().partitions.iter().any(|partition| partition.active.bytes() >= full_from)
    }

    /// A tree with one of the largest buffers. They are looked for among all trees, a few at once.
    fn take_heavy(&self) -> Option<Arc<Tree>> {
        let mut heavy = self.heavy.lock();
        if heavy.is_empty() {
            let weight = |tree: &Arc<Tree>| {
                let view = tree.view();
                let pending = view.partitions.iter().any(|partition| partition.frozen.is_some());
                let active =
                    view.partitions.iter().map(|partition| partition.active.bytes()).max().unwrap_or(0);
                if pending { usize::MAX } else { active }
            };
            let trees = self.trees();
            // Those that are being merged have the largest buffers, and would be all that is chosen.
            let idle = trees.values().filter(|tree| tree.try_lock_merging().is_some());
            let mut weighed: Vec<_> = idle.map(|tree| (weight(tree), tree)).collect();
            weighed.sort_unstable_by_key(|(weight, _)| std::cmp::Reverse(*weight));
            let least = weighed.first()?.0 / 2;
            let chosen = weighed.iter().take(HEAVY_MAX).filter(|(weight, _)| *weight > least);
            heavy.extend(chosen.map(|(_, tree)| Arc::clone(tree)));
            heavy.reverse();
        }
        heavy.pop()
    }

    /// Merges a tree's largest buffer of at least so many bytes, or one that is frozen already.
    fn merge_largest(
        &self,
        tree: &Arc<Tree>,
        merging: &MutexGuard<'_, ()>,
        least: usize,
    ) -> Result<Progress, BetreeError> {
        let view = tree.view_to_keep();
        let weight = |partition: &Arc<Partition>| match &partition.frozen {
            Some(_) => usize::MAX,
            None => partition.active.bytes(),
        };
        let heaviest = view.partitions.iter().enumerate().max_by_key(|(_, partition)| weight(partition));
        let Some((at, partition)) = heaviest else { return Ok(Progress::Nothing) };
        if weight(partition) < least {
            return Ok(Progress::Nothing);
        }
        if partition.frozen.is_none() && self.sweep(tree, partition) {
            return Ok(Progress::Merged);
        }
        self.merge_partition(tree, merging, &view, at)?;
        Ok(Progress::Merged)
    }

    /// Drops what overwriting has left in an active buffer; whether that makes merging it unnecessary for now.
    fn sweep(&self, tree: &Tree, partition: &Partition) -> bool {
        let before = partition.active.bytes();
        self.refresh_horizon();
        let horizon = self.oldest_snapshot();
        let dropped = partition.active.sweep(horizon, &tree.view().ranges);
        self.counters.swept_bytes.add(dropped as u64);
        self.hot_set.note(0, -(dropped as i64));
        self.remove_buffered(dropped);
        let is_enough = dropped >= before / SWEPT_SHARE;
        if is_enough {
            self.announce_room();
        }
        is_enough
    }

    pub(crate) fn merge_partition(
        &self,
        tree: &Arc<Tree>,
        _merging: &MutexGuard<'_, ()>,
        view: &TreeView,
        at: usize,
    ) -> Result<(), BetreeError> {
        let began = self.environment.clock().monotonic();
        let outcome = self.try_merge(tree, view, at);
        let time = self.environment.clock().monotonic().since(began);
        match &outcome {
            Ok(bytes) => {
                self.counters.merges.add(1);
                self.pace.note_merge(*bytes, time);
            }
            Err(_) => self.counters.failed_merges.add(1),
        }
        self.counters.merge_nanos.add(time.as_nanos() as u64);
        self.longest_merge_nanos.fetch_max(time.as_nanos() as u64, Ordering::Relaxed);
        self.set_merge_failure(outcome.as_ref().err());
        outcome.map(|_| ())
    }

    /// The bytes that the buffer had.
    fn try_merge(&self, tree: &Arc<Tree>, view: &TreeView, at: usize) -> Result<usize, BetreeError> {
        let frozen = match &view.partitions[at].frozen {
            Some(frozen) => Arc::clone(frozen),
            None => self.freeze(tree, view, at)?,
        };
        let before = tree.view_to_keep();
        let retained = self.snapshots.retained(&self.publisher);
        let retained = retained.with_ranges(Arc::clone(&tree.view().ranges));
        let bytes = frozen.buffer.bytes();
        let mut messages = Messages::of_buffer(&frozen.buffer.read(), &retained);
        let _held = self.blocks.accounts.hold(messages.memory_bytes());
        let settings = tree.settings();
        let large = put_out(&mut messages, &self.blocks, tree.id, settings)?;
        let to_leaves = tree.behind.lock().allowed_to_leaves(messages.span().bytes());
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
        self.counters.merged_entries.add(messages.span().len() as u64);
        self.count_flush(flushed.figures);
        tree.growth.note(flushed.figures.leaves);
        let late = std::mem::take(&mut flushed.late);
        tree.behind.lock().note(messages.span().bytes(), flushed.figures.moved, late);
        tree.install(&self.blocks, Some(&frozen), flushed);
        self.note_behind(tree);
        self.remove_buffered(bytes);
        self.announce_room();
        Ok(bytes)
    }

    pub(crate) fn count_flush(&self, figures: FlushFigures) {
        let counters = &self.counters;
        counters.merged_leaves.add(figures.leaves.leaves);
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

    /// Where the partitions begin that take the place of one: more than one if it has become too much for one buffer.
    fn divided(&self, tree: &Tree, view: &TreeView, at: usize) -> Result<Vec<Box<[u8]>>, BetreeError> {
        let lower = &view.partitions[at].lower;
        let mut lowers = vec![lower.clone()];
        if tree.settings().buffer_percent == 0 {
            let bounds = leaf_bounds(&view.version, &self.blocks, lower, view.upper_of(at))?;
            if bounds.len() >= PARTITION_LEAVES {
                // Every second part's worth of leaves begins a partition, so that neither half is full at once.
                let half = PARTITION_LEAVES / 2;
                lowers.extend(bounds.into_iter().skip(half - 1).step_by(half));
            }
            return Ok(lowers);
        }
        // Where buffers are flushed before they are full, memory is short: more of them would only be smaller.
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
    fn freeze(&self, tree: &Tree, view: &TreeView, at: usize) -> Result<Arc<Frozen>, BetreeError> {
        let lowers = self.divided(tree, view, at)?;
        let mut fresh: Vec<(Box<[u8]>, Arc<SharedBuffer>)> =
            lowers.into_iter().map(|lower| (lower, Arc::new(SharedBuffer::new()))).collect();
        let mut installed = tree.installed.lock();
        let _gate = self.gate.write();
        // Only merges change partitions, and this tree's merge is ours: the place is still the same.
        let current = tree.view_to_keep();
        let partition = &current.partitions[at];
        let cut = self.last_lsn();
        let frozen = Arc::new(Frozen { buffer: Arc::clone(&partition.active), cut });
        let mut partitions = current.partitions.clone();
        let persisted = partition.persisted;
        let replacements = fresh.drain(..).map(|(lower, active)| {
            Arc::new(Partition { lower, active, frozen: Some(Arc::clone(&frozen)), persisted })
        });
        partitions.splice(at..=at, replacements);
        tree.set_view(&mut installed, TreeView::new(partitions, Arc::clone(&current.version)));
        Ok(frozen)
    }
}

/// Which of the bounds divides what a buffer holds best; `None` if none leaves a fourth on either side, as where all that comes comes
/// at the end.
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

    use crate::background::flush::*;
    use crate::range_deletes::DeletedRanges;
    use crate::tree::buffer::{NoPut, OwnedChange, Version};

    fn buffer(keys: impl Iterator<Item = u8>) -> Buffer {
        let mut buffer = Buffer::default();
        for key in keys {
            let version =
                Version { timestamp: CommitTimestamp::new(1), change: OwnedChange::Other(NoPut::Delete) };
            buffer.push(&[key], version, SnapshotTimestamp::ZERO, &DeletedRanges::default());
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
