//! The engine's half of a transaction: an LMDB snapshot to read, and the commit of a write set.
//!
//! The other half is [`SnapshotTransaction`]: it has the private writes and the claims.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use pando_storage::{
    Batch, BatchLimits, BlockingMode, Claims, CommitReceipt, Direction, Durability, EngineSnapshot, Estimate,
    Intents, KeyRange, Mode, OverlaidScan, OwnChanges, ScanEnd, SnapshotTimestamp, SnapshotTransaction,
    SpillingWrites, StorageError, Transaction, TransactionId, TreeId, emulate,
};

use crate::data_file::{DataFile, Snapshot};
use crate::failure::lmdb_failed;
use crate::layout::{table_key, table_range};
use crate::recovery::as_slice;
use crate::store::{Begun, Commit, Store};

/// See the module's head.
pub(crate) struct LmdbSnapshot {
    /// There until the transaction commits or ends.
    reading: Option<Snapshot>,
    store: Arc<Store>,
    number: u64,
    timestamp: SnapshotTimestamp,
    writes_shown: Arc<AtomicU64>,
}

impl LmdbSnapshot {
    /// A transaction over a snapshot that was just taken.
    pub(crate) fn begin(store: Arc<Store>, begun: Begun, mode: Mode) -> SnapshotTransaction<LmdbSnapshot> {
        let Begun { reading, timestamp, number, writes_shown } = begun;
        // Every key is claimed exactly: the write set takes more memory than the intents.
        let claims = Claims::with_intents_max(TransactionId::new(number), timestamp, usize::MAX);
        let snapshot = LmdbSnapshot { reading: Some(reading), store, number, timestamp, writes_shown };
        SnapshotTransaction::new(snapshot, mode, claims, SpillingWrites::default())
    }

    fn reading(&self) -> &Snapshot {
        self.reading.as_ref().expect("a transaction keeps its snapshot until it ends")
    }

    /// One batch of LMDB's own entries.
    fn scan_table(
        &self,
        file: &DataFile,
        tree: TreeId,
        range: &KeyRange,
        direction: Direction,
        limits: BatchLimits,
        batch: &mut Batch,
    ) -> Result<ScanEnd, heed::Error> {
        batch.clear();
        if range.is_empty() {
            return Ok(ScanEnd::Done);
        }
        let (lower, upper) = table_range(tree, range);
        let bounds = (as_slice(&lower), as_slice(&upper));
        match direction {
            Direction::Forward => fill(file.table.range(self.reading(), &bounds)?, limits, batch),
            Direction::Backward => fill(file.table.rev_range(self.reading(), &bounds)?, limits, batch),
        }
    }
}

fn fill<'r>(
    entries: impl Iterator<Item = Result<(&'r [u8], &'r [u8]), heed::Error>>,
    limits: BatchLimits,
    batch: &mut Batch,
) -> Result<ScanEnd, heed::Error> {
    for entry in entries {
        let (key, value) = entry?;
        if batch.push_within(&key[crate::layout::PREFIX_BYTES..], value, limits) {
            return Ok(ScanEnd::More);
        }
    }
    Ok(ScanEnd::Done)
}

impl EngineSnapshot for LmdbSnapshot {
    fn timestamp(&self) -> SnapshotTimestamp {
        self.timestamp
    }

    fn intents(&self) -> &Intents {
        &self.store.intents
    }

    fn check_open(&self) -> Result<(), StorageError> {
        self.store.check_open()
    }

    fn check_writable(&self, tree: TreeId) -> Result<(), StorageError> {
        self.store.trees.read().size(tree).map(|_| ())
    }

    fn get(&self, tree: TreeId, key: &[u8], blocking: BlockingMode) -> Result<Option<Bytes>, StorageError> {
        self.check_get(tree, blocking)?;
        let file = self.store.map.enter()?;
        let found = file.table.get(self.reading(), &table_key(tree, key));
        let found = found.map_err(|error| lmdb_failed("reading an entry", error))?;
        Ok(found.map(Bytes::copy_from_slice))
    }

    /// LMDB cannot tell whether a page of its map is in memory, so a read that must not block is not tried.
    fn check_get(&self, tree: TreeId, blocking: BlockingMode) -> Result<(), StorageError> {
        if blocking == BlockingMode::CachedOnly {
            return Err(StorageError::would_block());
        }
        self.store.trees.read().check_readable(tree, self.number)
    }

    fn scan(&self, scan: OverlaidScan<'_>, batch: &mut Batch) -> Result<ScanEnd, StorageError> {
        self.check_get(scan.tree, scan.blocking)?;
        scan.over(batch, |range, batch| {
            let file = self.store.map.enter()?;
            self.scan_table(&file, scan.tree, range, scan.direction, scan.limits, batch)
                .map_err(|error| lmdb_failed("scanning", error))
        })
    }

    fn estimate(
        &self,
        transaction: &dyn Transaction,
        tree: TreeId,
        range: &KeyRange,
        blocking: BlockingMode,
    ) -> Result<Estimate, StorageError> {
        self.check_get(tree, blocking)?;
        // A dropped tree that this older transaction still reads has no size any more.
        let whole = self.store.trees.read().size(tree).unwrap_or_default();
        emulate::estimate(transaction, tree, range, whole, blocking)
    }

    fn show_writes(&self, count: usize) {
        self.writes_shown.store(count as u64, Ordering::Relaxed);
    }

    fn commit(&mut self, own: OwnChanges<'_>, _: Durability) -> Result<CommitReceipt, StorageError> {
        // LMDB may reuse the pages that only this snapshot kept: the transaction reads no more.
        self.reading = None;
        let writes = own.writes.in_memory().expect("writes without a spill space stay in memory");
        self.store.commit(&Commit { writes, claims: own.claims })
    }

    fn end(&mut self) {
        self.reading = None;
        self.store.end(self.number);
    }
}
