//! What all parts of an open store share: the blocks, the log, the trees, the order of commits, and the gate between
//! commits and freezes.
//!
//! # The gate
//! A commit holds the gate's read side from the moment it gets its LSN until its writes are in the buffers. Whoever holds the
//! write side therefore knows: every record up to the last LSN is applied, and no other. Freezing a buffer and choosing the
//! position of a checkpoint take it for microseconds.
//!
//! # Order of locks
//! a tree's `merging`, a tree's `installed`, the gate, a buffer, the publisher. Nothing below the gate waits for a device,
//! but the log where its own memory is full.

use pando_environment::sync::OnceLock;
use pando_environment::sync::atomic::{AtomicBool, AtomicIsize, AtomicU64, AtomicUsize, Ordering};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use pando_environment::sync::ArcSwap;
use pando_environment::sync::{Condvar, Mutex, RwLock};
use pando_environment::{Environment, TaskWaker};
use pando_storage::{Change, CommitTimestamp, Intents, Lsn, SnapshotTimestamp, SpillSpace, TreeId};

use crate::background::buffer_age::Ages;
use crate::background::checkpoint::CheckpointState;
use crate::background::commit_pace::Pace;
use crate::background::hot_set::HotSet;
use crate::background::partial_flush::Idle;
use crate::base::Counter;
use crate::base::LockWaits;
use crate::cache::Blocks;
use crate::error::BetreeError;
use crate::large_commit::LargeCommits;
use crate::log::Log;
use crate::options::Options;
use crate::options::live_options::LiveOptions;
use crate::skeleton::Skeleton;
use crate::transaction::{Publisher, Snapshots};
use crate::tree::buffer::{OwnedChange, SLOT_BYTES};
use crate::tree::tree_state::Tree;
use crate::tree::view::TreeView;

/// The trees by number.
pub(crate) type Trees = hashbrown::HashMap<u32, Arc<Tree>>;

/// A write on its way into the buffers: the key, and what becomes of it.
pub(crate) type KeyWrite<'w> = (&'w [u8], Change<'w>);

/// See the module's head.
pub(crate) struct Core {
    pub(crate) environment: Environment,
    /// Whether background tasks have threads of their own.
    pub(crate) runs_by_itself: bool,
    pub(crate) options: LiveOptions,
    /// Held while a setting is changed.
    pub(crate) changing_settings: Mutex<()>,
    pub(crate) blocks: Blocks,
    /// Absent while the log is being replayed.
    log: OnceLock<Arc<Log>>,
    /// The last record replayed: what the log's end is while there is no log.
    replayed: AtomicU64,
    trees: ArcSwap<Trees>,
    /// Held while trees are created and dropped.
    pub(crate) naming: Mutex<Naming>,
    pub(crate) gate: RwLock<()>,
    pub(crate) publisher: Publisher,
    pub(crate) snapshots: Snapshots,
    pub(crate) intents: Intents,
    /// Where the writes of transactions go that are too much for memory.
    pub(crate) spill: Arc<SpillSpace>,
    pub(crate) large: LargeCommits,
    /// The oldest snapshot, as it was known lately. Never too new.
    horizon: AtomicU64,
    /// Versions that commits have left since, for the next ones to drop once the horizon sees what took their place.
    left: AtomicUsize,
    /// Bytes in all write buffers.
    buffered: AtomicIsize,
    /// Trees that have a partition to be merged.
    pub(crate) full: Mutex<Vec<Arc<Tree>>>,
    /// Trees with the largest buffers, the largest last; looked for anew when it is empty.
    pub(crate) heavy: Mutex<Vec<Arc<Tree>>>,
    /// Trees in which something is late that flushes have paid for.
    pub(crate) behind: Mutex<VecDeque<Arc<Tree>>>,
    /// Trees that may have a range delete to be worked in.
    pub(crate) with_ranges: Mutex<VecDeque<Arc<Tree>>>,
    pub(crate) ages: Ages,
    pub(crate) idle: Idle,
    pub(crate) skeleton: Skeleton,
    /// The time that the longest merge took.
    pub(crate) longest_merge_nanos: AtomicU64,
    /// Told whenever a merge has made room.
    pub(crate) room: Condvar,
    pub(crate) room_lock: Mutex<()>,
    /// How fast commits may go.
    pub(crate) pace: Pace,
    /// Whether commits mostly overwrite what is buffered.
    pub(crate) hot_set: HotSet,
    pub(crate) mergers: OnceLock<Vec<TaskWaker>>,
    pub(crate) checkpointer: OnceLock<TaskWaker>,
    pub(crate) checkpoint: CheckpointState,
    is_closed: AtomicBool,
    pub(crate) counters: Counters,
    pub(crate) waits: LockWaits,
}

