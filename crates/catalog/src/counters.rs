//! Exact counters: documents and bytes of each collection, and entries of each index. They change in the
//! commit that changes what they count (docs/decisions/0032-exact-counters.md).
//!
//! # Terms
//! - *Counter*: an integer of 8 bytes in the tree [`COUNTERS_TREE`]. Transactions add to it by blind merges,
//!   so they never conflict there.
//! - *Surplus* of an index: its entries less the documents of the collection. It is 0 as long as every
//!   document has one entry, so an index without arrays that is not sparse costs no write.
//! - *Delta*: the sum of one transaction's changes of one counter. A transaction merges each delta once, when
//!   it commits.
//! - *Mark*: an entry that says that the counters of a collection are complete. A collection that an older
//!   program has written has none; `first_count` makes it.
//!
//! ```text
//! key    u8 kind | the number of the tree, big-endian, without leading zeros
//! value  kind 0, mark            u8 1       by the number of the collection's tree
//!        kind 1, documents       i64 LE     by the number of the collection's tree
//!        kind 2, bytes           i64 LE     by the number of the collection's tree
//!        kind 3, surplus         i64 LE     by the number of the index's tree
//!        kind 4, documents       i64 LE     of a partition: by the number of the collection's tree, and in
//!        kind 5, bytes           i64 LE     32 bits behind it that of the partition
//! ```
//! An absent counter is 0. Trees go by the numbers in their names: those survive a restored backup, and the
//! engine's own numbers may not.
//!
//! # Invariants
//! - At every snapshot that has a collection's mark, its counters equal a scan at that snapshot.
//! - A counter belongs to a tree that exists, or to an index under construction.
//!   [`Catalog::open`](crate::Catalog::open) removes what a crash has left.
//!
//! # Not here
//! The sums of a transaction: `write_transaction`. The changes of each document: `documents`.

use std::collections::HashSet;

use pando_storage::{
    BlockingMode, Claim, Cursor, Direction, KeyRange, Merge, StorageError, Transaction, TreeId,
};

use crate::collection::Collection;
use crate::store::TreeNumber;

/// The name of the tree that holds the counters. A program that knows nothing of counters drops it as a tree
/// without a collection. So counters that missed its writes are never read.
pub const COUNTERS_TREE: &str = "counters";

/// The value of a mark.
const MARK: &[u8] = &[1];

/// A number has 8 bytes, behind the kind.
const KEY_BYTES_MAX: usize = 9;

/// The kind of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum CounterKind {
    /// The collection's counters are complete.
    Mark = 0,
    /// Documents of a collection.
    Documents = 1,
    /// Bytes of the documents of a collection.
    Bytes = 2,
    /// Entries of an index less the documents.
    Surplus = 3,
    /// Documents of a partition.
    PartitionDocuments = 4,
    /// Bytes of the documents of a partition.
    PartitionBytes = 5,
    /// Documents that were patched without a read, so that their bytes are not counted exactly.
    Patches = 6,
}

/// The number by which the counters of a partition go.
pub(crate) fn partition_number(collection: TreeNumber, partition: u32) -> TreeNumber {
    assert!(collection.get() <= u64::from(u32::MAX), "a store has fewer trees");
    TreeNumber::new(collection.get() << 32 | u64::from(partition))
}

/// The key of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CounterKey {
    bytes: [u8; KEY_BYTES_MAX],
    length: usize,
}

impl CounterKey {
    pub(crate) fn new(kind: CounterKind, number: TreeNumber) -> CounterKey {
        let number = number.get().to_be_bytes();
        let zeros = number.iter().take_while(|byte| **byte == 0).count();
        let mut bytes = [kind as u8; KEY_BYTES_MAX];
        let length = KEY_BYTES_MAX - zeros;
        bytes[1..length].copy_from_slice(&number[zeros..]);
        CounterKey { bytes, length }
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// The kind and the number of a key; `None` where a later program has made it.
    fn parts(key: &[u8]) -> Option<(CounterKind, TreeNumber)> {
        let (kind, number) = key.split_first()?;
        let kind = match kind {
            0 => CounterKind::Mark,
            1 => CounterKind::Documents,
            2 => CounterKind::Bytes,
            3 => CounterKind::Surplus,
            4 => CounterKind::PartitionDocuments,
            5 => CounterKind::PartitionBytes,
            6 => CounterKind::Patches,
            _ => return None,
        };
        let mut bytes = [0; 8];
        bytes.get_mut(8_usize.checked_sub(number.len())?..)?.copy_from_slice(number);
        Some((kind, TreeNumber::new(u64::from_be_bytes(bytes))))
    }
}

/// A change of counters beside a change of the catalog tree.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CounterChange {
    /// The counters are complete, and are what they are.
    Mark(TreeNumber),
    /// Adds to a counter.
    Add(CounterKind, TreeNumber, i64),
    /// The collection is gone, or has to be counted anew.
    ForgetCollection(TreeNumber),
    /// The index is gone, or its entries have to be counted anew.
    ForgetIndex(TreeNumber),
    /// The partition of this number is gone.
    ForgetPartition(TreeNumber),
}

