//! The transaction that all engines share: an engine's snapshot, with private writes and claims over it.
//!
//! An engine implements [`EngineSnapshot`] (reading one snapshot, committing once), and gives out
//! [`SnapshotTransaction`]s over it. The engines `memory`, `lmdb` and `betree` do.
//!
//! # Terms
//! - *Own writes*: the writes of the transaction, in memory or [spilled](crate::SpillingWrites).
//! - *Own ranges*: ranges that it has deleted by one message each ([`OwnRanges`]), where the engine can.
//! - *Claims*: the intents on the keys and ranges that it updates ([`Claims`]).
//! - *Read claims*: what it has read, if it is serializable ([`ReadClaims`](crate::ReadClaims)).
//!
//! # Layers of a read
//! ```text
//! own writes          the latest write of a key decides; a merge goes on downwards
//!   own ranges        a key within one is not there
//!     snapshot        the engine's entries: EngineSnapshot::get and ::scan
//! ```
//! A transaction may write into a range and then delete the range. It then deletes those writes key by key in
//! its write set. So own writes always lie over own ranges.
//!
//! # Steps of a write
//! 1. Refuse: a closed engine, a transaction that is too large or only reads, a key or value that is too
//!    long, a tree that takes no writes.
//! 2. Claim the key, unless the write is blind. The loser of two claims gets
//!    [`Conflict`](crate::ErrorKind::Conflict).
//! 3. Refuse a key that a serializable transaction has claimed by reading it.
//! 4. Add the write to the own writes.
//!
//! # Invariants
//! - Claims are settled by [`EngineSnapshot::commit`] or given back when the transaction is dropped, never
//!   both.
//! - A savepoint is the number of own writes and own ranges so far.
//!
//! # Not here
//! Making a commit visible, durable and atomic is the engine's business. So is the list of live transactions.

mod contract;
mod engine_snapshot;
mod own_ranges;
mod serializable;

use bytes::Bytes;

pub use engine_snapshot::{EngineSnapshot, OverlaidScan, OwnChanges};
pub use own_ranges::DeletedRange;
use own_ranges::{OWN_RANGES_MAX, OwnRanges};

use crate::access::{BlockingMode, Claim, Mode};
use crate::batch::{Batch, BatchLimits, ScanEnd};
use crate::error::{ErrorKind, StorageError};
use crate::identifiers::{Savepoint, TreeId};
use crate::intents::Claims;
use crate::key_range::{Direction, KeyRange};
use crate::limits::{check_key, check_value};
use crate::merge::{Merges, PENDING_PATCHES_MAX};
use crate::read_claims::{CommitToken, SerializableReads};
use crate::spill::SpillingWrites;
use crate::transaction::Transaction;
use crate::transaction::emulate;
use crate::write_set::{Change, Write};

/// Bytes of own writes from which on patches are emulated: a large commit may have few bytes of merges.
const PATCHING_BYTES_MAX: usize = 4 << 20;

/// See the module's head. Dropping it rolls it back.
pub struct SnapshotTransaction<S: EngineSnapshot> {
    snapshot: S,
    mode: Mode,
    writes: SpillingWrites,
    /// Deleted keys, except for those in `writes`.
    ranges: OwnRanges,
    /// Keys that it has patched. A scan of the own writes alone does not show them.
    patched: Vec<(TreeId, Vec<u8>)>,
    claims: Claims,
    /// Of a serializable transaction.
    reads: Option<SerializableReads>,
    /// Of a commit under way.
    commit: Option<CommitToken>,
}

/// The latest own write of a key, read out of the write set.
enum OwnValue {
    Value(Bytes),
    Deleted,
    /// Encoded merges over the value below.
    Merges(Vec<u8>),
}

impl OwnValue {
    fn of(change: Change<'_>) -> OwnValue {
        match change {
            Change::Put(value) => OwnValue::Value(Bytes::copy_from_slice(value)),
            Change::Delete => OwnValue::Deleted,
            Change::Merge(merges) => OwnValue::Merges(merges.as_bytes().to_vec()),
        }
    }
}

impl<S: EngineSnapshot> SnapshotTransaction<S> {
    /// A transaction without writes. `claims` and `writes` are new; the engine says by them how many keys are
    /// claimed one by one, and whether writes may leave memory.
    pub fn new(snapshot: S, mode: Mode, claims: Claims, writes: SpillingWrites) -> SnapshotTransaction<S> {
        let ranges = OwnRanges::default();
        SnapshotTransaction {
            snapshot,
            mode,
            writes,
            ranges,
            patched: Vec::new(),
            claims,
            reads: None,
            commit: None,
        }
    }

