//! A transaction behind the checking wrapper.

use bytes::Bytes;

use super::call::Call;
use crate::access::{BlockingMode, Claim, Isolation, Mode};
use crate::batch::{Batch, BatchLimits, ScanEnd};
use crate::durability::{CommitReceipt, Durability};
use crate::engine::Begin;
use crate::error::StorageError;
use crate::identifiers::{Lsn, Savepoint, SnapshotTimestamp, TransactionId, TreeId};
use crate::intents::Ticket;
use crate::key_range::{Direction, KeyRange};
use crate::limits::VALUE_BYTES_MAX;
use crate::limits::{check_key, check_value};
use crate::merge::Merge;
use crate::statistics::Estimate;
use crate::transaction::Transaction;

/// The calls that a transaction still takes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Everything.
    Live,
    /// It met a conflict: only rolling back.
    Conflicted,
    /// The same with a key that was told: rolling back to a savepoint is enough.
    Contested,
}

/// Whether any update has succeeded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wrote {
    Nothing,
    Something,
}

pub(super) struct CheckedTransaction {
    inner: Box<dyn Transaction>,
    mode: Mode,
    isolation: Isolation,
    state: State,
    wrote: Wrote,
}

impl CheckedTransaction {
    pub(super) fn new(inner: Box<dyn Transaction>, begin: Begin) -> CheckedTransaction {
        let Begin { mode, isolation, .. } = begin;
        CheckedTransaction { inner, mode, isolation, state: State::Live, wrote: Wrote::Nothing }
    }

    /// Checks the outcome of a read, which may be a conflict in a serializable transaction only.
    fn checked_read<T>(
        &self,
        blocking: BlockingMode,
        outcome: Result<T, StorageError>,
    ) -> Result<T, StorageError> {
        match outcome {
            Err(error) if error.is_conflict() && self.isolation == Isolation::Serializable => Err(error),
            outcome => read(blocking).check(outcome),
        }
    }

    fn assert_live(&self) {
        assert!(
            self.state == State::Live,
            "a transaction was used after a conflict: it can only be rolled back"
        );
    }

    fn checked_update(&mut self, call: Call, outcome: Result<(), StorageError>) -> Result<(), StorageError> {
        let outcome = call.check(outcome);
        match &outcome {
            Ok(()) => {
                assert!(self.mode == Mode::Write, "a reading transaction took a write");
                self.wrote = Wrote::Something;
            }
            Err(error) if error.contested_key().is_some() => self.state = State::Contested,
            Err(error) if error.is_conflict() => self.state = State::Conflicted,
            Err(_) => {}
        }
        outcome
    }

    fn checked_put(
        &mut self,
        key: &[u8],
        value: &[u8],
        run: impl FnOnce(&mut dyn Transaction) -> Result<(), StorageError>,
    ) -> Result<(), StorageError> {
        self.assert_live();
        let outcome = run(self.inner.as_dyn_mut());
        let is_refused = outcome.is_err();
        assert!(is_refused || check_key(key).is_ok(), "put took a key of {} bytes", key.len());
        assert!(is_refused || check_value(value).is_ok(), "put took a value of {} bytes", value.len());
        self.checked_update(Call::Update, outcome)
    }

    fn checked_delete(
        &mut self,
        key: &[u8],
        run: impl FnOnce(&mut dyn Transaction) -> Result<(), StorageError>,
    ) -> Result<(), StorageError> {
        self.assert_live();
        let outcome = run(self.inner.as_dyn_mut());
        assert!(outcome.is_err() || check_key(key).is_ok(), "delete took a key of {} bytes", key.len());
        self.checked_update(Call::Update, outcome)
    }
}

impl Transaction for CheckedTransaction {
    fn snapshot(&self) -> SnapshotTimestamp {
        self.inner.snapshot()
    }

    fn id(&self) -> Option<TransactionId> {
        self.inner.id()
    }

    fn present_ticket(&mut self, ticket: Option<Ticket>) {
        self.inner.present_ticket(ticket);
    }

    fn get(&self, tree: TreeId, key: &[u8], blocking: BlockingMode) -> Result<Option<Bytes>, StorageError> {
        self.assert_live();
        let value = self.checked_read(blocking, self.inner.get(tree, key, blocking))?;
        value.iter().for_each(|value| assert_value(value));
        Ok(value)
    }

    fn expect_gets(
        &self,
        tree: TreeId,
        keys: &mut dyn Iterator<Item = Vec<u8>>,
        blocking: BlockingMode,
    ) -> Result<(), StorageError> {
        self.assert_live();
        self.checked_read(blocking, self.inner.expect_gets(tree, keys, blocking))
    }

    fn sends_gets(&self) -> bool {
        self.inner.sends_gets()
    }

    fn put(&mut self, tree: TreeId, key: &[u8], value: &[u8]) -> Result<(), StorageError> {
        self.checked_put(key, value, |inner| inner.put(tree, key, value))
    }

    fn delete(&mut self, tree: TreeId, key: &[u8]) -> Result<(), StorageError> {
        self.checked_delete(key, |inner| inner.delete(tree, key))
    }