impl CounterChange {
    /// Makes the change in a transaction. Nobody else writes to the collection meanwhile, except for adds.
    pub(crate) fn make(self, transaction: &mut dyn Transaction, tree: TreeId) -> Result<(), StorageError> {
        let mut forget =
            |kind, number| transaction.delete_blind(tree, CounterKey::new(kind, number).as_bytes());
        match self {
            CounterChange::Mark(number) => {
                transaction.put_blind(tree, CounterKey::new(CounterKind::Mark, number).as_bytes(), MARK)
            }
            CounterChange::Add(kind, number, amount) => {
                add(transaction, tree, &CounterKey::new(kind, number), amount)
            }
            CounterChange::ForgetCollection(number) => {
                forget(CounterKind::Mark, number)?;
                forget(CounterKind::Documents, number)?;
                forget(CounterKind::Patches, number)?;
                forget(CounterKind::Bytes, number)
            }
            CounterChange::ForgetIndex(number) => forget(CounterKind::Surplus, number),
            CounterChange::ForgetPartition(number) => {
                forget(CounterKind::PartitionDocuments, number)?;
                forget(CounterKind::PartitionBytes, number)
            }
        }
    }
}

/// Adds to a counter without a read.
pub(crate) fn add(
    transaction: &mut dyn Transaction,
    tree: TreeId,
    key: &CounterKey,
    amount: i64,
) -> Result<(), StorageError> {
    if amount == 0 {
        return Ok(());
    }
    // Only own writes that have left memory could be read here, by a transaction that may block.
    transaction.merge(tree, key.as_bytes(), Merge::Add(amount), Claim::Blind, BlockingMode::MayBlock)
}

/// Documents and bytes of a collection, and entries of its indexes, at one snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CollectionCounts {
    /// Documents.
    pub documents: u64,
    /// Bytes of the documents before compression; an estimate where there are patches.
    pub data_bytes: u64,
    /// Patches since the bytes were last known exactly.
    pub patches: u64,
    /// Entries of each secondary index that the snapshot may use, by name.
    pub index_entries: Vec<(String, u64)>,
}

impl Collection {
    /// The number of documents that a transaction sees, by the counter. `None` where the collection was not
    /// counted at its snapshot. Of the writes of a [`WriteTransaction`](crate::WriteTransaction) it has those
    /// before [`write_counters`](crate::WriteTransaction::write_counters).
    pub fn document_count(
        &self,
        transaction: &dyn Transaction,
        blocking: BlockingMode,
    ) -> Result<Option<u64>, StorageError> {
        let reader = CounterReader { transaction, tree: self.store.counters, blocking };
        if !reader.is_marked(self.number())? {
            return Ok(None);
        }
        Ok(checked(self, "documents", reader.get(CounterKind::Documents, self.number())?))
    }

    /// Documents and bytes, as [`document_count`](Collection::document_count).
    pub(crate) fn document_totals(
        &self,
        transaction: &dyn Transaction,
        blocking: BlockingMode,
    ) -> Result<Option<(i64, i64)>, StorageError> {
        let reader = CounterReader { transaction, tree: self.store.counters, blocking };
        if !reader.is_marked(self.number())? {
            return Ok(None);
        }
        let documents = reader.get(CounterKind::Documents, self.number())?;
        let bytes = reader.get(CounterKind::Bytes, self.number())?;
        Ok((documents >= 0 && bytes >= 0).then_some((documents, bytes)))
    }

    /// The counter of bytes as it is, which patches may have left below zero.
    pub(crate) fn counted_bytes(
        &self,
        transaction: &dyn Transaction,
        blocking: BlockingMode,
    ) -> Result<i64, StorageError> {
        let reader = CounterReader { transaction, tree: self.store.counters, blocking };
        reader.get(CounterKind::Bytes, self.number())
    }

    /// Documents and bytes of a partition, as [`document_count`](Collection::document_count).
    pub fn partition_totals(
        &self,
        partition: u32,
        transaction: &dyn Transaction,
        blocking: BlockingMode,
    ) -> Result<(i64, i64), StorageError> {
        let reader = CounterReader { transaction, tree: self.store.counters, blocking };
        let number = partition_number(self.number(), partition);
        let documents = reader.get(CounterKind::PartitionDocuments, number)?;
        Ok((documents, reader.get(CounterKind::PartitionBytes, number)?))
    }

