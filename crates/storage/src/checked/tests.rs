//! The wrapper against engines that break one promise each.

use std::panic::{AssertUnwindSafe, catch_unwind};

use bytes::Bytes;

use super::*;
use crate::access::BlockingMode;
use crate::batch::{Batch, BatchLimits, ScanEnd};
use crate::capabilities::{
    CachedReads, Compacting, ConflictTime, EstimateOrigin, History, Merging, Persistence, RangeDeletes,
    ReadClaiming, Sharing,
};
use crate::error::ErrorKind;
use crate::identifiers::{Lsn, Savepoint, SnapshotTimestamp};
use crate::key_range::{Direction, KeyRange};
use crate::limits::KEY_BYTES_MAX;

/// The promise that the engine of a test breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Breach {
    None,
    WouldBlockThoughAllowedToBlock,
    UnorderedScan,
    ScanOutOfBounds,
    EmptyBatchWithMore,
    TakesLongKeys,
    ConflictOnRead,
    WorksAfterClose,
}

struct Breaking(Breach);

const TREE: TreeId = TreeId::new(1);

impl Engine for Breaking {
    fn name(&self) -> &'static str {
        "breaking"
    }
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            conflicts: ConflictTime::AtUpdate,
            history: History::NewestOnly,
            durable: Persistence::Volatile,
            cached_reads: CachedReads::Told,
            merges: Merging::Emulated,
            range_deletes: RangeDeletes::Emulated,
            estimates: EstimateOrigin::FirstEntries,
            read_claims: ReadClaiming::None,
            sharing: Sharing::Exclusive,
            compacting: Compacting::BesideTransactions,
        }
    }
    fn create_tree(&self, _: &str, _: &TreeOptions) -> Result<TreeId, StorageError> {
        Ok(TREE)
    }
    fn drop_tree(&self, _: TreeId) -> Result<(), StorageError> {
        Ok(())
    }
    fn list_trees(&self) -> Result<Vec<TreeDescription>, StorageError> {
        Ok(Vec::new())
    }
    fn begin(&self, _: Begin) -> Result<Box<dyn Transaction>, StorageError> {
        Ok(Box::new(BreakingTransaction(self.0)))
    }
    fn when_durable(&self, _: CommitReceipt, _: Durability, waker: DurabilityWaker) {
        waker(Ok(()));
    }
    fn wait_durable(&self, _: CommitReceipt, _: Durability) -> Result<(), StorageError> {
        Ok(())
    }
    fn checkpoint(&self) -> Result<(), StorageError> {
        Ok(())
    }
    fn tree_estimate(&self, _: TreeId) -> Result<Estimate, StorageError> {
        Ok(Estimate::default())
    }
    fn bytes_on_disk(&self, _: Option<TreeId>) -> Result<u64, StorageError> {
        Ok(0)
    }
    fn statistics(&self) -> Statistics {
        Statistics::new()
    }
    fn live_transactions(&self) -> Vec<LiveTransaction> {
        Vec::new()
    }
    fn close(&self) -> Result<(), StorageError> {
        Ok(())
    }
}

struct BreakingTransaction(Breach);

