//! Writes of documents: a document and its index entries change in one transaction.
//!
//! # Steps of a write
//! 1. Find the primary key, and check that it is free (insert). Replace and remove know it. Where `_id` is
//!    not the primary key, the unique index on `_id` is checked instead, before the others.
//! 2. Derive each index's keys before and after, and log the flags that they raise (`flag_log`).
//! 3. Remove and put the entries that differ, and those that hold a copy of the document. A unique index is
//!    first asked whether another document has the key.
//! 4. Put or remove the document. A document whose primary key changes is removed and put, with all entries.
//! 5. Note the change of the counters, which the transaction merges when it commits (`write_transaction`).
//!
//! The document's primary key carries the intent that keeps other writers of the document away. Entries of
//! indexes that are not unique end with that key, so they need neither a read nor an intent of their own.
//!
//! An index that is prepared for uniqueness has the entries of one that is not unique. Writers of one key
//! meet at an intent of their own (`claim_prepared`).
//!
//! An index under construction gets its changes recorded for the build (`building`),
//! without a check of uniqueness.
//!
//! In a collection with partitions a unique key is looked for in all of them (`claim_in_partitions`).
//!
//! A patch changes a document that nobody has read, in fields that no index has. It writes no entries.
//!
//! In a capped collection an insert removes the oldest documents (`capping`).
//!
//! # Not here
//! Rollback: a statement that fails half way leaves writes in the transaction. The caller
//! takes a savepoint first.

mod capping;

use pando_collation::TextOrder;
use pando_document::{Document, RawDocument, RawDocumentBuf, RawValue, Value};
use pando_keyorder::{Direction, TypeBits};
use pando_storage::{BlockingMode, Claim, Cursor, KeyRange, Merge, StorageError, Transaction};

use crate::building::BuildingIndex;
use crate::counters::partition_number;
use crate::index::Owner;
use crate::index_description::{EntryContents, Uniqueness};
use crate::index_entry::{self, EncodedEntry};
use crate::index_keys::IndexKey;
use crate::partitions::{NO_PARTITION, PARTITIONED_KEY_BYTES_MAX, PREFIX_BYTES};
use crate::stamps::value_at;
use crate::write_transaction::WriteTransaction;
use crate::{Collection, Index, PrimaryKey, WriteError};

/// An index that a statement writes to.
#[derive(Clone, Copy)]
enum Target<'i> {
    Ready(&'i Index),
    /// The index is under construction: changes are recorded for the build.
    Building(&'i BuildingIndex),
}

/// The document that a statement writes.
#[derive(Clone, Copy)]
struct Written<'d> {
    owner: Owner<'d>,
    before: Before,
}

/// Whether the document of a primary key was there before the statement. If it was not, then every present
/// entry of a unique key is that of another, even one with the same primary key.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    Absent,
    Present,
}

impl Collection {
    /// Inserts a document. Its `_id` must be there.
    pub fn insert(
        &self,
        transaction: &mut WriteTransaction,
        document: &RawDocument,
        blocking: BlockingMode,
    ) -> Result<(), WriteError> {
        let id = document.get("_id")?.ok_or(WriteError::NoId)?;
        let key = self.new_key(document, blocking)?;
        if self.layout().is_by_id()
            && transaction.get(self.primary_tree(), key.as_bytes(), blocking)?.is_some()
        {
            return Err(duplicate_id(id, self.text_order()));
        }
        self.check_partitionable(&key, document)?;
        if key.is_cut() {
            self.log_primary_truncated()?;
        }
        let owner = Owner { primary_key: key.as_bytes(), document };
        let written = Written { owner, before: Before::Absent };
        for target in self.targets() {
            let entry_keys = self.derive(target, document)?;
            for entry_key in &entry_keys {
                target.put(transaction.engine(), entry_key, written, blocking)?;
            }
            self.count_surplus(transaction, target, entry_keys.len() as i64 - 1);
        }
        transaction.engine().put(self.primary_tree(), key.as_bytes(), document.as_bytes())?;
        let bytes = document.as_bytes().len();
        self.count_documents(transaction, 1, bytes as i64);
        self.count_in_partition(transaction, key.as_bytes(), 1, bytes as i64);
        match self.capped_limits() {
            None => Ok(()),
            Some(limits) => self.make_room(limits, transaction, (&key, bytes), blocking),
        }
    }

