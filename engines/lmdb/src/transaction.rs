//! A transaction: an LMDB snapshot to read, a private write set, and the intents that it holds.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use pando_storage::limits::{check_key, check_value};
use pando_storage::{
    Batch, BatchLimits, BlockingMode, Change, Claim, CommitReceipt, CommitTimestamp, Direction, Durability,
    ErrorKind, Estimate, Intent, KeyRange, Lsn, Merge, Mode, Savepoint, ScanEnd, SnapshotTimestamp,
    StorageError, Transaction, TransactionId, TreeId, WriteSet, emulate,
};

use crate::failure::lmdb_failed;
use crate::layout::{table_key, table_range};
use crate::opening::as_slice;
use crate::store::{Commit, Snapshot, Store, timestamp_of};

/// See the module's head. Dropping it rolls it back.
pub(crate) struct LmdbTransaction {
    /// There until the transaction ends.
    reading: Option<Snapshot>,
    store: Arc<Store>,
    number: u64,
    snapshot: SnapshotTimestamp,
    mode: Mode,
    writes: WriteSet,
    intents: Vec<Intent>,
    writes_shown: Arc<AtomicU64>,
}

impl LmdbTransaction {
    pub(crate) fn new(
        store: Arc<Store>,
        reading: Snapshot,
        number: u64,
        mode: Mode,
        writes_shown: Arc<AtomicU64>,
    ) -> LmdbTransaction {
        let snapshot = timestamp_of(&reading);
        let (writes, intents) = (WriteSet::new(), Vec::new());
        LmdbTransaction {
            reading: Some(reading),
            store,
            number,
            snapshot,
            mode,
            writes,
            intents,
            writes_shown,
        }
    }

    fn reading(&self) -> &Snapshot {
        self.reading.as_ref().expect("a transaction keeps its snapshot until it ends")
    }

    /// LMDB cannot tell whether a page of its map is in memory: that must not block nothing is read.
    fn check_read(&self, tree: TreeId, blocking: BlockingMode) -> Result<(), StorageError> {
        if blocking == BlockingMode::CachedOnly {
            return Err(StorageError::would_block());
        }
        self.store.check_readable(tree, self.number)
    }

    /// Makes sure that this transaction may write the key.
    fn prepare(&mut self, tree: TreeId, key: &[u8], claim: Claim) -> Result<(), StorageError> {
        if self.mode == Mode::Read {
            return Err(StorageError::new(
                ErrorKind::InvalidInput,
                "the transaction was begun for reading only",
            ));
        }
        check_key(key)?;
        self.store.check_writable(tree)?;
        if claim == Claim::Intent {
            let owner = TransactionId::new(self.number);
            self.intents.push(self.store.intents.acquire(owner, self.snapshot, tree, key)?);
        }
        Ok(())
    }

    fn put_claiming(
        &mut self,
        tree: TreeId,
        key: &[u8],
        value: &[u8],
        claim: Claim,
    ) -> Result<(), StorageError> {
        check_value(value)?;
        self.prepare(tree, key, claim)?;
        self.writes.put(tree, key, value, claim);
        self.show_writes();
        Ok(())
    }

    fn delete_claiming(&mut self, tree: TreeId, key: &[u8], claim: Claim) -> Result<(), StorageError> {
        self.prepare(tree, key, claim)?;
        self.writes.delete(tree, key, claim);
        self.show_writes();
        Ok(())
    }

    fn merge_claiming(
        &mut self,
        tree: TreeId,
        key: &[u8],
        merge: Merge<'_>,
        claim: Claim,
    ) -> Result<(), StorageError> {
        merge.check()?;
        self.prepare(tree, key, claim)?;
        self.writes.merge(tree, key, merge, claim)?;
        self.show_writes();
        Ok(())
    }

    fn show_writes(&self) {
        self.writes_shown.store(self.writes.keys() as u64, Ordering::Relaxed);
    }

    /// One batch of what LMDB has, without own writes.
    fn scan_table(
        &self,
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
            Direction::Forward => fill(self.store.table.range(self.reading(), &bounds)?, limits, batch),
            Direction::Backward => fill(self.store.table.rev_range(self.reading(), &bounds)?, limits, batch),
        }
    }
}

