//! An index under construction, as statements that write see it: they record their
//! changes of it for the build.
//!
//! # Terms
//! - *Entry under construction*: the entry of a document in the index, with the primary key at the end of its
//!   key even if the index is unique. Two documents with one unique key are two such entries; the build finds
//!   the duplicate later.
//! - *Change*: an entry under construction that a statement has put or removed since the build began.
//! - *Changes*: a tree with the last change of each entry under construction. Two statements that change one
//!   entry change one document, so the document's intent orders them.
//!
//! ```text
//! entry under construction   key:   field bytes | primary key
//!                            value: that of the entry                          not unique
//!                                   u16 LE length of field bytes | type bits   unique
//!                            u32 LE length | value above | document             clustering
//! change                     key:   as above
//!                            value: 0x01 | value as above                      put
//!                                   0x00 | value as above                      removed
//! ```
//!
//! Not here: the build itself, which applies the changes (`index_build`).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pando_document::RawDocument;
use pando_storage::{StorageError, Transaction, TreeId};
use parking_lot::Mutex;

use crate::error::{BuildEnd, CatalogError, WriteError};
use crate::index::{Index, Owner};
use crate::index_description::{EntryContents, RaisedFlags, Uniqueness};
use crate::index_entry::{self, EncodedEntry};
use crate::index_keys::IndexKey;
use crate::partitions::PREFIX_BYTES;
use crate::store::NamedTree;

const REMOVED: u8 = 0;
const PUT: u8 = 1;

/// One build of one or several indexes, and whether it was ended from outside.
#[derive(Debug, Default)]
pub(crate) struct BuildTicket {
    end: Mutex<Option<BuildEnd>>,
}

impl BuildTicket {
    /// Ends the build; the first reason counts.
    pub(crate) fn end(&self, reason: BuildEnd) {
        self.end.lock().get_or_insert(reason);
    }

    pub(crate) fn ended(&self) -> Option<BuildEnd> {
        *self.end.lock()
    }

    /// An error if the build was ended.
    pub(crate) fn check(&self) -> Result<(), CatalogError> {
        match self.ended() {
            None => Ok(()),
            Some(reason) => Err(CatalogError::IndexBuildEnded { reason }),
        }
    }
}

/// An index under construction, and the tree that takes the changes of statements.
#[derive(Debug)]
pub(crate) struct BuildingIndex {
    pub(crate) index: Arc<Index>,
    /// Where changes go from now on.
    pub(crate) changes: TreeId,
    /// The engine's name of that tree.
    pub(crate) changes_name: String,
    /// The server that builds it, in a shared store; 0 in any other.
    pub(crate) builder: u64,
    /// Changes put there, including those of transactions that were rolled back.
    noted: AtomicU64,
    pub(crate) ticket: Arc<BuildTicket>,
}

impl BuildingIndex {
    pub(crate) fn new(
        index: Arc<Index>,
        changes: NamedTree,
        builder: u64,
        ticket: Arc<BuildTicket>,
    ) -> BuildingIndex {
        let NamedTree { id: changes, name: changes_name, .. } = changes;
        BuildingIndex { index, changes, changes_name, builder, noted: AtomicU64::new(0), ticket }
    }

    /// Changes recorded so far, including some that were rolled back.
    pub(crate) fn noted(&self) -> u64 {
        self.noted.load(Ordering::Relaxed)
    }

    /// Flags need no logging in a store of one server: they go to the catalog with the index's first entry
    /// there.
    pub(crate) fn raise(&self, flags: &RaisedFlags) {
        self.index.raise(flags);
    }

    pub(crate) fn note_put(
        &self,
        transaction: &mut dyn Transaction,
        key: &IndexKey,
        owner: Owner<'_>,
    ) -> Result<(), StorageError> {
        self.note(transaction, PUT, key, owner)
    }

    pub(crate) fn note_removed(
        &self,
        transaction: &mut dyn Transaction,
        key: &IndexKey,
        primary_key: &[u8],
    ) -> Result<(), StorageError> {
        // The removal of an entry says nothing of the document.
        self.note(transaction, REMOVED, key, Owner { primary_key, document: RawDocument::empty() })
    }

    fn note(
        &self,
        transaction: &mut dyn Transaction,
        what: u8,
        key: &IndexKey,
        owner: Owner<'_>,
    ) -> Result<(), StorageError> {
        let entry = entry_under_construction(&self.index, key, owner);
        let mut change = Vec::with_capacity(1 + entry.value.len());
        change.push(what);
        change.extend_from_slice(&entry.value);
        self.noted.fetch_add(1, Ordering::Relaxed);
        transaction.put_blind(self.changes, &entry.key, &change)
    }
}

/// The entry of a document's key while the index is built.
pub(crate) fn entry_under_construction(index: &Index, key: &IndexKey, owner: Owner<'_>) -> EncodedEntry {
    let prefix = index.prefix_of(owner.primary_key);
    let plain = plain_entry_under_construction(index.uniqueness(), key, owner.primary_key, prefix);
    match index.contents() {
        EntryContents::Copy => {
            let value = index_entry::value_with_document(&plain.value, owner.document.as_bytes());
            EncodedEntry { value, ..plain }
        }
        EntryContents::Reference | EntryContents::Document => plain,
    }
}

