//! The flush scheduler: chooses the next step of background work. Flush tasks call it over and over.
//!
//! The order of the choice:
//! 1. overdue messages that flushes have paid for ([`super::partial_flush`]);
//! 2. a full partition;
//! 3. where memory runs short, the largest buffer;
//! 4. a buffer whose writes have grown old ([`super::buffer_age`]);
//! 5. range deletes that every snapshot sees ([`super::range_delete_applier`]);
//! 6. where nobody commits: overdue messages, and places that reads had to merge again and again
//!    ([`super::partial_flush`]).

use std::sync::Arc;

use pando_environment::Step;
use pando_environment::sync::MutexGuard;
use pando_storage::ErrorKind;

use super::backlog::Backlog;
use super::buffer_age::AgedBuffers;
use super::buffer_flush::{BufferFlusher, Progress};
use super::flush_monitor::{FlushMonitor, RETRY};
use super::memory_sharing::MemorySharing;
use super::partial_flush::PartialFlushes;
use super::range_delete_applier::RangeDeleteApplier;
use super::write_buffers::WriteBuffers;
use crate::error::BetreeError;
use crate::tree::registry::TreeRegistry;
use crate::tree::tree_state::Tree;
use crate::tree::view::Partition;

/// Trees that are chosen together where memory runs short, because a look through very many trees takes long.
const LARGEST_MAX: usize = 64;

/// See the module's head.
pub(crate) struct FlushScheduler {
    pub(crate) trees: Arc<TreeRegistry>,
    pub(crate) buffers: Arc<WriteBuffers>,
    pub(crate) backlog: Arc<Backlog>,
    pub(crate) monitor: Arc<FlushMonitor>,
    pub(crate) memory: Arc<MemorySharing>,
    pub(crate) flusher: Arc<BufferFlusher>,
    pub(crate) partial_flushes: Arc<PartialFlushes>,
    pub(crate) aged_buffers: Arc<AgedBuffers>,
    pub(crate) range_delete_applier: Arc<RangeDeleteApplier>,
}

impl FlushScheduler {
    /// One step of a flush task.
    pub(crate) fn step(&self) -> Step {
        // A wake-up does not shorten the rest, so a full disk is not asked again at once.
        let rest = self.monitor.rest();
        if !rest.is_zero() {
            return Step::Wait(rest);
        }
        match self.flush_one() {
            Ok(Progress::Made) => {
                // Buffers can fill between two looks of the checkpoint task, which are a second apart.
                self.memory.note_change();
                Step::Again
            }
            Ok(Progress::Nothing) => Step::Sleep,
            Err(_) => Step::Wait(RETRY),
        }
    }

    /// Flushes one partition, or does another step of background work, if one is due.
    pub(crate) fn flush_one(&self) -> Result<Progress, BetreeError> {
        self.buffers.hot_set.look(self.buffers.budget() as u64 / 4);
        // Other flushes are tried even if a partial flush fails.
        if matches!(self.partial_flushes.flush_overdue(), Ok(Progress::Made))
            || self.flush_one_full()? == Progress::Made
        {
            return Ok(Progress::Made);
        }
        if self.buffers.bytes() > self.buffers.flush_from()
            && let Some(tree) = self.take_largest()
            && let Some(flushing) = tree.try_lock_flush()
            && self.flush_largest(&tree, &flushing, 1)? == Progress::Made
        {
            return Ok(Progress::Made);
        }
        if self.aged_buffers.flush_one()? == Progress::Made
            || self.range_delete_applier.apply_one()? == Progress::Made
        {
            return Ok(Progress::Made);
        }
        self.partial_flushes.flush_wanted()
    }

    /// Flushes a full partition, if there is one in a tree that nobody is flushing.
    fn flush_one_full(&self) -> Result<Progress, BetreeError> {
        let listed = self.backlog.full.len();
        for _ in 0..listed {
            let Some(tree) = self.backlog.full.take_idle() else { break };
            if self.monitor.is_set_aside(&tree) {
                self.backlog.full.add(&tree);
                continue;
            }
            let Some(flushing) = tree.try_lock_flush() else {
                self.backlog.full.add(&tree);
                continue;
            };
            let outcome = self.flush_largest(&tree, &flushing, self.buffers.full_from(&tree));
            drop(flushing);
            if outcome.is_err() || self.has_full_partition(&tree) {
                self.backlog.full.add(&tree);
            }
            // Another task may have flushed the tree since it was queued. Then the next one may be full.
            if outcome? == Progress::Made {
                return Ok(Progress::Made);
            }
        }
        Ok(Progress::Nothing)
    }

