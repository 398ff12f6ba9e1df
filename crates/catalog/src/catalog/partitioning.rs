//! The changes of partitions that a user asks for: a bound for the last one, and drops.
//!
//! # Steps of a change
//! 1. Take the latch of the collection alone. An index that is being built refuses the change.
//! 2. One transaction writes the entry with the new list. For a drop it also deletes the range of the
//!    documents and that of the entries in each index, and takes the figures of the partition off the
//!    counters.
//! 3. When that is on the device, the new list and a new description are shown.
//!
//! A transaction of a session that has written to the collection finds another description at its commit, and
//! conflicts. A drop conflicts with one that has written to the partition.
//!
//! # Not here
//! The changes that time brings: `partition_keeping`.

use std::sync::Arc;

use pando_document::{Document, RawDocument, RawValue, Value};
use pando_keyorder::{Direction as Order, TypeBits};
use pando_storage::{
    Begin, BlockingMode, Cursor, Direction, Durability, ErrorKind, KeyRange, Operation, SnapshotTimestamp,
    StorageError, Transaction,
};

use super::{Catalog, Exclusive};
use crate::catalog_entry;
use crate::collection::Collection;
use crate::counters::{CounterChange, partition_number};
use crate::error::{CatalogError, PartitionFault};
use crate::layout::Layout;
use crate::namespace::Namespace;
use crate::partitions::{PARTITIONED_KEY_BYTES_MAX, PARTITIONS_MAX, PartitionBound, PartitionList};
use crate::stamps::{StampKind, value_at};
use crate::write_transaction::WriteTransaction;

pub(super) const MODE: BlockingMode = BlockingMode::MayBlock;

/// The partitions that are dropped.
#[derive(Clone, Copy, Debug)]
pub enum PartitionChoice<'c> {
    /// That of this number.
    Id(i64),
    /// All whose bound is not above these values.
    UpTo(&'c RawDocument),
    /// All whose bound is a stamp that is not behind this time, and whose documents have stamps alone.
    Expired {
        /// The type of stamps.
        kind: StampKind,
        /// The time in milliseconds since 1970.
        last_ms: i64,
    },
}

/// The outcome of a drop.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DroppedPartitions {
    /// Their numbers.
    pub ids: Vec<u32>,
    /// Their documents.
    pub documents: u64,
}

impl Catalog {
    /// Gives the last partition of a collection a bound, and adds one behind it. The bound has these
    /// values, or those of the last document. Blocks until it is on the device.
    ///
    /// # Errors
    /// The collection has no partitions; see [`PartitionFault`]; an index is being built.
    pub fn add_partition(
        &self,
        namespace: &Namespace,
        values: Option<&RawDocument>,
        now_ms: i64,
        operation: &Operation,
    ) -> Result<(), CatalogError> {
        let alone = self.exclusive(namespace, operation)?;
        let collection = &alone.collection;
        let list = self.changeable(collection)?;
        if list.live.len() >= PARTITIONS_MAX {
            let reason = format!("a collection has at most {PARTITIONS_MAX} partitions");
            return Err(refused(PartitionFault::TooMany, reason));
        }
        let bound = self.new_bound(collection, &list, values)?;
        // The last one may have had documents above the bound, which older snapshots see.
        let shrunk = [list.live[list.live.len() - 1].id];
        let list = list.with_bound(bound, now_ms);
        self.commit_partitions(collection, (list, &shrunk), None, self.begin_write()?)
    }

