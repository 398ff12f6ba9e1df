//! The store behind the engine and its transactions: LMDB's environment, and the state kept beside it in
//! memory.
//!
//! # Locks, in the order in which they are taken
//! 1. `sync_turn`: one sync at a time.
//! 2. `writer`: one commit at a time, as LMDB has one writer.
//! 3. `live`: the live transactions; held while a snapshot is taken, so that the oldest one is always known.
//! 4. `trees` and `pin`.
//!
//! # Numbers
//! LMDB numbers its transactions. A writing one's number is the commit's timestamp and its LSN. A reading
//! one's number is that of the last commit it sees, which is its snapshot. The engine's own changes (a new
//! tree) take numbers too.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use heed::{Env, RoTxn, RwTxn, WithoutTls};
use pando_environment::{Clock, FolderLock};
use pando_storage::{
    Claims, CommitReceipt, CommitTimestamp, ErrorKind, Estimate, Intents, KeyRange, Lsn, SnapshotTimestamp,
    StorageError, SyncState, TreeId, WriteSet,
};
use parking_lot::{Mutex, RwLock};

use crate::commit::apply;
use crate::durable_mark::{DurableMark, Ending};
use crate::failure::{closed, is_map_full, lmdb_failed};
use crate::layout;
use crate::live::LiveTransactions;
use crate::recovery::{self, MetaPages, Table, as_slice};
use crate::trees::Trees;

/// Entries that one LMDB transaction of a tree's removal takes out.
const REMOVAL_ENTRIES: usize = 20_000;

/// A snapshot of LMDB that any thread may go on reading.
pub(crate) type Snapshot = RoTxn<'static, WithoutTls>;

/// See the module's head. Fields drop in this order: those that hold LMDB's pages first, the folder's lock
/// last.
pub(crate) struct Store {
    /// Keeps the pages of the durable state from being written over; see `durable_mark`.
    pub(crate) pin: Mutex<Option<Snapshot>>,
    pub(crate) table: Table,
    pub(crate) env: Env<WithoutTls>,
    pub(crate) writer: Mutex<()>,
    pub(crate) sync_turn: Mutex<DurableMark>,
    pub(crate) metas: MetaPages,
    pub(crate) live: Mutex<LiveTransactions>,
    pub(crate) trees: RwLock<Trees>,
    pub(crate) intents: Intents,
    pub(crate) sync_state: SyncState,
    /// The number of LMDB's last transaction that wrote.
    pub(crate) newest: AtomicU64,
    pub(crate) is_closed: AtomicBool,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) _lock: FolderLock,
}

/// A transaction that was just begun.
pub(crate) struct Begun {
    pub(crate) reading: Snapshot,
    pub(crate) number: u64,
    /// Where it shows how many keys it has written.
    pub(crate) writes_shown: Arc<AtomicU64>,
}

/// All that the store needs for a commit.
pub(crate) struct Commit<'t> {
    pub(crate) number: u64,
    pub(crate) writes: &'t WriteSet,
    pub(crate) claims: &'t Claims,
}

impl Store {
    pub(crate) fn check_open(&self) -> Result<(), StorageError> {
        self.sync_state.check_healthy()?;
        if self.is_closed.load(Ordering::Acquire) {
            return Err(closed());
        }
        Ok(())
    }

