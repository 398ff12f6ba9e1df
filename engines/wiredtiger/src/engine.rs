//! The engine as the contract knows it: opening, the methods of [`Engine`], background tasks.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use pando_environment::{Environment, Step, Task};
use pando_storage::{
    BackupReport, BackupRequest, Begin, CachedReads, Capabilities, CheckReport, CheckRequest, Claims,
    CommitReceipt, Compacting, ConflictTime, Durability, DurabilityWaker, Engine, ErrorKind, Estimate,
    EstimateOrigin, History, Intents, Isolation, LiveTransaction, LoadDurability, Merging, Operation,
    Persistence, RangeDeletes, ReadClaiming, ReadClaims, Sharing, SnapshotTimestamp, SnapshotTransaction,
    SortedEntries, SpillingWrites, Statistics, StorageError, SyncState, Transaction, TransactionId,
    TreeDescription, TreeId, TreeOptions,
};
use parking_lot::{Mutex, RwLock};

use crate::failure::{closed, environment_failed, library_failed, refused};
use crate::layout::FOLDER;
use crate::library::c_text;
use crate::options::{TableType, WiredTigerOptions};
use crate::session_pool::SessionPool;
use crate::snapshot::WiredTigerSnapshot;
use crate::store::Store;
use crate::visibility::Visibility;
use crate::{backup, check, figures, load, records};

/// How often sizes are saved, and how soon a table that is in use is tried again.
const HOUSEKEEPING_PERIOD: Duration = Duration::from_secs(1);
/// How soon a table that could not be dropped is tried again.
const DROP_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// A store in WiredTiger.
pub struct WiredTigerEngine {
    // Dropped first: after that no step of them runs any more.
    tasks: Mutex<Vec<Task>>,
    store: Arc<Store>,
    folder: PathBuf,
    environment: Environment,
}