fn plain_entry_under_construction(
    uniqueness: Uniqueness,
    key: &IndexKey,
    primary_key: &[u8],
    prefix: Option<[u8; PREFIX_BYTES]>,
) -> EncodedEntry {
    let entry = index_entry::encode(uniqueness, &key.fields, &key.type_bits, primary_key);
    let entry = entry.behind(prefix.as_ref());
    match uniqueness {
        Uniqueness::NotUnique | Uniqueness::Prepared => entry,
        Uniqueness::Unique => {
            let EncodedEntry { mut key, value } = entry;
            let mut under_construction = index_entry::length_bytes(&key).to_vec();
            under_construction.extend_from_slice(&value[2 + primary_key.len()..]);
            key.extend_from_slice(primary_key);
            EncodedEntry { key, value: under_construction }
        }
    }
}

/// An entry under construction of a unique index, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UniqueParts<'e> {
    pub fields: &'e [u8],
    pub primary_key: &'e [u8],
    pub type_bits: &'e [u8],
    /// In a clustering index.
    pub document: Option<&'e [u8]>,
}

impl<'e> UniqueParts<'e> {
    pub(crate) fn of(
        contents: EntryContents,
        key: &'e [u8],
        value: &'e [u8],
    ) -> Result<UniqueParts<'e>, &'static str> {
        let (value, document) = index_entry::split_document(contents, value)?;
        let (length, type_bits) =
            value.split_first_chunk::<2>().ok_or("an entry under construction begins with a length")?;
        let (fields, primary_key) = key
            .split_at_checked(usize::from(u16::from_le_bytes(*length)))
            .ok_or("an entry under construction is longer than its field bytes")?;
        Ok(UniqueParts { fields, primary_key, type_bits, document })
    }

    /// The value of the finished entry, appended.
    pub(crate) fn value_into(&self, value: &mut Vec<u8>) {
        if self.document.is_some() {
            let plain = 2 + self.primary_key.len() + self.type_bits.len();
            let plain = u32::try_from(plain).expect("field bytes are cut, so their type bits are few");
            value.extend_from_slice(&plain.to_le_bytes());
        }
        value.extend_from_slice(&index_entry::length_bytes(self.primary_key));
        value.extend_from_slice(self.primary_key);
        value.extend_from_slice(self.type_bits);
        value.extend_from_slice(self.document.unwrap_or_default());
    }

    pub(crate) fn key(&self) -> IndexKey {
        IndexKey { fields: self.fields.to_vec(), type_bits: self.type_bits.to_vec() }
    }
}

/// A change, read.
pub(crate) struct Change<'c> {
    /// Whether the entry was put, and not removed.
    pub(crate) is_put: bool,
    /// The value of the entry under construction.
    pub(crate) value: &'c [u8],
}

impl<'c> Change<'c> {
    pub(crate) fn of(index: &Index, value: &'c [u8]) -> Result<Change<'c>, WriteError> {
        match value.split_first() {
            Some((&PUT, value)) => Ok(Change { is_put: true, value }),
            Some((&REMOVED, value)) => Ok(Change { is_put: false, value }),
            _ => Err(WriteError::DamagedEntry {
                index: index.name().to_owned(),
                reason: "a change begins with 0 or 1".to_owned(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index_entry::FIELD_BYTES_MAX;

    fn key(fields: &[u8], type_bits: &[u8]) -> IndexKey {
        IndexKey { fields: fields.to_vec(), type_bits: type_bits.to_vec() }
    }

    #[test]
    fn a_unique_entry_under_construction_becomes_the_entry_that_a_writer_would_have_put() {
        for fields in [&b"abc"[..], &[7; FIELD_BYTES_MAX - 1], &[7; 5_000]] {
            let key = key(fields, b"\x01\x02");
            let finished = index_entry::encode(Uniqueness::Unique, &key.fields, &key.type_bits, b"pk");
            let built = plain_entry_under_construction(Uniqueness::Unique, &key, b"pk", None);
            let parts = UniqueParts::of(EntryContents::Reference, &built.key, &built.value).unwrap();
            assert_eq!((parts.fields, parts.primary_key), (&*finished.key, &b"pk"[..]));
            let mut value = Vec::new();
            parts.value_into(&mut value);
            assert_eq!(value, finished.value);
            let built = index_entry::value_with_document(&built.value, b"document");
            let parts = UniqueParts::of(EntryContents::Copy, &finished.key, &built).unwrap();
            let mut value = Vec::new();
            UniqueParts { primary_key: b"pk", ..parts }.value_into(&mut value);
            assert_eq!(value, index_entry::value_with_document(&finished.value, b"document"));
        }
    }

    #[test]
    fn two_documents_with_one_unique_key_are_two_entries_under_construction() {
        let key = key(b"abc", b"");
        let one = plain_entry_under_construction(Uniqueness::Unique, &key, b"1", None);
        let other = plain_entry_under_construction(Uniqueness::Unique, &key, b"2", None);
        assert_ne!(one.key, other.key);
        assert!(
            UniqueParts::of(EntryContents::Reference, b"ab", &other.value).is_err(),
            "a key that is too short"
        );
        assert!(
            UniqueParts::of(EntryContents::Reference, b"ab", b"\x00").is_err(),
            "a value that is too short"
        );
    }
}
