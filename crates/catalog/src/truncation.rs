//! The truncation of a collection: all documents and entries go by one range delete of each tree.
//!
//! # Steps
//! 1. The counters tell what is there at the transaction's snapshot.
//! 2. The range of all primary keys is deleted, which claims it: a transaction that writes a document
//!    meanwhile conflicts, and so does the truncation where one has committed since the snapshot.
//! 3. Every document that is written takes an intent on its primary key. So the claim keeps those away who
//!    write entries without an intent, and the trees of the indexes follow.
//! 4. The counters get the differences to zero, by the merges of the transaction.
//!
//! An older snapshot sees the documents as before. The room comes free in the background once no snapshot
//! does.
//!
//! # A range of documents
//! Documents that expire go by a range delete as well, where no index has entries of them. Their bytes have
//! to be counted, so a step reads as many as it removes, and writes nothing for each.
//!
//! # Not here
//! Deletions one by one, to which the caller goes back after a conflict: the crate `commands`.

use std::ops::Bound;

use pando_storage::{BlockingMode, Caller, Direction, KeyRange, RangeDeletes, StorageError};

use crate::counters::partition_number;
use crate::{Collection, WriteError, WriteTransaction};

/// The most that one step removes. The first document goes in any case.
#[derive(Clone, Copy, Debug)]
pub struct RangeStep {
    /// Documents.
    pub documents: u64,
    /// Bytes of documents.
    pub bytes: usize,
}

impl Collection {
    /// Whether documents can be removed by ranges of their keys.
    fn takes_range_deletes(&self) -> bool {
        // An emulated range delete is a scan, and a transaction without bounds.
        let is_emulated = self.engine().capabilities().range_deletes == RangeDeletes::Emulated;
        let is_watched = self.capped_limits().is_some() || !self.building().is_empty();
        !is_emulated && !is_watched && self.keeps_counters()
    }

    /// Removes the first documents of a range of primary keys; gives their number. `None` where they have
    /// to be removed one by one: beside what [`truncate`](Collection::truncate) names, there is an index.
    ///
    /// # Errors
    /// As for [`truncate`](Collection::truncate); the operation has to end.
    pub fn remove_first(
        &self,
        transaction: &mut WriteTransaction,
        range: KeyRange,
        most: RangeStep,
        caller: Caller<'_>,
    ) -> Result<Option<u64>, WriteError> {
        if !self.takes_range_deletes() || !self.indexes().is_empty() || self.has_partitions() {
            return Ok(None);
        }
        let mut scan = self.scan_documents(range.clone(), Direction::Forward);
        let (mut documents, mut bytes, mut last) = (0, 0, Vec::new());
        while documents < most.documents
            && bytes < most.bytes
            && let Some((key, document)) = scan.next(&**transaction, caller.blocking)?
        {
            caller.operation.check()?;
            last.clear();
            last.extend_from_slice(key);
            documents += 1;
            bytes += document.len();
        }
        if documents == 0 {
            return Ok(Some(0));
        }
        let gone = KeyRange { lower: range.lower, upper: Bound::Included(last) };
        transaction.engine().delete_range(self.primary_tree(), &gone, caller.blocking)?;
        transaction.count_documents(self.number(), -documents.cast_signed(), -(bytes as i64));
        Ok(Some(documents))
    }

    /// Removes all documents that a transaction sees, which has not written yet; gives their number. `None`
    /// where the documents have to be removed one by one: the engine would do that as well, the collection is
    /// capped or not counted, or an index is being built.
    ///
    /// # Errors
    /// A conflict with a transaction that writes, or has written since the snapshot. The transaction can only
    /// be rolled back then.
    pub fn truncate(
        &self,
        transaction: &mut WriteTransaction,
        blocking: BlockingMode,
    ) -> Result<Option<u64>, StorageError> {
        if !self.takes_range_deletes() {
            return Ok(None);
        }
        let Some(counts) = self.counts(&**transaction, blocking)? else { return Ok(None) };
        if counts.index_entries.len() != self.indexes().len() {
            return Ok(None);
        }
        // The primary tree is the first.
        for tree in self.trees() {
            transaction.engine().delete_range(tree, &KeyRange::all(), blocking)?;
        }
        let documents = counts.documents.cast_signed();
        let bytes = self.counted_bytes(&**transaction, blocking)?;
        transaction.count_documents(self.number(), -documents, -bytes);
        transaction.count_patches(self.number(), -counts.patches.cast_signed());
        for (index, (_, entries)) in self.indexes().iter().zip(&counts.index_entries) {
            transaction.count_surplus(index.number(), documents - entries.cast_signed());
        }
        for partition in self.partitions().unwrap_or_default() {
            let (documents, bytes) = self.partition_totals(partition.id, &**transaction, blocking)?;
            let number = partition_number(self.number(), partition.id);
            transaction.count_in_partition(number, -documents, -bytes);
        }
        Ok(Some(counts.documents))
    }
}