    /// The same transaction, serializable where `reads` is given.
    #[must_use]
    pub fn claiming(mut self, reads: Option<SerializableReads>) -> SnapshotTransaction<S> {
        self.reads = reads;
        self
    }

    fn show_writes(&self) {
        self.snapshot.show_writes(self.writes.keys() + self.ranges.len());
    }

    fn check_mode(&self) -> Result<(), StorageError> {
        match self.mode {
            Mode::Write => Ok(()),
            Mode::Read => {
                let message = "the transaction was begun for reading only";
                Err(StorageError::new(ErrorKind::InvalidInput, message))
            }
        }
    }

    /// Makes sure that the transaction may write the key, and claims it unless the write is blind.
    fn prepare(
        &mut self,
        tree: TreeId,
        key: &[u8],
        value_bytes: usize,
        claim: Claim,
    ) -> Result<(), StorageError> {
        self.snapshot.check_open()?;
        if !self.writes.is_empty() {
            let bytes = self.writes.bytes() + self.ranges.bytes() + key.len() + value_bytes;
            self.snapshot.check_size(bytes)?;
        }
        self.check_mode()?;
        check_key(key)?;
        self.snapshot.check_writable(tree)?;
        self.check_read_claims(tree, key)?;
        if claim == Claim::Intent {
            let claimed = self.claims.claim(self.snapshot.intents(), tree, key);
            claimed.inspect_err(|_| self.snapshot.count_conflict())?;
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

    fn delete_claiming(&mut self, tree: TreeId, key: &[u8], claim: Claim) -> Result<(), StorageError> {
        self.prepare(tree, key, 0, claim)?;
        self.writes.write(Write::delete(tree, key, claim))?;
        self.show_writes();
        Ok(())
    }

    /// The value below the own writes.
    fn below(&self, tree: TreeId, key: &[u8], blocking: BlockingMode) -> Result<Option<Bytes>, StorageError> {
        if self.ranges.contain(tree, key) {
            self.snapshot.check_get(tree, blocking)?;
            return Ok(None);
        }
        self.snapshot.get(tree, key, blocking)
    }

    /// Whether a patch goes down without a read: neither own patches nor those in the engine are too many.
    fn takes_patch(&self, tree: TreeId, key: &[u8], blocking: BlockingMode) -> Result<bool, StorageError> {
        if self.writes.bytes() > PATCHING_BYTES_MAX {
            return Ok(false);
        }
        let own = self.writes.latest(tree, key, blocking, |own| match own {
            Change::Merge(merges) => merges.patches(),
            Change::Put(_) | Change::Delete => 0,
        })?;
        Ok(own.unwrap_or(0) < PENDING_PATCHES_MAX && self.snapshot.takes_patch(tree, key)?)
    }

    /// Deletes the own writes within a range.
    fn delete_own(
        &mut self,
        tree: TreeId,
        range: &KeyRange,
        blocking: BlockingMode,
    ) -> Result<(), StorageError> {
        for (_, key) in self.patched.iter().filter(|(of, key)| *of == tree && range.contains(key)) {
            self.writes.write(Write::delete(tree, key, Claim::Blind))?;
        }
        let (mut rest, mut batch) = (range.clone(), Batch::new());
        let (direction, limits) = (Direction::Forward, BatchLimits::LARGEST);
        let mut nothing_below = |_: &KeyRange, below: &mut Batch| {
            below.clear();
            Ok(ScanEnd::Done)
        };
        loop {
            let end = self.writes.scan_over(
                tree,
                &rest,
                direction,
                limits,
                blocking,
                &mut batch,
                &mut nothing_below,
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

    /// Deletes a range by one message; false where the keys have to be deleted one by one.
    fn delete_by_message(
        &mut self,
        tree: TreeId,
        range: &KeyRange,
        blocking: BlockingMode,
    ) -> Result<bool, StorageError> {
        if self.ranges.len() >= OWN_RANGES_MAX || !self.snapshot.deletes_by_message(tree, range, blocking)? {
            return Ok(false);
        }
        let claimed = self.claims.claim_range(self.snapshot.intents(), tree, range);
        if !claimed.inspect_err(|_| self.snapshot.count_conflict())? {
            return Ok(false);
        }
        let before = self.savepoint();
        if let Err(error) = self.delete_own(tree, range, blocking) {
            self.rollback_to(before);
            return Err(error);
        }
        self.ranges.push(tree, range, self.writes.len());
        self.show_writes();
        Ok(true)
    }
}

impl<S: EngineSnapshot> Drop for SnapshotTransaction<S> {
    /// The end of every transaction. After a commit there are no claims left to give back.
    fn drop(&mut self) {
        self.end_reads();
        self.claims.release(self.snapshot.intents());
        self.snapshot.end();
    }
}
