//! The store behind the engine and its transactions: WiredTiger's sessions, and the state kept beside them in
//! memory.
//!
//! # Locks, in the order in which they are taken
//! 1. `gate`: held by every call that uses a session of its own, and alone by the close.
//! 2. `schema`: one change of the list of trees, or of the records, at a time.
//! 3. `sync_turn`: one sync at a time.
//! 4. `order`: one commit at a time becomes visible.
//! 5. `live`: the live transactions. 6. `trees`.
//!
//! # Numbers
//! Commits are numbered in the order in which they become visible. A commit's number is its timestamp and its
//! LSN. The records have a limit that all numbers stay below; it rises by [`NUMBERS_RESERVED`] before it is
//! reached. After a crash the numbers go on from the limit, so none comes back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use pando_environment::{Clock, FolderLock, TaskWaker};
use pando_storage::{
    ErrorKind, Intents, Lsn, ReadClaims, SnapshotTimestamp, StorageError, SyncState, TreeId,
};
use parking_lot::{Mutex, RwLock};

use crate::commit::{BEGIN_WRITING, COMMIT, FLUSH, SYNC};
use crate::failure::{closed, library_failed, refused};
use crate::layout::{
    NEXT_TREE_KEY, NUMBER_LIMIT_KEY, RECORDS_NUMBER, RECORDS_URI, TreeRecord, table_uri, tree_record_key,
};
use crate::library::{LibraryError, LibraryFault, Session, TableCursor};
use crate::live::LiveTransactions;
use crate::options::WiredTigerOptions;
use crate::records::TreeNumbers;
use crate::session_pool::SessionPool;
use crate::snapshot::HeldSnapshot;
use crate::trees::{Table, Trees};
use crate::visibility::Visibility;

/// How many numbers of commits are reserved at once.
const NUMBERS_RESERVED: u64 = 1 << 20;

/// Snapshots that a begin takes without a lock before it takes one under the lock. A commit came between each
/// time, so that commits do not wait for room in the cache.
const BEGINS_MAX: usize = 8;

/// A transaction that reads.
const BEGIN_READING: &std::ffi::CStr = c"isolation=snapshot";

/// See the module's head. Fields drop in this order: sessions first, the folder's lock last.
pub(crate) struct Store {
    pub(crate) sessions: SessionPool,
    pub(crate) backup_turn: Mutex<()>,
    pub(crate) gate: RwLock<()>,
    pub(crate) schema: Mutex<TreeNumbers>,
    pub(crate) sync_turn: Mutex<()>,
    pub(crate) order: Mutex<()>,
    pub(crate) live: Mutex<LiveTransactions>,
    pub(crate) trees: RwLock<Trees>,
    pub(crate) intents: Intents,
    pub(crate) read_claims: ReadClaims,
    pub(crate) sync_state: SyncState,
    pub(crate) visibility: Visibility,
    /// The number of the last commit.
    pub(crate) newest: AtomicU64,
    /// All numbers stay below.
    pub(crate) number_limit: AtomicU64,
    pub(crate) is_closed: AtomicBool,
    pub(crate) options: Mutex<WiredTigerOptions>,
    /// Wakes the task that drops tables.
    pub(crate) housekeeper: Mutex<Option<TaskWaker>>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) _lock: FolderLock,
}

/// A transaction that was just begun.
pub(crate) struct Begun {
    pub(crate) held: Arc<HeldSnapshot>,
    pub(crate) number: u64,
    /// Where it shows how many keys it has written.
    pub(crate) writes_shown: Arc<AtomicU64>,
}

/// The table of the engine's records.
pub(crate) const RECORDS: TableCursor<'_> =
    TableCursor { number: RECORDS_NUMBER, uri: RECORDS_URI, config: c"overwrite=true" };

impl Store {
    pub(crate) fn check_open(&self) -> Result<(), StorageError> {
        self.sync_state.check_healthy()?;
        if self.is_closed.load(Ordering::Acquire) {
            return Err(closed());
        }
        Ok(())
    }

