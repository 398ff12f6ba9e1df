//! The store behind the engine and its transactions: RocksDB's database, and the state kept beside it in
//! memory.
//!
//! # Numbers
//! RocksDB numbers every entry of a batch. The number of a batch's last entry is the commit's timestamp and
//! its LSN. Batches are written one at a time, so this number is known before the write: the claims of the
//! transaction are settled at it before anyone can see the commit. The engine's own changes (a new tree) take
//! numbers, too.
//!
//! # The newest snapshot
//! Each write takes a snapshot when it is done, and puts it in the place of the one before. A transaction
//! that begins shares it. So a begin never waits for a write that RocksDB delays, and it knows its number.
//!
//! # Locks, in the order in which they are taken
//! 1. `backup_turn`, `sync_turn`: one backup, one sync at a time.
//! 2. `writer`: one write at a time.
//! 3. `live`: the live transactions; held while a snapshot is shared, so that the oldest is always known.
//! 4. `trees` and `newest`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pando_environment::{Clock, FolderLock};
use pando_storage::{
    CommitReceipt, CommitTimestamp, Intents, Lsn, ReadClaims, SnapshotTimestamp, StorageError, SyncState,
    TreeId,
};
use parking_lot::{Mutex, RwLock};
use rocksdb::{Options, WriteBatch, WriteOptions};

use crate::commit::{Commit, prepare};
use crate::failure::{closed, corrupt, invalid, rocksdb_failed, stopped};
use crate::layout::{self, NEXT_TREE_KEY};
use crate::library::{Database, Family, Snapshot};
use crate::live::{Entered, LiveTransactions};
use crate::options::{RocksdbOptions, TreeSettings};
use crate::sync_mark::SyncMark;
use crate::trees::Trees;
use crate::tuning::Tuning;

/// Sets of tree options that a store may have. Each has write buffers of its own.
const FAMILIES_MAX: usize = 64;

/// The column families for trees, by name.
pub(crate) type Families = BTreeMap<String, Arc<Family>>;

/// The state of whoever writes.
pub(crate) struct Writer {
    pub(crate) next_tree: u32,
    pub(crate) families: Families,
}

/// See the module's head. The folder's lock is dropped last.
pub(crate) struct Store {
    pub(crate) newest: RwLock<Arc<Snapshot>>,
    pub(crate) live: Mutex<LiveTransactions>,
    pub(crate) trees: RwLock<Trees>,
    pub(crate) writer: Mutex<Writer>,
    pub(crate) write_options: WriteOptions,
    pub(crate) sync_turn: Mutex<SyncMark>,
    pub(crate) backup_turn: Mutex<()>,
    pub(crate) database: Arc<Database>,
    /// Kept for the statistics in it.
    pub(crate) database_options: Options,
    pub(crate) tuning: Tuning,
    pub(crate) options: RocksdbOptions,
    /// Memory for the block cache and write buffers, as it was set last.
    pub(crate) cache_bytes: Mutex<u64>,
    pub(crate) intents: Intents,
    pub(crate) read_claims: ReadClaims,
    pub(crate) sync_state: SyncState,
    /// Whether trees were dropped whose files may be removed.
    pub(crate) has_dropped: AtomicBool,
    pub(crate) is_closed: AtomicBool,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) folder: PathBuf,
    pub(crate) _lock: FolderLock,
}

/// A transaction that was just begun.
pub(crate) struct Begun {
    pub(crate) snapshot: Arc<Snapshot>,
    pub(crate) entered: Entered,
}

impl Store {
    pub(crate) fn check_open(&self) -> Result<(), StorageError> {
        self.sync_state.check_healthy()?;
        if self.is_closed.load(Ordering::Acquire) {
            return Err(closed());
        }
        Ok(())
    }

    /// Shares a snapshot, and enters its transaction into the list of live ones.
    pub(crate) fn begin(&self, at: Option<SnapshotTimestamp>) -> Result<Begun, StorageError> {
        let mut live = self.live.lock();
        self.check_open()?;
        let newest = Arc::clone(&self.newest.read());
        let snapshot = match at {
            None => newest,
            Some(at) if at == newest.timestamp() => newest,
            Some(at) => live.held(at).ok_or_else(|| {
                invalid(format!("{at:?} is neither the newest snapshot nor that of a live transaction"))
            })?,
        };
        let entered = live.enter(&snapshot, self.clock.monotonic());
        Ok(Begun { snapshot, entered })
    }

