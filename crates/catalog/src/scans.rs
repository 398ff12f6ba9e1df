//! Scans of documents and of index entries. The executor steps through them one by one.

use std::sync::Arc;

use pando_storage::{
    BlockingMode, CachedReads, Cursor, Direction, ErrorKind, Estimate, KeyRange, RunValues, StorageError,
    Transaction,
};

use crate::index_description::Uniqueness;
use crate::index_entry::DecodedEntry;
use crate::partitioned_scan::PartitionedScan;
use crate::partitions::range_behind;
use crate::publication::Publication;
use crate::{Collection, Index};

/// One entry of an index.
pub type IndexEntry<'a> = DecodedEntry<'a>;

/// Documents in the order of their primary keys.
#[derive(Clone, Debug)]
pub struct DocumentScan {
    cursor: Cursor,
    gate: Gate,
}

/// The gate in front of a collection that was loaded: a snapshot from before its publication sees none of it.
#[derive(Clone, Debug)]
struct Gate {
    /// `None` once the scan is through.
    publication: Option<Arc<Publication>>,
}

impl Gate {
    fn is_shut_for(
        &mut self,
        transaction: &dyn Transaction,
        blocking: BlockingMode,
    ) -> Result<bool, StorageError> {
        let Some(publication) = &self.publication else { return Ok(false) };
        if publication.is_seen_by(transaction, blocking)? {
            self.publication = None;
            return Ok(false);
        }
        Ok(true)
    }
}

impl DocumentScan {
    /// The next primary key and document. Repeatable after `WouldBlock`.
    pub fn next<'s>(
        &'s mut self,
        transaction: &dyn Transaction,
        blocking: BlockingMode,
    ) -> Result<Option<(&'s [u8], &'s [u8])>, StorageError> {
        if self.gate.is_shut_for(transaction, blocking)? {
            return Ok(None);
        }
        self.cursor.next(transaction, blocking)
    }

    /// The next primary key and document of the batch in hand; `None` where they have to be fetched.
    #[inline]
    pub fn next_at_hand(&mut self) -> Option<(&[u8], &[u8])> {
        self.cursor.next_at_hand()
    }

    /// The primary key and document that [`next`](DocumentScan::next) gave last.
    #[inline]
    pub fn current(&self) -> Option<(&[u8], &[u8])> {
        self.cursor.current()
    }

    /// Passes over a batch of documents; their number, which is zero at the end only. Repeatable after
    /// `WouldBlock`.
    pub fn pass_batch(
        &mut self,
        transaction: &dyn Transaction,
        blocking: BlockingMode,
    ) -> Result<usize, StorageError> {
        if self.gate.is_shut_for(transaction, blocking)? {
            return Ok(0);
        }
        self.cursor.pass_batch(transaction, blocking)
    }

    /// Passes over the documents that are left of the batch in hand; their number.
    pub fn pass_rest(&mut self) -> usize {
        self.cursor.pass_rest()
    }

    /// The range of primary keys that is left, where no document is at hand; `None` at the end, and within a
    /// batch.
    pub fn rest(&self) -> Option<&KeyRange> {
        self.cursor.rest()
    }

    /// Begins again with another range of primary keys.
    pub fn restart(&mut self, range: KeyRange) {
        self.cursor.restart(range);
    }

    /// Jumps to the first document at or beyond a primary key, in the scan's direction.
    pub fn seek(&mut self, primary_key: &[u8]) {
        self.cursor.seek(primary_key);
    }
}

/// Entries of a run that are stepped over before the scan jumps: a jump costs as much as some of them.
const STEPPED_OVER: usize = 24;
/// The same where the run before was jumped over: this one is thought to be long, too. Not fewer, because a
/// jump over so few costs many times as much as they do.
const STEPPED_OVER_AGAIN: usize = 8;
/// A byte that no part of a key begins with, above all that do.
const BEYOND_EVERY_CONTINUATION: u8 = 0xFF;