impl WiredTigerEngine {
    /// Opens the store in a folder, which is made where it does not exist. The environment must be the real
    /// one: WiredTiger itself reads and writes the operating system's files.
    pub fn open(
        environment: &Environment,
        folder: &Path,
        options: WiredTigerOptions,
    ) -> Result<WiredTigerEngine, StorageError> {
        let failed = |error| environment_failed("cannot open the store", error);
        let files = environment.files();
        files.create_dir(folder).map_err(failed)?;
        let lock = files.lock(folder).map_err(failed)?;
        let folder = folder.join(FOLDER);
        files.create_dir(&folder).map_err(failed)?;
        let opened = records::open(environment, &folder, &options)?;
        let newest = opened.number_limit;
        let store = Arc::new(Store {
            sessions: SessionPool::new(opened.connection, options.sessions_max),
            gate: RwLock::new(()),
            schema: Mutex::new(opened.numbers),
            backup_turn: Mutex::new(()),
            sync_turn: Mutex::new(()),
            order: Mutex::new(()),
            live: Mutex::default(),
            trees: RwLock::new(opened.trees),
            intents: Intents::new(),
            read_claims: ReadClaims::default(),
            sync_state: SyncState::default(),
            visibility: Visibility::default(),
            newest: AtomicU64::new(newest),
            number_limit: AtomicU64::new(newest),
            is_closed: AtomicBool::new(false),
            options: Mutex::new(options),
            housekeeper: Mutex::new(None),
            clock: Arc::clone(environment.clock()),
            _lock: lock,
        });
        store.intents.set_oldest_snapshot(SnapshotTimestamp::new(newest));
        store.sync()?;
        let tasks = vec![start_syncer(environment, &store)?, start_housekeeper(environment, &store)?];
        Ok(WiredTigerEngine { tasks: Mutex::new(tasks), store, folder, environment: environment.clone() })
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    fn stop_tasks(&self) {
        let tasks = std::mem::take(&mut *self.tasks.lock());
        drop(tasks);
    }
}

fn start_syncer(environment: &Environment, store: &Arc<Store>) -> Result<Task, StorageError> {
    let shared = Arc::clone(store);
    let step = move || match shared.sync_state.due_in(shared.clock.monotonic()) {
        None => Step::Sleep,
        Some(wait) if !wait.is_zero() => Step::Wait(wait),
        // A failed sync has told everyone and ends the engine's life: there is nothing left to do here.
        Some(_) => shared.sync().map_or(Step::Done, |()| Step::Again),
    };
    let task = environment.spawner().spawn("wt-sync", Box::new(step));
    let task = task.map_err(|error| environment_failed("cannot start the thread that syncs", error))?;
    store.sync_state.set_task(task.waker());
    Ok(task)
}

/// Drops the tables of dropped trees, and saves sizes.
fn start_housekeeper(environment: &Environment, store: &Arc<Store>) -> Result<Task, StorageError> {
    let shared = Arc::clone(store);
    let mut saved = shared.clock.monotonic();
    let step = move || {
        let now = shared.clock.monotonic();
        if now.since(saved) >= HOUSEKEEPING_PERIOD {
            saved = now;
            // Sizes are estimates: where they cannot be saved now, the next second tries again.
            let _saved = shared.save_sizes();
        }
        match shared.drop_tables() {
            Ok(true) => Step::Wait(HOUSEKEEPING_PERIOD),
            Ok(false) => Step::Wait(DROP_AGAIN_AFTER),
            Err(error) if error.kind() == ErrorKind::Closed => Step::Done,
            Err(_) => Step::Wait(HOUSEKEEPING_PERIOD),
        }
    };
    let task = environment.spawner().spawn("wt-trees", Box::new(step));
    let task =
        task.map_err(|error| environment_failed("cannot start the thread that drops tables", error))?;
    *store.housekeeper.lock() = Some(task.waker());
    Ok(task)
}

impl Drop for WiredTigerEngine {
    /// Without `close` before, this counts as a crash: all waiters get an error. WiredTiger itself can only
    /// be closed cleanly within a living process.
    fn drop(&mut self) {
        self.stop_tasks();
        let _gate = self.store.gate.write();
        self.store.is_closed.store(true, Ordering::Release);
        self.store.sync_state.fail(closed());
        self.store.shut();
    }
}

impl Engine for WiredTigerEngine {
    fn name(&self) -> &'static str {
        "wiredtiger"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            conflicts: ConflictTime::AtUpdate,
            history: History::WhileHeld,
            durable: Persistence::Durable,
            cached_reads: CachedReads::NotTold,
            merges: Merging::Blind,
            estimates: EstimateOrigin::FirstEntries,
            range_deletes: match self.store.options.lock().collections.table_type {
                TableType::Btree => RangeDeletes::OneMessage,
                TableType::Lsm => RangeDeletes::Emulated,
            },
            read_claims: ReadClaiming::Ranges,
            sharing: Sharing::Exclusive,
            compacting: Compacting::BesideTransactions,
        }
    }

    fn create_tree(&self, name: &str, options: &TreeOptions) -> Result<TreeId, StorageError> {
        self.store.create_tree(name, &options.entries)
    }

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
        let (owner, timestamp) = (TransactionId::new(begun.number), begun.held.timestamp);
        let claims = Claims::new(owner, timestamp);
        let reads = entering.map(|entering| entering.begin(owner, timestamp));
        let snapshot = WiredTigerSnapshot {
            store: Arc::clone(&self.store),
            number: begun.number,
            timestamp,
            writes_shown: begun.writes_shown,
            held: Some(begun.held),
        };
        let writes = SpillingWrites::default();
        Ok(Box::new(SnapshotTransaction::new(snapshot, begin.mode, claims, writes).claiming(reads)))
    }

    fn intents(&self) -> Option<&Intents> {
        Some(&self.store.intents)
    }

    fn when_durable(&self, receipt: CommitReceipt, durability: Durability, waker: DurabilityWaker) {
        match durability {
            // In the kernel since the commit, if that asked for it.
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
        self.store.checkpoint()
    }

    /// WiredTiger moves the pages at the end of each file to free space before them, and cuts the file. An
    /// LSM tree merges its chunks, unless a transaction lives: then that is left to the background.
    fn compact(&self, trees: &[TreeId], operation: &Operation) -> Result<(), StorageError> {
        self.store.check_open()?;
        let tables: Vec<_> = match trees {
            [] => self.store.trees.read().listed().cloned().collect(),
            some => some.iter().map(|tree| self.store.trees.read().table(*tree)).collect::<Result<_, _>>()?,
        };
        self.store.checkpoint()?;
        for table in tables {
            operation.check_now()?;
            let config = match table.table_type {
                TableType::Btree => c"timeout=0",
                // The library waits until the chunks are merged, which a snapshot keeps them from.
                TableType::Lsm if self.store.live.lock().len() > 0 => continue,
                TableType::Lsm => c"timeout=60",
            };
            self.store.with_session("compacting", |session| match session.compact(&table.uri, config) {
                // A checkpoint or a reader is in the way, or the time is over: what was made stays.
                Err(error) if error.is_unfinished() => Ok(()),
                outcome => outcome,
            })?;
        }
        self.store.checkpoint()
    }

    fn tree_estimate(&self, tree: TreeId) -> Result<Estimate, StorageError> {
        self.store.check_open()?;
        Ok(self.store.trees.read().table(tree)?.size())
    }

    fn bytes_on_disk(&self, tree: Option<TreeId>) -> Result<u64, StorageError> {
        match tree {
            Some(tree) => figures::tree_bytes(&self.store, tree),
            None => {
                self.store.check_open()?;
                figures::store_bytes(&self.environment, &self.folder)
            }
        }
    }

    fn failure(&self) -> Option<StorageError> {
        // A closed store fails those who still wait for a sync.
        let is_closed = self.store.is_closed.load(Ordering::Acquire);
        if is_closed { None } else { self.store.sync_state.check_healthy().err() }
    }

    fn statistics(&self) -> Statistics {
        let mut statistics = figures::statistics(&self.store);
        // A file that was removed meanwhile is no reason to have no figures.
        if let Ok(bytes) = figures::store_bytes(&self.environment, &self.folder) {
            statistics.set("data.file_bytes", bytes);
        }
        statistics
    }

    fn tree_statistics(&self, tree: TreeId) -> Result<Statistics, StorageError> {
        figures::tree_statistics(&self.store, tree)
    }

    fn settings(&self) -> Vec<(&'static str, String)> {
        let options = self.store.options.lock();
        vec![
            ("cache", options.cache_bytes.to_string()),
            ("checkpointJournalSize", options.checkpoint_journal_bytes.to_string()),
            ("checkpointPeriod", options.checkpoint_period.as_secs().to_string()),
        ]
    }

    fn change_settings(&self, changes: &[(&str, &str)]) -> Result<(), StorageError> {
        let known = self.settings();
        if let Some((name, _)) = changes.iter().find(|(name, _)| known.iter().all(|(known, _)| known != name))
        {
            let known: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
            let message =
                format!("the engine `wiredtiger` has no setting {name:?} that can be changed: there are");
            return Err(refused(format!("{message} {}", known.join(", "))));
        }
        let entries: Vec<_> =
            changes.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let _gate = self.store.gate.read();
        self.store.check_open()?;
        let mut options = self.store.options.lock();
        let changed = options.clone().with_entries(&entries)?;
        let config =
            format!("cache_size={},checkpoint=({})", changed.cache_bytes, changed.checkpoint_config());
        let reconfigured = self.store.sessions.connection()?.reconfigure(&c_text(&config));
        reconfigured.map_err(|error| library_failed("changing settings", error))?;
        *options = changed;
        Ok(())
    }

    /// WiredTiger keeps to the layout with which a table was created.
    fn change_tree_options(&self, tree: TreeId, options: &TreeOptions) -> Result<(), StorageError> {
        let table = self.store.trees.read().table(tree)?;
        self.store.options.lock().tree_settings(&table.name, &options.entries)?;
        match options.entries.first() {
            None => Ok(()),
            Some((name, _)) => Err(refused(format!(
                "the option `{name}` of a tree of the engine `wiredtiger` is chosen when the tree is made: create the \
                 collection or the index anew"
            ))),
        }
    }

    fn load(
        &self,
        tree: TreeId,
        entries: &mut dyn SortedEntries,
        durability: LoadDurability,
    ) -> Result<u64, StorageError> {
        load::load(self, &self.store, load::Request { tree, durability }, entries)
    }

    fn live_transactions(&self) -> Vec<LiveTransaction> {
        self.store.live.lock().describe(self.store.clock.monotonic())
    }

    fn check(&self, request: &CheckRequest<'_>) -> Result<CheckReport, StorageError> {
        check::check(self, &self.store, request)
    }

    fn backup(&self, request: &BackupRequest<'_>) -> Result<BackupReport, StorageError> {
        self.store.check_open()?;
        backup::make(&self.store, &self.environment, &self.folder, request)
    }

    fn close(&self) -> Result<(), StorageError> {
        self.stop_tasks();
        self.store.close()
    }
}
