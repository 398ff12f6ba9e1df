//! The scan of an index in a collection with partitions: a merge of a scan in each of them.
//!
//! # Steps
//! 1. The first call takes the list of partitions, and makes a cursor over the range behind the prefix of
//!    each that the snapshot may see.
//! 2. Each cursor fetches its first entry, its *head*. The heads lie in a heap, by their keys without
//!    prefixes.
//! 3. The entry that is given stays the top of the heap until the next call, which replaces it by the next
//!    entry of its cursor.
//!
//! # Invariants
//! - Entries come in the order of their keys, as in a collection without partitions.
//! - After `WouldBlock` the scan stands where it stood. A cursor that could not be read stays in `unread`, or
//!   at the top of the heap.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::ops::Bound;
use std::sync::Arc;

use pando_storage::{BlockingMode, Cursor, Direction, KeyRange, StorageError, Transaction, TreeId};

use crate::partitions::{PREFIX_BYTES, Partitions, range_behind};

/// Bytes of the batches of all cursors of a scan, about.
const BATCHES_BYTES: usize = 8 << 20;
/// The most bytes of a batch.
const BATCH_BYTES_MAX: usize = 128 << 10;
/// Entries that are passed at once.
const PASSED_AT_ONCE: usize = 256;

/// See the module's head.
#[derive(Clone, Debug)]
pub(crate) struct PartitionedScan {
    tree: TreeId,
    partitions: Arc<Partitions>,
    /// Of keys without prefixes.
    range: KeyRange,
    /// Ranges that hold the primary keys of all entries that are wanted; `None` for every key.
    within: Option<Arc<[KeyRange]>>,
    direction: Direction,
    /// One for each partition, with its prefix; none before the first call.
    cursors: Vec<([u8; PREFIX_BYTES], Cursor)>,
    has_begun: bool,
    /// Cursors whose next entry is not in the heap.
    unread: Vec<usize>,
    heads: BinaryHeap<Head>,
    /// Whether the top of the heap was given.
    is_top_given: bool,
}

/// The next entry of a cursor.
#[derive(Clone, Debug)]
struct Head {
    key: Vec<u8>,
    cursor: usize,
    direction: Direction,
}

impl Ord for Head {
    /// The greatest comes first out of a heap.
    fn cmp(&self, other: &Head) -> Ordering {
        let order = self.key.cmp(&other.key);
        match self.direction {
            Direction::Forward => order.reverse(),
            Direction::Backward => order,
        }
    }
}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Head) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Head {
    fn eq(&self, other: &Head) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Head {}

impl PartitionedScan {
    pub(crate) fn new(
        tree: TreeId,
        partitions: &Arc<Partitions>,
        range: KeyRange,
        direction: Direction,
        within: Option<Arc<[KeyRange]>>,
    ) -> PartitionedScan {
        PartitionedScan {
            tree,
            partitions: Arc::clone(partitions),
            range,
            within,
            direction,
            cursors: Vec::new(),
            has_begun: false,
            unread: Vec::new(),
            heads: BinaryHeap::new(),
            is_top_given: false,
        }
    }

    /// The next entry, with its prefix. Repeatable after `WouldBlock`.
    pub(crate) fn next<'s>(
        &'s mut self,
        transaction: &dyn Transaction,
        blocking: BlockingMode,
    ) -> Result<Option<(&'s [u8], &'s [u8])>, StorageError> {
        if !self.has_begun {
            self.begin(transaction);
        }
        if self.is_top_given
            && let Some(mut top) = self.heads.peek_mut()
        {
            match self.cursors[top.cursor].1.next(transaction, blocking)? {
                Some((key, _)) => {
                    top.key.clear();
                    top.key.extend_from_slice(behind_prefix(key));
                }
                None => _ = PeekMut::pop(top),
            }
        }
        self.is_top_given = false;
        while let Some(&cursor) = self.unread.last() {
            if let Some((key, _)) = self.cursors[cursor].1.next(transaction, blocking)? {
                let key = behind_prefix(key).to_vec();
                self.heads.push(Head { key, cursor, direction: self.direction });
            }
            self.unread.pop();
        }
        let Some(top) = self.heads.peek() else { return Ok(None) };
        self.is_top_given = true;
        Ok(self.cursors[top.cursor].1.current())
    }

    fn begin(&mut self, transaction: &dyn Transaction) {
        let list = self.partitions.list();
        let prefixes = list.prefixes_within(transaction.snapshot(), self.within.as_deref());
        let batch_bytes = (BATCHES_BYTES / prefixes.len().max(1)).min(BATCH_BYTES_MAX);
        self.cursors.extend(prefixes.into_iter().map(|prefix| {
            let range = range_behind(prefix, &self.range);
            (prefix, Cursor::new(self.tree, range, self.direction).within(batch_bytes))
        }));
        self.unread.extend(0..self.cursors.len());
        self.has_begun = true;
    }

    /// Passes over some entries; their number, which is zero at the end only. Repeatable after `WouldBlock`.
    pub(crate) fn pass_batch(
        &mut self,
        transaction: &dyn Transaction,
        blocking: BlockingMode,
    ) -> Result<usize, StorageError> {
        let mut passed = 0;
        while passed < PASSED_AT_ONCE {
            match self.next(transaction, blocking) {
                Ok(Some(_)) => passed += 1,
                Ok(None) => break,
                Err(error) if error.is_would_block() && passed > 0 => break,
                Err(error) => return Err(error),
            }
        }
        Ok(passed)
    }

    /// The key of the entry that was given last, without its prefix.
    pub(crate) fn current_key(&self) -> Option<&[u8]> {
        self.heads.peek().filter(|_| self.is_top_given).map(|top| top.key.as_slice())
    }

    /// Begins again with another range.
    pub(crate) fn restart(&mut self, range: KeyRange) {
        self.range = range;
        self.cursors.clear();
        self.unread.clear();
        self.heads.clear();
        self.has_begun = false;
        self.is_top_given = false;
    }

    /// Jumps forward (in the scan's direction) to the first entry at or beyond a key without prefix. Never
    /// goes back.
    pub(crate) fn seek(&mut self, key: &[u8]) {
        if !self.has_begun {
            return self.narrow(key);
        }
        let given = self.heads.peek().filter(|_| self.is_top_given).map(|top| top.cursor);
        let is_before = |head: &Head| match self.direction {
            Direction::Forward => head.key.as_slice() < key,
            Direction::Backward => head.key.as_slice() > key,
        };
        let heads = std::mem::take(&mut self.heads).into_vec();
        let (left, stay): (Vec<_>, Vec<_>) =
            heads.into_iter().partition(|head| Some(head.cursor) == given || is_before(head));
        self.heads = stay.into();
        self.unread.extend(left.iter().map(|head| head.cursor));
        self.is_top_given = false;
        for cursor in &self.unread {
            let (prefix, cursor) = &mut self.cursors[*cursor];
            cursor.seek(&[&prefix[..], key].concat());
        }
    }

    fn narrow(&mut self, key: &[u8]) {
        match self.direction {
            Direction::Forward if self.range.is_above_lower(key) => {
                self.range.lower = Bound::Included(key.to_vec());
            }
            Direction::Backward if self.range.is_below_upper(key) => {
                self.range.upper = Bound::Included(key.to_vec());
            }
            Direction::Forward | Direction::Backward => {}
        }
    }
}

/// A key without its prefix. That of a damaged entry may be shorter.
fn behind_prefix(key: &[u8]) -> &[u8] {
    key.get(PREFIX_BYTES..).unwrap_or_default()
}