    fn new_bound(
        &self,
        collection: &Collection,
        list: &PartitionList,
        values: Option<&RawDocument>,
    ) -> Result<PartitionBound, CatalogError> {
        let transaction = self.begin_write()?;
        let last_keys = list.keys_at(list.live.len() - 1);
        let mut cursor = Cursor::new(collection.primary_tree(), last_keys, Direction::Backward);
        let last = cursor.next(&*transaction, MODE)?;
        match (values, last) {
            (None, None) => {
                let reason = "cannot give the last partition a bound without 'newMax': it has no documents";
                Err(refused(PartitionFault::Empty, reason.to_owned()))
            }
            (None, Some((key, document))) => {
                let document = RawDocument::from_bytes(document).map_err(crate::WriteError::from)?;
                let values = values_of(collection, document);
                Ok(PartitionBound { key: key.to_vec(), values: values.to_raw() })
            }
            (Some(values), last) => {
                let bound = collection.partition_bound(values)?;
                let before = list.live.iter().rev().find_map(|partition| partition.bound.as_ref());
                let is_above = last.is_none_or(|(key, _)| key <= bound.key.as_slice())
                    && before.is_none_or(|before| before.key < bound.key);
                match is_above {
                    true => Ok(bound),
                    false => Err(refused(
                        PartitionFault::Bound,
                        "'newMax' has to be above the bounds of all partitions, and not below any document"
                            .to_owned(),
                    )),
                }
            }
        }
    }

    /// Drops partitions with their documents, each in a commit of its own. Blocks until it is on the device.
    ///
    /// # Errors
    /// As for [`add_partition`](Catalog::add_partition); a conflict with a transaction that has written to
    /// the partitions.
    pub fn drop_partitions(
        &self,
        namespace: &Namespace,
        choice: PartitionChoice<'_>,
        operation: &Operation,
    ) -> Result<DroppedPartitions, CatalogError> {
        let alone = self.exclusive(namespace, operation)?;
        self.drop_chosen(&alone, choice, operation)
    }

    /// Drops the partitions of a collection whose documents have expired by a time, as
    /// [`drop_partitions`](Catalog::drop_partitions). `None` where a statement has the collection for long.
    ///
    /// # Errors
    /// As for [`drop_partitions`](Catalog::drop_partitions).
    pub fn drop_expired_partitions(
        &self,
        namespace: &Namespace,
        (kind, last_ms): (StampKind, i64),
        operation: &Operation,
    ) -> Result<Option<DroppedPartitions>, CatalogError> {
        let found = self.existing(namespace)?;
        let Some(shared) = found.shared_partitions() else { return Ok(Some(DroppedPartitions::default())) };
        if !shared.list().live.iter().any(|partition| partition.ends_by(kind, last_ms)) {
            return Ok(Some(DroppedPartitions::default()));
        }
        let Some(alone) = self.exclusive_briefly(namespace, operation)? else { return Ok(None) };
        self.drop_chosen(&alone, PartitionChoice::Expired { kind, last_ms }, operation).map(Some)
    }

    pub(super) fn drop_chosen(
        &self,
        alone: &Exclusive,
        choice: PartitionChoice<'_>,
        operation: &Operation,
    ) -> Result<DroppedPartitions, CatalogError> {
        let collection = &alone.collection;
        let list = self.changeable(collection)?;
        let reader = self.begin(Begin::READ)?;
        let places = chosen(collection, &list, &*reader, choice)?;
        reader.rollback();
        if places.len() == list.live.len() {
            let reason = "cannot drop the only partition of a collection; drop the collection, or add a partition first";
            return Err(refused(PartitionFault::Only, reason.to_owned()));
        }
        let mut dropped = DroppedPartitions::default();
        let ids: Vec<u32> = places.iter().map(|place| list.live[*place].id).collect();
        // One commit each, so that a transaction stays small.
        for id in ids {
            let list = self.changeable(collection)?;
            let Some(place) = list.live.iter().position(|partition| partition.id == id) else { continue };
            let mut transaction = self.begin_write()?;
            dropped.documents += remove_partition(collection, &list, place, &mut transaction, operation)?;
            self.commit_partitions(collection, (list.without(place), &[id]), Some(id), transaction)?;
            dropped.ids.push(id);
        }
        Ok(dropped)
    }

