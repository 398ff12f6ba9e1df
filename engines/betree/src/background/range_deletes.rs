//! Range deletes of commits, and the background work that takes them off again ([`crate::range_deletes::list`]).
//!
//! # Who works them in
//! The mergers, where there is nothing that commits wait for. A tree is listed when a range of it was deleted; once a second the
//! checkpointing task lists those whose range deletes were too young for some snapshot.
//!
//! # A step
//! 1. The first range delete that every snapshot sees is chosen. While the log is being replayed only one that the replay has come to: from
//!    then on no record brings anything older.
//! 2. As long as a buffer over its keys may have something older, that buffer is flushed, which leaves it out.
//! 3. Then nodes and leaves do without it ([`work_in`]), a part of the range in each step, and the range delete is taken off
//!    the keys that are done: after the new version is in place, so that no reader finds old data without it.

use std::sync::Arc;

use bytes::Bytes;
use pando_environment::sync::{MutexGuard, RwLockReadGuard, RwLockWriteGuard};
use pando_storage::{CommitTimestamp, Lsn};

use crate::background::flush::Progress;
use crate::base::KeySpan;
use crate::base::WaitFor;
use crate::core::Core;
use crate::error::BetreeError;
use crate::range_deletes::encoding::DeletedRange;
use crate::tree::flush::FlushInput;
use crate::tree::messages::Messages;
use crate::tree::range_delete_step::{Work, WorkedIn, work_in};
use crate::tree::tree_state::Tree;
use crate::tree::view::TreeView;

/// So many leaves are rewritten in one step at most, about.
const STEP_LEAVES: usize = 8;