    /// Tells the engine that these documents are about to be inserted, a thousand at most. One that sends
    /// each request over a network then looks for all of their keys at once.
    pub fn expect_inserts(
        &self,
        transaction: &WriteTransaction,
        documents: &[&RawDocument],
        blocking: BlockingMode,
    ) -> Result<(), WriteError> {
        if documents.len() < 2 || !self.layout().is_by_id() {
            return Ok(());
        }
        let ids = documents.iter().filter_map(|document| document.get("_id").ok().flatten());
        let mut keys = ids.map(|id| PrimaryKey::in_order(id, self.text_order()).into_bytes());
        transaction.expect_gets(self.primary_tree(), &mut keys, blocking)?;
        Ok(())
    }

    /// Replaces the document of a primary key by another with the same `_id`. Where a field of the primary
    /// key changes, the document moves.
    pub fn replace(
        &self,
        transaction: &mut WriteTransaction,
        key: &[u8],
        old: &RawDocument,
        new: &RawDocument,
        blocking: BlockingMode,
    ) -> Result<(), WriteError> {
        let moved = self.moved_key(key, new)?;
        if let Some(moved) = &moved {
            self.check_partitionable(moved, new)?;
            if moved.is_cut() {
                self.log_primary_truncated()?;
            }
            transaction.engine().delete(self.primary_tree(), key)?;
        }
        let new_key = moved.as_ref().map_or(key, PrimaryKey::as_bytes);
        // The document first: its intent is what keeps other writers of the same entries away.
        transaction.engine().put(self.primary_tree(), new_key, new.as_bytes())?;
        let owner = Owner { primary_key: new_key, document: new };
        let written = Written { owner, before: Before::Present };
        for target in self.targets() {
            let before = target.keys_before(old)?;
            let after = self.derive(target, new)?;
            // Keys are sorted. The entries of a document that moves all have another primary key.
            let stays =
                |key: &IndexKey, others: &[IndexKey]| moved.is_none() && others.binary_search(key).is_ok();
            for gone in before.iter().filter(|have| !stays(have, &after)) {
                target.delete(transaction.engine(), gone, key)?;
            }
            let has_copy = target.index().contents() == EntryContents::Copy;
            for come in after.iter().filter(|have| has_copy || !stays(have, &before)) {
                target.put(transaction.engine(), come, written, blocking)?;
            }
            self.count_surplus(transaction, target, after.len() as i64 - before.len() as i64);
        }
        let (before, after) = (old.as_bytes().len() as i64, new.as_bytes().len() as i64);
        self.count_documents(transaction, 0, after - before);
        self.count_in_partition(transaction, key, -1, -before);
        self.count_in_partition(transaction, new_key, 1, after);
        Ok(())
    }

