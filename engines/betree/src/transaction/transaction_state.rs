//! A transaction: a snapshot, the ranges that it has deleted, a private write set over both, and the claims
//! that keep other writers away.

use std::sync::Arc;

use bytes::Bytes;
use pando_storage::limits::{check_key, check_value};
use pando_storage::{
    Batch, BatchLimits, BlockingMode, Claim, Claims, CommitReceipt, CommitTimestamp, Direction, Durability,
    Estimate, KeyRange, Lsn, Merge, Mode, Savepoint, ScanEnd, SnapshotTimestamp, SpillingWrites,
    StorageError, Transaction, TreeId, Write, emulate,
};

use crate::base::KeySpan;
use crate::commit::large_commit::SMALL_BYTES_MAX;
use crate::commit_order::Live;
use crate::error::{BetreeError, KeyText};
use crate::format::content::Content;
use crate::range_deletes::FRAGMENTS_MAX;
use crate::range_deletes::own_ranges::{OWN_RANGES_MAX, OwnRanges};
use crate::store::Store;
use crate::tree::buffer::OwnedChange;
use crate::tree::estimate::estimate;
use crate::tree::lookup::{self, Damaged};
use crate::tree::scan::{ScanRequest, read_hint, scan};
use crate::tree::tree_state::Tree;
use crate::tree::value_merge::MergeOperands;

/// See the module's head. Dropping it rolls it back.
pub(crate) struct BetreeTransaction {
    store: Arc<Store>,
    live: Arc<Live>,
    mode: Mode,
    writes: SpillingWrites,
    /// Deleted, but for what `writes` has.
    ranges: OwnRanges,
    claims: Claims,
}

impl BetreeTransaction {
    pub(crate) fn new(store: Arc<Store>, live: Arc<Live>, mode: Mode) -> BetreeTransaction {
        let writes = SpillingWrites::new(&store.spill);
        let claims = Claims::new(live.id, live.snapshot);
        BetreeTransaction { store, live, mode, writes, ranges: OwnRanges::default(), claims }
    }

    fn show_writes(&self) {
        self.live.set_writes(self.writes.keys() + self.ranges.len());
    }

