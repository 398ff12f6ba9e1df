//! The part of a transaction that deals with read claims: its own, if it is serializable, and those of
//! others.

use std::ops::Bound;

use super::{DeletedRange, EngineSnapshot, SnapshotTransaction};
use crate::batch::{Batch, ScanEnd};
use crate::durability::CommitReceipt;
use crate::error::StorageError;
use crate::identifiers::TreeId;
use crate::key_range::{Direction, KeyRange};
use crate::read_claims::{CommitNote, OwnWrites, WrittenKeys};
use crate::spill::SpillingWrites;

impl<S: EngineSnapshot> SnapshotTransaction<S> {
    /// Claims a key that was read, if the transaction is serializable.
    #[inline]
    pub(super) fn claim_key(&self, tree: TreeId, key: &[u8]) -> Result<(), StorageError> {
        match &self.reads {
            None => Ok(()),
            Some(_) => self.claim_range(tree, &KeyRange::point(key)),
        }
    }

    /// Claims the part of a range that a batch of a scan has covered.
    #[inline]
    pub(super) fn claim_batch(
        &self,
        tree: TreeId,
        range: &KeyRange,
        direction: Direction,
        batch: &Batch,
        end: ScanEnd,
    ) -> Result<(), StorageError> {
        if self.reads.is_none() {
            return Ok(());
        }
        let mut read = range.clone();
        if let (ScanEnd::More, Some((last, _))) = (end, batch.last()) {
            match direction {
                Direction::Forward => read.upper = Bound::Included(last.to_vec()),
                Direction::Backward => read.lower = Bound::Included(last.to_vec()),
            }
        }
        self.claim_range(tree, &read)
    }

    #[cold]
    fn claim_range(&self, tree: TreeId, range: &KeyRange) -> Result<(), StorageError> {
        let (Some(reads), Some(claims)) = (&self.reads, self.snapshot.read_claims()) else { return Ok(()) };
        let own = match self.writes.is_empty() && self.ranges.is_empty() {
            true => OwnWrites::None,
            false => OwnWrites::Some,
        };
        claims.claim(reads, tree, range, own).inspect_err(|_| self.snapshot.count_conflict())
    }

    /// Refuses a write that another transaction's claim forbids, and any write of an overtaken transaction.
    #[inline]
    pub(super) fn check_read_claims(&self, tree: TreeId, key: &[u8]) -> Result<(), StorageError> {
        let Some(claims) = self.snapshot.read_claims() else { return Ok(()) };
        let of_own = self.reads.as_ref().map_or(Ok(()), |reads| reads.check());
        of_own
            .and_then(|()| claims.check_write(self.claims.owner(), tree, key))
            .inspect_err(|_| self.snapshot.count_conflict())
    }

    /// Begins the commit for readers that begin meanwhile, and notes its keys if there are readers.
    pub(super) fn enter_commit(&mut self) -> Result<Option<CommitNote>, StorageError> {
        let Some(claims) = self.snapshot.read_claims() else { return Ok(None) };
        self.commit = Some(claims.begin_commit());
        if !claims.wants_notes() {
            return Ok(None);
        }
        self.note_commit()
    }

    #[cold]
    fn note_commit(&self) -> Result<Option<CommitNote>, StorageError> {
        let Some(claims) = self.snapshot.read_claims() else { return Ok(None) };
        let written = written_keys(&self.writes, self.ranges.as_slice())?;
        let of_own = self.reads.as_ref().map_or(Ok(()), |reads| reads.check());
        let noted = of_own.and_then(|()| claims.note(self.claims.owner(), &written));
        noted.map(Some).inspect_err(|_| self.snapshot.count_conflict())
    }

    /// Settles what the commit has noted.
    pub(super) fn leave_commit(
        &mut self,
        note: Option<CommitNote>,
        outcome: &Result<CommitReceipt, StorageError>,
    ) {
        if let (Some(note), Ok(receipt)) = (&note, outcome) {
            note.settle(receipt.timestamp);
        }
        drop(note);
        self.end_commit();
    }

    /// Ends the commit under way, if there is one.
    pub(super) fn end_commit(&mut self) {
        if let (Some(token), Some(claims)) = (self.commit.take(), self.snapshot.read_claims()) {
            claims.end_commit(token);
        }
    }

    /// Gives the read claims back.
    pub(super) fn end_reads(&mut self) {
        self.end_commit();
        if let (Some(reads), Some(claims)) = (self.reads.take(), self.snapshot.read_claims()) {
            claims.leave(&reads);
        }
    }
}

fn written_keys(writes: &SpillingWrites, ranges: &[DeletedRange]) -> Result<WrittenKeys, StorageError> {
    let mut written = WrittenKeys::default();
    match writes.in_memory() {
        Some(writes) => writes.iter().for_each(|write| written.add(write.tree, write.key)),
        None => {
            let mut merged = writes.merged()?;
            while let Some(write) = merged.next()? {
                written.add(write.tree, write.key);
            }
        }
    }
    ranges.iter().for_each(|deleted| written.add_range(deleted.tree, &deleted.range));
    Ok(written)
}
