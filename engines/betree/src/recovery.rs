//! Recovery: opens a store, from the newest superblock and the log to trees that hold every surviving commit.
//!
//! 1. The superblock leads to the catalog, and the catalog to the roots. No block below a root is read before
//!    it is needed.
//! 2. The log is replayed from the superblock's position, record by record, straight into the buffers, as
//!    commits are. A partition skips records that have left its buffers already. Flushes go on meanwhile, so
//!    that memory stays within its budget. A tree with a damaged block is not flushed: its writes stay
//!    buffered, and the store opens.
//! 3. There is nothing to undo: the log holds committed writes only. A large commit
//!    ([`crate::commit::large_commit`]) with its end record is completed, one without is skipped.
//!
//! A new store begins with a checkpoint, so that from then on a log that is missing is damage.
//!
//! Records of created and dropped trees stand between the commits, and the catalog may know the trees
//! already: both are idempotent. Writes to a tree that the catalog does not know, and whose creation lies
//! before the replay, are skipped: the tree was dropped later.

pub(crate) mod large_replay;

use std::path::Path;
use std::sync::Arc;

use pando_encryption::EphemeralFiles;
use pando_environment::{Access, Environment, Step, Task, TaskWaker};
use pando_storage::{CommitTimestamp, Lsn, SpillSpace, StorageError, TreeId};

use crate::error::BetreeError;
use crate::format::catalog::{self, StoredState, StoredTree};
use crate::format::record_payload::{
    Kind, read_create_tree, read_drop_tree, read_lay_out_tree, read_range_commit, unknown_kind,
};
use crate::log::{Log, LogOptions, LogRecord};
use crate::options::Options;
use crate::range_deletes::encoding::DeletedRange;
use crate::recovery::large_replay::LargeReplay;
use crate::space::{BlockStore, OpenedState, Shutdown, SpaceOptions, Superblock};
use crate::store::Store;
use crate::store::settings::change_access;
use crate::tree::node::{Child, LeafChild, NodeSlot, Totals};
use crate::tree::tree_blocks::{Blocks, PageCache};
use crate::tree::tree_state::Tree;
use crate::tree::view::{Partition, TreeVersion, TreeView};

/// The folder of spilled transaction writes, within the store's.
const SPILL_FOLDER: &str = "spill";

/// An open store and its background tasks.
pub(crate) struct Opened {
    pub(crate) store: Arc<Store>,
    pub(crate) tasks: Vec<Task>,
}

/// Opens the store in a folder, or makes one.
pub(crate) fn open(
    environment: &Environment,
    folder: &Path,
    options: Options,
) -> Result<Opened, BetreeError> {
    // With direct access in any case, so that the alignment is known if direct access is wanted later.
    let space = SpaceOptions {
        encryption: options.encryption.clone(),
        ..SpaceOptions::growing_by(options.growth_bytes, Access::Direct)
    };
    let (block_store, state) = if BlockStore::exists(environment, folder)? {
        let (block_store, state) = BlockStore::open(environment, folder, space)?;
        (block_store, Some(state))
    } else {
        (BlockStore::create(environment, folder, space)?, None)
    };
    change_access(&block_store, options.direct_io)?;
    let block_store = Arc::new(block_store);
    let cache = PageCache::new(options.cache_bytes, options.tree.page_bytes);
    let blocks = Blocks::new(Arc::clone(&block_store), cache);
    let temporary = match block_store.vault() {
        None => environment.clone(),
        Some(_) => EphemeralFiles::environment(environment),
    };
    let spill = SpillSpace::open(&temporary, &folder.join(SPILL_FOLDER), options.transaction_memory())
        .map_err(BetreeError::Spill)?;
    let store = Arc::new(Store::new(environment.clone(), options, blocks, spill));
    let log_options = LogOptions::for_budget(store.options.log_budget_bytes, block_store.vault());
    let mut tasks = Tasks { store: &store, tasks: Vec::new() };
    match state {
        None => {
            store.trees.lock_naming().next = 1;
            store.gate.set_log(Log::create(environment, folder, block_store.store_id(), log_options)?);
            tasks.start_flushers()?;
            // From now on a superblock says that there is a log. Without it, a store whose log was lost
            // before the first checkpoint would open as an empty one.
            store.checkpointer.checkpoint(Shutdown::Running)?;
        }
        Some(state) => recover(&store, folder, &state, log_options, &mut tasks)?,
    }
    if store.key_rewriting.begin() {
        tasks.start("betree-keys", |store| store.key_rewriting.step())?;
    }
    tasks.start_checkpointer()?;
    tasks.start_scan_helpers()?;
    let tasks = tasks.tasks;
    Ok(Opened { store, tasks })
}

