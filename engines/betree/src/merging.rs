//! Which buffer is flushed next, and the steps from a full buffer to a new version.
//!
//! 1. *Choose*: a partition whose last merge failed, else a full one, else (where memory runs short) the largest.
//! 2. *Freeze*: behind the gate, its active buffer becomes the frozen one and an empty one takes new writes. Where the
//!    partition has grown large, several partitions take its place.
//! 3. *Flush* ([`crate::tree::flush`]) into runs and leaves, at leisure: nobody waits but who wants room.
//! 4. *Install* the new version.

use std::sync::Arc;

use pando_environment::Step;
use pando_storage::Lsn;
use parking_lot::MutexGuard;

use crate::core::Core;
use crate::error::BetreeError;
use crate::tree::buffer::SharedBuffer;
use crate::tree::flush::{FlushFigures, FlushInput, flush};
use crate::tree::messages::Messages;
use crate::tree::path::{leaf_bounds, root_bounds};
use crate::tree::tree_state::Tree;
use crate::tree::view::{Frozen, Partition, TreeView};

/// Leaves under one partition of a tree without runs; with more it is divided, so that each merge is short.
const PARTITION_LEAVES: usize = 32;

/// Partitions of a tree that has runs.
const PARTITIONS_MAX: usize = 8;

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
            Ok(Progress::Merged) => Step::Again,
            Ok(Progress::Nothing) => Step::Sleep,
            Err(_) => Step::Wait(RETRY),
        }
    }

    /// Merges one partition, if one is due.
    pub(crate) fn merge_one(&self) -> Result<Progress, BetreeError> {
        if let Some(tree) = self.take_full()
            && let Some(merging) = tree.try_lock_merging()
        {
            let outcome = self.merge_largest(&tree, &merging, self.options.partition_bytes());
            drop(merging);
            if outcome.is_err() || self.has_full_partition(&tree) {
                self.full.lock().push(Arc::clone(&tree));
            }
            return outcome;
        }
        if self.buffered_bytes() <= self.merge_from() {
            return Ok(Progress::Nothing);
        }
        let Some(tree) = self.heaviest_tree() else { return Ok(Progress::Nothing) };
        let Some(merging) = tree.try_lock_merging() else { return Ok(Progress::Nothing) };
        self.merge_largest(&tree, &merging, 1)
    }

    /// Merges all that a tree has buffered of records up to `target`.
    pub(crate) fn merge_up_to(&self, tree: &Tree, target: Lsn) -> Result<(), BetreeError> {
        let merging = tree.lock_merging();
        loop {
            let view = tree.view_to_keep();
            let due =
                |partition: &Arc<Partition>| partition.first_unmerged().is_some_and(|first| first <= target);
            let Some(at) = view.partitions.iter().position(due) else { return Ok(()) };
            self.merge_partition(tree, &merging, &view, at)?;
        }
    }

    /// A tree that has a full partition and that nobody is merging. Those that somebody is at stay in the list.
    fn take_full(&self) -> Option<Arc<Tree>> {
        let mut full = self.full.lock();
        let at = full.iter().position(|tree| tree.try_lock_merging().is_some())?;
        Some(full.swap_remove(at))
    }

    fn has_full_partition(&self, tree: &Tree) -> bool {
        tree.view()
            .partitions
            .iter()
            .any(|partition| partition.active.bytes() >= self.options.partition_bytes())
    }

    fn heaviest_tree(&self) -> Option<Arc<Tree>> {
        let trees = self.trees();
        let largest = |tree: &Arc<Tree>| {
            let view = tree.view();
            let pending = view.partitions.iter().any(|partition| partition.frozen.is_some());
            let active = view.partitions.iter().map(|partition| partition.active.bytes()).max().unwrap_or(0);
            if pending { usize::MAX } else { active }
        };
        trees.values().max_by_key(|tree| largest(tree)).cloned()
    }

    /// Merges a tree's largest buffer of at least so many bytes, or one that is frozen already.
    fn merge_largest(
        &self,
        tree: &Tree,
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
        self.merge_partition(tree, merging, &view, at)?;
        Ok(Progress::Merged)
    }

    fn merge_partition(
        &self,
        tree: &Tree,
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
                self.note_merge(*bytes, time);
            }
            Err(_) => self.counters.failed_merges.add(1),
        }
        self.counters.merge_nanos.add(time.as_nanos() as u64);
        self.set_merge_failure(outcome.as_ref().err());
        outcome.map(|_| ())
    }

    /// The bytes that the buffer had.
    fn try_merge(&self, tree: &Tree, view: &TreeView, at: usize) -> Result<usize, BetreeError> {
        let frozen = match &view.partitions[at].frozen {
            Some(frozen) => Arc::clone(frozen),
            None => self.freeze(tree, view, at)?,
        };
        let before = tree.view_to_keep();
        let retained = self.snapshots.retained(&self.publisher);
        let bytes = frozen.buffer.bytes();
        let messages = Messages::of_buffer(&frozen.buffer.read(), &retained);
        let flushed = flush(FlushInput {
            blocks: &self.blocks,
            tree: tree.id,
            settings: tree.settings,
            version: &before.version,
            messages: &messages,
            retained: &retained,
        })?;
        drop(before);
        self.count_flush(messages.span().len() as u64, flushed.figures);
        tree.growth.note(flushed.figures.leaves);
        tree.install(&self.blocks, &frozen, flushed);
        self.remove_buffered(bytes);
        let _lock = self.room_lock.lock();
        self.room.notify_all();
        Ok(bytes)
    }

    fn count_flush(&self, entries: u64, figures: FlushFigures) {
        let counters = &self.counters;
        counters.merged_entries.add(entries);
        counters.merged_leaves.add(figures.leaves.leaves);
        counters.leaf_entries.add(figures.leaves.entries);
        counters.leaf_bytes.add(figures.leaf_bytes);
        counters.slices.add(figures.slices);
        counters.slice_entries.add(figures.slice_entries);
        counters.run_bytes.add(figures.run_bytes);
    }

    /// Where the partitions begin that take the place of one: more than one if it has become too much for one buffer.
    fn divided(&self, tree: &Tree, view: &TreeView, at: usize) -> Result<Vec<Box<[u8]>>, BetreeError> {
        let lower = &view.partitions[at].lower;
        let mut lowers = vec![lower.clone()];
        if tree.settings.buffer_percent == 0 {
            let bounds = leaf_bounds(&view.version, &self.blocks, lower, view.upper_of(at))?;
            if bounds.len() >= PARTITION_LEAVES {
                // Every second part's worth of leaves begins a partition, so that neither half is full at once.
                let half = PARTITION_LEAVES / 2;
                lowers.extend(bounds.into_iter().skip(half - 1).step_by(half));
            }
            return Ok(lowers);
        }
        // Where buffers are flushed before they are full, memory is short: the fewer they are, the larger are the runs.
        let is_full = view.partitions[at].active.bytes() >= self.options.partition_bytes();
        if is_full && view.partitions.len() < PARTITIONS_MAX {
            let mut bounds = root_bounds(&view.version, &self.blocks, lower, view.upper_of(at))?;
            if bounds.len() >= 4 {
                let middle = bounds.len() / 2;
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
