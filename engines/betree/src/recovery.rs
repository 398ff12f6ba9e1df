//! Opening a store: from the newest superblock and the log to trees that are as they were after the last surviving commit.
//!
//! 1. The superblock leads to the catalog, and the catalog to the roots. Nothing below a root is read before it is asked for.
//! 2. The log is replayed from the superblock's position, record by record, straight into the buffers, as commits are. A
//!    partition skips what its leaves have. Merging goes on meanwhile, so that memory stays within its budget.
//! 3. There is nothing to undo: what is in the log was committed. Of a large commit ([`crate::large_commit`]) that is so from its end
//!    on: then it is completed; without its end it is passed over.
//!
//! Creating and dropping trees stand in the log between the commits, and the catalog may know of them already: both are
//! idempotent. Writes to a tree that the catalog does not know, and whose creation lies before the replay, were followed by
//! its end: they are passed over.

use std::path::Path;
use std::sync::Arc;

use pando_environment::{Access, Environment, Step, Task, TaskWaker};
use pando_storage::{CommitTimestamp, Lsn, SpillSpace, StorageError, TreeId};

use crate::background::flush::Progress;
use crate::cache::{Blocks, PageCache};
use crate::core::{Core, KeyWrite};
use crate::error::BetreeError;
use crate::format::catalog::{self, StoredState, StoredTree};
use crate::format::record::{
    Kind, read_commit, read_create_tree, read_drop_tree, read_lay_out_tree, read_range_commit, unknown_kind,
};
use crate::large_commit::LargeReplay;
use crate::log::{Log, LogOptions, LogRecord};
use crate::options::Options;
use crate::options::live_options::change_access;
use crate::range_deletes::encoding::DeletedRange;
use crate::space::{BlockStore, OpenedState, SpaceOptions, Superblock};
use crate::tree::node::{Child, LeafChild, NodeSlot, Totals};
use crate::tree::tree_state::Tree;
use crate::tree::view::{Partition, TreeView, Version};

/// The folder of what transactions put out of memory, within the store's.
const SPILL_FOLDER: &str = "spill";

/// An engine's shared part and its background tasks.
pub(crate) struct Opened {
    pub(crate) core: Arc<Core>,
    pub(crate) tasks: Vec<Task>,
}

/// Opens the store in a folder, or makes one.
pub(crate) fn open(
    environment: &Environment,
    folder: &Path,
    options: Options,
) -> Result<Opened, BetreeError> {
    // Directly in any case, so that it is known how reads and writes are to be aligned if that is wanted later.
    let space = SpaceOptions::growing_by(options.growth_bytes, Access::Direct);
    let (store, state) = if BlockStore::exists(environment, folder)? {
        let (store, state) = BlockStore::open(environment, folder, space)?;
        (store, Some(state))
    } else {
        (BlockStore::create(environment, folder, space)?, None)
    };
    change_access(&store, options.direct_io)?;
    let store = Arc::new(store);
    let cache = PageCache::new(options.cache_bytes, options.tree.page_bytes);
    let blocks = Blocks::new(Arc::clone(&store), cache);
    let spill = SpillSpace::open(environment, &folder.join(SPILL_FOLDER), options.transaction_memory())
        .map_err(BetreeError::Spill)?;
    let core = Arc::new(Core::new(environment.clone(), options, blocks, spill));
    let log_options = LogOptions::for_budget(core.options.log_budget_bytes);
    let mut tasks = Vec::new();
    match state {
        None => {
            core.naming.lock().next = 1;
            core.set_log(Log::create(environment, folder, store.store_id(), log_options)?);
            core.start_mergers(&mut tasks)?;
        }
        Some(state) => recover(&core, folder, &state, log_options, &mut tasks)?,
    }
    core.start_checkpointer(&mut tasks)?;
    core.start_scan_helpers(&mut tasks)?;
    Ok(Opened { core, tasks })
}

fn recover(
    core: &Arc<Core>,
    folder: &Path,
    state: &OpenedState,
    log_options: LogOptions,
    tasks: &mut Vec<Task>,
) -> Result<(), BetreeError> {
    let superblock = &state.superblock;
    load_trees(core, superblock)?;
    let end = Lsn::new(superblock.last_commit().get());
    core.set_replayed(Lsn::new(superblock.log_position().lsn().get().saturating_sub(1)));
    core.publisher.start_at(superblock.last_commit());
    core.checkpoint.start_from(end, core.environment.clock().monotonic(), superblock.catalog());
    core.start_mergers(tasks)?;
    let mut large = LargeReplay::new(core, superblock.log_position().lsn());
    let mut replay = |record: LogRecord<'_>| replay(core, &mut large, &record).map_err(StorageError::from);
    let log = Log::open(
        &core.environment,
        folder,
        superblock.store(),
        log_options,
        superblock.log_position(),
        superblock.log_synced_to(),
        &mut replay,
    )?;
    let last = log.appended_lsn().max(end);
    core.checkpoint.add_log_bytes(log.live_bytes());
    if core.counters.replayed_records.get() > 0 {
        core.checkpoint.note_replay();
    }
    core.set_log(log);
    core.publisher.start_at(CommitTimestamp::new(last.get()));
    large.finish(core)?;
    core.refresh_horizon();
    // From here on less may be buffered: the first commits are not to wait for that.
    core.make_replay_room(core.buffer_budget() / 4 * 3)
}

