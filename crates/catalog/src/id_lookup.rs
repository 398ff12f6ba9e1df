//! The lookup of a document by its `_id`, whatever the layout of its collection.
//!
//! Where `_id` is the key of a document, the lookup is one read. Elsewhere the index on `_id` gives the key,
//! and the document is the second read.

use pando_document::RawValue;
use pando_keyorder::{Direction, TypeBits};
use pando_storage::{BlockingMode, Bytes, ErrorKind, StorageError, Transaction, TreeId};

use crate::collection::Collection;
use crate::index_description::Uniqueness;
use crate::index_entry::{self, FIELD_BYTES_MAX};
use crate::partitions::Partitions;
use crate::primary_key::{PrimaryKey, cut};

/// The key by which a collection finds the document with an `_id`.
#[derive(Clone, Debug)]
pub struct IdKey {
    bytes: Vec<u8>,
    /// The tree of the index on `_id`, where `_id` is not the key of a document.
    index: Option<TreeId>,
}

impl Collection {
    /// The key by which the document with this `_id` is found.
    pub fn id_key(&self, id: RawValue<'_>) -> IdKey {
        if self.layout().is_by_id() {
            return IdKey { bytes: PrimaryKey::in_order(id, self.text_order()).into_bytes(), index: None };
        }
        let index = self.id_index().expect("the catalog opens no such collection without an index on _id");
        let mut bytes = Vec::with_capacity(24);
        self.text_order().encode(id, Direction::Ascending, &mut bytes, &mut TypeBits::discarded());
        cut(&mut bytes, FIELD_BYTES_MAX);
        IdKey { bytes, index: Some(index.tree()) }
    }

    /// The document with an `_id`.
    ///
    /// # Errors
    /// Repeatable after `WouldBlock`.
    #[inline]
    pub fn fetch_by_id(
        &self,
        transaction: &dyn Transaction,
        id: &IdKey,
        blocking: BlockingMode,
    ) -> Result<Option<Bytes>, StorageError> {
        if id.index.is_none() {
            return self.fetch(transaction, &id.bytes, blocking);
        }
        match self.locate(transaction, id, blocking)? {
            Some(key) => self.fetch(transaction, &key, blocking),
            None => Ok(None),
        }
    }

    /// The primary key of the document with an `_id`; `None` if there is none. Where `_id` itself is the
    /// primary key nothing is read, and there may be no such document.
    ///
    /// # Errors
    /// Repeatable after `WouldBlock`.
    pub fn locate(
        &self,
        transaction: &dyn Transaction,
        id: &IdKey,
        blocking: BlockingMode,
    ) -> Result<Option<Vec<u8>>, StorageError> {
        let Some(tree) = id.index else { return Ok(Some(id.bytes.clone())) };
        let found = match self.shared_partitions() {
            None => transaction.get(tree, &id.bytes, blocking)?,
            Some(partitions) => find_in(partitions, transaction, (tree, &id.bytes), blocking)?,
        };
        let Some(value) = found else { return Ok(None) };
        let entry = index_entry::decode(Uniqueness::Unique, &[Direction::Ascending], &id.bytes, &value)
            .map_err(|reason| {
                let message = format!("an entry of the index on _id is damaged: {reason}");
                StorageError::new(ErrorKind::Corrupt, message)
            })?;
        Ok(Some(entry.primary_key.to_vec()))
    }
}

/// The value of a key of the index on `_id`, in the partition that has it.
fn find_in(
    partitions: &Partitions,
    transaction: &dyn Transaction,
    (tree, key): (TreeId, &[u8]),
    blocking: BlockingMode,
) -> Result<Option<Bytes>, StorageError> {
    for prefix in partitions.list().prefixes_at(transaction.snapshot()) {
        let found = transaction.get(tree, &[&prefix[..], key].concat(), blocking)?;
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}