    /// Takes a snapshot and enters its transaction into the list of live ones.
    pub(crate) fn begin(&self, at: Option<SnapshotTimestamp>) -> Result<Begun, StorageError> {
        let mut live = self.live.lock();
        self.check_open()?;
        let reading =
            self.env.clone().static_read_txn().map_err(|error| lmdb_failed("taking a snapshot", error))?;
        let timestamp = timestamp_of(&reading);
        if at.is_some_and(|at| at != timestamp) {
            let message =
                format!("the engine `lmdb` begins at its newest snapshot only, which is {timestamp:?}");
            return Err(StorageError::new(ErrorKind::InvalidInput, message));
        }
        let (number, writes_shown) = live.enter(timestamp, self.clock.monotonic());
        Ok(Begun { reading, number, writes_shown })
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

    /// Applies a write set in one LMDB transaction, and makes it visible.
    pub(crate) fn commit(&self, commit: &Commit<'_>) -> Result<CommitReceipt, StorageError> {
        loop {
            let writer = self.writer.lock();
            self.check_open()?;
            if let Some(receipt) = self.try_commit(commit)? {
                return Ok(receipt);
            }
            let map_bytes = self.env.info().map_size;
            drop(writer);
            self.grow_map(commit.number, map_bytes)?;
        }
    }

    /// `None`: the map is full, and no write was made.
    fn try_commit(&self, commit: &Commit<'_>) -> Result<Option<CommitReceipt>, StorageError> {
        let failed = |error| lmdb_failed("committing", error);
        let mut writer = self.env.write_txn().map_err(failed)?;
        let number = writer.id() as u64;
        let sizes = match apply(self.table, &mut writer, commit.writes, &self.trees)? {
            Some(sizes) => sizes,
            None => return Ok(None),
        };
        let timestamp = CommitTimestamp::new(number);
        // Settled before anyone can see the commit; should it fail, the number is given out again.
        commit.claims.commit(&self.intents, timestamp);
        match writer.commit() {
            Ok(()) => {}
            Err(error) if is_map_full(&error) => return Ok(None),
            Err(error) => return Err(failed(error)),
        }
        let mut trees = self.trees.write();
        sizes.into_iter().for_each(|(tree, size)| trees.set_size(tree, size));
        drop(trees);
        self.wrote(number);
        Ok(Some(CommitReceipt { timestamp, lsn: Lsn::new(number) }))
    }

    fn wrote(&self, number: u64) {
        self.newest.store(number, Ordering::Release);
        self.sync_state.committed(self.clock.monotonic());
    }

    /// Doubles the map, unless someone else has done it since it had `full` bytes. LMDB demands that nobody
    /// reads meanwhile: where others do, the caller has to come again.
    fn grow_map(&self, number: u64, full: usize) -> Result<(), StorageError> {
        loop {
            // The pin has to go for a moment: only where it keeps no state that differs from the newest one.
            self.sync(Ending::Open)?;
            let _turn = self.sync_turn.lock();
            let _writer = self.writer.lock();
            if Lsn::new(self.newest.load(Ordering::Acquire)) == self.sync_state.synced() {
                return self.grow_synced_map(number, full);
            }
        }
    }

    /// The caller holds the sync's turn and the writer's lock, and all commits are synced.
    fn grow_synced_map(&self, number: u64, full: usize) -> Result<(), StorageError> {
        let live = self.live.lock();
        if self.env.info().map_size > full {
            return Ok(());
        }
        if !live.is_alone(number) {
            let message =
                "the map is full and cannot grow while other transactions live: retry when they have ended";
            return Err(StorageError::new(ErrorKind::Busy, message));
        }
        let mut pin = self.pin.lock();
        *pin = None;
        let failed = |error| lmdb_failed("growing the map", error);
        // SAFETY: no transaction is active: the caller has let its snapshot go and no other lives (`live` is
        // locked, so none begins), the writer's lock and the sync's turn are held, and the pin has just been
        // dropped.
        unsafe { self.env.resize(full.saturating_mul(2)) }.map_err(failed)?;
        *pin = Some(self.env.clone().static_read_txn().map_err(failed)?);
        Ok(())
    }

    pub(crate) fn create_tree(&self, name: &str) -> Result<TreeId, StorageError> {
        let failed = |error| lmdb_failed("creating a tree", error);
        let _writer = self.writer.lock();
        self.check_open()?;
        self.trees.read().check_name_is_free(name)?;
        let mut writer = self.env.write_txn().map_err(failed)?;
        let number = writer.id() as u64;
        let tree = recovery::take_tree_number(self.table, &mut writer)?;
        let record = layout::tree_record(Estimate::default(), name);
        self.table.put(&mut writer, &layout::tree_record_key(tree), &record).map_err(failed)?;
        writer.commit().map_err(failed)?;
        self.trees.write().insert(tree, name.to_owned(), Estimate::default());
        self.wrote(number);
        Ok(tree)
    }

    /// Removes the tree's record, and with that the tree; then its entries, some at a time, so that commits
    /// get between.
    pub(crate) fn drop_tree(&self, tree: TreeId) -> Result<(), StorageError> {
        let failed = |error| lmdb_failed("dropping a tree", error);
        {
            let _writer = self.writer.lock();
            self.check_open()?;
            self.trees.read().size(tree)?;
            let mut writer = self.env.write_txn().map_err(failed)?;
            let number = writer.id() as u64;
            self.table.delete(&mut writer, &layout::tree_record_key(tree)).map_err(failed)?;
            writer.commit().map_err(failed)?;
            let live = self.live.lock();
            self.trees.write().drop_tree(tree, live.begun(), live.oldest());
            drop(live);
            self.wrote(number);
        }
        while self.remove_some_entries(tree)? {}
        Ok(())
    }

    /// Removes entries of a dropped tree; true if there may be more.
    fn remove_some_entries(&self, tree: TreeId) -> Result<bool, StorageError> {
        let failed = |error| lmdb_failed("removing a dropped tree", error);
        let _writer = self.writer.lock();
        self.check_open()?;
        let mut writer = self.env.write_txn().map_err(failed)?;
        let number = writer.id() as u64;
        let Some((lower, upper)) = self.first_entries(&writer, tree).map_err(failed)? else {
            return Ok(false);
        };
        self.table.delete_range(&mut writer, &(as_slice(&lower), as_slice(&upper))).map_err(failed)?;
        writer.commit().map_err(failed)?;
        self.wrote(number);
        Ok(true)
    }

    /// The range of the first entries of a tree; `None` if it has none.
    fn first_entries(
        &self,
        writer: &RwTxn<'_>,
        tree: TreeId,
    ) -> Result<Option<(std::ops::Bound<Vec<u8>>, std::ops::Bound<Vec<u8>>)>, heed::Error> {
        let (lower, upper) = layout::table_range(tree, &KeyRange::all());
        let mut last = None;
        for entry in self.table.range(writer, &(as_slice(&lower), as_slice(&upper)))?.take(REMOVAL_ENTRIES) {
            last = Some(entry?.0);
        }
        Ok(last.map(|last| (lower, std::ops::Bound::Included(last.to_vec()))))
    }

    /// Brings everything that has been committed to the device. A failure ends all writing: a second try can
    /// never sync pages that the kernel has dropped.
    pub(crate) fn sync(&self, ending: Ending) -> Result<(), StorageError> {
        let mut durable = self.sync_turn.lock();
        self.sync_state.check_healthy()?;
        let outcome = self.sync_in_turn(&mut durable, ending);
        if let Err(error) = &outcome {
            let message = "a sync failed: the engine has stopped, open it again";
            self.sync_state.fail(StorageError::with_source(ErrorKind::Closed, message, error.clone()));
            return Err(self.sync_state.check_healthy().err().unwrap_or_else(|| error.clone()));
        }
        outcome
    }

    /// The steps of `durable_mark`.
    fn sync_in_turn(&self, durable: &mut DurableMark, ending: Ending) -> Result<(), StorageError> {
        let (pin, metas) = {
            let _writer = self.writer.lock();
            self.sync_state.begin();
            let pin = self.env.clone().static_read_txn();
            (pin.map_err(|error| lmdb_failed("pinning the newest state", error))?, self.metas.copy()?)
        };
        let lsn = Lsn::new(pin.id() as u64);
        if lsn > self.sync_state.synced() || ending == Ending::Clean {
            self.env.force_sync().map_err(|error| lmdb_failed("syncing", error))?;
            durable.write(metas, ending)?;
            let before = self.pin.lock().replace(pin);
            drop(before);
        }
        self.sync_state.finish(lsn);
        Ok(())
    }

    /// Syncs a last time, and serves all waiters.
    pub(crate) fn close(&self) -> Result<(), StorageError> {
        {
            // Under the writer's lock: earlier commits are synced below, and there is none after.
            let _writer = self.writer.lock();
            if self.is_closed.swap(true, Ordering::AcqRel) {
                return Ok(());
            }
        }
        self.sync(Ending::Clean)?;
        self.sync_state.fail(closed());
        Ok(())
    }
}

/// The snapshot that a reading transaction of LMDB sees.
pub(crate) fn timestamp_of(snapshot: &Snapshot) -> SnapshotTimestamp {
    SnapshotTimestamp::new(snapshot.id() as u64)
}
