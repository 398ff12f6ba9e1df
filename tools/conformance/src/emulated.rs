//! An engine without extensions: every optional method of the contract is left to the emulations of
//! `storage`.
//!
//! It wraps another engine and hides the methods that this one does better. With it the suite tests the
//! emulations.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use pando_storage::{
    Batch, BatchLimits, Begin, BlockingMode, Capabilities, CommitReceipt, Direction, Durability,
    DurabilityWaker, Engine, Estimate, KeyRange, LiveTransaction, Merging, RangeDeletes, Savepoint, ScanEnd,
    SharedEngine, SharedTime, SnapshotTimestamp, Statistics, StorageError, Transaction, TreeDescription,
    TreeId, TreeOptions,
};

/// See the module's head.
pub struct EmulatedEngine(SharedEngine);

impl EmulatedEngine {
    /// Hides the extensions of an engine.
    pub fn shared(inner: SharedEngine) -> SharedEngine {
        Arc::new(EmulatedEngine(inner))
    }
}

impl Engine for EmulatedEngine {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn capabilities(&self) -> Capabilities {
        let (merges, range_deletes) = (Merging::Emulated, RangeDeletes::Emulated);
        Capabilities { merges, range_deletes, ..self.0.capabilities() }
    }

    fn create_tree(&self, name: &str, options: &TreeOptions) -> Result<TreeId, StorageError> {
        self.0.create_tree(name, options)
    }

    fn drop_tree(&self, tree: TreeId) -> Result<(), StorageError> {
        self.0.drop_tree(tree)
    }

    fn list_trees(&self) -> Result<Vec<TreeDescription>, StorageError> {
        self.0.list_trees()
    }

    fn begin(&self, begin: Begin) -> Result<Box<dyn Transaction>, StorageError> {
        Ok(Box::new(Emulated(self.0.begin(begin)?)))
    }

    fn shared_time(&self) -> Option<SharedTime> {
        self.0.shared_time()
    }

    fn recent_snapshot(&self, within: Duration) -> Option<SnapshotTimestamp> {
        self.0.recent_snapshot(within)
    }

    fn when_durable(&self, receipt: CommitReceipt, durability: Durability, waker: DurabilityWaker) {
        self.0.when_durable(receipt, durability, waker);
    }

    fn wait_durable(&self, receipt: CommitReceipt, durability: Durability) -> Result<(), StorageError> {
        self.0.wait_durable(receipt, durability)
    }

    fn checkpoint(&self) -> Result<(), StorageError> {
        self.0.checkpoint()
    }

    fn tree_estimate(&self, tree: TreeId) -> Result<Estimate, StorageError> {
        self.0.tree_estimate(tree)
    }

    fn bytes_on_disk(&self, tree: Option<TreeId>) -> Result<u64, StorageError> {
        self.0.bytes_on_disk(tree)
    }

    fn statistics(&self) -> Statistics {
        self.0.statistics()
    }

    fn live_transactions(&self) -> Vec<LiveTransaction> {
        self.0.live_transactions()
    }

    fn close(&self) -> Result<(), StorageError> {
        self.0.close()
    }
}

struct Emulated(Box<dyn Transaction>);

impl Transaction for Emulated {
    fn snapshot(&self) -> SnapshotTimestamp {
        self.0.snapshot()
    }

    fn get(&self, tree: TreeId, key: &[u8], blocking: BlockingMode) -> Result<Option<Bytes>, StorageError> {
        self.0.get(tree, key, blocking)
    }

    fn put(&mut self, tree: TreeId, key: &[u8], value: &[u8]) -> Result<(), StorageError> {
        self.0.put(tree, key, value)
    }

    fn delete(&mut self, tree: TreeId, key: &[u8]) -> Result<(), StorageError> {
        self.0.delete(tree, key)
    }

    /// The one extension that is none of effort but of promise: without it writes beside a guarded key would
    /// conflict.
    fn put_blind(&mut self, tree: TreeId, key: &[u8], value: &[u8]) -> Result<(), StorageError> {
        self.0.put_blind(tree, key, value)
    }

    fn delete_blind(&mut self, tree: TreeId, key: &[u8]) -> Result<(), StorageError> {
        self.0.delete_blind(tree, key)
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
        self.0.scan(tree, range, direction, limits, blocking, batch)
    }

    fn estimate(
        &self,
        tree: TreeId,
        range: &KeyRange,
        blocking: BlockingMode,
    ) -> Result<Estimate, StorageError> {
        self.0.estimate(tree, range, blocking)
    }

    fn claims_reads(&self) -> bool {
        self.0.claims_reads()
    }

    fn has_writes(&self) -> bool {
        self.0.has_writes()
    }

    fn is_large(&self) -> bool {
        self.0.is_large()
    }

    fn savepoint(&mut self) -> Savepoint {
        self.0.savepoint()
    }

    fn rollback_to(&mut self, savepoint: Savepoint) {
        self.0.rollback_to(savepoint);
    }

    fn commit(self: Box<Self>, durability: Durability) -> Result<CommitReceipt, StorageError> {
        self.0.commit(durability)
    }

    fn rollback(self: Box<Self>) {
        self.0.rollback();
    }

    fn as_dyn(&self) -> &dyn Transaction {
        self
    }

    fn as_dyn_mut(&mut self) -> &mut dyn Transaction {
        self
    }
}