fn fill<'r>(
    entries: impl Iterator<Item = Result<(&'r [u8], &'r [u8]), heed::Error>>,
    limits: BatchLimits,
    batch: &mut Batch,
) -> Result<ScanEnd, heed::Error> {
    for entry in entries {
        if batch.is_full(limits) {
            return Ok(ScanEnd::More);
        }
        let (key, value) = entry?;
        batch.push(&key[crate::layout::PREFIX_BYTES..], value);
    }
    Ok(ScanEnd::Done)
}

impl Transaction for LmdbTransaction {
    fn snapshot(&self) -> SnapshotTimestamp {
        self.snapshot
    }

    fn get(&self, tree: TreeId, key: &[u8], blocking: BlockingMode) -> Result<Option<Bytes>, StorageError> {
        check_key(key)?;
        self.check_read(tree, blocking)?;
        let own = self.writes.latest(tree, key).map(|write| write.change);
        let found = match own {
            Some(Change::Put(_) | Change::Delete) => None,
            Some(Change::Merge(_)) | None => {
                let found = self.store.table.get(self.reading(), &table_key(tree, key));
                found.map_err(|error| lmdb_failed("reading an entry", error))?
            }
        };
        Ok(match own {
            Some(change) => change.over(found).map(|value| Bytes::copy_from_slice(&value)),
            None => found.map(Bytes::copy_from_slice),
        })
    }

    fn put(&mut self, tree: TreeId, key: &[u8], value: &[u8]) -> Result<(), StorageError> {
        self.put_claiming(tree, key, value, Claim::Intent)
    }

    fn delete(&mut self, tree: TreeId, key: &[u8]) -> Result<(), StorageError> {
        self.delete_claiming(tree, key, Claim::Intent)
    }

    fn put_blind(&mut self, tree: TreeId, key: &[u8], value: &[u8]) -> Result<(), StorageError> {
        self.put_claiming(tree, key, value, Claim::Blind)
    }

    fn delete_blind(&mut self, tree: TreeId, key: &[u8]) -> Result<(), StorageError> {
        self.delete_claiming(tree, key, Claim::Blind)
    }

    fn merge(
        &mut self,
        tree: TreeId,
        key: &[u8],
        merge: Merge<'_>,
        claim: Claim,
        _: BlockingMode,
    ) -> Result<(), StorageError> {
        self.merge_claiming(tree, key, merge, claim)
    }

    fn scan(
        &self,
        tree: TreeId,
        range: &KeyRange,
        direction: Direction,
        limits: BatchLimits,
        blocking: BlockingMode,
        batch: &mut Batch,
    ) -> Result<ScanEnd, StorageError> {
        self.check_read(tree, blocking)?;
        self.writes.scan_over(tree, range, direction, limits, batch, &mut |range, batch| {
            self.scan_table(tree, range, direction, limits, batch)
                .map_err(|error| lmdb_failed("scanning", error))
        })
    }

    fn estimate(
        &self,
        tree: TreeId,
        range: &KeyRange,
        blocking: BlockingMode,
    ) -> Result<Estimate, StorageError> {
        self.check_read(tree, blocking)?;
        // A dropped tree that this older transaction still reads has no size any more.
        let whole = self.store.trees.read().size(tree).unwrap_or_default();
        emulate::estimate(self, tree, range, whole, blocking)
    }

    fn savepoint(&mut self) -> Savepoint {
        self.writes.savepoint()
    }

    fn rollback_to(&mut self, savepoint: Savepoint) {
        self.writes.rollback_to(savepoint);
        self.show_writes();
    }

    fn commit(mut self: Box<Self>, _: Durability) -> Result<CommitReceipt, StorageError> {
        if self.writes.is_empty() {
            self.store.check_open()?;
            let timestamp = CommitTimestamp::new(self.snapshot.get());
            return Ok(CommitReceipt { timestamp, lsn: Lsn::ZERO });
        }
        // Nothing is read any more: LMDB may use the pages that only this snapshot kept.
        self.reading = None;
        self.store.commit(&Commit { number: self.number, writes: &self.writes, intents: &self.intents })
    }

    fn rollback(self: Box<Self>) {}

    fn as_dyn(&self) -> &dyn Transaction {
        self
    }

    fn as_dyn_mut(&mut self) -> &mut dyn Transaction {
        self
    }
}

impl Drop for LmdbTransaction {
    /// The end of every transaction. After a commit there is nothing left to release.
    fn drop(&mut self) {
        self.reading = None;
        self.store.intents.release(&self.intents);
        self.store.end(self.number);
    }
}