    fn has_full_partition(&self, tree: &Tree) -> bool {
        let full_from = self.buffers.full_from(tree);
        tree.view().partitions.iter().any(|partition| partition.active.bytes() >= full_from)
    }

    /// A tree with one of the largest buffers. Some are chosen together among all trees.
    fn take_largest(&self) -> Option<Arc<Tree>> {
        while let Some(tree) = self.backlog.largest.take() {
            if !self.monitor.is_set_aside(&tree) {
                return Some(tree);
            }
        }
        let weight = |tree: &Arc<Tree>| {
            let view = tree.view();
            let pending = view.partitions.iter().any(|partition| partition.frozen.is_some());
            let active = view.partitions.iter().map(|partition| partition.active.bytes()).max().unwrap_or(0);
            if pending { usize::MAX } else { active }
        };
        let trees = self.trees.all();
        // Trees under a flush have the largest buffers; without this filter only they would be chosen.
        let idle = trees.values().filter(|tree| tree.try_lock_flush().is_some());
        let idle = idle.filter(|tree| !self.monitor.is_set_aside(tree));
        let mut weighed: Vec<_> = idle.map(|tree| (weight(tree), tree)).collect();
        weighed.sort_unstable_by_key(|(weight, _)| std::cmp::Reverse(*weight));
        let least = weighed.first()?.0 / 2;
        let chosen = weighed.iter().take(LARGEST_MAX).filter(|(weight, _)| *weight > least);
        self.backlog.largest.replace(chosen.map(|(_, tree)| Arc::clone(tree)));
        self.backlog.largest.take()
    }

    /// Flushes a tree's largest buffer of at least `least` bytes, or one that is frozen already.
    fn flush_largest(
        &self,
        tree: &Arc<Tree>,
        flushing: &MutexGuard<'_, ()>,
        least: usize,
    ) -> Result<Progress, BetreeError> {
        let view = tree.view_owned();
        let weight = |partition: &Arc<Partition>| match &partition.frozen {
            Some(_) => usize::MAX,
            None => partition.active.bytes(),
        };
        let heaviest = view.partitions.iter().enumerate().max_by_key(|(_, partition)| weight(partition));
        let Some((at, partition)) = heaviest else { return Ok(Progress::Nothing) };
        if weight(partition) < least {
            return Ok(Progress::Nothing);
        }
        if partition.frozen.is_none() && self.flusher.sweep(tree, partition) {
            return Ok(Progress::Made);
        }
        self.flusher.flush_partition(tree, flushing, &view, at)?;
        Ok(Progress::Made)
    }

    /// Flushes, beside the flush tasks, until fewer bytes than `below` are buffered. On a full disk more
    /// stays buffered, so that the store can be opened, read, and emptied. The same holds for a tree with a
    /// damaged block: its writes stay buffered, so that the other trees can be read and it can be dropped.
    /// The log bounds that, since it holds all of it and has a budget.
    pub(crate) fn make_replay_room(&self, below: usize) -> Result<(), BetreeError> {
        while self.flushable_bytes(below) > below && !self.failed_for_space_lately() {
            match self.flush_one() {
                Ok(Progress::Made) => {}
                Ok(Progress::Nothing) => self.monitor.wait_for_room(),
                Err(error) if error.is_no_space() => {}
                // The tree is set aside now, unless other work than a flush of a buffer met the damage.
                Err(error) if error.kind() == ErrorKind::Corrupt => self.monitor.wait_for_room(),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Buffered bytes that flushes can take. If there are no more than `enough` bytes in all buffers, those
    /// of trees that are set aside count, too.
    fn flushable_bytes(&self, enough: usize) -> usize {
        let buffered = self.buffers.bytes();
        if buffered <= enough { buffered } else { buffered.saturating_sub(self.monitor.bytes_set_aside()) }
    }

    fn failed_for_space_lately(&self) -> bool {
        !self.monitor.rest().is_zero() && self.monitor.failure().is_some_and(|error| error.is_no_space())
    }
}