/// The names in use, and the number of the next tree.
#[derive(Debug, Default)]
pub(crate) struct Naming {
    pub(crate) by_name: HashMap<String, TreeId>,
    pub(crate) next: u32,
}

/// What the engine has done since it was opened.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) commits: Counter,
    pub(crate) large_commits: Counter,
    pub(crate) large_parts: Counter,
    pub(crate) writes: Counter,
    pub(crate) write_bytes: Counter,
    /// Of commits' records, before they were compressed.
    pub(crate) payload_bytes: Counter,
    pub(crate) gets: Counter,
    pub(crate) scans: Counter,
    pub(crate) scan_rows: Counter,
    pub(crate) conflicts: Counter,
    pub(crate) merges: Counter,
    /// Of versions that were dropped from active buffers because nobody could see them any more.
    pub(crate) swept_bytes: Counter,
    pub(crate) merged_entries: Counter,
    pub(crate) merged_leaves: Counter,
    /// Leaves and inner nodes that were divided, by one for each that was added.
    pub(crate) leaf_splits: Counter,
    pub(crate) node_splits: Counter,
    pub(crate) leaf_entries: Counter,
    pub(crate) leaf_bytes: Counter,
    pub(crate) slices: Counter,
    pub(crate) slice_entries: Counter,
    pub(crate) run_bytes: Counter,
    pub(crate) large_values: Counter,
    pub(crate) large_bytes: Counter,
    pub(crate) loaded_entries: Counter,
    pub(crate) loaded_leaves: Counter,
    pub(crate) loaded_bytes: Counter,
    pub(crate) failed_merges: Counter,
    pub(crate) digests: Counter,
    pub(crate) drains: Counter,
    pub(crate) range_deletes: Counter,
    /// Steps that worked range deletes in, and the leaves and slices that thereby went unread.
    pub(crate) range_steps: Counter,
    pub(crate) unread_leaves: Counter,
    pub(crate) unread_slices: Counter,
    pub(crate) aged_merges: Counter,
    pub(crate) merge_nanos: Counter,
    pub(crate) delays: Counter,
    pub(crate) delay_nanos: Counter,
    pub(crate) stalls: Counter,
    pub(crate) checkpoints: Counter,
    pub(crate) failed_checkpoints: Counter,
    /// Dropped trees that could not be read, so that their room could not be freed.
    pub(crate) failed_drops: Counter,
    pub(crate) returned_bytes: Counter,
    pub(crate) moved_bytes: Counter,
    pub(crate) failed_returns: Counter,
    pub(crate) checkpoint_nanos: Counter,
    pub(crate) replayed_records: Counter,
    pub(crate) replayed_writes: Counter,
}

impl Core {
    pub(crate) fn new(
        environment: Environment,
        options: Options,
        blocks: Blocks,
        spill: Arc<SpillSpace>,
    ) -> Core {
        let waits = LockWaits::new(environment.clock());
        Core {
            runs_by_itself: environment.spawner().runs_by_itself(),
            environment,
            options: LiveOptions::new(options),
            changing_settings: Mutex::new(()),
            blocks,
            log: OnceLock::new(),
            replayed: AtomicU64::new(0),
            trees: ArcSwap::default(),
            naming: Mutex::default(),
            gate: RwLock::new(()),
            publisher: Publisher::default(),
            snapshots: Snapshots::default(),
            intents: Intents::new(),
            spill,
            large: LargeCommits::default(),
            horizon: AtomicU64::new(0),
            left: AtomicUsize::new(0),
            buffered: AtomicIsize::new(0),
            full: Mutex::default(),
            heavy: Mutex::default(),
            behind: Mutex::default(),
            with_ranges: Mutex::default(),
            ages: Ages::default(),
            idle: Idle::default(),
            skeleton: Skeleton::default(),
            longest_merge_nanos: AtomicU64::new(0),
            room: Condvar::new(),
            room_lock: Mutex::new(()),
            pace: Pace::default(),
            hot_set: HotSet::default(),
            mergers: OnceLock::new(),
            checkpointer: OnceLock::new(),
            checkpoint: CheckpointState::default(),
            is_closed: AtomicBool::new(false),
            counters: Counters::default(),
            waits,
        }
    }

