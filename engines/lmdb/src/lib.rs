//! The engine `lmdb`: the storage contract over LMDB, a memory-mapped copy-on-write B-tree with one writer.
//!
//! # How it keeps the contract
//! - *Concurrent transactions over one writer.* Writes collect in a private write set and claim their keys
//!   ([`SnapshotTransaction`](pando_storage::SnapshotTransaction)). Only `commit` opens an LMDB writing
//!   transaction, applies the set and commits it.
//! - *Snapshots.* A transaction reads an LMDB reading transaction, which any thread may go on with
//!   (`MDB_NOTLS`).
//! - *Trees* share one table, their numbers before the keys: see `layout`.
//! - *Keys of 1,900 bytes.* LMDB's default limit is 511. Built with `MDB_MAXKEYSIZE=0` (heed's feature
//!   `longer-keys`) the limit is what a page of 4 KB allows: 1,982 bytes. The order stays LMDB's own, and no
//!   key is cut or hashed. Only such a build can read the file.
//! - *Durability.* LMDB runs with `MDB_NOSYNC`, so that no commit waits for the device. Its pages are in the
//!   kernel when it returns, which is all that [`Logged`](Durability::Logged) asks. A task syncs within 100
//!   ms, or at once when a client waits. A pinned snapshot and a copy of the meta pages avert the damage that
//!   `MDB_NOSYNC` alone would risk in a power cut: see `durable_mark`.
//! - *A full map* grows while transactions live: see `map`.
//! - *Free pages* are used again. `compact` writes the file anew without them: see `compaction`.
//! - *Blocking mode.* No call tells whether a page of a map is in memory, so every `CachedOnly` read answers
//!   `WouldBlock`.
//!
//! Two ways were refused. `MDB_NOMETASYNC` keeps the file whole, but makes every commit wait for the device
//! once, with any durability. A sync in each commit waits twice.
//!
//! # Invariants
//! - The pages of the state that the file `durable` marks are never written over.
//! - At most one LMDB writing transaction is open, and it is applying a write set or changing the list of
//!   trees.
//!
//! # Not here
//! Counts of subtrees, which LMDB does not keep: a range is estimated by counting a little
//! ([`emulate`](pando_storage::emulate)).
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]
#![warn(missing_docs)]

mod check;
mod commit;
mod compaction;
mod data_file;
mod durable_mark;
mod failure;
mod layout;
mod live;
mod map;
mod options;
mod page_walk;
mod records;
mod recovery;
mod store;
mod transaction;
mod trees;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;

use pando_environment::{Environment, Step, Task};
use pando_storage::{
    Begin, CachedReads, Capabilities, CheckReport, CheckRequest, CommitReceipt, Compacting, ConflictTime,
    Durability, DurabilityWaker, Engine, ErrorKind, Estimate, EstimateOrigin, History, Intents,
    LiveTransaction, Merging, Operation, Persistence, RangeDeletes, ReadClaiming, Sharing, SnapshotTimestamp,
    Statistics, StorageError, SyncState, Transaction, TreeDescription, TreeId, TreeOptions,
};
use parking_lot::{Condvar, Mutex, RwLock};

pub use crate::options::LmdbOptions;

use crate::compaction::Home;
use crate::durable_mark::Ending;
use crate::failure::environment_failed;
use crate::map::MapGate;
use crate::store::Store;
use crate::transaction::LmdbSnapshot;

/// The one setting that can be changed while the store is open.
const MAP_SIZE: &str = "mapSize";

/// A store in LMDB.
pub struct LmdbEngine {
    // Dropped first: after that no step of it runs any more.
    syncer: Mutex<Option<Task>>,
    store: Arc<Store>,
    home: Home,
}

impl LmdbEngine {
    /// Opens the store in a folder, which is made where it does not exist. The environment must be the real
    /// one: LMDB itself reads and writes the operating system's files.
    pub fn open(
        environment: &Environment,
        folder: &Path,
        options: LmdbOptions,
    ) -> Result<LmdbEngine, StorageError> {
        let failed = |error| environment_failed("cannot open the store", error);
        environment.files().create_dir(folder).map_err(failed)?;
        let lock = environment.files().lock(folder).map_err(failed)?;
        let opened = recovery::open(environment, folder, options)?;
        let pin = opened.file.snapshot("opening the store")?;
        let newest = pin.id() as u64;
        let store = Arc::new(Store {
            pin: Mutex::new(Some(pin)),
            map: MapGate::new(opened.file),
            begins: Mutex::new(()),
            writer: Mutex::new(()),
            sync_turn: Mutex::new(opened.durable),
            live: Mutex::default(),
            ended: Condvar::new(),
            stale_readers: AtomicU64::new(opened.stale_readers),
            trees: RwLock::new(opened.trees),
            intents: Intents::new(),
            sync_state: SyncState::default(),
            newest: AtomicU64::new(newest),
            is_closed: AtomicBool::new(false),
            clock: Arc::clone(environment.clock()),
            _lock: lock,
        });
        store.intents.set_oldest_snapshot(SnapshotTimestamp::new(newest));
        store.sync(Ending::Open)?;
        let syncer = start_syncer(environment, &store)?;
        let home = Home { environment: environment.clone(), folder: folder.to_owned(), options };
        Ok(LmdbEngine { syncer: Mutex::new(Some(syncer)), store, home })
    }
}