/// Entries of an index in the order of their keys.
#[derive(Clone, Debug)]
pub struct IndexScan {
    entries: Entries,
    gate: Gate,
    index: Arc<Index>,
    direction: Direction,
    /// Entries to step over before a jump.
    stepped_over: usize,
}

/// The entries of a scan, in order.
#[derive(Clone, Debug)]
enum Entries {
    /// Those of a collection without partitions.
    OfTree(Cursor),
    Partitioned(Box<PartitionedScan>),
}

impl IndexScan {
    /// The next entry. Repeatable after `WouldBlock`.
    pub fn next<'s>(
        &'s mut self,
        transaction: &dyn Transaction,
        blocking: BlockingMode,
    ) -> Result<Option<IndexEntry<'s>>, StorageError> {
        if self.gate.is_shut_for(transaction, blocking)? {
            return Ok(None);
        }
        let next = match &mut self.entries {
            Entries::OfTree(cursor) => cursor.next(transaction, blocking)?,
            Entries::Partitioned(scan) => scan.next(transaction, blocking)?,
        };
        let Some((key, value)) = next else { return Ok(None) };
        self.index.decode_entry(key, value).map(Some).map_err(|reason| {
            StorageError::new(
                ErrorKind::Corrupt,
                format!("an entry of index {} is damaged: {reason}", self.index.name()),
            )
        })
    }

    /// Passes over a batch of entries; their number, which is zero at the end only. Repeatable after
    /// `WouldBlock`.
    pub fn pass_batch(
        &mut self,
        transaction: &dyn Transaction,
        blocking: BlockingMode,
    ) -> Result<usize, StorageError> {
        if self.gate.is_shut_for(transaction, blocking)? {
            return Ok(0);
        }
        match &mut self.entries {
            Entries::OfTree(cursor) => cursor.pass_batch(transaction, blocking),
            Entries::Partitioned(scan) => scan.pass_batch(transaction, blocking),
        }
    }

    /// Passes over the entries that are left of the batch in hand; their number.
    pub fn pass_rest(&mut self) -> usize {
        match &mut self.entries {
            Entries::OfTree(cursor) => cursor.pass_rest(),
            Entries::Partitioned(_) => 0,
        }
    }

    /// Passes over the entries right behind the last one that have the same field bytes, `field_bytes` long,
    /// and the same type bits; their number. It looks no further than the batch in hand.
    pub fn pass_equal(&mut self, field_bytes: usize) -> usize {
        match (self.index.uniqueness(), &mut self.entries) {
            // Equal field bytes stand once, or in several partitions.
            (Uniqueness::Unique, _) | (_, Entries::Partitioned(_)) => 0,
            (Uniqueness::NotUnique | Uniqueness::Prepared, Entries::OfTree(cursor)) => {
                cursor.pass_prefix(field_bytes, RunValues::Equal, usize::MAX)
            }
        }
    }

    /// Passes over all entries whose first fields, so many of them, have the same bytes as those of the last
    /// entry. A short run is stepped over and a long one jumped over. It is thought to be as long as the one
    /// before.
    pub fn skip_fields(&mut self, fields: usize) {
        let current = match &self.entries {
            Entries::OfTree(cursor) => cursor.current().map(|(key, _)| key),
            Entries::Partitioned(scan) => scan.current_key(),
        };
        let (Some(key), Some(first)) = (current, self.index.directions().get(..fields)) else { return };
        // A cut key does not decode; its neighbours are then stepped through one by one.
        let Ok(bytes) = pando_keyorder::parts_length(key, first) else { return };
        let mut beyond = key[..bytes].to_vec();
        let cursor = match &mut self.entries {
            Entries::OfTree(cursor) => cursor,
            Entries::Partitioned(scan) => {
                if self.direction == Direction::Forward {
                    beyond.push(BEYOND_EVERY_CONTINUATION);
                }
                return scan.seek(&beyond);
            }
        };
        let passed = cursor.pass_prefix(bytes, RunValues::Any, self.stepped_over);
        let is_long = passed == self.stepped_over;
        self.stepped_over = if is_long { STEPPED_OVER_AGAIN } else { STEPPED_OVER };
        if !is_long && !cursor.is_at_batch_end() {
            return;
        }
        if self.direction == Direction::Forward {
            beyond.push(BEYOND_EVERY_CONTINUATION);
        }
        match is_long {
            true => cursor.seek_briefly(&beyond, 1 + self.stepped_over),
            // The run may go on in the next batch.
            false => cursor.seek_nearby(&beyond),
        }
    }

    /// Begins again with another range of keys.
    pub fn restart(&mut self, range: KeyRange) {
        match &mut self.entries {
            Entries::OfTree(cursor) => cursor.restart(range),
            Entries::Partitioned(scan) => scan.restart(range),
        }
    }

    /// Jumps to the first entry whose field bytes are at or beyond `field_bytes`, in the scan's direction.
    pub fn seek(&mut self, field_bytes: &[u8]) {
        match &mut self.entries {
            Entries::OfTree(cursor) => cursor.seek(field_bytes),
            Entries::Partitioned(scan) => scan.seek(field_bytes),
        }
    }
}

