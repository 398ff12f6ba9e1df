//! The engine's half of a transaction: a snapshot of WiredTiger to read, and the commit of a write set.
//!
//! The other half is [`SnapshotTransaction`]: it has the private writes and the claims.

use std::cmp::Ordering as KeyOrder;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use pando_storage::{
    Batch, BatchLimits, BlockingMode, CommitReceipt, Direction, Durability, EngineSnapshot, Estimate,
    Intents, KeyRange, OverlaidScan, OwnChanges, ReadClaims, ScanEnd, SnapshotTimestamp, StorageError,
    Transaction, TreeId, emulate,
};
use parking_lot::Mutex;

use crate::commit::Commit;
use crate::failure::{closed, library_failed};
use crate::layout::{key_of_stored, stored_key};
use crate::library::{Cursor, LibraryError, Session};
use crate::store::Store;
use crate::trees::Table;

/// A snapshot of WiredTiger: a session with a transaction that only reads. Several transactions may have the
/// same one.
pub(crate) struct HeldSnapshot {
    pub(crate) timestamp: SnapshotTimestamp,
    /// `None`: the engine was closed meanwhile.
    session: Mutex<Option<Session>>,
}

impl HeldSnapshot {
    pub(crate) fn new(timestamp: SnapshotTimestamp, session: Session) -> HeldSnapshot {
        HeldSnapshot { timestamp, session: Mutex::new(Some(session)) }
    }

    /// The session, for its last user, or for the close of the engine.
    pub(crate) fn take(&self) -> Option<Session> {
        self.session.lock().take()
    }

    fn read<T>(
        &self,
        table: &Table,
        read: impl FnOnce(&mut Cursor<'_>) -> Result<T, LibraryError>,
    ) -> Result<T, StorageError> {
        let mut session = self.session.lock();
        let session = session.as_mut().ok_or_else(closed)?;
        let outcome = session.cursor(&table.cursor()).and_then(|mut cursor| read(&mut cursor));
        outcome.map_err(|error| library_failed("reading", error))
    }
}

/// See the module's head.
pub(crate) struct WiredTigerSnapshot {
    pub(crate) store: Arc<Store>,
    pub(crate) number: u64,
    pub(crate) timestamp: SnapshotTimestamp,
    pub(crate) writes_shown: Arc<AtomicU64>,
    /// There until the transaction commits or ends.
    pub(crate) held: Option<Arc<HeldSnapshot>>,
}

impl WiredTigerSnapshot {
    fn held(&self) -> &HeldSnapshot {
        self.held.as_ref().expect("a transaction keeps its snapshot until it ends")
    }

    /// WiredTiger cannot tell whether a page is in its cache, so a read that must not block is not tried.
    fn readable(&self, tree: TreeId, blocking: BlockingMode) -> Result<Arc<Table>, StorageError> {
        if blocking == BlockingMode::CachedOnly {
            return Err(StorageError::would_block());
        }
        self.store.trees.read().readable(tree, self.number)
    }
}

/// Goes to the first entry of a range in a direction; false if there is none.
fn seek(cursor: &mut Cursor<'_>, range: &KeyRange, direction: Direction) -> Result<bool, LibraryError> {
    let bound = match direction {
        Direction::Forward => &range.lower,
        Direction::Backward => &range.upper,
    };
    let (key, is_included) = match bound {
        Bound::Included(key) => (key, true),
        Bound::Excluded(key) => (key, false),
        Bound::Unbounded => return cursor.step(direction),
    };
    let Some(order) = cursor.find_near(&stored_key(key))? else { return Ok(false) };
    // Where the entry lies seen from the wanted key, in the direction of the scan.
    let order = if direction == Direction::Forward { order } else { order.reverse() };
    match order {
        KeyOrder::Greater => Ok(true),
        KeyOrder::Equal if is_included => Ok(true),
        KeyOrder::Equal | KeyOrder::Less => cursor.step(direction),
    }
}

/// Fills a batch with the entries of a range.
fn scan(
    cursor: &mut Cursor<'_>,
    range: &KeyRange,
    direction: Direction,
    limits: BatchLimits,
    batch: &mut Batch,
) -> Result<ScanEnd, LibraryError> {
    batch.clear();
    if range.is_empty() {
        return Ok(ScanEnd::Done);
    }
    let mut is_there = seek(cursor, range, direction)?;
    while is_there {
        let key = key_of_stored(cursor.key()?);
        let is_within = match direction {
            Direction::Forward => range.is_below_upper(key),
            Direction::Backward => range.is_above_lower(key),
        };
        if !is_within {
            break;
        }
        if batch.push_within(key, cursor.value()?, limits) {
            return Ok(ScanEnd::More);
        }
        is_there = cursor.step(direction)?;
    }
    Ok(ScanEnd::Done)
}

impl EngineSnapshot for WiredTigerSnapshot {
    fn timestamp(&self) -> SnapshotTimestamp {
        self.timestamp
    }

