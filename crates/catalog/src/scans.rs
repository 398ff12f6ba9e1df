//! Scans of documents and of index entries. The executor steps through them one by one.

use std::sync::Arc;

use pando_storage::{BlockingMode, Cursor, Direction, ErrorKind, KeyRange, StorageError, Transaction};

use crate::index_entry::{self, DecodedEntry};
use crate::{Collection, Index};

/// One entry of an index.
pub type IndexEntry<'a> = DecodedEntry<'a>;

/// Documents in the order of their primary keys.
#[derive(Clone, Debug)]
pub struct DocumentScan {
    cursor: Cursor,
}

impl DocumentScan {
    /// The next primary key and document. Repeatable after `WouldBlock`.
    pub fn next<'s>(
        &'s mut self,
        transaction: &dyn Transaction,
        blocking: BlockingMode,
    ) -> Result<Option<(&'s [u8], &'s [u8])>, StorageError> {
        self.cursor.next(transaction, blocking)
    }

    /// Jumps to the first document at or beyond a primary key, in the scan's direction.
    pub fn seek(&mut self, primary_key: &[u8]) {
        self.cursor.seek(primary_key);
    }
}

/// Entries of an index in the order of their keys.
#[derive(Clone, Debug)]
pub struct IndexScan {
    cursor: Cursor,
    index: Arc<Index>,
}

impl IndexScan {
    /// The next entry. Repeatable after `WouldBlock`.
    pub fn next<'s>(
        &'s mut self,
        transaction: &dyn Transaction,
        blocking: BlockingMode,
    ) -> Result<Option<IndexEntry<'s>>, StorageError> {
        let Some((key, value)) = self.cursor.next(transaction, blocking)? else { return Ok(None) };
        index_entry::decode(self.index.uniqueness(), self.index.directions(), key, value).map(Some).map_err(
            |reason| {
                StorageError::new(
                    ErrorKind::Corrupt,
                    format!("an entry of index {} is damaged: {reason}", self.index.name()),
                )
            },
        )
    }

    /// Jumps to the first entry whose field bytes are at or beyond `field_bytes`, in the scan's direction.
    pub fn seek(&mut self, field_bytes: &[u8]) {
        self.cursor.seek(field_bytes);
    }
}

impl Collection {
    /// A scan of the documents whose primary keys lie in a range.
    pub fn scan_documents(&self, range: KeyRange, direction: Direction) -> DocumentScan {
        DocumentScan { cursor: Cursor::new(self.primary_tree(), range, direction) }
    }

    /// A scan of the entries of an index whose keys (field bytes, and primary key behind them where the index
    /// is not unique) lie in a range.
    pub fn scan_index(&self, index: &Arc<Index>, range: KeyRange, direction: Direction) -> IndexScan {
        IndexScan { cursor: Cursor::new(index.tree(), range, direction), index: Arc::clone(index) }
    }
}