    /// Refuses a transaction whose writes would fill half of the cache: WiredTiger keeps uncommitted ones in
    /// memory.
    pub(crate) fn check_size(&self, bytes: usize) -> Result<(), StorageError> {
        let most = (self.options.lock().cache_bytes / 2).max(32 << 20);
        if bytes as u64 <= most {
            return Ok(());
        }
        let message = format!(
            "the transaction writes more than {most} bytes, half of the cache of WiredTiger: write less in one transaction, \
             or make the cache larger"
        );
        Err(StorageError::new(ErrorKind::TooLarge, message))
    }

    /// Takes a snapshot and enters its transaction into the list of live ones.
    pub(crate) fn begin(&self, at: Option<SnapshotTimestamp>) -> Result<Begun, StorageError> {
        self.check_open()?;
        let Some(at) = at else { return self.begin_newest() };
        if let Some(begun) = self.begin_held(at) {
            return Ok(begun);
        }
        if at.get() == self.newest.load(Ordering::Acquire) {
            let begun = self.begin_newest()?;
            if begun.held.timestamp == at {
                return Ok(begun);
            }
            self.let_go(Some(begun.held));
            self.end(begun.number);
        }
        Err(refused(format!("no live transaction holds the snapshot {at:?}")))
    }

    /// Shares a snapshot that another transaction holds.
    fn begin_held(&self, at: SnapshotTimestamp) -> Option<Begun> {
        let mut live = self.live.lock();
        let held = live.held(at)?;
        let (number, writes_shown) = live.enter(at, self.clock.monotonic());
        live.hold(number, &held);
        Some(Begun { held, number, writes_shown })
    }

    fn begin_newest(&self) -> Result<Begun, StorageError> {
        let _gate = self.gate.read();
        self.check_open()?;
        let mut session = self.sessions.take()?;
        // Entered first: from now on the oldest snapshot is at most this one.
        let (number, writes_shown) = {
            let mut live = self.live.lock();
            let newest = SnapshotTimestamp::new(self.newest.load(Ordering::Acquire));
            live.enter(newest, self.clock.monotonic())
        };
        match self.take_snapshot(&mut session) {
            Ok(timestamp) => {
                let held = Arc::new(HeldSnapshot::new(timestamp, session));
                let mut live = self.live.lock();
                live.move_to(number, timestamp);
                live.hold(number, &held);
                Ok(Begun { held, number, writes_shown })
            }
            Err(error) => {
                self.sessions.put_back(session);
                self.end(number);
                Err(library_failed("taking a snapshot", error))
            }
        }
    }

    fn take_snapshot(&self, session: &mut Session) -> Result<SnapshotTimestamp, LibraryError> {
        for _ in 0..BEGINS_MAX {
            let Some(moment) = self.visibility.moment() else {
                std::hint::spin_loop();
                continue;
            };
            let newest = self.newest.load(Ordering::Acquire);
            session.begin(BEGIN_READING)?;
            if self.visibility.is_unchanged_since(moment) {
                return Ok(SnapshotTimestamp::new(newest));
            }
            session.rollback();
        }
        let _order = self.order.lock();
        session.begin(BEGIN_READING)?;
        Ok(SnapshotTimestamp::new(self.newest.load(Ordering::Acquire)))
    }

    /// Ends a snapshot, unless another transaction has it, too.
    pub(crate) fn let_go(&self, held: Option<Arc<HeldSnapshot>>) {
        if let Some(mut session) = held.and_then(Arc::into_inner).and_then(|held| held.take()) {
            session.rollback();
            self.sessions.put_back(session);
        }
    }

    /// Takes a transaction from the list of live ones. Its snapshot must have been let go.
    pub(crate) fn end(&self, number: u64) {
        let mut live = self.live.lock();
        live.leave(number);
        // Without a live transaction the oldest snapshot is that of whoever begins next: at least the newest
        // commit's.
        let newest = SnapshotTimestamp::new(self.newest.load(Ordering::Acquire));
        self.intents.set_oldest_snapshot(live.oldest_snapshot().unwrap_or(newest));
    }

    /// Makes sure that the next commits have numbers.
    pub(crate) fn reserve_numbers(&self) -> Result<(), StorageError> {
        let is_low = || {
            let newest = self.newest.load(Ordering::Acquire);
            newest + NUMBERS_RESERVED / 2 > self.number_limit.load(Ordering::Acquire)
        };
        if !is_low() {
            return Ok(());
        }
        let _schema = self.schema.lock();
        if is_low() {
            let limit = self.newest.load(Ordering::Acquire) + NUMBERS_RESERVED;
            self.write_records(&[(NUMBER_LIMIT_KEY.to_vec(), limit.to_be_bytes().to_vec())])?;
            self.number_limit.store(limit, Ordering::Release);
        }
        Ok(())
    }

