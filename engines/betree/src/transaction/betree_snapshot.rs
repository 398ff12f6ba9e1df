//! The engine's half of a transaction: its snapshot of the trees, and its commit.
//!
//! The other half, which has the private writes and the claims over it, is [`SnapshotTransaction`].

use std::sync::Arc;

use bytes::Bytes;
use pando_storage::{
    Batch, BlockingMode, Claims, CommitReceipt, Durability, EngineSnapshot, Estimate, Intents, KeyRange,
    Mode, OverlaidScan, OwnChanges, PENDING_PATCHES_MAX, ReadClaims, ScanEnd, SnapshotTimestamp,
    SnapshotTransaction, SpillingWrites, StorageError, Transaction, TreeId,
};

use crate::base::{FEATURE_PATCHES, KeySpan};
use crate::commit::large_commit::SMALL_BYTES_MAX;
use crate::commit_order::Live;
use crate::error::{BetreeError, KeyText};
use crate::range_deletes::FRAGMENTS_MAX;
use crate::range_deletes::encoding::DeletedRange;
use crate::store::Store;
use crate::tree::estimate::estimate;
use crate::tree::lookup::{self, Damaged, pending_patches};
use crate::tree::scan::{ScanRequest, read_hint, scan};
use crate::tree::tree_state::Tree;

/// See the module's head.
pub(crate) struct BetreeSnapshot {
    store: Arc<Store>,
    live: Arc<Live>,
}

impl BetreeSnapshot {
    /// A transaction over the snapshot of a live one, which ends with it.
    pub(crate) fn begin(
        store: Arc<Store>,
        live: Arc<Live>,
        mode: Mode,
    ) -> SnapshotTransaction<BetreeSnapshot> {
        let writes = SpillingWrites::new(&store.spill);
        let claims = Claims::new(live.id, live.snapshot);
        SnapshotTransaction::new(BetreeSnapshot { store, live }, mode, claims, writes)
    }
}

/// An error of a read, with the keys that it concerns.
fn read_error(tree: &Tree, damaged: Damaged) -> BetreeError {
    match damaged.range {
        None => damaged.error,
        Some(range) => BetreeError::Range {
            tree: tree.id,
            name: tree.name.clone(),
            from: KeyText::of_lower(range.0.as_deref()),
            to: KeyText::of_upper(range.1.as_deref()),
            source: Box::new(damaged.error),
        },
    }
}

impl EngineSnapshot for BetreeSnapshot {
    fn timestamp(&self) -> SnapshotTimestamp {
        self.live.snapshot
    }

    fn intents(&self) -> &Intents {
        &self.store.visibility.intents
    }

    fn read_claims(&self) -> Option<&ReadClaims> {
        Some(&self.store.visibility.read_claims)
    }

    fn check_open(&self) -> Result<(), StorageError> {
        Ok(self.store.gate.check_open()?)
    }

    fn check_writable(&self, tree: TreeId) -> Result<(), StorageError> {
        Ok(self.store.trees.check_live(tree)?)
    }

    fn check_size(&self, bytes: usize) -> Result<(), StorageError> {
        let limit = self.store.options.transaction_bytes_max();
        if bytes > limit {
            return Err(BetreeError::TransactionTooLarge { bytes, limit }.into());
        }
        Ok(())
    }

    fn get(&self, tree: TreeId, key: &[u8], blocking: BlockingMode) -> Result<Option<Bytes>, StorageError> {
        self.store.counters.gets.add(1);
        let snapshot = self.live.snapshot;
        let found = self.store.trees.with_view(tree, snapshot, |tree, view| {
            lookup::get(view, &self.store.blocks, key, snapshot, blocking)
                .map_err(|damaged| read_error(tree, damaged))
        });
        Ok(found?)
    }

    /// The superblock must have the feature. The write buffers tell how many patches wait there; those below
    /// are in runs, whose bytes are bounded.
    fn takes_patch(&self, tree: TreeId, key: &[u8]) -> Result<bool, StorageError> {
        if !self.store.blocks.store().features().has(FEATURE_PATCHES) {
            return Ok(false);
        }
        let pending =
            self.store.trees.with_view(tree, self.live.snapshot, |_, view| Ok(pending_patches(view, key)))?;
        let is_taken = pending < PENDING_PATCHES_MAX;
        if is_taken {
            self.store.counters.patches.add(1);
        }
        Ok(is_taken)
    }