    fn put_blind(&mut self, tree: TreeId, key: &[u8], value: &[u8]) -> Result<(), StorageError> {
        self.checked_put(key, value, |inner| inner.put_blind(tree, key, value))
    }

    fn delete_blind(&mut self, tree: TreeId, key: &[u8]) -> Result<(), StorageError> {
        self.checked_delete(key, |inner| inner.delete_blind(tree, key))
    }

    fn merge(
        &mut self,
        tree: TreeId,
        key: &[u8],
        merge: Merge<'_>,
        claim: Claim,
        blocking: BlockingMode,
    ) -> Result<(), StorageError> {
        self.assert_live();
        let outcome = self.inner.merge(tree, key, merge, claim, blocking);
        assert!(outcome.is_err() || check_key(key).is_ok(), "merge took a key of {} bytes", key.len());
        assert!(outcome.is_err() || merge.check().is_ok(), "merge took an operand that is too long");
        self.checked_update(update(blocking), outcome)
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
        self.assert_live();
        assert!(limits.entries_max > 0, "a scan was asked for a batch of no entries");
        let outcome = self.inner.scan(tree, range, direction, limits, blocking, batch);
        let end = self.checked_read(blocking, outcome)?;
        assert_batch(batch, range, direction, limits, end);
        Ok(end)
    }

    fn estimate(
        &self,
        tree: TreeId,
        range: &KeyRange,
        blocking: BlockingMode,
    ) -> Result<Estimate, StorageError> {
        self.assert_live();
        read(blocking).check(self.inner.estimate(tree, range, blocking))
    }

    fn delete_range(
        &mut self,
        tree: TreeId,
        range: &KeyRange,
        blocking: BlockingMode,
    ) -> Result<(), StorageError> {
        self.assert_live();
        let outcome = self.inner.delete_range(tree, range, blocking);
        self.checked_update(update(blocking), outcome)
    }

    fn claims_reads(&self) -> bool {
        self.inner.claims_reads()
    }

    fn has_writes(&self) -> bool {
        self.assert_live();
        self.inner.has_writes()
    }

    fn is_large(&self) -> bool {
        self.assert_live();
        self.inner.is_large()
    }

    fn savepoint(&mut self) -> Savepoint {
        self.assert_live();
        self.inner.savepoint()
    }

    fn rollback_to(&mut self, savepoint: Savepoint) {
        if self.state == State::Contested {
            self.state = State::Live;
        }
        self.assert_live();
        self.inner.rollback_to(savepoint);
    }

    fn commit(self: Box<Self>, durability: Durability) -> Result<CommitReceipt, StorageError> {
        self.assert_live();
        let snapshot = self.inner.snapshot();
        let receipt = Call::Commit.check(self.inner.commit(durability))?;
        if self.wrote == Wrote::Nothing {
            assert_eq!(receipt.lsn, Lsn::ZERO, "a transaction that wrote nothing got a place in the log");
        } else if receipt.lsn > Lsn::ZERO {
            let is_new = !snapshot.sees(receipt.timestamp);
            assert!(is_new, "{:?} was given to a transaction that began at {snapshot:?}", receipt.timestamp);
        }
        Ok(receipt)
    }

    fn rollback(self: Box<Self>) {
        self.inner.rollback();
    }

    fn as_dyn(&self) -> &dyn Transaction {
        self
    }

    fn as_dyn_mut(&mut self) -> &mut dyn Transaction {
        self
    }
}

fn read(blocking: BlockingMode) -> Call {
    match blocking {
        BlockingMode::CachedOnly => Call::CachedRead,
        BlockingMode::MayBlock => Call::Read,
    }
}

fn update(blocking: BlockingMode) -> Call {
    match blocking {
        BlockingMode::CachedOnly => Call::CachedUpdate,
        BlockingMode::MayBlock => Call::Update,
    }
}

fn assert_value(value: &[u8]) {
    assert!(value.len() <= VALUE_BYTES_MAX, "a value of {} bytes came out of the engine", value.len());
}

fn assert_batch(batch: &Batch, range: &KeyRange, direction: Direction, limits: BatchLimits, end: ScanEnd) {
    assert!(
        !batch.is_empty() || end == ScanEnd::Done,
        "a scan gave an empty batch and said that there may be more"
    );
    assert!(batch.len() <= limits.entries_max, "a scan gave {} entries, beyond {limits:?}", batch.len());
    let mut previous: Option<&[u8]> = None;
    let mut bytes_before = 0;
    for (key, value) in batch.iter() {
        assert!(range.contains(key), "a scan gave {key:?}, which lies outside {range:?}");
        assert!(check_key(key).is_ok(), "a key of {} bytes came out of the engine", key.len());
        assert_value(value);
        let is_ordered = match direction {
            Direction::Forward => previous.is_none_or(|previous| previous < key),
            Direction::Backward => previous.is_none_or(|previous| previous > key),
        };
        assert!(is_ordered, "a scan {direction:?} gave {key:?} after {previous:?}");
        let had_room = previous.is_none() || bytes_before < limits.bytes_max;
        assert!(had_room, "a scan went on after {bytes_before} bytes, beyond {limits:?}");
        bytes_before += key.len() + value.len();
        previous = Some(key);
    }
}