/// A side of the gate.
#[allow(dead_code, reason = "they are held, not looked at")]
pub(crate) enum GatePass<'g> {
    Read(RwLockReadGuard<'g, ()>),
    Write(RwLockWriteGuard<'g, ()>),
}

/// What is to be worked in next.
struct Due {
    span: KeySpan,
    time: CommitTimestamp,
}

impl Core {
    /// Passes the gate for a commit. One that deletes ranges is alone behind it, so that lists of ranges grow in the order of the log.
    pub(crate) fn pass_gate(&self, ranges: &[DeletedRange]) -> GatePass<'_> {
        if ranges.is_empty() {
            GatePass::Read(self.waits.read(WaitFor::Gate, &self.gate))
        } else {
            GatePass::Write(self.gate.write())
        }
    }

    /// Enters the ranges of a record into the lists of their trees; those that have it already leave it out. The caller is behind the
    /// gate, or replays.
    pub(crate) fn delete_ranges(&self, ranges: &[DeletedRange], time: CommitTimestamp, lsn: Lsn) {
        let mut trees: Vec<_> = ranges.iter().map(|range| range.tree).collect();
        trees.sort_unstable();
        trees.dedup();
        for id in trees {
            let Some(tree) = self.trees().get(&id.get()).cloned() else { continue };
            let of_tree = ranges.iter().filter(|range| range.tree == id);
            self.counters.range_deletes.add(of_tree.clone().count() as u64);
            tree.delete_ranges(of_tree.map(|range| &range.span), time, lsn);
            self.note_ranges(&tree);
        }
    }

    fn note_ranges(&self, tree: &Arc<Tree>) {
        let mut noted = self.with_ranges.lock();
        if !noted.iter().any(|other| Arc::ptr_eq(other, tree)) {
            noted.push_back(Arc::clone(tree));
        }
    }

    /// Lists the trees that have a range delete which every snapshot sees by now.
    pub(crate) fn look_for_ranges(&self) {
        let mut is_any = false;
        for tree in self.trees().values() {
            if !tree.is_dropped() && self.due(&tree.view()).is_some() {
                self.note_ranges(tree);
                is_any = true;
            }
        }
        if is_any {
            self.wake_mergers();
        }
    }

    /// Works in a part of a range delete, if one is due in a tree that nobody is merging.
    pub(crate) fn work_in_one(&self) -> Result<Progress, BetreeError> {
        while let Some(tree) = self.take_with_ranges() {
            let Some(merging) = tree.try_lock_merging() else { continue };
            if self.work_in(&tree, &merging)? == Progress::Merged {
                drop(merging);
                self.note_ranges(&tree);
                return Ok(Progress::Merged);
            }
        }
        Ok(Progress::Nothing)
    }

    /// Works in all range deletes of a tree that every snapshot sees.
    pub(crate) fn work_in_all(&self, tree: &Arc<Tree>) -> Result<(), BetreeError> {
        loop {
            self.check_open()?;
            let merging = tree.lock_merging();
            if self.work_in(tree, &merging)? == Progress::Nothing {
                return Ok(());
            }
        }
    }

    fn take_with_ranges(&self) -> Option<Arc<Tree>> {
        self.with_ranges.lock().pop_front()
    }

    /// The first range delete of a view that can be worked in.
    fn due(&self, view: &TreeView) -> Option<Due> {
        if view.ranges.is_empty() {
            return None;
        }
        let replayed = CommitTimestamp::new(self.last_lsn().get());
        let oldest = self.snapshots.oldest(&self.publisher);
        view.ranges.stretches().iter().find_map(|stretch| {
            let time = stretch.times.iter().copied().find(|time| oldest.sees(*time) && *time <= replayed)?;
            Some(Due { span: stretch.span.clone(), time })
        })
    }

    fn work_in(&self, tree: &Arc<Tree>, merging: &MutexGuard<'_, ()>) -> Result<Progress, BetreeError> {
        let view = tree.view_to_keep();
        let Some(due) = self.due(&view).filter(|_| !tree.is_dropped()) else { return Ok(Progress::Nothing) };
        let has_older = |at: usize| {
            let partition = &view.partitions[at];
            due.span.overlaps(&partition.lower, view.upper_of(at))
                && partition.first_unmerged().is_some_and(|first| first.get() <= due.time.get())
        };
        if let Some(at) = (0..view.partitions.len()).find(|at| has_older(*at)) {
            self.merge_partition(tree, merging, &view, at)?;
            return Ok(Progress::Merged);
        }
        // Nobody waits for it: after a failure it is left until the next look.
        let reached = self.work_into_nodes(tree, &view, &due);
        let Ok(reached) = reached.inspect_err(|_| self.counters.failed_merges.add(1)) else {
            return Ok(Progress::Nothing);
        };
        let done = KeySpan { start: due.span.start, end: reached.or(due.span.end) };
        tree.change_ranges(|ranges| ranges.without(&done, due.time));
        self.counters.range_steps.add(1);
        Ok(Progress::Merged)
    }

    /// Does a step in the nodes; how far it came, `None` for all.
    fn work_into_nodes(
        &self,
        tree: &Tree,
        before: &TreeView,
        due: &Due,
    ) -> Result<Option<Bytes>, BetreeError> {
        let settings = tree.settings();
        // As of after the snapshots: a range that is deleted meanwhile is newer than all of them.
        let retained = self.snapshots.retained(&self.publisher);
        let retained = retained.with_ranges(Arc::clone(&tree.view().ranges));
        let input = FlushInput {
            blocks: &self.blocks,
            tree: tree.id,
            settings,
            version: &before.version,
            messages: &Messages::default(),
            retained: &retained,
        };
        let budget = STEP_LEAVES * settings.leaf_bytes;
        let WorkedIn { flushed, reached, leaves, slices } =
            work_in(input, Work { span: &due.span, time: due.time, budget })?;
        self.counters.unread_leaves.add(leaves);
        self.counters.unread_slices.add(slices);
        if !flushed.replaced.is_empty() || !flushed.replaced_nodes.is_empty() {
            self.count_flush(flushed.figures);
            tree.install(&self.blocks, None, flushed);
        }
        Ok(reached)
    }
}
