//! The write buffers of all trees together: they take the writes of commits, count their bytes, and say from
//! when on they are flushed.
//!
//! Each tree is divided into root partitions by key, and each partition has a buffer of its own. The writes
//! of a commit go to the active buffers of their partitions. A partition is full from a size on; all buffers
//! together have a budget.

use std::sync::Arc;

use pando_environment::sync::atomic::{AtomicIsize, Ordering};
use pando_storage::{CommitTimestamp, Lsn, TreeId};

use super::backlog::Backlog;
use super::hot_set::HotSet;
use crate::commit_order::{CommitGate, Visibility};
use crate::error::BetreeError;
use crate::format::record_payload::read_commit;
use crate::options::live_options::LiveOptions;
use crate::tree::buffer::{OwnedChange, PruneBounds, SLOT_BYTES};
use crate::tree::registry::{KeyWrite, TreeRegistry};
use crate::tree::tree_state::Tree;

/// See the module's head.
pub(crate) struct WriteBuffers {
    options: Arc<LiveOptions>,
    trees: Arc<TreeRegistry>,
    gate: Arc<CommitGate>,
    visibility: Arc<Visibility>,
    backlog: Arc<Backlog>,
    /// Whether commits mostly overwrite what is buffered.
    pub(crate) hot_set: HotSet,
    bytes: AtomicIsize,
}

impl WriteBuffers {
    pub(crate) fn new(
        options: &Arc<LiveOptions>,
        trees: &Arc<TreeRegistry>,
        gate: &Arc<CommitGate>,
        visibility: &Arc<Visibility>,
        backlog: &Arc<Backlog>,
    ) -> WriteBuffers {
        WriteBuffers {
            options: Arc::clone(options),
            trees: Arc::clone(trees),
            gate: Arc::clone(gate),
            visibility: Arc::clone(visibility),
            backlog: Arc::clone(backlog),
            hot_set: HotSet::default(),
            bytes: AtomicIsize::new(0),
        }
    }

    /// Puts writes of one record into a tree's buffers; they ascend by key. Writes that the tree has already
    /// are left out. The caller has passed the gate. The timestamp is the record's LSN, but for parts of a
    /// large commit.
    pub(crate) fn apply(
        &self,
        tree: &Arc<Tree>,
        lsn: Lsn,
        timestamp: CommitTimestamp,
        writes: &[KeyWrite<'_>],
    ) {
        // The oldest snapshot is read before the view, so the view has all range deletes that this snapshot
        // sees.
        let oldest = self.visibility.oldest_known();
        let view = tree.view();
        let bounds = PruneBounds { oldest, ranges: &view.ranges };
        let mut rest = writes;
        let (mut growth, mut written, mut superseded) = (0, 0, 0);
        while let Some((key, _)) = rest.first() {
            let at = view.partition_of(key);
            let count = match view.upper_of(at) {
                Some(upper) => rest.partition_point(|(key, _)| *key < upper),
                None => rest.len(),
            };
            let (here, after) = rest.split_at(count);
            rest = after;
            let partition = &view.partitions[at];
            if lsn <= partition.flushed_lsn {
                continue;
            }
            written += here.iter().map(|(_, change)| change.bytes().len() + SLOT_BYTES).sum::<usize>();
            let owned = here.iter().map(|(key, change)| (*key, OwnedChange::new(*change)));
            let applied = partition.active.apply(lsn, timestamp, bounds, owned);
            growth += applied.growth;
            superseded += applied.superseded;
            if applied.has_long_chain {
                // In this order: missing range deletes are newer than all snapshots then.
                let retained = self.visibility.retained().with_ranges(Arc::clone(&tree.view().ranges));
                growth += partition.active.thin(here.iter().map(|(key, _)| *key), &retained);
            }
            if partition.active.bytes() >= self.full_from(tree) && partition.frozen.is_none() {
                self.backlog.ask_for_flush(tree);
            }
        }
        self.visibility.note_superseded(superseded);
        self.hot_set.note(written as u64, growth as i64);
        let buffered = self.bytes.fetch_add(growth, Ordering::Relaxed) + growth;
        if buffered > self.flush_from() as isize {
            self.backlog.wake_flushers();
        }
    }

    /// Puts the writes of a record's payload into the buffers of the trees that exist. Returns their number.
    /// The caller has passed the gate.
    pub(crate) fn apply_payload(
        &self,
        lsn: Lsn,
        timestamp: CommitTimestamp,
        payload: &[u8],
    ) -> Result<u64, BetreeError> {
        let mut count = 0;
        let mut group: Vec<KeyWrite<'_>> = Vec::new();
        let mut of: Option<TreeId> = None;
        let mut flush = |of: Option<TreeId>, group: &mut Vec<KeyWrite<'_>>| {
            if let Some(tree) = of.and_then(|id| self.trees.get(id)) {
                self.apply(&tree, lsn, timestamp, group);
                count += group.len() as u64;
            }
            group.clear();
        };
        read_commit(payload, |tree, key, change| {
            if of != Some(tree) {
                flush(of, &mut group);
                of = Some(tree);
            }
            group.push((key, change));
            Ok(())
        })
        .map_err(|source: crate::base::FormatError| BetreeError::Record { lsn, source })?;
        flush(of, &mut group);
        Ok(count)
    }

    /// Bytes that all write buffers together may take: a quarter of the cache unless set. It is twice that
    /// while the log is replayed, since nobody reads yet.
    pub(crate) fn budget(&self) -> usize {
        let budget = self.options.buffer_budget();
        if self.gate.is_replaying() { 2 * budget } else { budget }
    }

    /// Bytes from which on a root partition is full. A partition that is overwritten repeatedly is not full
    /// as long as there is memory.
    pub(crate) fn full_from(&self, tree: &Tree) -> usize {
        let usual = self.options.partition_bytes(&tree.settings());
        if self.hot_set.is_hot() { usual.max(self.flush_from()) } else { usual }
    }

    /// Bytes in buffers from which on the largest are flushed, full or not.
    pub(crate) fn flush_from(&self) -> usize {
        let budget = self.budget();
        if self.hot_set.is_hot() { budget / 4 * 3 } else { budget / 2 }
    }

    pub(crate) fn bytes(&self) -> usize {
        usize::try_from(self.bytes.load(Ordering::Relaxed)).unwrap_or(0)
    }

    pub(crate) fn remove(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes as isize, Ordering::Relaxed);
    }
}
