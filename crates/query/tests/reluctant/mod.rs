//! A transaction that would block at every third read that must not block, as one whose pages are partly on
//! the device.

use std::cell::Cell;

use pando_catalog::{
    BlockingMode, Bytes, CommitReceipt, Direction, Durability, Estimate, KeyRange, Savepoint,
    SnapshotTimestamp, StorageError, Transaction,
};
use pando_storage::{Batch, BatchLimits, ScanEnd, TreeId};

/// Another transaction, and how many reads that must not block there have been.
pub struct Reluctant {
    inner: Box<dyn Transaction>,
    reads: Cell<u32>,
}

impl Reluctant {
    pub fn new(inner: Box<dyn Transaction>) -> Reluctant {
        Reluctant { inner, reads: Cell::new(0) }
    }

    fn read(&self, blocking: BlockingMode) -> Result<(), StorageError> {
        self.reads.set(self.reads.get() + 1);
        if blocking == BlockingMode::CachedOnly && self.reads.get().is_multiple_of(3) {
            return Err(StorageError::would_block());
        }
        Ok(())
    }
}

impl Transaction for Reluctant {
    fn snapshot(&self) -> SnapshotTimestamp {
        self.inner.snapshot()
    }

    fn get(&self, tree: TreeId, key: &[u8], blocking: BlockingMode) -> Result<Option<Bytes>, StorageError> {
        self.read(blocking)?;
        self.inner.get(tree, key, BlockingMode::MayBlock)
    }

    fn put(&mut self, tree: TreeId, key: &[u8], value: &[u8]) -> Result<(), StorageError> {
        self.inner.put(tree, key, value)
    }

    fn delete(&mut self, tree: TreeId, key: &[u8]) -> Result<(), StorageError> {
        self.inner.delete(tree, key)
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
        self.read(blocking)?;
        self.inner.scan(tree, range, direction, limits, BlockingMode::MayBlock, batch)
    }

    fn estimate(
        &self,
        tree: TreeId,
        range: &KeyRange,
        blocking: BlockingMode,
    ) -> Result<Estimate, StorageError> {
        self.read(blocking)?;
        self.inner.estimate(tree, range, BlockingMode::MayBlock)
    }

    fn has_writes(&self) -> bool {
        self.inner.has_writes()
    }

    fn is_large(&self) -> bool {
        self.inner.is_large()
    }

    fn savepoint(&mut self) -> Savepoint {
        self.inner.savepoint()
    }

    fn rollback_to(&mut self, savepoint: Savepoint) {
        self.inner.rollback_to(savepoint);
    }

    fn commit(self: Box<Self>, durability: Durability) -> Result<CommitReceipt, StorageError> {
        self.inner.commit(durability)
    }

    fn rollback(self: Box<Self>) {
        self.inner.rollback();
    }

    fn as_dyn(&self) -> &dyn Transaction {
        self
    }

    fn as_dyn_mut(&mut self) -> &mut dyn Transaction {
        self
    }
}