    /// Writes records in one transaction, whose log record is in the kernel afterwards. The caller holds
    /// `schema`.
    pub(crate) fn write_records(&self, records: &[(Vec<u8>, Vec<u8>)]) -> Result<(), StorageError> {
        let put = |session: &mut Session| {
            let mut cursor = session.cursor(&RECORDS)?;
            records.iter().try_for_each(|(key, value)| cursor.insert(key, value).map(|_inserted| ()))
        };
        self.change_records(put)
    }

    fn change_records(
        &self,
        change: impl FnOnce(&mut Session) -> Result<(), LibraryError>,
    ) -> Result<(), StorageError> {
        let mut session = self.sessions.take()?;
        let outcome = session.begin(BEGIN_WRITING).and_then(|()| match change(&mut session) {
            Ok(()) => session.commit(COMMIT),
            Err(error) => {
                session.rollback();
                Err(error)
            }
        });
        let outcome = outcome.and_then(|()| session.flush_log(FLUSH));
        self.sessions.put_back(session);
        self.sync_state.committed(self.clock.monotonic());
        outcome.map_err(|error| library_failed("writing the engine's records", error))
    }

    /// The table first, then the record: a table without a record is dropped when the store is opened.
    pub(crate) fn create_tree(
        &self,
        name: &str,
        options: &[(String, String)],
    ) -> Result<TreeId, StorageError> {
        let (settings, cache_bytes) = {
            let of_store = self.options.lock();
            (of_store.tree_settings(name, options)?, of_store.cache_bytes)
        };
        let _gate = self.gate.read();
        let mut numbers = self.schema.lock();
        self.check_open()?;
        self.trees.read().check_name_is_free(name)?;
        let id = numbers.next()?;
        let mut session = self.sessions.take()?;
        let config = crate::library::c_text(&settings.create_config(cache_bytes));
        let created = session.create(&table_uri(id), &config);
        self.sessions.put_back(session);
        created.map_err(|error| library_failed("creating a tree", error))?;
        let record =
            TreeRecord { size: Default::default(), table_type: settings.table_type, name: name.to_owned() };
        self.write_records(&[
            (tree_record_key(id), record.encode()),
            (NEXT_TREE_KEY.to_vec(), numbers.after(id).to_be_bytes().to_vec()),
        ])?;
        self.trees.write().insert(Table::new(id, record));
        Ok(id)
    }

    /// Removes the tree's record, and with that the tree. The table goes when nobody reads it any more.
    pub(crate) fn drop_tree(&self, tree: TreeId) -> Result<(), StorageError> {
        let _gate = self.gate.read();
        let _schema = self.schema.lock();
        self.check_open()?;
        self.trees.read().table(tree)?;
        self.change_records(|session| session.cursor(&RECORDS)?.remove(&tree_record_key(tree)))?;
        let live = self.live.lock();
        self.trees.write().drop_tree(tree, live.begun());
        drop(live);
        if let Some(housekeeper) = &*self.housekeeper.lock() {
            housekeeper.wake();
        }
        Ok(())
    }

    /// Drops the tables of trees that nobody reads any more. False: some are still there.
    pub(crate) fn drop_tables(&self) -> Result<bool, StorageError> {
        let _gate = self.gate.read();
        self.check_open()?;
        let oldest = self.live.lock().oldest();
        let unseen = self.trees.read().unseen(oldest);
        if !unseen.is_empty() {
            let mut session = self.sessions.take()?;
            for table in unseen {
                // A checkpoint or a reader has it: the next try comes soon.
                let dropped =
                    session.drop_table(&table.uri, c"force=true,checkpoint_wait=false,lock_wait=false");
                if dropped.is_ok() {
                    self.trees.write().forget(table.id);
                }
            }
            self.sessions.put_back(session);
        }
        Ok(!self.trees.read().has_dropped())
    }