    /// Makes sure that this transaction may write the key: there is room, the tree is there, and the key is
    /// claimed unless blind.
    fn prepare(
        &mut self,
        tree: TreeId,
        key: &[u8],
        value_bytes: usize,
        claim: Claim,
    ) -> Result<(), StorageError> {
        self.store.gate.check_open()?;
        let (bytes, limit) = (
            self.writes.bytes() + self.ranges.bytes() + key.len() + value_bytes,
            self.store.options.transaction_bytes_max(),
        );
        if bytes > limit && !self.writes.is_empty() {
            return Err(BetreeError::TransactionTooLarge { bytes, limit }.into());
        }
        if self.mode == Mode::Read {
            return Err(BetreeError::ReadOnly.into());
        }
        check_key(key)?;
        self.store.trees.check_live(tree)?;
        if claim == Claim::Intent {
            self.claims
                .claim(&self.store.visibility.intents, tree, key)
                .inspect_err(|_| self.store.counters.conflicts.add(1))?;
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
        self.prepare(tree, key, value.len(), claim)?;
        self.writes.write(Write::put(tree, key, value, claim))?;
        self.show_writes();
        Ok(())
    }

    /// Whether a range is deleted by one message: there is room for it in the lists of range deletes, and it
    /// has more entries than are deleted one by one at less cost than edges of it are rewritten.
    fn is_worth_a_message(
        &self,
        tree: TreeId,
        range: &KeyRange,
        span: &KeySpan,
        blocking: BlockingMode,
    ) -> Result<bool, StorageError> {
        let least = self.store.options.range_delete_entries;
        if self.ranges.len() >= OWN_RANGES_MAX || !span.is_storable() {
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

    /// Deletes what this transaction has written itself within a range.
    fn delete_own(
        &mut self,
        tree: TreeId,
        range: &KeyRange,
        blocking: BlockingMode,
    ) -> Result<(), StorageError> {
        let (mut rest, mut batch) = (range.clone(), Batch::new());
        let (direction, limits) = (Direction::Forward, BatchLimits::LARGEST);
        loop {
            let end = self.writes.scan_over(
                tree,
                &rest,
                direction,
                limits,
                blocking,
                &mut batch,
                &mut |_, below| {
                    below.clear();
                    Ok(ScanEnd::Done)
                },
            )?;
            for (key, _) in batch.iter() {
                // The write that it covers has its claim.
                self.writes.write(Write::delete(tree, key, Claim::Blind))?;
            }
            match (end, batch.last()) {
                (ScanEnd::More, Some((last, _))) => rest.advance_past(last, direction),
                _ => return Ok(()),
            }
        }
    }

    fn delete_claiming(&mut self, tree: TreeId, key: &[u8], claim: Claim) -> Result<(), StorageError> {
        self.prepare(tree, key, 0, claim)?;
        self.writes.write(Write::delete(tree, key, claim))?;
        self.show_writes();
        Ok(())
    }
}

/// An error of a read, with the keys that it concerns.
fn read_error(tree: &Tree, damaged: Damaged) -> BetreeError {
    match damaged.range {
        None => damaged.error,
        Some(range) => BetreeError::Range {
            tree: tree.id,
            name: tree.name.clone(),
            from: KeyText::new(range.0.as_deref()),
            to: KeyText::new(range.1.as_deref()),
            source: Box::new(damaged.error),
        },
    }
}

impl Transaction for BetreeTransaction {
    fn snapshot(&self) -> SnapshotTimestamp {
        self.live.snapshot
    }

    fn get(&self, tree: TreeId, key: &[u8], blocking: BlockingMode) -> Result<Option<Bytes>, StorageError> {
        check_key(key)?;
        self.store.gate.check_open()?;
        self.store.counters.gets.add(1);
        let snapshot = self.live.snapshot;
        let mut merges = MergeOperands::default();
        let own = self.writes.latest(tree, key, blocking, |own| OwnedChange::new(own).shared_content())?;
        let own = own.and_then(|own| merges.take(own));
        let found = self.store.trees.with_view(tree, snapshot, |tree, view| {
            let below = || {
                if self.ranges.contain(tree.id, key) {
                    return Ok(None);
                }
                lookup::get(view, &self.store.blocks, key, snapshot, blocking)
                    .map_err(|damaged| read_error(tree, damaged))
            };
            match own {
                None => Ok(merges.over(below()?)),
                Some(Content::Value(value)) => Ok(Some(value)),
                Some(_deleted) => Ok(None),
            }
        });
        Ok(found?)
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
        blocking: BlockingMode,
    ) -> Result<(), StorageError> {
        merge.check()?;
        self.prepare(tree, key, merge.operand_bytes(), claim)?;
        let is_deleted =
            self.ranges.contain(tree, key) && self.writes.latest(tree, key, blocking, |_own| ())?.is_none();
        if is_deleted {
            // It applies to nothing, which only this transaction knows.
            self.writes.write(Write::put(tree, key, &merge.apply(None), claim))?;
        } else {
            self.writes.merge(tree, key, merge, claim, blocking)?;
        }
        self.live.set_writes(self.writes.keys());
        Ok(())
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
        self.store.gate.check_open()?;
        self.store.counters.scans.add(1);
        let snapshot = self.live.snapshot;
        let accounts = &self.store.blocks.accounts;
        let hint = read_hint(limits, batch);
        let limits = accounts.batch_limits(limits, self.store.options.cache_bytes as usize, batch);
        if range.is_empty() {
            // The tree must be there even if nothing is read.
            self.store.trees.with_view(tree, snapshot, |_, _| Ok(()))?;
        }
        let end =
            self.writes.scan_over(tree, range, direction, limits, blocking, batch, &mut |range, batch| {
                self.ranges.scan_beside(tree, range, direction, batch, &mut |range, batch| {
                    batch.clear();
                    let request = ScanRequest { range, direction, limits, hint, blocking, snapshot };
                    let end = self.store.trees.with_view(tree, snapshot, |tree, view| {
                        scan(view, &self.store.blocks, request, batch)
                            .map_err(|damaged| read_error(tree, damaged))
                    });
                    Ok(end?)
                })
            })?;
        self.store.counters.scan_rows.add(batch.len() as u64);
        batch.count_in(&accounts.batches);
        Ok(end)
    }

    fn estimate(
        &self,
        tree: TreeId,
        range: &KeyRange,
        blocking: BlockingMode,
    ) -> Result<Estimate, StorageError> {
        self.store.gate.check_open()?;
        let estimate = self.store.trees.with_view(tree, self.live.snapshot, |_, view| {
            estimate(view, &self.store.blocks, range, blocking)
        });
        Ok(estimate?)
    }

    fn delete_range(
        &mut self,
        tree: TreeId,
        range: &KeyRange,
        blocking: BlockingMode,
    ) -> Result<(), StorageError> {
        self.store.gate.check_open()?;
        if self.mode == Mode::Read {
            return Err(BetreeError::ReadOnly.into());
        }
        self.store.trees.check_live(tree)?;
        let Some(span) = KeySpan::of(range) else { return Ok(()) };
        if !self.is_worth_a_message(tree, range, &span, blocking)? {
            return emulate::delete_range(self, tree, range, blocking);
        }
        let is_claimed = self.claims.claim_range(&self.store.visibility.intents, tree, range);
        if !is_claimed.inspect_err(|_| self.store.counters.conflicts.add(1))? {
            return emulate::delete_range(self, tree, range, blocking);
        }
        let before = self.savepoint();
        if let Err(error) = self.delete_own(tree, range, blocking) {
            self.rollback_to(before);
            return Err(error);
        }
        self.ranges.push(tree, span, self.writes.len());
        self.show_writes();
        Ok(())
    }

    fn savepoint(&mut self) -> Savepoint {
        Savepoint::new(self.writes.savepoint().writes() + self.ranges.len())
    }

    fn rollback_to(&mut self, savepoint: Savepoint) {
        let writes = self.ranges.rollback_to(savepoint.writes());
        self.writes.rollback_to(Savepoint::new(writes));
        self.show_writes();
    }

    fn commit(self: Box<Self>, durability: Durability) -> Result<CommitReceipt, StorageError> {
        self.store.gate.check_open()?;
        if self.writes.is_empty() && self.ranges.is_empty() {
            let timestamp = CommitTimestamp::new(self.live.snapshot.get());
            return Ok(CommitReceipt { timestamp, lsn: Lsn::ZERO });
        }
        let receipt = match self.writes.in_memory() {
            Some(writes) if writes.bytes() <= SMALL_BYTES_MAX || writes.len() == 1 => {
                self.store.committer.commit(writes, self.ranges.as_slice(), &self.claims, durability)
            }
            _ => self.store.committer.commit_large(
                self.live.id,
                &self.writes,
                self.ranges.as_slice(),
                &self.claims,
                durability,
            ),
        };
        Ok(receipt?)
    }

    fn rollback(self: Box<Self>) {}

    fn as_dyn(&self) -> &dyn Transaction {
        self
    }

    fn as_dyn_mut(&mut self) -> &mut dyn Transaction {
        self
    }
}

impl Drop for BetreeTransaction {
    /// The end of every transaction. After a commit there are no claims left to release.
    fn drop(&mut self) {
        self.claims.release(&self.store.visibility.intents);
        self.store.visibility.snapshots.end(&self.live);
    }
}
