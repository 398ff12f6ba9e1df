//! The engine's half of a transaction: reads at its timestamp, and the commit of a write set.
//!
//! The other half is [`SnapshotTransaction`]: it has the private writes and the claims.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use pando_storage::{
    Batch, BlockingMode, Claims, CommitReceipt, Direction, Durability, EngineSnapshot, ErrorKind, Estimate,
    Intents, KeyRange, Mode, OverlaidScan, OwnChanges, ReadClaims, ScanEnd, SnapshotTimestamp,
    SnapshotTransaction, SpillingWrites, StorageError, Transaction, TransactionId, TreeId, emulate,
};

use crate::cluster::Order;
use crate::expected::Expected;
use crate::failure::corrupt;
use crate::large_values;
use crate::pending_merges;
use crate::store::{Begun, Store};
use crate::trees::Merging;
use crate::value::{Stored, decode};

/// The largest page of a scan.
const PAGE_MAX: usize = 1_024;
/// The smallest one, where a scan has so many entries before it.
const PAGE_MIN: usize = 16;
/// Bytes that the answers for a page may take. The client asks all regions of the range at once, each for the
/// whole page, and keeps the first entries of all.
const PAGE_BYTES: u64 = 64 << 20;
/// Bytes from which on a region is split.
const REGION_BYTES: u64 = 96 << 20;
/// Bytes of keys and values from which several commits are quicker. The client sends a commit in requests of
/// 16 KB, and copies the whole transaction for each, and all of its keys into it (`tikv-client` 0.4.0,
/// `transaction.rs` and `requests.rs`): the work grows with the square of the size.
const LARGE_BYTES: usize = 512 << 10;

/// See the module's head.
pub(crate) struct TikvSnapshot {
    store: Arc<Store>,
    begun: Begun,
    /// Values that were read ahead of the gets that were told of.
    expected: RefCell<Expected>,
    /// It has waited for silent servers, for the sake of its merges.
    has_waited: Cell<bool>,
}

impl TikvSnapshot {
    /// A transaction that was just begun.
    pub(crate) fn begin(store: Arc<Store>, begun: Begun, mode: Mode) -> SnapshotTransaction<TikvSnapshot> {
        let owner = TransactionId::new(begun.entered.number);
        // Every key is claimed exactly: the write set takes more memory than the intents.
        let claims = Claims::with_intents_max(owner, SnapshotTimestamp::new(begun.snapshot), usize::MAX);
        let snapshot =
            TikvSnapshot { store, begun, expected: RefCell::default(), has_waited: Cell::new(false) };
        SnapshotTransaction::new(snapshot, mode, claims, SpillingWrites::default())
    }

    /// Whether a tree that this transaction may read has merges.
    fn merging(&self, tree: TreeId) -> Result<Merging, StorageError> {
        self.store.check_readable(&self.begun)?;
        let trees = self.store.trees.read();
        trees.readable(tree, self.begun.entered.number).map(|tree| tree.merging)
    }

    /// Entries of a page of a tree.
    fn page_max(&self, tree: TreeId) -> Result<usize, StorageError> {
        let trees = self.store.trees.read();
        trees.readable(tree, self.begun.entered.number).map(|tree| page_max(tree.figures.estimate()))
    }

    /// The value behind its stored form.
    fn value_of(&self, stored: &[u8]) -> Result<Bytes, StorageError> {
        match decode(stored).ok_or_else(|| corrupt("a value makes no sense"))? {
            Stored::Whole(value) => Ok(Bytes::copy_from_slice(value)),
            Stored::Large { group, bytes } => {
                let (cluster, keyspace) = (&self.store.cluster, &self.store.keyspace);
                large_values::read(cluster, keyspace, self.begun.snapshot, group, bytes).map(Bytes::from)
            }
        }
    }

    fn get_merged(
        &self,
        tree: TreeId,
        key: &[u8],
        below: Option<Bytes>,
    ) -> Result<Option<Bytes>, StorageError> {
        let (cluster, keyspace, at) = (&self.store.cluster, &self.store.keyspace, self.begun.snapshot);
        let pending = pending_merges::in_range(cluster, keyspace, at, tree, &KeyRange::point(key))?;
        let Some(merges) = pending.get(key) else { return Ok(below) };
        self.store.found_merges(tree, key, merges.len());
        Ok(pending_merges::apply(below.as_deref(), merges)?.map(Bytes::from))
    }