    /// All counters, as [`document_count`](Collection::document_count).
    pub fn counts(
        &self,
        transaction: &dyn Transaction,
        blocking: BlockingMode,
    ) -> Result<Option<CollectionCounts>, StorageError> {
        let reader = CounterReader { transaction, tree: self.store.counters, blocking };
        if !reader.is_marked(self.number())? {
            return Ok(None);
        }
        let documents = reader.get(CounterKind::Documents, self.number())?;
        let mut bytes = reader.get(CounterKind::Bytes, self.number())?;
        let patches = reader.get(CounterKind::Patches, self.number())?.max(0);
        if patches > 0 {
            // Patches may have made documents longer, whose whole length a removal has taken away.
            bytes = if documents == 0 { 0 } else { bytes.max(0) };
        }
        let (Some(documents_checked), Some(data_bytes)) =
            (checked(self, "documents", documents), checked(self, "bytes", bytes))
        else {
            return Ok(None);
        };
        let mut counts = CollectionCounts {
            documents: documents_checked,
            data_bytes,
            patches: patches.cast_unsigned(),
            index_entries: Vec::new(),
        };
        let usable = self.indexes().iter().filter(|index| index.is_usable_at(transaction.snapshot()));
        for index in usable {
            let entries = documents.wrapping_add(reader.get(CounterKind::Surplus, index.number())?);
            let Some(entries) = checked(self, index.name(), entries) else { return Ok(None) };
            counts.index_entries.push((index.name().to_owned(), entries));
        }
        Ok(Some(counts))
    }
}

/// A counter as it is shown. One below zero is wrong, and counts as missing.
fn checked(collection: &Collection, counted: &str, counter: i64) -> Option<u64> {
    let shown = u64::try_from(counter).ok();
    if shown.is_none() {
        tracing::error!(
            collection = collection.full_name(),
            counted,
            counter,
            "a counter is below zero; the collection is counted anew"
        );
    }
    shown
}

struct CounterReader<'r> {
    transaction: &'r dyn Transaction,
    tree: TreeId,
    blocking: BlockingMode,
}

impl CounterReader<'_> {
    fn is_marked(&self, number: TreeNumber) -> Result<bool, StorageError> {
        let key = CounterKey::new(CounterKind::Mark, number);
        Ok(self.transaction.get(self.tree, key.as_bytes(), self.blocking)?.is_some())
    }

    fn get(&self, kind: CounterKind, number: TreeNumber) -> Result<i64, StorageError> {
        let key = CounterKey::new(kind, number);
        let value = self.transaction.get(self.tree, key.as_bytes(), self.blocking)?;
        let value = value.as_deref().map(<[u8; 8]>::try_from);
        // A value of another length is no counter: shown below zero, so that it counts as missing.
        Ok(value.map_or(0, |value| value.map_or(i64::MIN, i64::from_le_bytes)))
    }
}

/// The collections that have a mark.
pub(crate) fn marked(
    transaction: &dyn Transaction,
    tree: TreeId,
) -> Result<HashSet<TreeNumber>, StorageError> {
    let mut marked = HashSet::new();
    let mut cursor = Cursor::new(tree, KeyRange::all(), Direction::Forward);
    while let Some((key, _)) = cursor.next(transaction, BlockingMode::MayBlock)? {
        if let Some((CounterKind::Mark, number)) = CounterKey::parts(key) {
            marked.insert(number);
        }
    }
    Ok(marked)
}

/// Removes the counters that belong to none of these trees: those of collections that are not marked, of
/// index builds that a crash has ended, and of trees that are gone.
pub(crate) fn remove_others(
    transaction: &mut dyn Transaction,
    tree: TreeId,
    wanted: &HashSet<TreeNumber>,
) -> Result<(), StorageError> {
    let mut others = Vec::new();
    let mut cursor = Cursor::new(tree, KeyRange::all(), Direction::Forward);
    while let Some((key, _)) = cursor.next(transaction, BlockingMode::MayBlock)? {
        let is_other = CounterKey::parts(key).is_some_and(|(kind, number)| {
            let owner = match kind {
                CounterKind::PartitionDocuments | CounterKind::PartitionBytes => {
                    TreeNumber::new(number.get() >> 32)
                }
                _ => number,
            };
            !wanted.contains(&owner)
        });
        if is_other {
            others.push(key.to_vec());
        }
    }
    others.iter().try_for_each(|key| transaction.delete_blind(tree, key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_short_and_come_apart_as_they_were_put_together() {
        for number in [0, 1, 255, 256, 70_000, u64::MAX] {
            for kind in
                [CounterKind::Mark, CounterKind::Bytes, CounterKind::Surplus, CounterKind::PartitionBytes]
            {
                let key = CounterKey::new(kind, TreeNumber::new(number));
                assert_eq!(CounterKey::parts(key.as_bytes()), Some((kind, TreeNumber::new(number))));
            }
        }
        assert_eq!(CounterKey::new(CounterKind::Bytes, TreeNumber::new(0x1234)).as_bytes(), [2, 0x12, 0x34]);
        assert_eq!(CounterKey::parts(&[9, 1]), None, "a kind of a later program");
        assert_eq!(CounterKey::parts(&[1; 10]), None);
        assert_eq!(CounterKey::parts(&[]), None);
    }
}