    /// The reason why documents cannot be patched by `_id` without a read. `None`: they can, as far as the
    /// indexes let the caller.
    pub fn obstacle_to_patches(&self) -> Option<&'static str> {
        if self.capped_limits().is_some() {
            return Some("the collection is capped");
        }
        if !self.layout().is_by_id() {
            return Some("the collection is not ordered by _id");
        }
        if self.shared_partitions().is_some() {
            return Some("the collection has partitions");
        }
        if !self.text_order().is_simple() {
            return Some("the collection has a collation");
        }
        (!self.building().is_empty()).then_some("an index is being built")
    }

    /// Patches the document with an `_id`, mostly without a read of it; `false` where nothing is done because
    /// the `_id` is too long. The caller has looked for obstacles, and no index has a field that changes.
    ///
    /// # Errors
    /// A conflict as for [`replace`](Collection::replace). `WouldBlock` where the engine has to read.
    pub fn patch(
        &self,
        transaction: &mut WriteTransaction,
        id: RawValue<'_>,
        patch: &[u8],
        blocking: BlockingMode,
    ) -> Result<bool, StorageError> {
        assert!(self.obstacle_to_patches().is_none(), "the caller has looked for obstacles");
        let key = PrimaryKey::in_order(id, self.text_order());
        // The key of a long `_id` may be that of another one.
        if key.is_cut() {
            return Ok(false);
        }
        let merge = Merge::Patch(patch);
        transaction.engine().merge(self.primary_tree(), key.as_bytes(), merge, Claim::Intent, blocking)?;
        if self.keeps_counters() {
            transaction.count_patches(self.number(), 1);
        }
        Ok(true)
    }

    /// Removes a document and its entries.
    pub fn remove(
        &self,
        transaction: &mut WriteTransaction,
        key: &[u8],
        old: &RawDocument,
        _blocking: BlockingMode,
    ) -> Result<(), WriteError> {
        transaction.engine().delete(self.primary_tree(), key)?;
        for target in self.targets() {
            let entry_keys = target.keys_before(old)?;
            for gone in &entry_keys {
                target.delete(transaction.engine(), gone, key)?;
            }
            self.count_surplus(transaction, target, 1 - entry_keys.len() as i64);
        }
        self.count_documents(transaction, -1, -(old.as_bytes().len() as i64));
        self.count_in_partition(transaction, key, -1, -(old.as_bytes().len() as i64));
        Ok(())
    }

    /// Notes a change of documents and bytes, unless the collection is not counted yet.
    fn count_documents(&self, transaction: &mut WriteTransaction, documents: i64, bytes: i64) {
        if self.keeps_counters() {
            transaction.count_documents(self.number(), documents, bytes);
        }
    }

    /// Notes a change of documents and bytes in the partition of a primary key, where there are partitions.
    fn count_in_partition(&self, transaction: &mut WriteTransaction, key: &[u8], documents: i64, bytes: i64) {
        if let Some(partitions) = self.shared_partitions() {
            let number = partition_number(self.number(), partitions.list().of_key(key).id);
            transaction.count_in_partition(number, documents, bytes);
        }
    }

    /// Refuses a document that no partition can have. Its key is cut, and has lost its order; or it has no
    /// time, where partitions follow that.
    pub(crate) fn check_partitionable(
        &self,
        key: &PrimaryKey,
        document: &RawDocument,
    ) -> Result<(), WriteError> {
        if self.shared_partitions().is_none() {
            return Ok(());
        }
        if key.as_bytes().len() > PARTITIONED_KEY_BYTES_MAX {
            return Err(WriteError::KeyTooLongForPartitions { bytes_max: PARTITIONED_KEY_BYTES_MAX });
        }
        let Some(schedule) = self.schedule() else { return Ok(()) };
        let stamp = value_at(document, schedule.path()).and_then(|value| schedule.kind().time_of(value));
        match stamp {
            Some(_) => Ok(()),
            None => Err(WriteError::NoStamp { path: schedule.path().to_owned(), kind: schedule.kind() }),
        }
    }

    /// Notes a change of an index's entries beyond that of the documents.
    fn count_surplus(&self, transaction: &mut WriteTransaction, target: Target<'_>, entries: i64) {
        if self.keeps_counters() {
            transaction.count_surplus(target.index().number(), entries);
        }
    }

    fn targets(&self) -> impl Iterator<Item = Target<'_>> {
        let ready = self.indexes().iter().map(|index| Target::Ready(index));
        ready.chain(self.building().iter().map(|building| Target::Building(building)))
    }

    /// The keys of a document, with the flags that they raise logged and raised.
    fn derive(&self, target: Target<'_>, document: &RawDocument) -> Result<Vec<IndexKey>, WriteError> {
        let index = target.index();
        let derived = index.keys_of(document)?;
        let flags = derived.flags();
        if flags.any() {
            match target {
                // Nobody but this process knows an index under construction, unless servers share the store.
                Target::Building(building) if self.sharing().is_none() => {
                    if index.lacks(&flags) {
                        building.raise(&flags);
                    }
                }
                _ if index.lacks(&flags) => self.log_index_flags(index, &flags)?,
                _ => self.wait_for_flags()?,
            }
        }
        Ok(derived.keys)
    }
}