    fn check_get(&self, tree: TreeId, _: BlockingMode) -> Result<(), StorageError> {
        self.store.counters.gets.add(1);
        Ok(self.store.trees.with_view(tree, self.live.snapshot, |_, _| Ok(()))?)
    }

    fn scan(&self, wanted: OverlaidScan<'_>, batch: &mut Batch) -> Result<ScanEnd, StorageError> {
        self.store.counters.scans.add(1);
        let (snapshot, accounts) = (self.live.snapshot, &self.store.blocks.accounts);
        let OverlaidScan { tree, direction, blocking, .. } = wanted;
        let hint = read_hint(wanted.limits, batch);
        let limits = accounts.batch_limits(wanted.limits, self.store.options.cache_bytes as usize, batch);
        if wanted.range.is_empty() {
            // The tree must exist even if no key is read.
            self.store.trees.with_view(tree, snapshot, |_, _| Ok(()))?;
        }
        let end = wanted.with_limits(limits).over(batch, |range, batch| {
            batch.clear();
            let request = ScanRequest { range, direction, limits, hint, blocking, snapshot };
            let end = self.store.trees.with_view(tree, snapshot, |tree, view| {
                scan(view, &self.store.blocks, request, batch).map_err(|damaged| read_error(tree, damaged))
            });
            Ok(end?)
        })?;
        self.store.counters.scan_rows.add(batch.len() as u64);
        batch.count_in(&accounts.batches);
        Ok(end)
    }

    fn estimate(
        &self,
        _: &dyn Transaction,
        tree: TreeId,
        range: &KeyRange,
        blocking: BlockingMode,
    ) -> Result<Estimate, StorageError> {
        let estimate = self.store.trees.with_view(tree, self.live.snapshot, |_, view| {
            estimate(view, &self.store.blocks, range, blocking)
        });
        Ok(estimate?)
    }

    /// The list of the tree must have room for the range. The range must have enough entries: rewriting the
    /// pages at its ends must cost less than deleting the entries one by one.
    fn deletes_by_message(
        &self,
        tree: TreeId,
        range: &KeyRange,
        blocking: BlockingMode,
    ) -> Result<bool, StorageError> {
        let least = self.store.options.range_delete_entries;
        if !KeySpan::of(range).is_some_and(|span| span.is_storable()) {
            return Ok(false);
        }
        let is_worth = self.store.trees.with_view(tree, self.live.snapshot, |_, view| {
            if view.ranges.fragments().len() >= FRAGMENTS_MAX || least == 0 {
                return Ok(least == 0 && view.ranges.fragments().len() < FRAGMENTS_MAX);
            }
            Ok(estimate(view, &self.store.blocks, range, blocking)?.entries >= least)
        });
        Ok(is_worth?)
    }

    fn show_writes(&self, count: usize) {
        self.live.set_writes(count);
    }

    fn count_conflict(&self) {
        self.store.counters.conflicts.add(1);
    }

    fn commit(&mut self, own: OwnChanges<'_>, durability: Durability) -> Result<CommitReceipt, StorageError> {
        let OwnChanges { writes, ranges, claims } = own;
        let span_of = |deleted: &pando_storage::DeletedRange| {
            Some(DeletedRange { tree: deleted.tree, span: KeySpan::of(&deleted.range)? })
        };
        let ranges: Vec<DeletedRange> = ranges.iter().filter_map(span_of).collect();
        let receipt = match writes.in_memory() {
            Some(writes) if writes.bytes() <= SMALL_BYTES_MAX || writes.len() == 1 => {
                self.store.committer.commit(writes, &ranges, claims, durability)
            }
            _ => self.store.committer.commit_large(self.live.id, writes, &ranges, claims, durability),
        };
        Ok(receipt?)
    }

    fn end(&mut self) {
        self.store.visibility.snapshots.end(&self.live);
    }
}