    /// Takes a transaction from the list of live ones.
    pub(crate) fn end(&self, number: u64) {
        let released = {
            let mut live = self.live.lock();
            let released = live.leave(number);
            // Without a live transaction the oldest snapshot is that of whoever begins next.
            let newest = self.newest.read().timestamp();
            self.intents.set_oldest_snapshot(live.oldest_snapshot().unwrap_or(newest));
            released
        };
        // The last share of a snapshot takes a lock of RocksDB.
        drop(released);
        if self.has_dropped.load(Ordering::Relaxed) {
            self.sync_state.wake();
        }
    }

    /// Writes a transaction's changes in one batch, and makes them visible.
    pub(crate) fn commit(&self, commit: &Commit<'_>) -> Result<CommitReceipt, StorageError> {
        let prepared = prepare(commit, &self.trees)?;
        let number = {
            let _writer = self.writer.lock();
            self.check_open()?;
            {
                let trees = self.trees.read();
                prepared.touched.keys().try_for_each(|tree| trees.get(*tree).map(drop))?;
            }
            self.write(prepared.batch, |timestamp| commit.claims.commit(&self.intents, timestamp))?
        };
        for touched in prepared.touched.values() {
            touched.tree.writes.add(touched.entries, touched.bytes);
        }
        Ok(CommitReceipt { timestamp: CommitTimestamp::new(number), lsn: Lsn::new(number) })
    }

    /// Writes a batch, of which the caller holds the turn, and publishes its snapshot. `settle` is called
    /// before anyone can see it. A failure stops the engine: how much of the batch is in the log is not
    /// known.
    fn write(&self, batch: WriteBatch, settle: impl FnOnce(CommitTimestamp)) -> Result<u64, StorageError> {
        let number = self.database.latest_sequence_number() + batch.len() as u64;
        settle(CommitTimestamp::new(number));
        if let Err(error) = self.database.write_opt(batch, &self.write_options) {
            return Err(self.stop("writing to the log", rocksdb_failed("writing a batch", error)));
        }
        let reached = self.database.latest_sequence_number();
        if reached != number {
            let message = format!("RocksDB has numbered a batch {reached} that was to be {number}");
            return Err(self.stop("numbering a commit", corrupt(message)));
        }
        let snapshot = Arc::new(Snapshot::take(&self.database, number));
        let before = std::mem::replace(&mut *self.newest.write(), snapshot);
        drop(before);
        self.sync_state.committed(self.clock.monotonic());
        Ok(number)
    }

    /// Stops the engine, and gives the error that everyone gets from now on.
    fn stop(&self, doing: &str, error: StorageError) -> StorageError {
        self.sync_state.fail(stopped(doing, error));
        self.sync_state.check_healthy().err().unwrap_or_else(closed)
    }

    pub(crate) fn create_tree(&self, name: &str, settings: TreeSettings) -> Result<TreeId, StorageError> {
        let mut writer = self.writer.lock();
        self.check_open()?;
        self.trees.read().check_name_is_free(name)?;
        let family = self.family(&mut writer.families, settings)?;
        let tree = TreeId::new(writer.next_tree);
        let next = writer.next_tree.checked_add(1);
        let next = next.ok_or_else(|| invalid("all numbers for trees have been used"))?;
        let mut batch = WriteBatch::default();
        batch.put(NEXT_TREE_KEY, next.to_be_bytes());
        batch.put(layout::tree_record_key(tree), layout::tree_record(&settings.family_name(), name));
        self.trees.write().insert(tree, name, family);
        self.write(batch, |_own_change| ())?;
        writer.next_tree = next;
        Ok(tree)
    }