fn recover(
    store: &Arc<Store>,
    folder: &Path,
    state: &OpenedState,
    log_options: LogOptions,
    tasks: &mut Tasks<'_>,
) -> Result<(), BetreeError> {
    let superblock = &state.superblock;
    load_trees(store, superblock)?;
    let end = Lsn::new(superblock.last_commit().get());
    store.gate.set_replayed(Lsn::new(superblock.log_position().lsn().get().saturating_sub(1)));
    store.visibility.publisher.start_at(superblock.last_commit());
    store.checkpointer.state.start_from(end, store.environment.clock().monotonic(), superblock.catalog());
    store.monitor.begin_opening();
    tasks.start_flushers()?;
    let mut large = LargeReplay::new(store, superblock.log_position().lsn());
    let mut replay = |record: LogRecord<'_>| replay(store, &mut large, &record).map_err(StorageError::from);
    let log = Log::open(
        &store.environment,
        folder,
        superblock.store(),
        log_options,
        superblock.log_position(),
        superblock.log_synced_to(),
        &mut replay,
    )?;
    let last = log.appended_lsn().max(end);
    store.checkpointer.state.add_log_bytes(log.live_bytes());
    if store.counters.replayed_records.get() > 0 {
        store.checkpointer.state.note_replay();
    }
    store.gate.set_log(log);
    store.visibility.publisher.start_at(CommitTimestamp::new(last.get()));
    large.finish(store)?;
    store.visibility.refresh();
    // After the replay the budget is smaller, and the first commits must not wait for that.
    store.scheduler.make_replay_room(store.buffers.budget() / 4 * 3)?;
    store.monitor.end_opening();
    Ok(())
}

fn load_trees(store: &Store, superblock: &Superblock) -> Result<(), BetreeError> {
    let mut naming = store.trees.lock_naming();
    naming.next = superblock.next_tree().max(1);
    let Some(pointer) = superblock.catalog() else { return Ok(()) };
    let raw = store.blocks.store().read_block(&pointer)?;
    naming.catalog_bytes = raw.len() as u64;
    let offset = pointer.address().byte_offset();
    let stored = catalog::decode(&raw).map_err(|source| BetreeError::Format { offset, source })?;
    let mut trees = Vec::new();
    for stored in stored {
        naming.next = naming.next.max(stored.id.get() + 1);
        if stored.state == StoredState::Live {
            naming.by_name.insert(stored.name.clone(), stored.id);
        }
        trees.push(Arc::new(load_tree(store, stored)?));
    }
    store.trees.add(&mut naming, trees);
    Ok(())
}

fn load_tree(store: &Store, stored: StoredTree) -> Result<Tree, BetreeError> {
    let settings = store.options.tree.with_options(&stored.options)?;
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
    let view = TreeView::new(partitions.collect(), Arc::new(TreeVersion { root }));
    let view = view.into_ranges(Arc::new(stored.ranges));
    let tree = Tree::new(stored.id, stored.name, stored.options, settings, view);
    if stored.state == StoredState::Dropped {
        tree.set_dropped(CommitTimestamp::ZERO);
    }
    Ok(tree)
}

fn replay(store: &Arc<Store>, large: &mut LargeReplay, record: &LogRecord<'_>) -> Result<(), BetreeError> {
    let lsn = record.lsn;
    let damaged = |source| BetreeError::Record { lsn, source };
    store.counters.replayed_records.add(1);
    match Kind::from_number(record.kind.number()) {
        Some(Kind::Commit) => {
            replay_writes(store, lsn, CommitTimestamp::new(lsn.get()), &[], record.payload)?;
        }
        Some(Kind::RangeCommit) => {
            let (ranges, writes) = read_range_commit(record.payload).map_err(damaged)?;
            replay_writes(store, lsn, CommitTimestamp::new(lsn.get()), &ranges, writes)?;
        }
        Some(kind @ (Kind::LargePart | Kind::LargeEnd | Kind::LargeApplied | Kind::LargeWhole)) => {
            large.replay(store, kind, record)?;
        }
        Some(Kind::CreateTree) => {
            let (id, name, options) = read_create_tree(record.payload).map_err(damaged)?;
            store.gate.set_replayed(lsn);
            replay_create(store, id, name, options, lsn)?;
        }
        Some(Kind::DropTree) => {
            let id = read_drop_tree(record.payload).map_err(damaged)?;
            store.gate.set_replayed(lsn);
            replay_drop(store, id, CommitTimestamp::new(lsn.get()));
        }
        Some(Kind::LayOutTree) => {
            let (id, options) = read_lay_out_tree(record.payload).map_err(damaged)?;
            store.gate.set_replayed(lsn);
            if let Some(tree) = store.trees.all().get(&id.get()) {
                let settings = store.options.tree.with_options(&options)?;
                tree.change_layout(options, settings);
            }
        }
        None => return Err(damaged(unknown_kind(record.kind.number()))),
    }
    if lsn.get() > store.visibility.publisher.newest().get() {
        store.visibility.publisher.start_at(CommitTimestamp::new(lsn.get()));
    }
    Ok(())
}

