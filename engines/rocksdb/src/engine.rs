//! The engine as the contract has it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use pando_environment::{Access, Environment, OpenMode, Step, Task};
use pando_storage::{
    BackupReport, BackupRequest, Begin, BlockingMode, CachedReads, Capabilities, CommitReceipt, Compacting,
    ConflictTime, Durability, DurabilityWaker, Engine, Estimate, EstimateOrigin, History, Intents, Isolation,
    LiveTransaction, Merging, Operation, Persistence, RangeDeletes, ReadClaiming, ReadClaims, Sharing,
    Statistics, StorageError, SyncState, Transaction, TransactionId, TreeDescription, TreeId, TreeOptions,
    Wait,
};
use parking_lot::{Mutex, RwLock};
use rocksdb::{CompactOptions, WriteOptions};

use crate::backup;
use crate::failure::{closed, environment_failed, invalid};
use crate::layout::whole_tree;
use crate::library::Snapshot;
use crate::opening::{self, DATA_FOLDER};
use crate::options::RocksdbOptions;
use crate::store::{Store, Writer};
use crate::transaction::RocksdbSnapshot;

/// A store in RocksDB.
pub struct RocksdbEngine {
    // Dropped first: after that no step of it runs any more.
    syncer: Mutex<Option<Task>>,
    store: Arc<Store>,
    environment: Environment,
}

impl RocksdbEngine {
    /// Opens the store in a folder, which is made where it does not exist. The environment must be the real
    /// one: RocksDB itself reads and writes the operating system's files.
    pub fn open(
        environment: &Environment,
        folder: &Path,
        options: RocksdbOptions,
    ) -> Result<RocksdbEngine, StorageError> {
        let failed = |error| environment_failed("cannot open the store", error);
        environment.files().create_dir(folder).map_err(failed)?;
        let lock = environment.files().lock(folder).map_err(failed)?;
        let opened = opening::open(environment, folder, &options)?;
        let newest = Snapshot::take(&opened.database, opened.database.latest_sequence_number());
        let oldest_snapshot = newest.timestamp();
        let store = Arc::new(Store {
            newest: RwLock::new(Arc::new(newest)),
            live: Mutex::default(),
            trees: RwLock::new(opened.trees),
            writer: Mutex::new(Writer { next_tree: opened.next_tree, families: opened.families }),
            write_options: WriteOptions::default(),
            sync_turn: Mutex::new(opened.mark),
            backup_turn: Mutex::new(()),
            database: opened.database,
            database_options: opened.database_options,
            tuning: opened.tuning,
            cache_bytes: Mutex::new(options.cache_bytes),
            options,
            intents: Intents::new(),
            read_claims: ReadClaims::default(),
            sync_state: SyncState::default(),
            has_dropped: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            clock: Arc::clone(environment.clock()),
            folder: folder.to_owned(),
            _lock: lock,
        });
        store.intents.set_oldest_snapshot(oldest_snapshot);
        store.sync()?;
        let syncer = start_syncer(environment, &store)?;
        Ok(RocksdbEngine { syncer: Mutex::new(Some(syncer)), store, environment: environment.clone() })
    }
}

fn start_syncer(environment: &Environment, store: &Arc<Store>) -> Result<Task, StorageError> {
    let shared = Arc::clone(store);
    let step = move || {
        shared.reclaim_dropped();
        match shared.sync_state.due_in(shared.clock.monotonic()) {
            None => Step::Sleep,
            Some(wait) if !wait.is_zero() => Step::Wait(wait),
            // A failed sync has told everyone and ends the engine's life: there is nothing left to do here.
            Some(_) => shared.sync().map_or(Step::Done, |()| Step::Again),
        }
    };
    let task = environment.spawner().spawn("rocksdb-sync", Box::new(step));
    let task = task.map_err(|error| environment_failed("cannot start the thread that syncs", error))?;
    store.sync_state.set_task(task.waker());
    Ok(task)
}

impl Drop for RocksdbEngine {
    /// Without `close` before, this is a crash: the log is not synced, and all waiters get an error.
    fn drop(&mut self) {
        drop(self.syncer.get_mut().take());
        self.store.sync_state.fail(closed());
    }
}