    /// The partitions of a collection that the caller holds alone, to change them.
    pub(super) fn changeable(&self, collection: &Collection) -> Result<Arc<PartitionList>, CatalogError> {
        let namespace = || collection.full_name().to_owned();
        let shared = collection.shared_partitions();
        let shared = shared.ok_or_else(|| CatalogError::NotPartitioned { namespace: namespace() })?;
        if !collection.building().is_empty() {
            return Err(CatalogError::IndexBuildRunning { namespace: namespace() });
        }
        Ok(Arc::clone(&shared.list()))
    }

    /// Commits a list in a transaction, and shows it. Some partitions have lost keys to others, and one may
    /// be gone. The caller holds the collection alone.
    pub(super) fn commit_partitions(
        &self,
        collection: &Arc<Collection>,
        (mut list, shrunk): (PartitionList, &[u32]),
        gone: Option<u32>,
        mut transaction: WriteTransaction,
    ) -> Result<(), CatalogError> {
        let _changing = self.store.changing.lock();
        let truncation = collection.primary_truncation();
        let entry = catalog_entry::encode_with(collection, truncation, None, Some(&list));
        let key = catalog_entry::key_of(collection.full_name());
        transaction.engine().put(self.store.tree, &key, entry.as_bytes())?;
        if let Some(id) = gone {
            let number = partition_number(collection.number(), id);
            CounterChange::ForgetPartition(number).make(transaction.engine(), self.store.counters)?;
        }
        let receipt = transaction.commit(Durability::Logged)?;
        // A snapshot that is not live yet sees all commits of before.
        let live = self.store.engine.live_transactions();
        let oldest = live.iter().map(|transaction| transaction.snapshot).min();
        list.forget_seen_by(oldest.unwrap_or(SnapshotTimestamp::new(receipt.timestamp.get())));
        if let Some(shared) = collection.shared_partitions() {
            shared.replace(list, shrunk, receipt.timestamp);
        }
        let shown = Arc::new(Collection::new(collection.parts(), Arc::clone(&self.store)));
        self.swap(&[], &[&shown]);
        self.store.engine.wait_durable(receipt, Durability::Synced)?;
        Ok(())
    }
}

/// The places of the partitions that are to be dropped.
fn chosen(
    collection: &Collection,
    list: &PartitionList,
    reader: &dyn Transaction,
    choice: PartitionChoice<'_>,
) -> Result<Vec<usize>, CatalogError> {
    match choice {
        PartitionChoice::Id(id) => {
            let at = list.live.iter().position(|partition| i64::from(partition.id) == id);
            let unknown =
                || refused(PartitionFault::Unknown, format!("there is no partition with the id {id}"));
            Ok(vec![at.ok_or_else(unknown)?])
        }
        PartitionChoice::UpTo(values) => {
            let most = collection.partition_bound(values)?;
            let is_within = |bound: &PartitionBound| bound.key <= most.key;
            let bounds = list.live.iter().map_while(|partition| partition.bound.as_ref());
            Ok((0..bounds.take_while(|bound| is_within(bound)).count()).collect())
        }
        PartitionChoice::Expired { kind, last_ms } => {
            let mut places = Vec::new();
            for (place, partition) in list.live.iter().enumerate() {
                if partition.ends_by(kind, last_ms)
                    && begins_with_stamp(collection, list.keys_at(place), reader, kind)?
                {
                    places.push(place);
                }
            }
            Ok(places)
        }
    }
}

/// Whether the first document in a range of keys has a stamp, or there is none. All others of the range have
/// one then, if the range ends with a stamp: values of one type lie side by side.
fn begins_with_stamp(
    collection: &Collection,
    keys: KeyRange,
    reader: &dyn Transaction,
    kind: StampKind,
) -> Result<bool, CatalogError> {
    let mut cursor = Cursor::new(collection.primary_tree(), keys, Direction::Forward);
    let Some((_, first)) = cursor.next(reader, MODE)? else { return Ok(true) };
    let first = RawDocument::from_bytes(first).map_err(crate::WriteError::from)?;
    let values = values_of(collection, first).to_raw();
    let stamp = values.iter().next().transpose().map_err(crate::WriteError::from)?;
    Ok(stamp.is_some_and(|(_, value)| kind.time_of(value).is_some()))
}

