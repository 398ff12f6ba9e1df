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
//! # Not here
//! Deletions one by one, to which the caller goes back after a conflict: the crate `commands`.

use pando_storage::{BlockingMode, KeyRange, RangeDeletes, StorageError};

use crate::{Collection, WriteTransaction};

impl Collection {
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
        // An emulated range delete is a scan, and a transaction without bounds.
        let is_emulated = self.engine().capabilities().range_deletes == RangeDeletes::Emulated;
        let is_watched = self.capped_limits().is_some() || !self.building().is_empty();
        if is_emulated || is_watched || !self.keeps_counters() {
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
        transaction.count_documents(self.number(), -documents, -counts.data_bytes.cast_signed());
        for (index, (_, entries)) in self.indexes().iter().zip(&counts.index_entries) {
            transaction.count_surplus(index.number(), documents - entries.cast_signed());
        }
        Ok(Some(counts.documents))
    }
}