    /// Writes the sizes that have changed into the records.
    pub(crate) fn save_sizes(&self) -> Result<(), StorageError> {
        let _gate = self.gate.read();
        let _schema = self.schema.lock();
        self.check_open()?;
        self.save_sizes_in_gate()
    }

    fn save_sizes_in_gate(&self) -> Result<(), StorageError> {
        let tables: Vec<Arc<Table>> = self.trees.read().listed().cloned().collect();
        let unsaved: Vec<(&Arc<Table>, TreeRecord)> =
            tables.iter().filter_map(|table| Some((table, table.take_unsaved()?))).collect();
        if unsaved.is_empty() {
            return Ok(());
        }
        let records: Vec<_> =
            unsaved.iter().map(|(table, record)| (tree_record_key(table.id), record.encode())).collect();
        self.write_records(&records)
            .inspect_err(|_| unsaved.iter().for_each(|(table, _)| table.set_unsaved()))
    }

    /// Brings everything that has been committed to the device. A failure ends all writing: a second try can
    /// never sync pages that the kernel has dropped.
    pub(crate) fn sync(&self) -> Result<(), StorageError> {
        let _gate = self.gate.read();
        self.check_open()?;
        self.sync_in_gate()
    }

    fn sync_in_gate(&self) -> Result<(), StorageError> {
        let _turn = self.sync_turn.lock();
        self.sync_state.begin();
        let lsn = Lsn::new(self.newest.load(Ordering::Acquire));
        let mut session = self.sessions.take()?;
        let synced = session.flush_log(SYNC);
        self.sessions.put_back(session);
        synced.map_err(|error| self.log_failed(error))?;
        self.sync_state.finish(lsn);
        Ok(())
    }

    /// Stops the engine: its journal cannot be written any more.
    pub(crate) fn log_failed(&self, error: LibraryError) -> StorageError {
        let message = format!(
            "WiredTiger's journal cannot be written ({error}): the engine has stopped; make room on the device or mend it, \
             then open the store again"
        );
        self.sync_state.fail(StorageError::with_source(ErrorKind::Closed, message, error));
        self.sync_state.check_healthy().err().unwrap_or_else(closed)
    }

    /// Makes a checkpoint of all trees.
    pub(crate) fn checkpoint(&self) -> Result<(), StorageError> {
        let _gate = self.gate.read();
        self.check_open()?;
        {
            let _schema = self.schema.lock();
            self.save_sizes_in_gate()?;
        }
        self.checkpoint_in_gate()
    }

    fn checkpoint_in_gate(&self) -> Result<(), StorageError> {
        self.sync_in_gate()?;
        let mut session = self.sessions.take()?;
        let made = session.checkpoint();
        self.sessions.put_back(session);
        made.map_err(|error| match error.fault() {
            LibraryFault::Panic => self.log_failed(error),
            _ => library_failed("making a checkpoint", error),
        })
    }

    /// Runs something with a session that has no transaction.
    pub(crate) fn with_session<T>(
        &self,
        doing: &str,
        work: impl FnOnce(&mut Session) -> Result<T, LibraryError>,
    ) -> Result<T, StorageError> {
        let _gate = self.gate.read();
        self.check_open()?;
        let mut session = self.sessions.take()?;
        let outcome = work(&mut session);
        self.sessions.put_back(session);
        outcome.map_err(|error| library_failed(doing, error))
    }

    /// Syncs and makes a checkpoint a last time, serves all waiters, and closes the database.
    pub(crate) fn close(&self) -> Result<(), StorageError> {
        let _gate = self.gate.write();
        if self.is_closed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let outcome = self.sync_state.check_healthy().and_then(|()| {
            let _schema = self.schema.lock();
            self.save_sizes_in_gate()?;
            // The numbers go on without a gap.
            let newest = self.newest.load(Ordering::Acquire);
            self.write_records(&[(NUMBER_LIMIT_KEY.to_vec(), newest.to_be_bytes().to_vec())])?;
            self.checkpoint_in_gate()
        });
        self.sync_state.fail(closed());
        self.shut();
        outcome
    }

    /// Closes all sessions, those of live transactions, too, and with them the database.
    pub(crate) fn shut(&self) {
        let held = self.live.lock().all_held();
        held.iter().for_each(|held| drop(held.take()));
        self.sessions.close();
    }
}
