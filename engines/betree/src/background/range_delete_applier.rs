//! The range delete applier: background steps after which nodes and leaves hold no version that a range
//! delete covers ([`crate::range_deletes`]).
//!
//! # Appliers
//! Flush tasks apply them, when there is no work that commits wait for. A commit that deletes a range puts
//! the tree on the backlog. Once a second the checkpoint task adds the trees whose range deletes were too
//! young for some snapshot before.
//!
//! # A step
//! 1. The first range delete that every snapshot sees is chosen. During replay it must be one that the replay
//!    has reached, since no later record brings older versions.
//! 2. As long as a buffer over its keys may hold older versions, that buffer is flushed, which leaves them
//!    out.
//! 3. Then a part of the range is removed from nodes and leaves ([`range_delete_step`]). The range delete is
//!    taken off these keys after the new version is in place, so that no reader finds old data without it.

use std::sync::Arc;

use bytes::Bytes;
use pando_environment::sync::MutexGuard;
use pando_storage::{CommitTimestamp, Lsn};

use super::backlog::Backlog;
use super::buffer_flush::{BufferFlusher, Progress};
use crate::base::KeySpan;
use crate::commit_order::{CommitGate, Visibility};
use crate::counters::Counters;
use crate::error::BetreeError;
use crate::range_deletes::encoding::DeletedRange;
use crate::tree::flush::FlushInput;
use crate::tree::messages::Messages;
use crate::tree::range_delete_step::{RangeDeleteStep, RangeDeleteWork, range_delete_step};
use crate::tree::registry::TreeRegistry;
use crate::tree::tree_blocks::Blocks;
use crate::tree::tree_state::Tree;
use crate::tree::view::TreeView;

/// Leaves that one step rewrites at most, about.
const STEP_LEAVES: usize = 8;

/// The range delete to be applied next.
struct Due {
    span: KeySpan,
    time: CommitTimestamp,
}

/// See the module's head.
pub(crate) struct RangeDeleteApplier {
    pub(crate) blocks: Arc<Blocks>,
    pub(crate) trees: Arc<TreeRegistry>,
    pub(crate) gate: Arc<CommitGate>,
    pub(crate) visibility: Arc<Visibility>,
    pub(crate) backlog: Arc<Backlog>,
    pub(crate) flusher: Arc<BufferFlusher>,
    pub(crate) counters: Arc<Counters>,
}

impl RangeDeleteApplier {
    /// Enters the ranges of a record into the lists of their trees. A list that has the record already
    /// ignores it. The caller has passed the gate, or replays.
    pub(crate) fn record(&self, ranges: &[DeletedRange], time: CommitTimestamp, lsn: Lsn) {
        let mut trees: Vec<_> = ranges.iter().map(|range| range.tree).collect();
        trees.sort_unstable();
        trees.dedup();
        for id in trees {
            let Some(tree) = self.trees.get(id) else { continue };
            let of_tree = ranges.iter().filter(|range| range.tree == id);
            self.counters.range_deletes.add(of_tree.clone().count() as u64);
            tree.delete_ranges(of_tree.map(|range| &range.span), time, lsn);
            self.backlog.range_deletes.add(&tree);
        }
    }

    /// Lists the trees that have a range delete which every snapshot sees by now.
    pub(crate) fn look_for_due(&self) {
        let mut is_any = false;
        for tree in self.trees.all().values() {
            if !tree.is_dropped() && self.due(&tree.view()).is_some() {
                self.backlog.range_deletes.add(tree);
                is_any = true;
            }
        }
        if is_any {
            self.backlog.wake_flushers();
        }
    }

    /// Applies a part of a range delete, if one is due in a tree that no thread is flushing.
    pub(crate) fn apply_one(&self) -> Result<Progress, BetreeError> {
        while let Some(tree) = self.backlog.range_deletes.take() {
            let Some(flushing) = tree.try_lock_flush() else { continue };
            if self.apply_step(&tree, &flushing)? == Progress::Made {
                drop(flushing);
                self.backlog.range_deletes.add(&tree);
                return Ok(Progress::Made);
            }
        }
        Ok(Progress::Nothing)
    }

    /// One step towards applying all range deletes of a tree that every snapshot sees.
    pub(crate) fn apply_next(&self, tree: &Arc<Tree>) -> Result<Progress, BetreeError> {
        self.gate.check_open()?;
        let flushing = tree.lock_flush();
        self.apply_step(tree, &flushing)
    }

    /// The first range delete of a view that can be applied.
    fn due(&self, view: &TreeView) -> Option<Due> {
        if view.ranges.is_empty() {
            return None;
        }
        let replayed = CommitTimestamp::new(self.gate.last_lsn().get());
        let oldest = self.visibility.oldest_now();
        view.ranges.fragments().iter().find_map(|fragment| {
            let time = fragment.times.iter().copied().find(|time| oldest.sees(*time) && *time <= replayed)?;
            Some(Due { span: fragment.span.clone(), time })
        })
    }

    fn apply_step(&self, tree: &Arc<Tree>, flushing: &MutexGuard<'_, ()>) -> Result<Progress, BetreeError> {
        let view = tree.view_owned();
        let Some(due) = self.due(&view).filter(|_| !tree.is_dropped()) else { return Ok(Progress::Nothing) };
        let has_older = |at: usize| {
            let partition = &view.partitions[at];
            due.span.overlaps(&partition.lower, view.upper_of(at))
                && partition.first_unflushed().is_some_and(|first| first.get() <= due.time.get())
        };
        if let Some(at) = (0..view.partitions.len()).find(|at| has_older(*at)) {
            self.flusher.flush_partition(tree, flushing, &view, at)?;
            return Ok(Progress::Made);
        }
        // No commit waits for it. After a failure it is left until the next look.
        let reached = self.apply_to_nodes(tree, &view, &due);
        let Ok(reached) = reached.inspect_err(|_| self.counters.failed_flushes.add(1)) else {
            return Ok(Progress::Nothing);
        };
        let done = KeySpan { start: due.span.start, end: reached.or(due.span.end) };
        tree.change_ranges(|ranges| ranges.without(&done, due.time));
        self.counters.range_delete_steps.add(1);
        Ok(Progress::Made)
    }

    /// Does a step in nodes and leaves. Returns how far it came, `None` for all.
    fn apply_to_nodes(
        &self,
        tree: &Tree,
        before: &TreeView,
        due: &Due,
    ) -> Result<Option<Bytes>, BetreeError> {
        let settings = tree.settings();
        // Read after the snapshots: a range that is deleted meanwhile is newer than all of them.
        let retained = self.visibility.retained();
        let retained = retained.with_ranges(Arc::clone(&tree.view().ranges));
        let input = FlushInput {
            blocks: &self.blocks,
            tree: tree.id,
            settings,
            version: &before.version,
            messages: &Messages::default(),
            retained: &retained,
        };
        let bytes_max = STEP_LEAVES * settings.leaf_bytes;
        let RangeDeleteStep { flushed, reached, leaves, slices } =
            range_delete_step(input, RangeDeleteWork { span: &due.span, time: due.time, bytes_max })?;
        self.counters.unread_leaves.add(leaves);
        self.counters.unread_slices.add(slices);
        if !flushed.replaced.is_empty() || !flushed.replaced_nodes.is_empty() {
            self.flusher.count_flush(flushed.figures);
            tree.install(&self.blocks, None, flushed);
        }
        Ok(reached)
    }
}