fn start_syncer(environment: &Environment, store: &Arc<Store>) -> Result<Task, StorageError> {
    let shared = Arc::clone(store);
    let step = move || match shared.sync_state.due_in(shared.clock.monotonic()) {
        None => Step::Sleep,
        Some(wait) if !wait.is_zero() => Step::Wait(wait),
        // A failed sync has told everyone and ends the engine's life: there is nothing left to do here.
        Some(_) => shared.sync(Ending::Open).map_or(Step::Done, |()| Step::Again),
    };
    let task = environment.spawner().spawn("lmdb-sync", Box::new(step));
    let task = task.map_err(|error| environment_failed("cannot start the thread that syncs", error))?;
    store.sync_state.set_task(task.waker());
    Ok(task)
}

impl Drop for LmdbEngine {
    /// Without `close` before, this is a crash: the file is not synced, and all waiters get an error.
    fn drop(&mut self) {
        drop(self.syncer.get_mut().take());
        self.store.sync_state.fail(failure::closed());
    }
}

/// LMDB's own figures, which it reads from its map.
fn set_figures_of_map(store: &Store, statistics: &mut Statistics) {
    let Ok(file) = store.map.enter() else { return };
    let (info, pages) = (file.env.info(), file.env.unnamed_database_stat());
    drop(file);
    let pages_in_file = info.last_page_number as u64 + 1;
    statistics.set("data.file_bytes", pages_in_file * u64::from(pages.page_size));
    statistics.set("map.bytes", info.map_size as u64);
    statistics.set("map.last_page", info.last_page_number as u64);
    statistics.set("readers.slots", u64::from(info.number_of_readers));
    statistics.set("table.branch_pages", pages.branch_pages as u64);
    statistics.set("table.depth", u64::from(pages.depth));
    statistics.set("table.entries", pages.entries as u64);
    statistics.set("table.leaf_pages", pages.leaf_pages as u64);
    statistics.set("table.overflow_pages", pages.overflow_pages as u64);
}