/// Removes the documents of a partition and their entries; gives their number.
fn remove_partition(
    collection: &Collection,
    list: &PartitionList,
    place: usize,
    transaction: &mut WriteTransaction,
    operation: &Operation,
) -> Result<u64, CatalogError> {
    operation.check_now()?;
    let partition = &list.live[place];
    let (documents, bytes) = collection.partition_totals(partition.id, &**transaction, MODE)?;
    let entries_of = KeyRange::prefix(&partition.prefix());
    for index in collection.indexes() {
        if !index.may_have_surplus() {
            continue;
        }
        let mut cursor = Cursor::new(index.tree(), entries_of.clone(), Direction::Forward);
        let mut entries = 0_i64;
        loop {
            operation.check()?;
            match cursor.pass_batch(&**transaction, MODE)? {
                0 => break,
                passed => entries += passed as i64,
            }
        }
        transaction.count_surplus(index.number(), documents - entries);
    }
    let engine = transaction.engine();
    engine.delete_range(collection.primary_tree(), &list.keys_at(place), MODE)?;
    for index in collection.indexes() {
        engine.delete_range(index.tree(), &entries_of, MODE)?;
    }
    transaction.count_documents(collection.number(), -documents, -bytes);
    u64::try_from(documents).map_err(|_| {
        let message = format!("the counter of partition {} is below zero", partition.id);
        StorageError::new(ErrorKind::Corrupt, message).into()
    })
}

impl Collection {
    /// The bound with these values: one for each field of the primary key, in their order.
    pub fn partition_bound(&self, values: &RawDocument) -> Result<PartitionBound, CatalogError> {
        let fields = key_fields(self);
        let mut key = Vec::new();
        let mut given = values.iter();
        for (path, order) in &fields {
            let value = match given.next().transpose().map_err(crate::WriteError::from)? {
                Some((name, value)) if name == *path && !matches!(value, RawValue::Array(_)) => value,
                _ => return Err(wrong_bound(&fields)),
            };
            self.text_order().encode(value, *order, &mut key, &mut TypeBits::new());
        }
        if given.next().is_some() || key.len() > PARTITIONED_KEY_BYTES_MAX {
            return Err(wrong_bound(&fields));
        }
        Ok(PartitionBound { key, values: values.to_owned() })
    }

    /// The values that stand for the bound of the last partition, which has none.
    pub fn endless_bound(&self) -> Document {
        let mut values = Document::new();
        for (path, order) in key_fields(self) {
            values.push(path, if order == Order::Ascending { Value::MaxKey } else { Value::MinKey });
        }
        values
    }
}

/// The fields of the primary key.
pub(super) fn key_fields(collection: &Collection) -> Vec<(&str, Order)> {
    match collection.layout() {
        Layout::Fields(fields) => fields.iter().map(|field| (field.path.as_str(), field.direction)).collect(),
        Layout::Clustered | Layout::Heap => vec![("_id", Order::Ascending)],
    }
}

/// The values of the primary key in a document.
fn values_of(collection: &Collection, document: &RawDocument) -> Document {
    let mut values = Document::new();
    for (path, _) in key_fields(collection) {
        values.push(path, value_at(document, path).unwrap_or(RawValue::Null).to_owned());
    }
    values
}

fn wrong_bound(fields: &[(&str, Order)]) -> CatalogError {
    let names: Vec<_> = fields.iter().map(|(path, _)| *path).collect();
    let reason = format!(
        "a bound has a value for each field of the primary key, in their order ({}), and at most {PARTITIONED_KEY_BYTES_MAX} bytes",
        names.join(", ")
    );
    refused(PartitionFault::Bound, reason)
}

fn refused(fault: PartitionFault, reason: String) -> CatalogError {
    CatalogError::Partitions { fault, reason }
}