/// Applies the ranges and the writes of a record, whose `timestamp` is its LSN, but for a part of a large
/// commit.
pub(crate) fn replay_writes(
    store: &Arc<Store>,
    lsn: Lsn,
    timestamp: CommitTimestamp,
    ranges: &[DeletedRange],
    payload: &[u8],
) -> Result<(), BetreeError> {
    store.scheduler.make_replay_room(store.buffers.budget())?;
    // As in a commit: a holder of the gate's write side finds the record applied whole or not at all.
    let _gate = store.gate.enter();
    store.gate.set_replayed(lsn);
    store.range_delete_applier.record(ranges, timestamp, lsn);
    store.counters.replayed_writes.add(store.buffers.apply_payload(lsn, timestamp, payload)?);
    Ok(())
}

fn replay_create(
    store: &Store,
    id: TreeId,
    name: String,
    options: Vec<(String, String)>,
    lsn: Lsn,
) -> Result<(), BetreeError> {
    let mut naming = store.trees.lock_naming();
    // A tree below the catalog's next number that the catalog does not have was dropped before the
    // checkpoint.
    let known = id.get() < naming.next;
    naming.next = naming.next.max(id.get() + 1);
    if known {
        return Ok(());
    }
    naming.by_name.insert(name.clone(), id);
    let settings = store.options.tree.with_options(&options)?;
    let tree = Arc::new(Tree::new(id, name, options, settings, TreeView::empty(lsn)));
    store.trees.add(&mut naming, [tree]);
    Ok(())
}

fn replay_drop(store: &Store, id: TreeId, at: CommitTimestamp) {
    let mut naming = store.trees.lock_naming();
    if let Some(tree) = store.trees.all().get(&id.get())
        && tree.set_dropped(at)
        && naming.by_name.get(&tree.name) == Some(&id)
    {
        naming.by_name.remove(&tree.name);
    }
}

/// The background tasks of a store. Each ends with the store.
struct Tasks<'s> {
    store: &'s Arc<Store>,
    tasks: Vec<Task>,
}

impl Tasks<'_> {
    fn start_flushers(&mut self) -> Result<(), BetreeError> {
        let count = self.store.options.merge_threads();
        let names = (0..count).map(|number| format!("betree-flush-{number}"));
        let wakers =
            names.map(|name| self.start(&name, |store| store.scheduler.step())).collect::<Result<_, _>>()?;
        self.store.backlog.set_flushers(wakers);
        Ok(())
    }

    /// The tasks that read ahead for long scans. They sleep while there are none.
    fn start_scan_helpers(&mut self) -> Result<(), BetreeError> {
        let count = self.store.options.scan_threads();
        let names = (0..count).map(|number| format!("betree-scan-{number}"));
        let wakers = names
            .map(|name| self.start(&name, |store| store.blocks.prefetch_step()))
            .collect::<Result<_, _>>()?;
        self.store.blocks.scan_prefetch.set_workers(wakers, self.store.environment.clock());
        Ok(())
    }

    fn start_checkpointer(&mut self) -> Result<(), BetreeError> {
        let waker = self.start("betree-ckpt", |store| store.maintenance.step())?;
        self.store.backlog.set_checkpointer(waker);
        Ok(())
    }

    fn start(
        &mut self,
        name: &str,
        step: impl Fn(&Store) -> Step + Send + 'static,
    ) -> Result<TaskWaker, BetreeError> {
        let store = Arc::downgrade(self.store);
        let step = move || store.upgrade().map_or(Step::Done, |store| step(&store));
        let task = self.store.environment.spawner().spawn(name, Box::new(step));
        let task = task.map_err(|error| BetreeError::Threads(Arc::new(error)))?;
        let waker = task.waker();
        self.tasks.push(task);
        Ok(waker)
    }
}