impl<'i> Target<'i> {
    fn index(self) -> &'i Index {
        match self {
            Target::Ready(index) => index,
            Target::Building(building) => &building.index,
        }
    }

    /// The keys of a document that is there.
    fn keys_before(self, document: &RawDocument) -> Result<Vec<IndexKey>, WriteError> {
        match (self, self.index().keys_of(document)) {
            (_, Ok(derived)) => Ok(derived.keys),
            // The build fails at this document, or has seen its removal. The statement goes on in both cases.
            (Target::Building(_), Err(WriteError::ParallelArrays { .. } | WriteError::AmbiguousField(_))) => {
                Ok(Vec::new())
            }
            (_, Err(error)) => Err(error),
        }
    }

    fn put(
        self,
        transaction: &mut dyn Transaction,
        key: &IndexKey,
        written: Written<'_>,
        blocking: BlockingMode,
    ) -> Result<(), WriteError> {
        match self {
            Target::Ready(index) => put_entry(index, transaction, key, written, blocking),
            Target::Building(building) => Ok(building.note_put(transaction, key, written.owner)?),
        }
    }

    fn delete(
        self,
        transaction: &mut dyn Transaction,
        key: &IndexKey,
        primary_key: &[u8],
    ) -> Result<(), WriteError> {
        match self {
            Target::Ready(index) => delete_entry(index, transaction, key, primary_key),
            Target::Building(building) => Ok(building.note_removed(transaction, key, primary_key)?),
        }
    }
}

/// Puts an entry; in a unique index, only if no other document has its key.
fn put_entry(
    index: &Index,
    transaction: &mut dyn Transaction,
    entry_key: &IndexKey,
    written: Written<'_>,
    blocking: BlockingMode,
) -> Result<(), WriteError> {
    let EncodedEntry { key, value } = index.entry(entry_key, written.owner);
    match index.uniqueness() {
        Uniqueness::NotUnique => transaction.put_blind(index.tree(), &key, &value)?,
        Uniqueness::Prepared => {
            claim_prepared(index, transaction, entry_key, written, blocking)?;
            transaction.put_blind(index.tree(), &key, &value)?;
        }
        Uniqueness::Unique => {
            match index.partitions() {
                None => check_unique(index, transaction, &key, (entry_key, written), blocking)?,
                Some(_) => claim_in_partitions(index, transaction, &key, (entry_key, written), blocking)?,
            }
            transaction.put(index.tree(), &key, &value)?;
        }
    }
    Ok(())
}