    /// One batch of the cluster's own entries.
    fn scan_entries(
        &self,
        scan: &OverlaidScan<'_>,
        merging: Merging,
        range: &KeyRange,
        batch: &mut Batch,
    ) -> Result<ScanEnd, StorageError> {
        batch.clear();
        let Some(entries) = self.store.keyspace.entries(scan.tree, range) else { return Ok(ScanEnd::Done) };
        let wanted = scan.limits.entries_max.clamp(1, self.page_max(scan.tree)?);
        let order = match scan.direction {
            Direction::Forward => Order::Ascending,
            Direction::Backward => Order::Descending,
        };
        let page = self.store.cluster.scan(self.begun.snapshot, &entries, order, wanted as u32)?;
        let end = if page.len() < wanted { ScanEnd::Done } else { ScanEnd::More };
        if merging == Merging::Yes {
            return self.scan_merged(scan, range, page, end, batch);
        }
        for (entry, stored) in page {
            if batch.is_full(scan.limits) {
                return Ok(ScanEnd::More);
            }
            batch.push(self.store.keyspace.own_key(&entry), &self.value_of(&stored)?);
        }
        Ok(end)
    }

    /// The entries of a page with the merges over them, and the keys that have only merges.
    fn scan_merged(
        &self,
        scan: &OverlaidScan<'_>,
        range: &KeyRange,
        page: Vec<(Vec<u8>, Vec<u8>)>,
        end: ScanEnd,
        batch: &mut Batch,
    ) -> Result<ScanEnd, StorageError> {
        let keyspace = &self.store.keyspace;
        let mut covered = range.clone();
        if let (ScanEnd::More, Some((last, _))) = (end, page.last()) {
            let last = keyspace.own_key(last).to_vec();
            match scan.direction {
                Direction::Forward => covered.upper = std::ops::Bound::Included(last),
                Direction::Backward => covered.lower = std::ops::Bound::Included(last),
            }
        }
        let at = self.begun.snapshot;
        let mut pending = pending_merges::in_range(&self.store.cluster, keyspace, at, scan.tree, &covered)?;
        let mut rows: BTreeMap<Vec<u8>, (Option<Vec<u8>>, Vec<Vec<u8>>)> = BTreeMap::new();
        for (entry, stored) in page {
            let key = keyspace.own_key(&entry).to_vec();
            let merges = pending.remove(&key).unwrap_or_default();
            rows.insert(key, (Some(stored), merges));
        }
        rows.extend(pending.into_iter().map(|(key, merges)| (key, (None, merges))));
        let push = |(key, (stored, merges)): (Vec<u8>, (Option<Vec<u8>>, Vec<Vec<u8>>)),
                    batch: &mut Batch| {
            self.store.found_merges(scan.tree, &key, merges.len());
            let below = stored.map(|stored| self.value_of(&stored)).transpose()?;
            if let Some(value) = pending_merges::apply(below.as_deref(), &merges)? {
                batch.push(&key, &value);
            }
            Ok::<(), StorageError>(())
        };
        let ordered: Box<dyn Iterator<Item = _>> = match scan.direction {
            Direction::Forward => Box::new(rows.into_iter()),
            Direction::Backward => Box::new(rows.into_iter().rev()),
        };
        for row in ordered {
            if batch.is_full(scan.limits) {
                return Ok(ScanEnd::More);
            }
            push(row, batch)?;
        }
        Ok(end)
    }
}

/// Entries of a page of a tree of this size, so that its answers fit into memory though all its regions give
/// one.
fn page_max(tree: Estimate) -> usize {
    let (regions, entry_bytes) = (tree.bytes / REGION_BYTES + 1, tree.bytes / tree.entries.max(1) + 1);
    let fitting = PAGE_BYTES / regions.saturating_mul(entry_bytes);
    usize::try_from(fitting).unwrap_or(PAGE_MAX).clamp(PAGE_MIN, PAGE_MAX)
}

/// Every read asks the cluster.
fn check_may_block(blocking: BlockingMode) -> Result<(), StorageError> {
    match blocking {
        BlockingMode::MayBlock => Ok(()),
        BlockingMode::CachedOnly => Err(StorageError::would_block()),
    }
}

