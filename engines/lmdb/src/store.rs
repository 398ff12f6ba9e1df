//! The store behind the engine and its transactions: LMDB's environment, and the state kept beside it in
//! memory.
//!
//! # Locks, in the order in which they are taken
//! 1. `begins`: taken by whoever begins a transaction, and by a compaction, which lets nobody begin.
//! 2. `sync_turn`: one sync at a time.
//! 3. `writer`: one commit at a time, as LMDB has one writer.
//! 4. `live`: the live transactions; held while a snapshot is taken, so that the oldest one is always known.
//! 5. `map`: see the module of that name.
//! 6. `trees` and `pin`.
//!
//! # Numbers
//! LMDB numbers its transactions. A writing one's number is the commit's timestamp and its LSN. A reading
//! one's number is that of the last commit it sees, which is its snapshot. The engine's own changes (a new
//! tree) take numbers too.

use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use heed::RwTxn;
use pando_environment::{Clock, FolderLock};
use pando_storage::{
    Claims, CommitReceipt, CommitTimestamp, ErrorKind, Estimate, Intents, KeyRange, Lsn, SnapshotTimestamp,
    StorageError, SyncState, TreeId, WriteSet,
};
use parking_lot::{Condvar, Mutex, MutexGuard, RwLock};

use crate::commit::apply;
use crate::data_file::{DataFile, Snapshot, Table};
use crate::durable_mark::{DurableMark, Ending};
use crate::failure::{closed, corrupt, is_map_full, lmdb_failed};
use crate::layout;
use crate::live::LiveTransactions;
use crate::map::MapGate;
use crate::page_walk::TableState;
use crate::recovery::{self, MAP_BYTES_MIN, as_slice};
use crate::trees::Trees;

/// Entries that one LMDB transaction of a tree's removal takes out.
const REMOVAL_ENTRIES: usize = 20_000;

/// A range of keys of the table.
type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// See the module's head. Fields drop in this order: those that hold LMDB's pages first, the folder's lock
/// last.
pub(crate) struct Store {
    /// Keeps the pages of the durable state from being written over; see `durable_mark`.
    pub(crate) pin: Mutex<Option<Snapshot>>,
    pub(crate) map: MapGate<DataFile>,
    pub(crate) begins: Mutex<()>,
    pub(crate) writer: Mutex<()>,
    pub(crate) sync_turn: Mutex<DurableMark>,
    pub(crate) live: Mutex<LiveTransactions>,
    /// Told whenever a transaction has ended.
    pub(crate) ended: Condvar,
    /// Slots in the reader table that were taken from processes that had ended without letting them go.
    pub(crate) stale_readers: AtomicU64,
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
    pub(crate) timestamp: SnapshotTimestamp,
    pub(crate) number: u64,
    /// Where it shows how many keys it has written.
    pub(crate) writes_shown: Arc<AtomicU64>,
}

/// The newest state, which is to become durable.
pub(crate) struct Pinned {
    pin: Snapshot,
    lsn: Lsn,
    metas: Vec<u8>,
}