impl Transaction for BreakingTransaction {
    fn snapshot(&self) -> SnapshotTimestamp {
        SnapshotTimestamp::ZERO
    }
    fn get(&self, _: TreeId, _: &[u8], _: BlockingMode) -> Result<Option<Bytes>, StorageError> {
        match self.0 {
            Breach::WouldBlockThoughAllowedToBlock => Err(StorageError::would_block()),
            Breach::ConflictOnRead => Err(StorageError::conflict()),
            _ => Ok(None),
        }
    }
    fn put(&mut self, _: TreeId, key: &[u8], _: &[u8]) -> Result<(), StorageError> {
        match key {
            b"taken" => Err(StorageError::conflict()),
            key if self.0 != Breach::TakesLongKeys => crate::limits::check_key(key),
            _ => Ok(()),
        }
    }
    fn delete(&mut self, _: TreeId, _: &[u8]) -> Result<(), StorageError> {
        Ok(())
    }
    fn scan(
        &self,
        _: TreeId,
        _: &KeyRange,
        _: Direction,
        _: BatchLimits,
        _: BlockingMode,
        batch: &mut Batch,
    ) -> Result<ScanEnd, StorageError> {
        batch.clear();
        match self.0 {
            Breach::UnorderedScan => ["b", "b"].iter().for_each(|key| batch.push(key.as_bytes(), b"")),
            Breach::ScanOutOfBounds => batch.push(b"z", b""),
            Breach::EmptyBatchWithMore => return Ok(ScanEnd::More),
            _ => ["a", "b"].iter().for_each(|key| batch.push(key.as_bytes(), b"")),
        }
        Ok(ScanEnd::Done)
    }
    fn estimate(&self, _: TreeId, _: &KeyRange, _: BlockingMode) -> Result<Estimate, StorageError> {
        Ok(Estimate::default())
    }
    fn has_writes(&self) -> bool {
        false
    }
    fn savepoint(&mut self) -> Savepoint {
        Savepoint::new(0)
    }
    fn rollback_to(&mut self, _: Savepoint) {}
    fn commit(self: Box<Self>, _: Durability) -> Result<CommitReceipt, StorageError> {
        Ok(CommitReceipt { timestamp: crate::CommitTimestamp::new(1), lsn: Lsn::new(1) })
    }
    fn rollback(self: Box<Self>) {}
    fn as_dyn(&self) -> &dyn Transaction {
        self
    }
    fn as_dyn_mut(&mut self) -> &mut dyn Transaction {
        self
    }
}

fn uses_everything(breach: Breach) {
    let engine = CheckedEngine::new(Arc::new(Breaking(breach)));
    let mut transaction = engine.begin(Begin::WRITE).expect("the engine begins");
    transaction.get(TREE, b"a", BlockingMode::MayBlock).expect("the engine reads");
    let range = KeyRange::prefix(b"a");
    let mut batch = Batch::new();
    for range in [KeyRange::all(), range] {
        let limits = BatchLimits { entries_max: 2, bytes_max: 2 };
        if breach == Breach::ScanOutOfBounds || range == KeyRange::all() {
            transaction
                .scan(TREE, &range, Direction::Forward, limits, BlockingMode::MayBlock, &mut batch)
                .expect("the engine scans");
        }
    }
    let refused = transaction.put(TREE, &[0; KEY_BYTES_MAX + 1], b"").map_err(|error| error.kind());
    assert_eq!(refused, Err(ErrorKind::InvalidInput));
    transaction.put(TREE, b"a", b"").expect("the engine writes");
    transaction.commit(Durability::None).expect("the engine commits");
    engine.close().expect("the engine closes");
    if breach == Breach::WorksAfterClose {
        engine.list_trees().expect("the engine is closed and answers");
    }
}

#[test]
fn an_engine_that_keeps_its_promises_is_not_disturbed() {
    uses_everything(Breach::None);
}

#[test]
fn every_breach_is_found_and_said() {
    let breaches = [
        (Breach::WouldBlockThoughAllowedToBlock, "may not give"),
        (Breach::UnorderedScan, "after"),
        (Breach::ScanOutOfBounds, "outside"),
        (Breach::EmptyBatchWithMore, "empty batch"),
        (Breach::TakesLongKeys, "put took a key of 1901 bytes"),
        (Breach::ConflictOnRead, "may not give"),
        (Breach::WorksAfterClose, "had been closed"),
    ];
    for (breach, word) in breaches {
        let panic = catch_unwind(AssertUnwindSafe(|| uses_everything(breach)));
        let payload = panic.expect_err("the breach must be found");
        let sentence = payload.downcast_ref::<String>().map(String::as_str);
        let sentence = sentence.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or_default();
        assert!(sentence.contains(word), "{breach:?} was reported as {sentence:?}");
    }
}

#[test]
fn using_a_transaction_after_a_conflict_is_found() {
    let engine = CheckedEngine::new(Arc::new(Breaking(Breach::None)));
    let mut transaction = engine.begin(Begin::WRITE).expect("the engine begins");
    assert!(transaction.put(TREE, b"taken", b"").is_err_and(|error| error.is_conflict()));
    let used = catch_unwind(AssertUnwindSafe(|| transaction.get(TREE, b"a", BlockingMode::MayBlock)));
    assert!(used.is_err());
    transaction.rollback();
}