impl Collection {
    /// A scan of the documents whose primary keys lie in a range.
    pub fn scan_documents(&self, range: KeyRange, direction: Direction) -> DocumentScan {
        DocumentScan { cursor: Cursor::new(self.primary_tree(), range, direction), gate: self.gate() }
    }

    /// A scan of the entries of an index whose keys (field bytes, and primary key behind them where the index
    /// is not unique) lie in a range.
    pub fn scan_index(&self, index: &Arc<Index>, range: KeyRange, direction: Direction) -> IndexScan {
        self.scan_entries(index, range, direction, None)
    }

    /// The same, for a caller that wants the entries of documents with some primary keys only. It gets
    /// others as well: this serves to pass partitions over.
    pub fn scan_entries(
        &self,
        index: &Arc<Index>,
        range: KeyRange,
        direction: Direction,
        keys: Option<Arc<[KeyRange]>>,
    ) -> IndexScan {
        let entries = match index.partitions() {
            None => Entries::OfTree(Cursor::new(index.tree(), range, direction)),
            Some(partitions) => {
                let scan = PartitionedScan::new(index.tree(), partitions, range, direction, keys);
                Entries::Partitioned(Box::new(scan))
            }
        };
        let (gate, index) = (self.gate(), Arc::clone(index));
        IndexScan { entries, gate, index, direction, stepped_over: STEPPED_OVER }
    }

    /// The blocking mode of a planner's estimates, which are not to wait for the device. An engine that
    /// cannot tell whether a page is in memory has none to give without a wait, and a plan without them costs
    /// more than that. Such an engine is asked only on threads that may block.
    pub fn blocking_of_estimates(&self) -> BlockingMode {
        match self.engine().capabilities().cached_reads {
            CachedReads::Told => BlockingMode::CachedOnly,
            CachedReads::NotTold => BlockingMode::MayBlock,
        }
    }

    /// The number of documents whose primary keys lie in a range, about.
    pub fn estimate_documents(
        &self,
        range: &KeyRange,
        transaction: &dyn Transaction,
        blocking: BlockingMode,
    ) -> Result<Estimate, StorageError> {
        transaction.estimate(self.primary_tree(), range, blocking)
    }

    /// The number of the entries that [`scan_index`](Collection::scan_index) gives, about.
    pub fn estimate_index(
        &self,
        index: &Index,
        range: &KeyRange,
        transaction: &dyn Transaction,
        blocking: BlockingMode,
    ) -> Result<Estimate, StorageError> {
        let Some(partitions) = index.partitions() else {
            return transaction.estimate(index.tree(), range, blocking);
        };
        let mut sum = Estimate::default();
        for partition in &partitions.list().live {
            let range = range_behind(partition.prefix(), range);
            let one = transaction.estimate(index.tree(), &range, blocking)?;
            sum.entries += one.entries;
            sum.bytes += one.bytes;
        }
        Ok(sum)
    }

    fn gate(&self) -> Gate {
        Gate { publication: self.publication().cloned() }
    }
}
