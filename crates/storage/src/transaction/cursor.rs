//! The cursor: it asks for one batch of a scan after another, and gives out entry by entry.
//!
//! An engine keeps no state between two batches. The cursor narrows its range past the last key that it was
//! given, so each batch costs one descent of the tree, which is little beside the entries that it brings. In
//! return a cursor borrows no transaction, pins no page, and need not be told of writes.

use std::ops::Bound;

use super::Transaction;
use crate::access::BlockingMode;
use crate::batch::{Batch, BatchLimits, ScanEnd};
use crate::error::StorageError;
use crate::identifiers::TreeId;
use crate::key_range::{Direction, KeyRange};

/// Bytes of an entry that a batch of expected entries has room for.
const EXPECTED_BYTES: usize = 1024;
/// The assumed bytes of an entry, which bound the entries of a batch for a cursor with little memory.
const SHORT_ENTRY_BYTES: usize = 64;

/// Which values the entries of a run have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunValues {
    /// The same as the first.
    Equal,
    /// Any.
    Any,
}

/// Steps through a range in batches that grow from [`BatchLimits::FIRST`] to [`BatchLimits::LARGEST`].
#[derive(Clone, Debug)]
pub struct Cursor {
    tree: TreeId,
    range: KeyRange,
    direction: Direction,
    limits: BatchLimits,
    batch: Batch,
    /// The bound of the growing `limits`.
    largest: BatchLimits,
    /// The next entry of `batch` to deliver.
    at: usize,
    end: ScanEnd,
}

impl Cursor {
    /// A cursor before the first entry of the range.
    pub fn new(tree: TreeId, range: KeyRange, direction: Direction) -> Cursor {
        let end = if range.is_empty() { ScanEnd::Done } else { ScanEnd::More };
        let (limits, largest) = (BatchLimits::FIRST, BatchLimits::LARGEST);
        Cursor { tree, range, direction, limits, batch: Batch::new(), largest, at: 0, end }
    }

    /// A cursor with batches of at most this many bytes, unless an entry is larger, for which its owner has
    /// the memory from the engine.
    #[must_use]
    pub fn within(mut self, bytes_max: usize) -> Cursor {
        self.batch = Batch::owned();
        let bytes_max = bytes_max.clamp(BatchLimits::FIRST.bytes_max, BatchLimits::LARGEST.bytes_max);
        // The places of entries take memory, too.
        let entries_max = (bytes_max / SHORT_ENTRY_BYTES).min(BatchLimits::LARGEST.entries_max);
        self.largest = BatchLimits { entries_max, bytes_max };
        self.limits = self.limits.within(self.largest);
        self
    }

    /// A cursor of which this many entries will usually be asked for. The first batch has as many, if they
    /// are not too large.
    #[must_use]
    pub fn expecting(mut self, entries: usize) -> Cursor {
        self.limits.entries_max = entries.clamp(1, self.largest.entries_max);
        self.limits.bytes_max = (self.limits.entries_max * EXPECTED_BYTES)
            .clamp(BatchLimits::FIRST.bytes_max, self.largest.bytes_max);
        self
    }