    /// The log, once it has been replayed.
    pub(crate) fn log(&self) -> &Arc<Log> {
        self.log.get().expect("the log is there before any caller has the engine")
    }

    pub(crate) fn set_log(&self, log: Arc<Log>) {
        assert!(self.log.set(log).is_ok(), "a store has one log");
    }

    /// The last record that has been given out. Exact for whoever holds the gate's write side.
    pub(crate) fn last_lsn(&self) -> Lsn {
        match self.log.get() {
            Some(log) => log.appended_lsn(),
            None => Lsn::new(self.replayed.load(Ordering::SeqCst)),
        }
    }

    pub(crate) fn set_replayed(&self, lsn: Lsn) {
        self.replayed.store(lsn.get(), Ordering::SeqCst);
    }

    pub(crate) fn check_open(&self) -> Result<(), BetreeError> {
        if self.is_closed.load(Ordering::Acquire) { Err(BetreeError::Closed) } else { Ok(()) }
    }

    /// Closes the engine to callers; false if it was closed already.
    pub(crate) fn set_closed(&self) -> bool {
        !self.is_closed.swap(true, Ordering::AcqRel)
    }

    pub(crate) fn trees(&self) -> arc_swap::Guard<Arc<Trees>> {
        self.trees.load()
    }

    /// All trees, by number.
    pub(crate) fn trees_in_order(&self) -> Vec<Arc<Tree>> {
        let mut trees: Vec<Arc<Tree>> = self.trees.load().values().cloned().collect();
        trees.sort_unstable_by_key(|tree| tree.id);
        trees
    }

    /// Changes the map of trees. The caller holds `naming`, or is the only thread.
    pub(crate) fn change_trees(&self, change: impl FnOnce(&mut Trees)) {
        let mut trees = Trees::clone(&self.trees.load());
        change(&mut trees);
        self.trees.store(Arc::new(trees));
    }

    /// A tree that is not dropped.
    pub(crate) fn live_tree(&self, id: TreeId) -> Result<Arc<Tree>, BetreeError> {
        match self.trees.load().get(&id.get()) {
            Some(tree) if !tree.is_dropped() => Ok(Arc::clone(tree)),
            _ => Err(BetreeError::NoTree(id)),
        }
    }

    /// Whether there is such a tree that is not dropped; less than [`live_tree`](Core::live_tree) takes.
    pub(crate) fn check_live(&self, id: TreeId) -> Result<(), BetreeError> {
        match self.trees.load().get(&id.get()) {
            Some(tree) if !tree.is_dropped() => Ok(()),
            _ => Err(BetreeError::NoTree(id)),
        }
    }

    /// Calls `read` with the newest view of a tree that a snapshot may use.
    pub(crate) fn with_view<T>(
        &self,
        id: TreeId,
        snapshot: SnapshotTimestamp,
        read: impl FnOnce(&Tree, &TreeView) -> Result<T, BetreeError>,
    ) -> Result<T, BetreeError> {
        let trees = self.trees.load();
        match trees.get(&id.get()) {
            Some(tree) if tree.is_usable_at(snapshot) => read(tree, &tree.view()),
            _ => Err(BetreeError::NoTree(id)),
        }
    }