fn load_trees(core: &Core, superblock: &Superblock) -> Result<(), BetreeError> {
    let mut naming = core.naming.lock();
    naming.next = superblock.next_tree().max(1);
    let Some(pointer) = superblock.catalog() else { return Ok(()) };
    let raw = core.blocks.store().read_block(&pointer)?;
    let offset = pointer.address().byte_offset();
    let stored = catalog::decode(&raw).map_err(|source| BetreeError::Format { offset, source })?;
    let mut trees = Vec::new();
    for stored in stored {
        naming.next = naming.next.max(stored.id.get() + 1);
        if stored.state == StoredState::Live {
            naming.by_name.insert(stored.name.clone(), stored.id);
        }
        trees.push(Arc::new(load_tree(core, stored)?));
    }
    core.change_trees(|map| map.extend(trees.into_iter().map(|tree| (tree.id.get(), tree))));
    Ok(())
}

fn load_tree(core: &Core, stored: StoredTree) -> Result<Tree, BetreeError> {
    let settings = core.options.tree.with_options(&stored.options)?;
    let root = stored.root.map(|root| match root.height {
        0 => Child::Leaf(LeafChild {
            directory: root.pointer,
            entries: stored.entries,
            content_bytes: stored.content_bytes,
            reach: stored.reach,
        }),
        height => {
            let totals =
                Totals { entries: stored.entries, content_bytes: stored.content_bytes, reach: stored.reach };
            Child::Inner(Arc::new(NodeSlot::on_disk(root.pointer, height, totals)))
        }
    });
    let partitions = stored.partitions.into_iter();
    let partitions = partitions.map(|stored| Arc::new(Partition::empty(stored.lower, stored.persisted)));
    let view = TreeView::new(partitions.collect(), Arc::new(Version { root }));
    let view = view.into_ranges(Arc::new(stored.ranges));
    let tree = Tree::new(stored.id, stored.name, stored.options, settings, view);
    if stored.state == StoredState::Dropped {
        tree.set_dropped(CommitTimestamp::ZERO);
    }
    Ok(tree)
}

fn replay(core: &Arc<Core>, large: &mut LargeReplay, record: &LogRecord<'_>) -> Result<(), BetreeError> {
    let lsn = record.lsn;
    let damaged = |source| BetreeError::Record { lsn, source };
    core.counters.replayed_records.add(1);
    match Kind::from_number(record.kind.number()) {
        Some(Kind::Commit) => {
            replay_writes(core, lsn, CommitTimestamp::new(lsn.get()), &[], record.payload)?;
        }
        Some(Kind::RangeCommit) => {
            let (ranges, writes) = read_range_commit(record.payload).map_err(damaged)?;
            replay_writes(core, lsn, CommitTimestamp::new(lsn.get()), &ranges, writes)?;
        }
        Some(kind @ (Kind::LargePart | Kind::LargeEnd | Kind::LargeApplied | Kind::LargeWhole)) => {
            large.replay(core, kind, record)?;
        }
        Some(Kind::CreateTree) => {
            let (id, name, options) = read_create_tree(record.payload).map_err(damaged)?;
            core.set_replayed(lsn);
            replay_create(core, id, name, options, lsn)?;
        }
        Some(Kind::DropTree) => {
            let id = read_drop_tree(record.payload).map_err(damaged)?;
            core.set_replayed(lsn);
            replay_drop(core, id, CommitTimestamp::new(lsn.get()));
        }
        Some(Kind::LayOutTree) => {
            let (id, options) = read_lay_out_tree(record.payload).map_err(damaged)?;
            core.set_replayed(lsn);
            if let Some(tree) = core.trees().get(&id.get()) {
                let settings = core.options.tree.with_options(&options)?;
                tree.change_layout(options, settings);
            }
        }
        None => return Err(damaged(unknown_kind(record.kind.number()))),
    }
    if lsn.get() > core.publisher.newest().get() {
        core.publisher.start_at(CommitTimestamp::new(lsn.get()));
    }
    Ok(())
}

/// Applies the ranges and the writes of a record, whose `timestamp` is its LSN, but for a part of a large commit.
pub(crate) fn replay_writes(
    core: &Arc<Core>,
    lsn: Lsn,
    timestamp: CommitTimestamp,
    ranges: &[DeletedRange],
    payload: &[u8],
) -> Result<(), BetreeError> {
    core.make_replay_room(core.buffer_budget())?;
    // As in a commit: whoever takes the gate's write side finds the record applied whole or not at all.
    let _gate = core.gate.read();
    core.set_replayed(lsn);
    core.delete_ranges(ranges, timestamp, lsn);
    core.counters.replayed_writes.add(core.apply_payload(lsn, timestamp, payload)?);
    Ok(())
}