impl Engine for LmdbEngine {
    fn name(&self) -> &'static str {
        "lmdb"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            conflicts: ConflictTime::AtUpdate,
            history: History::NewestOnly,
            durable: Persistence::Durable,
            cached_reads: CachedReads::NotTold,
            merges: Merging::Blind,
            estimates: EstimateOrigin::FirstEntries,
            range_deletes: RangeDeletes::Emulated,
            read_claims: ReadClaiming::None,
            sharing: Sharing::Exclusive,
            compacting: Compacting::WithoutTransactions,
        }
    }

    fn create_tree(&self, name: &str, options: &TreeOptions) -> Result<TreeId, StorageError> {
        if let Some((option, _)) = options.entries.first() {
            let message = format!("the engine `lmdb` has no option `{option}` for a tree");
            return Err(StorageError::new(ErrorKind::InvalidInput, message));
        }
        self.store.create_tree(name)
    }

    /// Blocks while entries are removed.
    fn drop_tree(&self, tree: TreeId) -> Result<(), StorageError> {
        self.store.drop_tree(tree)
    }

    fn list_trees(&self) -> Result<Vec<TreeDescription>, StorageError> {
        self.store.check_open()?;
        Ok(self.store.trees.read().list())
    }

    fn begin(&self, begin: Begin) -> Result<Box<dyn Transaction>, StorageError> {
        begin.check(self.name(), ReadClaiming::None)?;
        let begun = self.store.begin(begin.at)?;
        Ok(Box::new(LmdbSnapshot::begin(Arc::clone(&self.store), begun, begin.mode)))
    }

    fn intents(&self) -> Option<&Intents> {
        Some(&self.store.intents)
    }

    fn when_durable(&self, receipt: CommitReceipt, durability: Durability, waker: DurabilityWaker) {
        match durability {
            // In the kernel since the commit.
            Durability::None | Durability::Logged => waker(Ok(())),
            Durability::Synced => self.store.sync_state.when_synced(receipt.lsn, waker),
        }
    }

    fn wait_durable(&self, receipt: CommitReceipt, durability: Durability) -> Result<(), StorageError> {
        let (tell, told) = mpsc::sync_channel(1);
        let waker = move |outcome| {
            // The other end waits below until it is told.
            let _told = tell.send(outcome);
        };
        self.when_durable(receipt, durability, Box::new(waker));
        told.recv().unwrap_or_else(|_| Err(failure::closed()))
    }

    fn checkpoint(&self) -> Result<(), StorageError> {
        self.store.check_open()?;
        self.store.clear_stale_readers()?;
        self.store.sync(Ending::Open)
    }

    /// Writes LMDB's file anew, whichever trees are named, if more than a little of it is free. Transactions
    /// wait meanwhile. Fails as [`Busy`](ErrorKind::Busy) where some go on for ten seconds.
    fn compact(&self, trees: &[TreeId], operation: &Operation) -> Result<(), StorageError> {
        for tree in trees {
            self.tree_estimate(*tree)?;
        }
        compaction::compact(&self.store, &self.home, operation)?;
        self.checkpoint()
    }

    fn check(&self, request: &CheckRequest<'_>) -> Result<CheckReport, StorageError> {
        check::check(&self.store, request)
    }

    fn settings(&self) -> Vec<(&'static str, String)> {
        // A store whose map is gone has none.
        self.store.map_bytes().map_or_else(|_| Vec::new(), |bytes| vec![(MAP_SIZE, bytes.to_string())])
    }

    fn change_settings(&self, changes: &[(&str, &str)]) -> Result<(), StorageError> {
        let refused = |message: String| Err(StorageError::new(ErrorKind::InvalidInput, message));
        let mut wanted = None;
        for (name, value) in changes {
            if *name != MAP_SIZE {
                return refused(format!("the engine `lmdb` has no setting `{name}` that can be changed"));
            }
            wanted = options::parse_map_size(value);
            if wanted.is_none() {
                return refused(format!(
                    "`{MAP_SIZE}` cannot be {value:?}: it takes a size from 1MB to 1024GB"
                ));
            }
        }
        wanted.map_or(Ok(()), |bytes| self.store.set_map_bytes(bytes))
    }

    fn tree_estimate(&self, tree: TreeId) -> Result<Estimate, StorageError> {
        self.store.check_open()?;
        self.store.trees.read().size(tree)
    }

    /// Of one tree: its keys and values, as LMDB cannot tell whose its pages are. Of the store: LMDB's file.
    fn bytes_on_disk(&self, tree: Option<TreeId>) -> Result<u64, StorageError> {
        self.store.check_open()?;
        match tree {
            Some(tree) => self.store.trees.read().size(tree).map(|size| size.bytes),
            None => {
                let file = Arc::clone(self.store.map.enter()?.metas.file());
                file.length().map_err(|error| environment_failed("cannot measure LMDB's file", error))
            }
        }
    }

    fn failure(&self) -> Option<StorageError> {
        // A closed store fails those who still wait for a sync.
        let is_closed = self.store.is_closed.load(Ordering::Acquire);
        if is_closed { None } else { self.store.sync_state.check_healthy().err() }
    }

    fn statistics(&self) -> Statistics {
        let store = &self.store;
        let mut statistics = Statistics::new();
        set_figures_of_map(store, &mut statistics);
        statistics.set("commits.newest", store.newest.load(Ordering::Acquire));
        statistics.set("commits.synced", store.sync_state.synced().get());
        statistics.set("intents.entries", store.intents.len() as u64);
        statistics.set("readers.stale_cleared", store.stale_readers.load(Ordering::Relaxed));
        statistics.set("transactions.live", store.live.lock().len() as u64);
        statistics.set("trees.count", store.trees.read().len() as u64);
        statistics
    }

    fn tree_statistics(&self, tree: TreeId) -> Result<Statistics, StorageError> {
        let size = self.tree_estimate(tree)?;
        let mut statistics = Statistics::new();
        statistics.set("content_bytes", size.bytes);
        statistics.set("entries", size.entries);
        Ok(statistics)
    }

    fn live_transactions(&self) -> Vec<LiveTransaction> {
        self.store.live.lock().describe(self.store.clock.monotonic())
    }

    fn close(&self) -> Result<(), StorageError> {
        let syncer = self.syncer.lock().take();
        drop(syncer);
        self.store.close()
    }
}