/// All that the store needs for a commit.
pub(crate) struct Commit<'t> {
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
        let turn = self.begins.lock();
        self.begin_in_turn(&turn, at)
    }

    fn begin_in_turn(
        &self,
        _: &MutexGuard<'_, ()>,
        at: Option<SnapshotTimestamp>,
    ) -> Result<Begun, StorageError> {
        let mut live = self.live.lock();
        self.check_open()?;
        let file = self.map.enter()?;
        let reading = file.snapshot("taking a snapshot")?;
        let timestamp = SnapshotTimestamp::new(reading.id() as u64);
        drop(file);
        if at.is_some_and(|at| at != timestamp) {
            let message =
                format!("the engine `lmdb` begins at its newest snapshot only, which is {timestamp:?}");
            return Err(StorageError::new(ErrorKind::InvalidInput, message));
        }
        let (number, writes_shown) = live.enter(timestamp, self.clock.monotonic());
        Ok(Begun { reading, timestamp, number, writes_shown })
    }

    /// The same for the newest snapshot, with the place of its pages in the file.
    pub(crate) fn begin_with_state(&self) -> Result<(Begun, TableState), StorageError> {
        let turn = self.begins.lock();
        // No commit comes between the snapshot and the copy of the meta pages.
        let _writer = self.writer.lock();
        let begun = self.begin_in_turn(&turn, None)?;
        let metas = self.map.enter().and_then(|file| file.metas.copy());
        let number = begun.reading.id() as u64;
        let state = metas.and_then(|metas| {
            TableState::of_metas(&metas, Some(number))
                .ok_or_else(|| corrupt("no meta page of LMDB's file has the newest state: restore a backup"))
        });
        match state {
            Ok(state) => Ok((begun, state)),
            Err(error) => {
                let number = begun.number;
                drop(begun);
                self.end(number);
                Err(error)
            }
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
        self.ended.notify_all();
    }

    /// Runs a change in the writer's turn. Where the map is full, it grows, and the change runs again from
    /// its beginning. The turn is kept meanwhile, so that no other commit takes the number of this one.
    fn with_room<T>(&self, change: impl Fn() -> Result<T, StorageError>) -> Result<T, StorageError> {
        let turn = self.writer.lock();
        loop {
            self.check_open()?;
            match change() {
                Err(error) if is_map_full(&error) => self.make_room(&turn)?,
                outcome => return outcome,
            }
        }
    }

    /// Applies a write set in one LMDB transaction, and makes it visible.
    pub(crate) fn commit(&self, commit: &Commit<'_>) -> Result<CommitReceipt, StorageError> {
        self.with_room(|| {
            let failed = |error| lmdb_failed("committing", error);
            let file = self.map.enter()?;
            let mut writer = file.env.write_txn().map_err(failed)?;
            let number = writer.id() as u64;
            let sizes = apply(file.table, &mut writer, commit.writes, &self.trees)?;
            let timestamp = CommitTimestamp::new(number);
            // Settled before anyone can see the commit; should it fail, the number is given out again.
            commit.claims.commit(&self.intents, timestamp);
            writer.commit().map_err(failed)?;
            let mut trees = self.trees.write();
            sizes.into_iter().for_each(|(tree, size)| trees.set_size(tree, size));
            drop(trees);
            self.wrote(number);
            Ok(CommitReceipt { timestamp, lsn: Lsn::new(number) })
        })
    }

    fn wrote(&self, number: u64) {
        self.newest.store(number, Ordering::Release);
        self.sync_state.committed(self.clock.monotonic());
    }

    /// Makes room in a full map. Pages that only ended processes kept are free without a larger map.
    fn make_room(&self, turn: &MutexGuard<'_, ()>) -> Result<(), StorageError> {
        if self.clear_stale_readers()? > 0 {
            return Ok(());
        }
        self.grow_map(turn, self.map_bytes()?.saturating_mul(2))
    }

    /// Takes the slots of the reader table from processes that have ended without letting them go, such as a
    /// killed `mdb_stat`. Such a slot would keep pages from being used again. Returns their number.
    pub(crate) fn clear_stale_readers(&self) -> Result<usize, StorageError> {
        let cleared = self.map.enter()?.env.clear_stale_readers();
        let cleared = cleared.map_err(|error| lmdb_failed("looking for readers that have ended", error))?;
        self.stale_readers.fetch_add(cleared as u64, Ordering::Relaxed);
        Ok(cleared)
    }

    /// Gives the map so many bytes, a multiple of the page size. Live transactions stay, and their calls wait
    /// meanwhile. Without a map the engine stops. The caller has the writer's turn.
    fn grow_map(&self, _: &MutexGuard<'_, ()>, bytes: usize) -> Result<(), StorageError> {
        let _live = self.live.lock();
        let grown = self.map.replace(|file| {
            // SAFETY: no call of LMDB is under way in this process, and nothing borrows from the map, though
            // reading transactions are live: see `map`. Calls have a guard, which `replace` waits for.
            unsafe { file.env.resize(bytes) }.map_err(|error| lmdb_failed("growing the map", error))?;
            Ok(file)
        });
        grown.map_err(|error| {
            let message = format!(
                "LMDB's map cannot grow to {bytes} bytes ({error}): the engine has stopped; give the process more \
                 address space (ulimit -v) and open the store again"
            );
            self.sync_state.fail(StorageError::with_source(ErrorKind::Closed, message, error));
            self.sync_state.check_healthy().err().unwrap_or_else(closed)
        })
    }

    /// The bytes of the map.
    pub(crate) fn map_bytes(&self) -> Result<usize, StorageError> {
        Ok(self.map.enter()?.env.info().map_size)
    }

    /// Gives the map at least so many bytes.
    pub(crate) fn set_map_bytes(&self, bytes: usize) -> Result<(), StorageError> {
        let turn = self.writer.lock();
        self.check_open()?;
        let (known, bytes) = (self.map_bytes()?, bytes.next_multiple_of(MAP_BYTES_MIN));
        if bytes < known {
            let message = format!("LMDB's map has {known} bytes and cannot become smaller while it is open");
            return Err(StorageError::new(ErrorKind::InvalidInput, message));
        }
        if bytes == known { Ok(()) } else { self.grow_map(&turn, bytes) }
    }

    pub(crate) fn create_tree(&self, name: &str) -> Result<TreeId, StorageError> {
        self.with_room(|| {
            let failed = |error| lmdb_failed("creating a tree", error);
            self.trees.read().check_name_is_free(name)?;
            let file = self.map.enter()?;
            let mut writer = file.env.write_txn().map_err(failed)?;
            let number = writer.id() as u64;
            let tree = recovery::take_tree_number(file.table, &mut writer)?;
            let record = layout::tree_record(Estimate::default(), name);
            file.table.put(&mut writer, &layout::tree_record_key(tree), &record).map_err(failed)?;
            writer.commit().map_err(failed)?;
            self.trees.write().insert(tree, name.to_owned(), Estimate::default());
            self.wrote(number);
            Ok(tree)
        })
    }

    /// Removes the tree's record, and with that the tree; then its entries, some at a time, so that commits
    /// get between.
    pub(crate) fn drop_tree(&self, tree: TreeId) -> Result<(), StorageError> {
        self.with_room(|| {
            let failed = |error| lmdb_failed("dropping a tree", error);
            self.trees.read().size(tree)?;
            let file = self.map.enter()?;
            let mut writer = file.env.write_txn().map_err(failed)?;
            let number = writer.id() as u64;
            file.table.delete(&mut writer, &layout::tree_record_key(tree)).map_err(failed)?;
            writer.commit().map_err(failed)?;
            drop(file);
            let live = self.live.lock();
            self.trees.write().drop_tree(tree, live.begun(), live.oldest());
            drop(live);
            self.wrote(number);
            Ok(())
        })?;
        while self.remove_some_entries(tree)? {}
        Ok(())
    }

    /// Removes entries of a dropped tree; true if there may be more.
    fn remove_some_entries(&self, tree: TreeId) -> Result<bool, StorageError> {
        self.with_room(|| {
            let failed = |error| lmdb_failed("removing a dropped tree", error);
            let file = self.map.enter()?;
            let mut writer = file.env.write_txn().map_err(failed)?;
            let number = writer.id() as u64;
            let Some((lower, upper)) = first_entries(file.table, &writer, tree).map_err(failed)? else {
                return Ok(false);
            };
            let range = (as_slice(&lower), as_slice(&upper));
            file.table.delete_range(&mut writer, &range).map_err(failed)?;
            writer.commit().map_err(failed)?;
            self.wrote(number);
            Ok(true)
        })
    }

    /// Brings everything that has been committed to the device. A failure ends all writing: a second try can
    /// never sync pages that the kernel has dropped.
    pub(crate) fn sync(&self, ending: Ending) -> Result<(), StorageError> {
        let mut durable = self.sync_turn.lock();
        self.sync_state.check_healthy()?;
        let pinned = {
            let writer = self.writer.lock();
            self.pin_newest(&writer)
        };
        let synced = pinned.and_then(|pinned| self.make_durable(pinned, &mut durable, ending));
        self.or_stop("a sync failed", synced)
    }

    /// Ends all writing after a failure. `what` says what failed.
    pub(crate) fn or_stop<T>(&self, what: &str, outcome: Result<T, StorageError>) -> Result<T, StorageError> {
        outcome.map_err(|error| {
            let message = format!("{what}: the engine has stopped, open it again");
            self.sync_state.fail(StorageError::with_source(ErrorKind::Closed, message, error.clone()));
            self.sync_state.check_healthy().err().unwrap_or(error)
        })
    }

    /// Step 1 of `durable_mark`. The caller has the writer's turn.
    pub(crate) fn pin_newest(&self, _: &MutexGuard<'_, ()>) -> Result<Pinned, StorageError> {
        self.sync_state.begin();
        let file = self.map.enter()?;
        let pin = file.snapshot("pinning the newest state")?;
        let lsn = Lsn::new(pin.id() as u64);
        Ok(Pinned { pin, lsn, metas: file.metas.copy()? })
    }

    /// Steps 2 and 3 of `durable_mark`.
    pub(crate) fn make_durable(
        &self,
        pinned: Pinned,
        durable: &mut DurableMark,
        ending: Ending,
    ) -> Result<(), StorageError> {
        if pinned.lsn > self.sync_state.synced() || ending == Ending::Clean {
            self.map.enter()?.env.force_sync().map_err(|error| lmdb_failed("syncing", error))?;
            durable.write(pinned.metas, ending)?;
            let before = self.pin.lock().replace(pinned.pin);
            drop(before);
        }
        self.sync_state.finish(pinned.lsn);
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

/// The range of the first entries of a tree; `None` if it has none.
fn first_entries(table: Table, writer: &RwTxn<'_>, tree: TreeId) -> Result<Option<Bounds>, heed::Error> {
    let (lower, upper) = layout::table_range(tree, &KeyRange::all());
    let mut last = None;
    for entry in table.range(writer, &(as_slice(&lower), as_slice(&upper)))?.take(REMOVAL_ENTRIES) {
        last = Some(entry?.0);
    }
    Ok(last.map(|last| (lower, Bound::Included(last.to_vec()))))
}