    /// The column family for these settings, which is made where there is none.
    fn family(&self, families: &mut Families, settings: TreeSettings) -> Result<Arc<Family>, StorageError> {
        let name = settings.family_name();
        if let Some(family) = families.get(&name) {
            return Ok(Arc::clone(family));
        }
        if families.len() >= FAMILIES_MAX {
            let message = format!(
                "the store has {FAMILIES_MAX} different sets of tree options, each with memory of its own: choose \
                 one of them"
            );
            return Err(invalid(message));
        }
        let made = self.database.create_cf(&name, &self.tuning.family(&settings));
        made.map_err(|error| rocksdb_failed("creating a column family", error))?;
        let family = Arc::new(Family::open(&self.database, &name, settings)?);
        families.insert(name, Arc::clone(&family));
        Ok(family)
    }

    /// Removes a tree: its record and its entries in one batch. Older snapshots still see the entries.
    pub(crate) fn drop_tree(&self, tree: TreeId) -> Result<(), StorageError> {
        {
            let _writer = self.writer.lock();
            self.check_open()?;
            let family = Arc::clone(&self.trees.read().get(tree)?.family);
            let whole = layout::whole_tree(tree);
            let mut batch = WriteBatch::default();
            batch.delete(layout::tree_record_key(tree));
            batch.delete_range_cf(family.handle(), whole.lower, whole.upper);
            {
                let live = self.live.lock();
                self.trees.write().drop_tree(tree, live.begun());
            }
            self.write(batch, |_own_change| ())?;
        }
        self.has_dropped.store(true, Ordering::Relaxed);
        self.sync_state.wake();
        Ok(())
    }

    /// Removes the files of dropped trees that no transaction reads any more. The rest of their entries goes
    /// with later compactions.
    pub(crate) fn reclaim_dropped(&self) {
        if !self.has_dropped.swap(false, Ordering::Relaxed) || self.is_closed.load(Ordering::Acquire) {
            return;
        }
        let unseen = {
            let live = self.live.lock();
            let mut trees = self.trees.write();
            let unseen = trees.take_unseen(live.oldest());
            self.has_dropped.store(trees.has_dropped(), Ordering::Relaxed);
            unseen
        };
        for (tree, family) in unseen {
            // Up to the last key of the tree: the next tree may have an entry at the very end of its range.
            let (lower, upper) = (layout::whole_tree(tree).lower, layout::last_key(tree));
            // Compactions remove what stays behind where this fails.
            let _removed = self.database.delete_file_in_range_cf(family.handle(), lower, upper);
        }
    }

    /// Brings everything that has been committed to the device. A failure ends all writing: a second try can
    /// never sync pages that the kernel has dropped.
    pub(crate) fn sync(&self) -> Result<(), StorageError> {
        let mark = self.sync_turn.lock();
        self.sync_state.check_healthy()?;
        self.sync_state.begin();
        let lsn = Lsn::new(self.newest.read().timestamp().get());
        if lsn > self.sync_state.synced() {
            let synced = self.database.flush_wal(true);
            let synced = synced.map_err(|error| rocksdb_failed("syncing the log", error));
            synced.and_then(|()| mark.write(lsn)).map_err(|error| self.stop("a sync", error))?;
        }
        self.sync_state.finish(lsn);
        Ok(())
    }

    /// All column families for trees.
    pub(crate) fn families(&self) -> Vec<Arc<Family>> {
        self.writer.lock().families.values().cloned().collect()
    }

    /// Writes everything that is in write buffers into table files.
    pub(crate) fn flush(&self) -> Result<(), StorageError> {
        let failed = |error| rocksdb_failed("flushing", error);
        for family in self.families() {
            self.database.flush_cf(family.handle()).map_err(failed)?;
        }
        self.database.flush().map_err(failed)
    }

    /// Syncs and flushes a last time, and serves all waiters.
    pub(crate) fn close(&self) -> Result<(), StorageError> {
        {
            // In the writer's turn: earlier commits are synced below, and there is none after.
            let _writer = self.writer.lock();
            if self.is_closed.swap(true, Ordering::AcqRel) {
                return Ok(());
            }
        }
        self.sync()?;
        self.flush()?;
        self.database.cancel_all_background_work(true);
        self.sync_state.fail(closed());
        Ok(())
    }
}
