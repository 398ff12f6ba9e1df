//! The methods of [`Transaction`] for the transaction that all engines share.

use super::*;
use crate::durability::{CommitReceipt, Durability};
use crate::identifiers::{CommitTimestamp, Lsn, SnapshotTimestamp, TransactionId};
use crate::intents::Ticket;
use crate::merge::Merge;
use crate::statistics::Estimate;

impl<S: EngineSnapshot> Transaction for SnapshotTransaction<S> {
    fn snapshot(&self) -> SnapshotTimestamp {
        self.snapshot.timestamp()
    }

    fn id(&self) -> Option<TransactionId> {
        Some(self.claims.owner())
    }

    fn present_ticket(&mut self, ticket: Option<Ticket>) {
        self.claims.present(ticket);
    }

    fn get(&self, tree: TreeId, key: &[u8], blocking: BlockingMode) -> Result<Option<Bytes>, StorageError> {
        check_key(key)?;
        self.snapshot.check_open()?;
        let found = match self.writes.latest(tree, key, blocking, OwnValue::of)? {
            None => self.below(tree, key, blocking)?,
            Some(OwnValue::Value(value)) => {
                self.snapshot.check_get(tree, blocking)?;
                Some(value)
            }
            Some(OwnValue::Deleted) => {
                self.snapshot.check_get(tree, blocking)?;
                None
            }
            Some(OwnValue::Merges(merges)) => {
                let merges = Merges::decode(&merges).expect("own merges were encoded whole");
                let below = self.below(tree, key, blocking)?;
                merges.apply(below.as_deref()).map(|value| Bytes::copy_from_slice(&value))
            }
        };
        self.claim_key(tree, key)?;
        Ok(found)
    }

    fn expect_gets(
        &self,
        tree: TreeId,
        keys: &mut dyn Iterator<Item = Vec<u8>>,
        blocking: BlockingMode,
    ) -> Result<(), StorageError> {
        self.snapshot.check_open()?;
        self.snapshot.expect_gets(tree, keys, blocking)
    }

    fn sends_gets(&self) -> bool {
        self.snapshot.sends_gets()
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
        let claim = match merge {
            Merge::Patch(_) if !self.takes_patch(tree, key, blocking)? => {
                return emulate::merge(self, tree, key, merge, blocking);
            }
            Merge::Patch(_) => Claim::Intent,
            Merge::Add(_) | Merge::Max(_) | Merge::Min(_) => claim,
        };
        self.prepare(tree, key, merge.operand_bytes(), claim)?;
        self.snapshot.prepare_merge(tree)?;
        let is_deleted =
            self.ranges.contain(tree, key) && self.writes.latest(tree, key, blocking, |_own| ())?.is_none();
        if is_deleted {
            // It applies to nothing, which only this transaction knows.
            if let Some(value) = merge.apply(None) {
                self.writes.write(Write::put(tree, key, &value, claim))?;
            }
        } else {
            self.writes.merge(tree, key, merge, claim, blocking)?;
            if let Merge::Patch(_) = merge {
                self.patched.push((tree, key.to_vec()));
            }
        }
        self.show_writes();
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
        self.snapshot.check_open()?;
        let (writes, ranges) = (&self.writes, &self.ranges);
        let scan = OverlaidScan { tree, range, direction, limits, blocking, writes, ranges };
        let end = self.snapshot.scan(scan, batch)?;
        self.claim_batch(tree, range, direction, batch, end)?;
        Ok(end)
    }

    fn estimate(
        &self,
        tree: TreeId,
        range: &KeyRange,
        blocking: BlockingMode,
    ) -> Result<Estimate, StorageError> {
        self.snapshot.check_open()?;
        self.snapshot.estimate(self, tree, range, blocking)
    }

    fn delete_range(
        &mut self,
        tree: TreeId,
        range: &KeyRange,
        blocking: BlockingMode,
    ) -> Result<(), StorageError> {
        self.snapshot.check_open()?;
        self.check_mode()?;
        self.snapshot.check_writable(tree)?;
        if range.half_open().is_none() || self.delete_by_message(tree, range, blocking)? {
            return Ok(());
        }
        emulate::delete_range(self, tree, range, blocking)
    }

    fn claims_reads(&self) -> bool {
        self.reads.is_some()
    }

    fn has_writes(&self) -> bool {
        !self.writes.is_empty() || !self.ranges.is_empty()
    }

    fn is_large(&self) -> bool {
        self.snapshot.is_large(self.writes.bytes())
    }

    fn savepoint(&mut self) -> Savepoint {
        Savepoint::new(self.writes.savepoint().writes() + self.ranges.len())
    }

    fn rollback_to(&mut self, savepoint: Savepoint) {
        let writes = self.ranges.rollback_to(savepoint.writes());
        self.writes.rollback_to(Savepoint::new(writes));
        self.show_writes();
    }

    fn commit(mut self: Box<Self>, durability: Durability) -> Result<CommitReceipt, StorageError> {
        self.snapshot.check_open()?;
        if self.writes.is_empty() && self.ranges.is_empty() {
            let timestamp = CommitTimestamp::new(self.snapshot.timestamp().get());
            return Ok(CommitReceipt { timestamp, lsn: Lsn::ZERO });
        }
        let note = self.enter_commit()?;
        let SnapshotTransaction { snapshot, writes, ranges, claims, .. } = &mut *self;
        let outcome = snapshot.commit(OwnChanges { writes, ranges: ranges.as_slice(), claims }, durability);
        self.leave_commit(note, &outcome);
        outcome
    }

    fn rollback(self: Box<Self>) {}

    fn as_dyn(&self) -> &dyn Transaction {
        self
    }

    fn as_dyn_mut(&mut self) -> &mut dyn Transaction {
        self
    }
}
