//! A transaction that calls the test back as soon as its commit is visible, before its caller knows.

use pando_catalog::{CommitReceipt, Durability, Estimate, StorageError, Transaction};
use pando_storage::{
    Batch, BatchLimits, BlockingMode, Bytes, Claim, Direction, KeyRange, Merge, Savepoint, ScanEnd,
    SnapshotTimestamp, TreeId,
};

pub struct HookedCommit {
    pub inner: Box<dyn Transaction>,
    pub hook: super::Hook,
}

impl Transaction for HookedCommit {
    fn snapshot(&self) -> SnapshotTimestamp {
        self.inner.snapshot()
    }

    fn get(&self, tree: TreeId, key: &[u8], blocking: BlockingMode) -> Result<Option<Bytes>, StorageError> {
        self.inner.get(tree, key, blocking)
    }

    fn put(&mut self, tree: TreeId, key: &[u8], value: &[u8]) -> Result<(), StorageError> {
        self.inner.put(tree, key, value)
    }

    fn delete(&mut self, tree: TreeId, key: &[u8]) -> Result<(), StorageError> {
        self.inner.delete(tree, key)
    }

    fn merge(
        &mut self,
        tree: TreeId,
        key: &[u8],
        merge: Merge<'_>,
        claim: Claim,
        blocking: BlockingMode,
    ) -> Result<(), StorageError> {
        self.inner.merge(tree, key, merge, claim, blocking)
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
        self.inner.scan(tree, range, direction, limits, blocking, batch)
    }

    fn estimate(
        &self,
        tree: TreeId,
        range: &KeyRange,
        blocking: BlockingMode,
    ) -> Result<Estimate, StorageError> {
        self.inner.estimate(tree, range, blocking)
    }

    fn has_writes(&self) -> bool {
        self.inner.has_writes()
    }

    fn savepoint(&mut self) -> Savepoint {
        self.inner.savepoint()
    }

    fn rollback_to(&mut self, savepoint: Savepoint) {
        self.inner.rollback_to(savepoint);
    }

    fn commit(self: Box<Self>, durability: Durability) -> Result<CommitReceipt, StorageError> {
        let receipt = self.inner.commit(durability)?;
        (self.hook)();
        Ok(receipt)
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
