//! The engine's half of a transaction: a RocksDB snapshot to read, and the commit of a write set.
//!
//! The other half is [`SnapshotTransaction`]: it has the private writes and the claims.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use pando_storage::{
    Batch, BatchLimits, BlockingMode, Claims, CommitReceipt, Direction, Durability, EngineSnapshot,
    ErrorKind, Estimate, Intents, KeyRange, Mode, OverlaidScan, OwnChanges, ReadClaims, ScanEnd,
    SnapshotTimestamp, SnapshotTransaction, SpillingWrites, StorageError, Transaction, TransactionId, TreeId,
};

use crate::commit::Commit;
use crate::failure::rocksdb_failed;
use crate::layout::{PREFIX_BYTES, family_key, family_range};
use crate::library::Family;
use crate::store::{Begun, Store};

/// See the module's head.
pub(crate) struct RocksdbSnapshot {
    store: Arc<Store>,
    begun: Begun,
}

impl RocksdbSnapshot {
    /// A transaction over a snapshot that was just shared.
    pub(crate) fn begin(store: Arc<Store>, begun: Begun, mode: Mode) -> SnapshotTransaction<RocksdbSnapshot> {
        let owner = TransactionId::new(begun.entered.number);
        // Every key is claimed exactly: the write set takes more memory than the intents.
        let claims = Claims::with_intents_max(owner, begun.snapshot.timestamp(), usize::MAX);
        let snapshot = RocksdbSnapshot { store, begun };
        SnapshotTransaction::new(snapshot, mode, claims, SpillingWrites::default())
    }

    /// The column family of a tree that this transaction may read.
    fn family(&self, tree: TreeId) -> Result<Arc<Family>, StorageError> {
        let trees = self.store.trees.read();
        trees.readable(tree, self.begun.entered.number).map(|tree| Arc::clone(&tree.family))
    }

    /// One batch of RocksDB's own entries.
    fn scan_family(
        &self,
        family: &Family,
        scan: &OverlaidScan<'_>,
        range: &KeyRange,
        batch: &mut Batch,
    ) -> Result<ScanEnd, StorageError> {
        batch.clear();
        let Some(range) = family_range(scan.tree, range) else { return Ok(ScanEnd::Done) };
        let options = self.begun.snapshot.scan_options(scan.blocking, range);
        let mut entries = self.store.database.raw_iterator_cf_opt(family.handle(), options);
        match scan.direction {
            Direction::Forward => entries.seek_to_first(),
            Direction::Backward => entries.seek_to_last(),
        }
        while let Some((key, value)) = entries.item() {
            if batch.push_within(&key[PREFIX_BYTES..], value, scan.limits) {
                return Ok(ScanEnd::More);
            }
            match scan.direction {
                Direction::Forward => entries.next(),
                Direction::Backward => entries.prev(),
            }
        }
        match entries.status().map_err(|error| rocksdb_failed("scanning", error)) {
            Ok(()) => Ok(ScanEnd::Done),
            // The cached entries are an answer, and the caller asks for the rest.
            Err(error) if error.is_would_block() && !batch.is_empty() => Ok(ScanEnd::More),
            Err(error) => Err(error),
        }
    }

    /// Whether a range has at least so many entries.
    fn has_entries(
        &self,
        tree: TreeId,
        range: &KeyRange,
        count: u64,
        blocking: BlockingMode,
    ) -> Result<bool, StorageError> {
        let family = self.family(tree)?;
        let Some(range) = family_range(tree, range) else { return Ok(false) };
        let options = self.begun.snapshot.scan_options(blocking, range);
        let mut entries = self.store.database.raw_iterator_cf_opt(family.handle(), options);
        entries.seek_to_first();
        let mut found = 0;
        while entries.valid() && found < count {
            found += 1;
            entries.next();
        }
        entries.status().map_err(|error| rocksdb_failed("counting", error))?;
        Ok(found == count)
    }
}

impl EngineSnapshot for RocksdbSnapshot {
    fn timestamp(&self) -> SnapshotTimestamp {
        self.begun.snapshot.timestamp()
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
        self.store.trees.read().get(tree).map(drop)
    }

    fn check_size(&self, bytes: usize) -> Result<(), StorageError> {
        let most = self.store.options.transaction_bytes;
        if bytes as u64 <= most {
            return Ok(());
        }
        let message = format!(
            "a transaction writes more than {most} bytes: write less in one, or raise the option `transactionLimit`"
        );
        Err(StorageError::new(ErrorKind::TooLarge, message))
    }

    fn get(&self, tree: TreeId, key: &[u8], blocking: BlockingMode) -> Result<Option<Bytes>, StorageError> {
        let family = self.family(tree)?;
        let options = self.begun.snapshot.get_options(blocking);
        let found = self.store.database.get_pinned_cf_opt(family.handle(), family_key(tree, key), options);
        let found = found.map_err(|error| rocksdb_failed("reading an entry", error))?;
        Ok(found.map(|value| Bytes::copy_from_slice(&value)))
    }

    fn check_get(&self, tree: TreeId, _: BlockingMode) -> Result<(), StorageError> {
        self.store.trees.read().readable(tree, self.begun.entered.number).map(drop)
    }

    fn scan(&self, scan: OverlaidScan<'_>, batch: &mut Batch) -> Result<ScanEnd, StorageError> {
        let family = self.family(scan.tree)?;
        scan.over(batch, |range, batch| self.scan_family(&family, &scan, range, batch))
    }

    /// Exact up to a batch of entries. Beyond, the share of the tree's table files that the range has.
    fn estimate(
        &self,
        transaction: &dyn Transaction,
        tree: TreeId,
        range: &KeyRange,
        blocking: BlockingMode,
    ) -> Result<Estimate, StorageError> {
        let family = self.family(tree)?;
        // A dropped tree that this older transaction still reads has no size any more.
        let whole = || self.store.tree_size(tree, blocking).unwrap_or_default();
        if *range == KeyRange::all() {
            return Ok(whole());
        }
        let mut batch = Batch::new();
        let limits = BatchLimits::LARGEST;
        let end = transaction.scan(tree, range, Direction::Forward, limits, blocking, &mut batch)?;
        let bytes: usize = batch.iter().map(|(key, value)| key.len() + value.len()).sum();
        let counted = Estimate { entries: batch.len() as u64, bytes: bytes as u64 };
        Ok(match end {
            ScanEnd::Done => counted,
            ScanEnd::More => self.store.range_size(&family, (tree, range), whole(), counted),
        })
    }

    fn deletes_by_message(
        &self,
        tree: TreeId,
        range: &KeyRange,
        blocking: BlockingMode,
    ) -> Result<bool, StorageError> {
        self.has_entries(tree, range, self.store.options.range_delete_entries, blocking)
    }

    fn show_writes(&self, count: usize) {
        self.begun.entered.writes_shown.store(count as u64, Ordering::Relaxed);
    }

    /// Every commit is in the log, and that in the kernel, when RocksDB returns: all that `Logged` asks.
    fn commit(&mut self, own: OwnChanges<'_>, _: Durability) -> Result<CommitReceipt, StorageError> {
        let writes = own.writes.in_memory().expect("writes without a spill space stay in memory");
        self.store.commit(&Commit { writes, ranges: own.ranges, claims: own.claims })
    }

    fn end(&mut self) {
        self.store.end(self.begun.entered.number);
    }
}