impl Core {
    /// Puts the writes of a record's payload into the buffers of the trees that are there; how many they are. The caller holds
    /// the gate's read side.
    pub(crate) fn apply_payload(
        &self,
        lsn: Lsn,
        timestamp: CommitTimestamp,
        payload: &[u8],
    ) -> Result<u64, BetreeError> {
        let core = self;
        let mut count = 0;
        let mut group: Vec<KeyWrite<'_>> = Vec::new();
        let mut of: Option<TreeId> = None;
        let mut flush = |of: Option<TreeId>, group: &mut Vec<KeyWrite<'_>>| {
            if let Some(tree) = of.and_then(|id| core.trees().get(&id.get()).cloned()) {
                core.apply(&tree, lsn, timestamp, group);
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
}

fn replay_create(
    core: &Core,
    id: TreeId,
    name: String,
    options: Vec<(String, String)>,
    lsn: Lsn,
) -> Result<(), BetreeError> {
    let mut naming = core.naming.lock();
    // A tree below the catalog's next number that the catalog does not have was dropped before the checkpoint.
    let known = id.get() < naming.next;
    naming.next = naming.next.max(id.get() + 1);
    if known {
        return Ok(());
    }
    naming.by_name.insert(name.clone(), id);
    let settings = core.options.tree.with_options(&options)?;
    let tree = Arc::new(Tree::new(id, name, options, settings, TreeView::empty(lsn)));
    core.change_trees(|trees| {
        trees.insert(id.get(), tree);
    });
    Ok(())
}

fn replay_drop(core: &Core, id: TreeId, at: CommitTimestamp) {
    let mut naming = core.naming.lock();
    if let Some(tree) = core.trees().get(&id.get())
        && tree.set_dropped(at)
        && naming.by_name.get(&tree.name) == Some(&id)
    {
        naming.by_name.remove(&tree.name);
    }
}

impl Core {
    /// Merges, where the tasks alone are not fast enough, until less than so many bytes are buffered. On a full disk more is
    /// buffered, so that the store can be opened, read, and emptied: the log holds it, and the log has its budget.
    pub(crate) fn make_replay_room(&self, below: usize) -> Result<(), BetreeError> {
        while self.buffered_bytes() > below && !self.failed_for_space_lately() {
            match self.merge_one() {
                Ok(Progress::Merged) => {}
                Ok(Progress::Nothing) => self.wait_for_merge(),
                Err(error) if error.is_no_space() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn failed_for_space_lately(&self) -> bool {
        self.merge_failure().is_some_and(|error| error.is_no_space())
            && self.last_merge_failure().is_some_and(|at| {
                self.environment.clock().monotonic().since(at) < crate::background::flush::RETRY
            })
    }

    fn start_mergers(self: &Arc<Core>, tasks: &mut Vec<Task>) -> Result<(), BetreeError> {
        let wakers = (0..self.options.merge_threads())
            .map(|number| self.start(&format!("betree-merge-{number}"), Core::merge_step, tasks))
            .collect::<Result<_, _>>()?;
        assert!(self.mergers.set(wakers).is_ok(), "the mergers are started once");
        Ok(())
    }

    /// The tasks that bring what long scans ask for. They sleep as long as there are no long scans.
    fn start_scan_helpers(self: &Arc<Core>, tasks: &mut Vec<Task>) -> Result<(), BetreeError> {
        let wakers = (0..self.options.scan_threads())
            .map(|number| self.start(&format!("betree-scan-{number}"), |core| core.blocks.help_step(), tasks))
            .collect::<Result<_, _>>()?;
        self.blocks.scan_ahead.set_helpers(wakers, self.environment.clock());
        Ok(())
    }

    fn start_checkpointer(self: &Arc<Core>, tasks: &mut Vec<Task>) -> Result<(), BetreeError> {
        let waker = self.start("betree-image", Core::checkpoint_step, tasks)?;
        assert!(self.checkpointer.set(waker).is_ok(), "the checkpointer is started once");
        Ok(())
    }

    /// Starts a background task, which ends with the core.
    fn start(
        self: &Arc<Core>,
        name: &str,
        step: impl Fn(&Core) -> Step + Send + 'static,
        tasks: &mut Vec<Task>,
    ) -> Result<TaskWaker, BetreeError> {
        let core = Arc::downgrade(self);
        let step = move || core.upgrade().map_or(Step::Done, |core| step(&core));
        let task = self.environment.spawner().spawn(name, Box::new(step));
        let task = task.map_err(|error| BetreeError::Threads(Arc::new(error)))?;
        let waker = task.waker();
        tasks.push(task);
        Ok(waker)
    }
}
