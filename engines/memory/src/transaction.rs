//! The engine's half of a transaction: the number of a snapshot, and the commit under the store's lock.
//!
//! The other half is [`SnapshotTransaction`](pando_storage::SnapshotTransaction): it has the private writes
//! and the claims.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use pando_storage::{
    Batch, BlockingMode, CommitReceipt, Durability, EngineSnapshot, Estimate, Intents, KeyRange, Lsn,
    OverlaidScan, OwnChanges, ReadClaims, ScanEnd, SnapshotTimestamp, StorageError, Transaction, TreeId,
    emulate,
};

use crate::Shared;
use crate::store::Begun;

/// See the module's head.
pub(crate) struct MemorySnapshot {
    pub(crate) shared: Arc<Shared>,
    pub(crate) begun: Begun,
}

impl EngineSnapshot for MemorySnapshot {
    fn timestamp(&self) -> SnapshotTimestamp {
        self.begun.snapshot
    }

    fn intents(&self) -> &Intents {
        &self.shared.intents
    }

    fn read_claims(&self) -> Option<&ReadClaims> {
        Some(&self.shared.read_claims)
    }

    fn check_open(&self) -> Result<(), StorageError> {
        self.shared.store.read().check_open()
    }

    fn check_writable(&self, tree: TreeId) -> Result<(), StorageError> {
        self.shared.store.read().check_writable(tree)
    }

    fn is_large(&self, bytes: usize) -> bool {
        self.shared.options.large_bytes.is_some_and(|large| bytes >= large)
    }

    fn get(&self, tree: TreeId, key: &[u8], _: BlockingMode) -> Result<Option<Bytes>, StorageError> {
        let store = self.shared.store.read();
        Ok(store.tree(tree, self.begun.number)?.get(key, self.begun.snapshot).cloned())
    }

    /// None waits: the commit applies it.
    fn takes_patch(&self, _: TreeId, _: &[u8]) -> Result<bool, StorageError> {
        Ok(true)
    }

    fn check_get(&self, tree: TreeId, _: BlockingMode) -> Result<(), StorageError> {
        self.shared.store.read().tree(tree, self.begun.number).map(|_| ())
    }

    fn scan(&self, scan: OverlaidScan<'_>, batch: &mut Batch) -> Result<ScanEnd, StorageError> {
        let store = self.shared.store.read();
        let tree = store.tree(scan.tree, self.begun.number)?;
        scan.over(batch, |range, batch| {
            Ok(tree.scan(range, scan.direction, scan.limits, self.begun.snapshot, batch))
        })
    }

    fn estimate(
        &self,
        transaction: &dyn Transaction,
        tree: TreeId,
        range: &KeyRange,
        blocking: BlockingMode,
    ) -> Result<Estimate, StorageError> {
        let whole = self.shared.store.read().tree(tree, self.begun.number)?.estimate();
        emulate::estimate(transaction, tree, range, whole, blocking)
    }

    fn show_writes(&self, count: usize) {
        self.begun.writes_shown.store(count as u64, Ordering::Relaxed);
    }

    fn commit(&mut self, own: OwnChanges<'_>, _: Durability) -> Result<CommitReceipt, StorageError> {
        let writes = own.writes.in_memory().expect("writes without a spill space stay in memory");
        let mut store = self.shared.store.write();
        let timestamp = store.next_commit(writes)?;
        // Settled before any snapshot can see the commit: its keys are free for everyone who sees it.
        own.claims.commit(&self.shared.intents, timestamp);
        store.apply(writes, timestamp);
        Ok(CommitReceipt { timestamp, lsn: Lsn::new(timestamp.get()) })
    }

    fn end(&mut self) {
        self.shared.end(&mut self.shared.store.write(), self.begun.number);
    }
}