    /// Puts writes of one record into a tree's buffers; they ascend by key. What the tree has already is left out. The caller
    /// holds the gate's read side. The timestamp is the record's LSN, but for parts of a large commit.
    pub(crate) fn apply(
        &self,
        tree: &Arc<Tree>,
        lsn: Lsn,
        timestamp: CommitTimestamp,
        writes: &[KeyWrite<'_>],
    ) {
        // In this order: range deletes that the horizon sees are in the view then.
        let horizon = self.oldest_snapshot();
        let view = tree.view();
        let mut rest = writes;
        let (mut growth, mut written, mut left) = (0, 0, 0);
        while let Some((key, _)) = rest.first() {
            let at = view.partition_of(key);
            let count = match view.upper_of(at) {
                Some(upper) => rest.partition_point(|(key, _)| *key < upper),
                None => rest.len(),
            };
            let (here, after) = rest.split_at(count);
            rest = after;
            let partition = &view.partitions[at];
            if lsn <= partition.persisted {
                continue;
            }
            written += here.iter().map(|(_, change)| change.bytes().len() + SLOT_BYTES).sum::<usize>();
            let owned = here.iter().map(|(key, change)| (*key, OwnedChange::new(*change)));
            let applied = partition.active.apply(lsn, timestamp, (horizon, &view.ranges), owned);
            growth += applied.growth;
            left += applied.left;
            if partition.active.bytes() >= self.full_from(tree) && partition.frozen.is_none() {
                self.ask_for_merge(tree);
            }
        }
        self.left.fetch_add(left, Ordering::Relaxed);
        self.hot_set.note(written as u64, growth as i64);
        let buffered = self.buffered.fetch_add(growth, Ordering::Relaxed) + growth;
        if buffered > self.merge_from() as isize {
            self.wake_mergers();
        }
    }

    /// Has a tree merged that has a full partition.
    pub(crate) fn ask_for_merge(&self, tree: &Arc<Tree>) {
        self.note_full(tree);
        self.wake_mergers();
    }

    /// Lists a tree that has a full partition.
    pub(crate) fn note_full(&self, tree: &Arc<Tree>) {
        let mut full = self.full.lock();
        if !full.iter().any(|other| Arc::ptr_eq(other, tree)) {
            full.push(Arc::clone(tree));
        }
    }

    /// Bytes that all write buffers together may take: a quarter of the cache unless set, twice that while the log is replayed and
    /// nobody reads yet.
    pub(crate) fn buffer_budget(&self) -> usize {
        let budget = self.options.buffer_budget();
        if self.log.get().is_none() { 2 * budget } else { budget }
    }

    /// Bytes from which on a root partition is full. One that is overwritten again and again is not full as long as there is memory.
    pub(crate) fn full_from(&self, tree: &Tree) -> usize {
        let usual = self.options.partition_bytes(&tree.settings());
        if self.hot_set.is_hot() { usual.max(self.merge_from()) } else { usual }
    }

    /// Bytes in buffers from which on the largest are merged, full or not.
    pub(crate) fn merge_from(&self) -> usize {
        let budget = self.buffer_budget();
        if self.hot_set.is_hot() { budget / 4 * 3 } else { budget / 2 }
    }

    pub(crate) fn buffered_bytes(&self) -> usize {
        usize::try_from(self.buffered.load(Ordering::Relaxed)).unwrap_or(0)
    }

    pub(crate) fn remove_buffered(&self, bytes: usize) {
        self.buffered.fetch_sub(bytes as isize, Ordering::Relaxed);
    }

    pub(crate) fn wake_mergers(&self) {
        for merger in self.mergers.get().into_iter().flatten() {
            merger.wake();
        }
    }

    pub(crate) fn wake_checkpointer(&self) {
        if let Some(checkpointer) = self.checkpointer.get() {
            checkpointer.wake();
        }
    }

    /// The oldest snapshot that any transaction, present or future, can have, as of the last look.
    pub(crate) fn oldest_snapshot(&self) -> SnapshotTimestamp {
        SnapshotTimestamp::new(self.horizon.load(Ordering::Acquire))
    }

    /// Versions that commits have left since the last look for the oldest snapshot.
    pub(crate) fn left(&self) -> usize {
        self.left.load(Ordering::Relaxed)
    }

    /// Looks for the oldest snapshot, so that buffers and intents can forget what is older.
    pub(crate) fn refresh_horizon(&self) {
        self.left.store(0, Ordering::Relaxed);
        let oldest = self.snapshots.oldest(&self.publisher);
        self.horizon.fetch_max(oldest.get(), Ordering::AcqRel);
        self.intents.set_oldest_snapshot(oldest);
    }
}
