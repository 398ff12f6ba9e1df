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
        if self.at >= self.batch.len() && !self.refill(transaction, blocking)? {
            return Ok(None);
        }
        self.at += 1;
        Ok(self.batch.get(self.at - 1))
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