    fn intents(&self) -> &Intents {
        &self.store.intents
    }

    fn read_claims(&self) -> Option<&ReadClaims> {
        Some(&self.store.read_claims)
    }

    fn check_open(&self) -> Result<(), StorageError> {
        self.store.check_open()
    }

    fn check_writable(&self, tree: TreeId) -> Result<(), StorageError> {
        self.store.trees.read().table(tree).map(|_| ())
    }

    fn check_size(&self, bytes: usize) -> Result<(), StorageError> {
        self.store.check_size(bytes)
    }

    fn get(&self, tree: TreeId, key: &[u8], blocking: BlockingMode) -> Result<Option<Bytes>, StorageError> {
        let table = self.readable(tree, blocking)?;
        self.held().read(&table, |cursor| {
            Ok(match cursor.find(&stored_key(key))? {
                true => Some(Bytes::copy_from_slice(cursor.value()?)),
                false => None,
            })
        })
    }

    fn check_get(&self, tree: TreeId, blocking: BlockingMode) -> Result<(), StorageError> {
        self.readable(tree, blocking).map(|_| ())
    }

    fn scan(&self, request: OverlaidScan<'_>, batch: &mut Batch) -> Result<ScanEnd, StorageError> {
        let table = self.readable(request.tree, request.blocking)?;
        request.over(batch, |range, batch| {
            self.held().read(&table, |cursor| scan(cursor, range, request.direction, request.limits, batch))
        })
    }

    fn estimate(
        &self,
        transaction: &dyn Transaction,
        tree: TreeId,
        range: &KeyRange,
        blocking: BlockingMode,
    ) -> Result<Estimate, StorageError> {
        let whole = self.readable(tree, blocking)?.size();
        emulate::estimate(transaction, tree, range, whole, blocking)
    }

    /// A range of a B-tree with more entries than one batch is truncated: pages that are not in the cache are
    /// dropped without being read. An LSM tree would have to write a tombstone for each key anyway.
    fn deletes_by_message(
        &self,
        tree: TreeId,
        range: &KeyRange,
        blocking: BlockingMode,
    ) -> Result<bool, StorageError> {
        let table = self.readable(tree, blocking)?;
        if table.table_type == crate::options::TableType::Lsm {
            return Ok(false);
        }
        let mut batch = Batch::new();
        let limits = BatchLimits::LARGEST;
        let end =
            self.held().read(&table, |cursor| scan(cursor, range, Direction::Forward, limits, &mut batch))?;
        Ok(end == ScanEnd::More)
    }

    fn show_writes(&self, count: usize) {
        self.writes_shown.store(count as u64, Ordering::Relaxed);
    }

    fn commit(&mut self, own: OwnChanges<'_>, durability: Durability) -> Result<CommitReceipt, StorageError> {
        let writes = own.writes.in_memory().expect("writes without a spill space stay in memory");
        let commit = Commit { writes, ranges: own.ranges, claims: own.claims, durability };
        // The transaction reads no more, so versions that only this snapshot keeps are of no use.
        self.store.let_go(self.held.take());
        self.store.commit(&commit)
    }

    fn end(&mut self) {
        self.store.let_go(self.held.take());
        self.store.end(self.number);
    }
}