impl Engine for RocksdbEngine {
    fn name(&self) -> &'static str {
        "rocksdb"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            conflicts: ConflictTime::AtUpdate,
            history: History::WhileHeld,
            durable: Persistence::Durable,
            cached_reads: CachedReads::Told,
            merges: Merging::Blind,
            estimates: EstimateOrigin::FirstEntries,
            range_deletes: RangeDeletes::OneMessage,
            read_claims: ReadClaiming::Ranges,
            sharing: Sharing::Exclusive,
            compacting: Compacting::BesideTransactions,
        }
    }

    fn create_tree(&self, name: &str, options: &TreeOptions) -> Result<TreeId, StorageError> {
        self.store.create_tree(name, self.store.options.tree.with_options(&options.entries)?)
    }

    /// Quick: the space comes back in the background.
    fn drop_tree(&self, tree: TreeId) -> Result<(), StorageError> {
        self.store.drop_tree(tree)
    }

    fn list_trees(&self) -> Result<Vec<TreeDescription>, StorageError> {
        self.store.check_open()?;
        Ok(self.store.trees.read().list())
    }

    fn begin(&self, begin: Begin) -> Result<Box<dyn Transaction>, StorageError> {
        begin.check(self.name(), ReadClaiming::Ranges)?;
        let is_serializable = begin.isolation == Isolation::Serializable;
        let entering = is_serializable.then(|| self.store.read_claims.enter());
        let begun = self.store.begin(begin.at)?;
        let (owner, snapshot) = (TransactionId::new(begun.entered.number), begun.snapshot.timestamp());
        let reads = entering.map(|entering| entering.begin(owner, snapshot));
        Ok(Box::new(RocksdbSnapshot::begin(Arc::clone(&self.store), begun, begin.mode).claiming(reads)))
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
        told.recv().unwrap_or_else(|_| Err(closed()))
    }

    fn checkpoint(&self) -> Result<(), StorageError> {
        self.store.check_open()?;
        self.store.sync()?;
        self.store.flush()
    }

    /// Compacts the trees' ranges down to the last level, a tree at a time.
    fn compact(&self, trees: &[TreeId], operation: &Operation) -> Result<(), StorageError> {
        self.checkpoint()?;
        let store = &self.store;
        let listed: Vec<_> =
            store.trees.read().listed().map(|(id, tree)| (id, Arc::clone(&tree.family))).collect();
        for tree in trees {
            store.trees.read().get(*tree)?;
        }
        let mut options = CompactOptions::default();
        options.set_exclusive_manual_compaction(false);
        for (tree, family) in listed {
            if trees.is_empty() || trees.contains(&tree) {
                operation.check_now()?;
                let range = whole_tree(tree);
                store.database.compact_range_cf_opt(
                    family.handle(),
                    Some(range.lower),
                    Some(range.upper),
                    &options,
                );
            }
        }
        Ok(())
    }

    fn tree_estimate(&self, tree: TreeId) -> Result<Estimate, StorageError> {
        self.store.check_open()?;
        self.store.tree_size(tree, BlockingMode::MayBlock)
    }

    /// Of one tree: about its part of the table files. Of the store: all files of RocksDB, the log too.
    fn bytes_on_disk(&self, tree: Option<TreeId>) -> Result<u64, StorageError> {
        self.store.check_open()?;
        match tree {
            Some(tree) => self.store.tree_file_bytes(tree),
            None => self.folder_bytes(),
        }
    }

    fn statistics(&self) -> Statistics {
        self.store.statistics()
    }

    fn tree_statistics(&self, tree: TreeId) -> Result<Statistics, StorageError> {
        self.store.check_open()?;
        self.store.tree_statistics(tree)
    }

    fn waits(&self) -> Vec<Wait> {
        self.store.waits()
    }

    fn failure(&self) -> Option<StorageError> {
        // A closed store fails those who still wait for a sync.
        let is_closed = self.store.is_closed.load(Ordering::Acquire);
        if is_closed { None } else { self.store.sync_state.check_healthy().err() }
    }

    fn settings(&self) -> Vec<(&'static str, String)> {
        vec![("cache", self.store.cache_bytes().to_string())]
    }

    fn change_settings(&self, changes: &[(&str, &str)]) -> Result<(), StorageError> {
        self.store.check_open()?;
        self.store.change_settings(changes)
    }

    /// A tree stays in its column family, so its options cannot change.
    fn change_tree_options(&self, tree: TreeId, options: &TreeOptions) -> Result<(), StorageError> {
        let settings = self.store.options.tree.with_options(&options.entries)?;
        let have = self.store.trees.read().get(tree)?.family.settings;
        if options.entries.is_empty() || settings == have {
            return Ok(());
        }
        Err(invalid(format!(
            "a tree of the engine `rocksdb` keeps the options that it was made with ({}): copy the data into a new \
             collection, or make the index anew",
            have.family_name()
        )))
    }

    fn live_transactions(&self) -> Vec<LiveTransaction> {
        self.store.live.lock().describe(self.store.clock.monotonic())
    }

    fn backup(&self, request: &BackupRequest<'_>) -> Result<BackupReport, StorageError> {
        self.store.check_open()?;
        backup::make(&self.store, &self.environment, request)
    }

    fn close(&self) -> Result<(), StorageError> {
        let syncer = self.syncer.lock().take();
        drop(syncer);
        self.store.close()
    }
}

impl RocksdbEngine {
    fn folder_bytes(&self) -> Result<u64, StorageError> {
        let (files, data) = (self.environment.files(), self.store.folder.join(DATA_FOLDER));
        let failed = |error| environment_failed("cannot measure the store", error);
        let mut bytes = 0;
        for name in files.list(&data).map_err(failed)? {
            // RocksDB may have removed the file meanwhile.
            let file = files.open(&data.join(name), OpenMode::ReadOnly, Access::Buffered);
            bytes += file.and_then(|file| file.length()).unwrap_or(0);
        }
        Ok(bytes)
    }
}