/// Checks that no other document has the key of an entry.
#[inline]
fn check_unique(
    index: &Index,
    transaction: &dyn Transaction,
    key: &[u8],
    (entry_key, written): (&IndexKey, Written<'_>),
    blocking: BlockingMode,
) -> Result<(), WriteError> {
    let Some(have) = transaction.get(index.tree(), key, blocking)? else { return Ok(()) };
    let present = index.decode_entry(key, &have).map_err(|reason| damaged(index, reason))?;
    let is_own = written.before == Before::Present && present.primary_key == written.owner.primary_key;
    if is_own { Ok(()) } else { Err(duplicate_key(index, entry_key)) }
}

/// Checks that no document of any partition has the key of an entry, and keeps other writers of it away: they
/// meet at the key that belongs to no partition, whose removal changes nothing.
fn claim_in_partitions(
    index: &Index,
    transaction: &mut dyn Transaction,
    key: &[u8],
    entry: (&IndexKey, Written<'_>),
    blocking: BlockingMode,
) -> Result<(), WriteError> {
    let Some(partitions) = index.partitions() else { return Ok(()) };
    let mut other = key.to_vec();
    for prefix in partitions.list().prefixes_at(transaction.snapshot()) {
        other[..PREFIX_BYTES].copy_from_slice(&prefix);
        check_unique(index, transaction.as_dyn(), &other, entry, blocking)?;
    }
    other[..PREFIX_BYTES].copy_from_slice(&NO_PARTITION);
    Ok(transaction.delete(index.tree(), &other)?)
}

/// Checks that no other document has a key, and keeps other writers of it away.
///
/// The entries of two documents are two keys of the engine, so neither meets the intent of the other. The key
/// without a primary key is that of no entry: its removal changes nothing, and its intent is that of all
/// writers of the key.
fn claim_prepared(
    index: &Index,
    transaction: &mut dyn Transaction,
    entry_key: &IndexKey,
    written: Written<'_>,
    blocking: BlockingMode,
) -> Result<(), WriteError> {
    let shared = index_entry::encode(Uniqueness::Unique, &entry_key.fields, &[], &[]).key;
    let mut cursor = Cursor::new(index.tree(), KeyRange::prefix(&shared), pando_storage::Direction::Forward);
    while let Some((key, value)) = cursor.next(transaction.as_dyn(), blocking)? {
        let present = index.decode_entry(key, value).map_err(|reason| damaged(index, reason))?;
        let is_own = written.before == Before::Present && present.primary_key == written.owner.primary_key;
        if present.fields == shared && !is_own {
            return Err(duplicate_key(index, entry_key));
        }
    }
    Ok(transaction.delete(index.tree(), &shared)?)
}

/// Removes an entry that is known to be there.
fn delete_entry(
    index: &Index,
    transaction: &mut dyn Transaction,
    entry_key: &IndexKey,
    primary_key: &[u8],
) -> Result<(), WriteError> {
    let entry = index.entry_key(entry_key, primary_key);
    match index.uniqueness() {
        Uniqueness::NotUnique | Uniqueness::Prepared => transaction.delete_blind(index.tree(), &entry.key)?,
        Uniqueness::Unique => transaction.delete(index.tree(), &entry.key)?,
    }
    Ok(())
}

pub(crate) fn damaged(index: &Index, reason: &str) -> WriteError {
    WriteError::DamagedEntry { index: index.name().to_owned(), reason: reason.to_owned() }
}

/// The error of an `_id` that is there already.
pub(crate) fn duplicate_id(id: RawValue<'_>, order: &TextOrder) -> WriteError {
    let mut key = Document::new();
    if order.is_simple() {
        key.push("_id", id.to_owned());
    } else {
        let mut bytes = Vec::new();
        order.encode(id, Direction::Ascending, &mut bytes, &mut TypeBits::discarded());
        let shown = order.decode(&bytes, &[], &[Direction::Ascending]).unwrap_or_default();
        shown.into_iter().for_each(|value| key.push("_id", value));
    }
    let mut pattern = Document::new();
    pattern.push("_id", Value::Int32(1));
    WriteError::DuplicateKey {
        index: "_id_".to_owned(),
        key_pattern: pattern.to_raw(),
        key: key.to_raw(),
        collation: order.document().cloned(),
    }
}

/// Names the fields and values of a key that is there already.
pub(crate) fn duplicate_key(index: &Index, entry_key: &IndexKey) -> WriteError {
    let order = index.text_order();
    let values =
        order.decode(&entry_key.fields, &entry_key.type_bits, index.directions()).unwrap_or_default();
    let mut key = Document::new();
    for (field, value) in index.fields().iter().zip(values) {
        // `undefined` stands in keys for an empty array and is shown as MongoDB shows it.
        key.push(&field.path, value);
    }
    let pattern = match index.specification().get("key") {
        Ok(Some(RawValue::Document(pattern))) => pattern.to_owned(),
        _ => RawDocumentBuf::new(),
    };
    WriteError::DuplicateKey {
        index: index.name().to_owned(),
        key_pattern: pattern,
        key: key.to_raw(),
        collation: order.document().cloned(),
    }
}