impl EngineSnapshot for TikvSnapshot {
    fn timestamp(&self) -> SnapshotTimestamp {
        SnapshotTimestamp::new(self.begun.snapshot)
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

    fn prepare_merge(&self, tree: TreeId) -> Result<(), StorageError> {
        if !self.has_waited.get() && self.store.wait_before_merges(tree)? {
            self.has_waited.set(true);
        }
        Ok(())
    }

    fn check_size(&self, bytes: usize) -> Result<(), StorageError> {
        let most = self.store.options.transaction_bytes;
        if bytes <= most {
            return Ok(());
        }
        let message = format!(
            "a transaction writes more than {most} bytes: write less in one, or raise the option `transactionLimit`"
        );
        Err(StorageError::new(ErrorKind::TooLarge, message))
    }

    fn is_large(&self, bytes: usize) -> bool {
        bytes >= LARGE_BYTES
    }

    fn get(&self, tree: TreeId, key: &[u8], blocking: BlockingMode) -> Result<Option<Bytes>, StorageError> {
        let merging = self.merging(tree)?;
        check_may_block(blocking)?;
        let entry = self.store.keyspace.entry(tree, key);
        let expected = self.expected.borrow_mut().take(&entry);
        let stored = match expected {
            Some(stored) => stored,
            None => self.store.cluster.get(self.begun.snapshot, &entry)?,
        };
        let value = stored.map(|stored| self.value_of(&stored)).transpose()?;
        match merging {
            Merging::No => Ok(value),
            Merging::Yes => self.get_merged(tree, key, value),
        }
    }

    fn expect_gets(
        &self,
        tree: TreeId,
        keys: &mut dyn Iterator<Item = Vec<u8>>,
        blocking: BlockingMode,
    ) -> Result<(), StorageError> {
        self.merging(tree)?;
        check_may_block(blocking)?;
        let keys: Vec<Vec<u8>> = keys.map(|key| self.store.keyspace.entry(tree, &key)).collect();
        let found = self.store.cluster.get_all(self.begun.snapshot, &keys)?;
        self.expected.borrow_mut().add(keys, found);
        Ok(())
    }

    fn sends_gets(&self) -> bool {
        true
    }

    fn check_get(&self, tree: TreeId, blocking: BlockingMode) -> Result<(), StorageError> {
        self.merging(tree)?;
        check_may_block(blocking)
    }

    fn scan(&self, scan: OverlaidScan<'_>, batch: &mut Batch) -> Result<ScanEnd, StorageError> {
        let merging = self.merging(scan.tree)?;
        check_may_block(scan.blocking)?;
        scan.over(batch, |range, batch| self.scan_entries(&scan, merging, range, batch))
    }

    /// Exact up to a batch of entries. A longer range is taken for a third of the tree.
    fn estimate(
        &self,
        transaction: &dyn Transaction,
        tree: TreeId,
        range: &KeyRange,
        blocking: BlockingMode,
    ) -> Result<Estimate, StorageError> {
        let whole = {
            let trees = self.store.trees.read();
            trees.readable(tree, self.begun.entered.number)?.figures.estimate()
        };
        emulate::estimate(transaction, tree, range, whole, blocking)
    }

    fn show_writes(&self, count: usize) {
        self.begun.entered.writes_shown.store(count as u64, Ordering::Relaxed);
    }

    /// The cluster has replicated every commit when it answers: all that any durability asks.
    fn commit(&mut self, own: OwnChanges<'_>, _: Durability) -> Result<CommitReceipt, StorageError> {
        let writes = own.writes.in_memory().expect("writes without a spill space stay in memory");
        self.store.commit(writes, own.claims, &mut self.begun)
    }

    fn end(&mut self) {
        self.store.end(self.begun.entered.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_smaller_where_a_tree_has_many_regions() {
        let of = |entries: u64, bytes: u64| page_max(Estimate { entries, bytes });
        assert_eq!([of(0, 0), of(1_000, 1 << 20), of(90_000, 90 << 20)], [PAGE_MAX; 3]);
        // 107 regions of entries of 1 KB.
        assert_eq!(of(10 << 20, 10 << 30), 611);
        assert_eq!(of(1 << 40, 1 << 50), PAGE_MIN);
    }
}
