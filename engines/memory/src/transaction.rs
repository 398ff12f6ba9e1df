//! A transaction of the engine `memory`: a snapshot's number, a write set, and the intents that it holds.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use pando_storage::limits::{check_key, check_value};
use pando_storage::{
    Batch, BatchLimits, BlockingMode, Claim, CommitReceipt, CommitTimestamp, Direction, Durability,
    ErrorKind, Estimate, Intent, KeyRange, Lsn, Merge, Mode, Savepoint, ScanEnd, SnapshotTimestamp,
    StorageError, Transaction, TransactionId, TreeId, WriteSet, emulate,
};

use crate::Shared;

/// See the module's head. Dropping it rolls it back.
pub(crate) struct MemoryTransaction {
    shared: Arc<Shared>,
    number: u64,
    snapshot: SnapshotTimestamp,
    mode: Mode,
    writes: WriteSet,
    intents: Vec<Intent>,
    /// Keys written, for the list of live transactions.
    writes_shown: Arc<AtomicU64>,
}

impl MemoryTransaction {
    pub(crate) fn new(
        shared: Arc<Shared>,
        number: u64,
        snapshot: SnapshotTimestamp,
        mode: Mode,
        writes_shown: Arc<AtomicU64>,
    ) -> MemoryTransaction {
        let (writes, intents) = (WriteSet::new(), Vec::new());
        MemoryTransaction { shared, number, snapshot, mode, writes, intents, writes_shown }
    }

    /// Makes sure that this transaction may write the key: the tree is there, and the key is claimed unless blind.
    fn prepare(&mut self, tree: TreeId, key: &[u8], claim: Claim) -> Result<(), StorageError> {
        if self.mode == Mode::Read {
            return Err(StorageError::new(
                ErrorKind::InvalidInput,
                "the transaction was begun for reading only",
            ));
        }
        check_key(key)?;
        self.shared.store.read().check_writable(tree)?;
        if claim == Claim::Intent {
            let owner = TransactionId::new(self.number);
            self.intents.push(self.shared.intents.acquire(owner, self.snapshot, tree, key)?);
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
}

impl Transaction for MemoryTransaction {
    fn snapshot(&self) -> SnapshotTimestamp {
        self.snapshot
    }

    fn get(&self, tree: TreeId, key: &[u8], _: BlockingMode) -> Result<Option<Bytes>, StorageError> {
        check_key(key)?;
        let store = self.shared.store.read();
        let have = store.tree(tree, self.number)?;
        let below = have.get(key, self.snapshot);
        Ok(match self.writes.latest(tree, key) {
            Some(write) => {
                let value = write.change.over(below.map(|value| &value[..]));
                value.map(|value| Bytes::copy_from_slice(&value))
            }
            None => below.cloned(),
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
        _: BlockingMode,
        batch: &mut Batch,
    ) -> Result<ScanEnd, StorageError> {
        let store = self.shared.store.read();
        let have = store.tree(tree, self.number)?;
        self.writes.scan_over(tree, range, direction, limits, batch, &mut |range, batch| {
            Ok(have.scan(range, direction, limits, self.snapshot, batch))
        })
    }

    fn estimate(
        &self,
        tree: TreeId,
        range: &KeyRange,
        blocking: BlockingMode,
    ) -> Result<Estimate, StorageError> {
        let whole = self.shared.store.read().tree(tree, self.number)?.estimate();
        emulate::estimate(self, tree, range, whole, blocking)
    }

    fn savepoint(&mut self) -> Savepoint {
        self.writes.savepoint()
    }

    fn rollback_to(&mut self, savepoint: Savepoint) {
        self.writes.rollback_to(savepoint);
        self.show_writes();
    }

    fn commit(self: Box<Self>, _: Durability) -> Result<CommitReceipt, StorageError> {
        let mut store = self.shared.store.write();
        if self.writes.is_empty() {
            store.check_open()?;
            let timestamp = CommitTimestamp::new(self.snapshot.get());
            return Ok(CommitReceipt { timestamp, lsn: Lsn::ZERO });
        }
        let timestamp = store.next_commit(&self.writes)?;
        // Settled before any snapshot can see the commit: whoever sees it finds its keys free.
        self.shared.intents.commit(&self.intents, timestamp);
        store.apply(&self.writes, timestamp);
        Ok(CommitReceipt { timestamp, lsn: Lsn::new(timestamp.get()) })
    }

    fn rollback(self: Box<Self>) {}

    fn as_dyn(&self) -> &dyn Transaction {
        self
    }

    fn as_dyn_mut(&mut self) -> &mut dyn Transaction {
        self
    }
}

impl Drop for MemoryTransaction {
    /// The end of every transaction. After a commit there is nothing left to release.
    fn drop(&mut self) {
        self.shared.intents.release(&self.intents);
        self.shared.end(&mut self.shared.store.write(), self.number);
    }
}