    /// The next entry, or `None` at the end. After [`WouldBlock`](crate::ErrorKind::WouldBlock) the cursor
    /// stands where it stood, and the call may be repeated with `MayBlock`.
    pub fn next<'c>(
        &'c mut self,
        transaction: &dyn Transaction,
        blocking: BlockingMode,
    ) -> Result<Option<(&'c [u8], &'c [u8])>, StorageError> {
        if self.is_at_batch_end() && !self.refill(transaction, blocking)? {
            return Ok(None);
        }
        self.at += 1;
        Ok(self.batch.get(self.at - 1))
    }

    /// The next entry of the batch in hand; `None` where the next one has to be fetched.
    #[inline]
    pub fn next_at_hand(&mut self) -> Option<(&[u8], &[u8])> {
        let entry = self.batch.get(self.at)?;
        self.at += 1;
        Some(entry)
    }

    /// The entry that [`next`](Cursor::next) gave last; none before the first and after a failure.
    #[inline]
    pub fn current(&self) -> Option<(&[u8], &[u8])> {
        self.batch.get(self.at.checked_sub(1)?)
    }

    /// Passes over the entries of the batch in hand, or of the next batch; their number, which is zero at the
    /// end only. Repeatable after `WouldBlock`.
    pub fn pass_batch(
        &mut self,
        transaction: &dyn Transaction,
        blocking: BlockingMode,
    ) -> Result<usize, StorageError> {
        if self.is_at_batch_end() && !self.refill(transaction, blocking)? {
            return Ok(0);
        }
        Ok(self.pass_rest())
    }

    /// Passes over the entries that are left of the batch in hand; their number.
    pub fn pass_rest(&mut self) -> usize {
        let passed = self.batch.len().saturating_sub(self.at);
        self.at += passed;
        passed
    }

    /// Passes over the entries right behind the current one whose keys begin with the same `prefix_bytes`
    /// bytes; their number. It looks no further than the batch in hand, and passes `most` at most.
    pub fn pass_prefix(&mut self, prefix_bytes: usize, values: RunValues, most: usize) -> usize {
        let Some((key, value)) = self.current() else { return 0 };
        let Some(prefix) = key.get(..prefix_bytes) else { return 0 };
        let is_equal = |at: usize| {
            self.batch.get(at).is_some_and(|(next_key, next_value)| {
                next_key.starts_with(prefix) && (values == RunValues::Any || next_value == value)
            })
        };
        let passed = (0..most).take_while(|passed| is_equal(self.at + passed)).count();
        self.at += passed;
        passed
    }

    /// Begins again with another range of the same tree. The memory of the batch stays.
    pub fn restart(&mut self, range: KeyRange) {
        self.end = if range.is_empty() { ScanEnd::Done } else { ScanEnd::More };
        self.range = range;
        self.limits = BatchLimits::FIRST.within(self.largest);
        self.batch.clear();
        self.at = 0;
    }

    /// Jumps forward (in the scan's direction) to the first entry at or beyond `key`. Never goes back.
    pub fn seek(&mut self, key: &[u8]) {
        while let Some((have, _)) = self.batch.get(self.at) {
            let before = match self.direction {
                Direction::Forward => have < key,
                Direction::Backward => have > key,
            };
            if !before {
                return;
            }
            self.at += 1;
        }
        let bound = match self.direction {
            Direction::Forward => &mut self.range.lower,
            Direction::Backward => &mut self.range.upper,
        };
        let stays = match (&*bound, self.direction) {
            (Bound::Unbounded, _) => false,
            (Bound::Included(have) | Bound::Excluded(have), Direction::Forward) => have.as_slice() >= key,
            (Bound::Included(have) | Bound::Excluded(have), Direction::Backward) => have.as_slice() <= key,
        };
        if !stays {
            *bound = Bound::Included(key.to_vec());
            self.limits = BatchLimits::FIRST;
        }
        if self.range.is_empty() {
            self.end = ScanEnd::Done;
        }
    }

    /// As [`seek`](Cursor::seek), for a caller that is thought to look at so many entries there and to jump
    /// again.
    pub fn seek_briefly(&mut self, key: &[u8], entries: usize) {
        self.seek(key);
        if self.is_at_batch_end() {
            self.limits.entries_max = self.limits.entries_max.min(entries.max(1));
        }
    }

    /// As [`seek`](Cursor::seek), for a key that is thought to lie nearby: the next batch is as large as
    /// without the jump.
    pub fn seek_nearby(&mut self, key: &[u8]) {
        let limits = self.limits;
        self.seek(key);
        self.limits = limits;
    }

    /// Whether [`next`](Cursor::next) has to fetch a batch.
    pub fn is_at_batch_end(&self) -> bool {
        self.at >= self.batch.len()
    }

    /// The range that is left, where no entry is at hand; `None` at the end, and within a batch.
    pub fn rest(&self) -> Option<&KeyRange> {
        (self.is_at_batch_end() && self.end == ScanEnd::More).then_some(&self.range)
    }

    /// Fetches the next batch; false at the end of the range.
    fn refill(
        &mut self,
        transaction: &dyn Transaction,
        blocking: BlockingMode,
    ) -> Result<bool, StorageError> {
        if self.end == ScanEnd::Done {
            return Ok(false);
        }
        // Into a fresh view of the same memory: a failed scan must leave no half batch to be delivered.
        self.batch.clear();
        self.at = 0;
        let outcome =
            transaction.scan(self.tree, &self.range, self.direction, self.limits, blocking, &mut self.batch);
        match outcome {
            Ok(end) => self.end = end,
            Err(error) => {
                self.batch.clear();
                return Err(error);
            }
        }
        match self.batch.last() {
            Some((key, _)) => self.range.advance_past(key, self.direction),
            None => {
                self.end = ScanEnd::Done;
                return Ok(false);
            }
        }
        if self.range.is_empty() {
            self.end = ScanEnd::Done;
        }
        self.limits = self.limits.grown().within(self.largest);
        Ok(true)
    }
}
