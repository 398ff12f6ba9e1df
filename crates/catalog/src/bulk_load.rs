//! A bulk load: a new collection whose documents and index entries are sorted first, and then written as full
//! leaves.
//!
//! # Steps
//! 1. *Begin*: create the trees of the collection and of its indexes. The catalog tree knows none of them.
//! 2. *Insert*: derive the index keys of a document, and give the document and its entries to an external
//!    sorter for each tree ([`pando_storage::Sorter`]). Nothing is written to a tree.
//! 3. *Finish*: load each tree from its sorter, without log and buffers
//!    ([`Engine::load`](pando_storage::Engine::load)).
//! 4. *Publish*: a session's transaction takes the loaded collection over ([`SessionTransaction::adopt`]).
//!    Its commit writes the entry of the catalog tree and the counters.
//!
//! # Invariants
//! - Nobody finds the collection by name before step 4. A snapshot from before the commit sees none of its
//!   documents afterwards (`publication`).
//! - A load that is dropped before its publication drops its trees. A crash, or a publication with an unknown
//!   outcome, leaves trees that no entry refers to: the next start drops them. Scratch files have no name.
//! - The sorters take their memory from the budget of queries, as one query.
//!
//! # Replacement
//! A load may take the place of a collection (`replacement`), whose options and indexes it has.
//!
//! # Duplicates
//! Two documents with one `_id`, or with one key of a unique index, are found by step 3. A document that an
//! index cannot hold is refused by step 2, and the load goes on without it.
//!
//! # Partitions
//! The partitions are known before the first document: one, those of the collection that is replaced, or
//! those of the schedule. The tree of `_id` has the keys of each partition apart, so a sorter of its own
//! finds an `_id` that two partitions have.
//!
//! # Not here
//! The connection that a load belongs to, and the requests that it refuses meanwhile: crate `commands`.
//!
//! [`SessionTransaction::adopt`]: crate::SessionTransaction::adopt
#![allow(clippy::disallowed_methods, reason = "the time goes into a log line and decides nothing")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use pando_document::{RawDocument, RawDocumentBuf};
use pando_storage::{BlockingMode, Operation, QueryAccount, Sorter};

use crate::building::entry_under_construction;
use crate::capped::CappedLimits;
use crate::collection::{EntryState, Parts};
use crate::counters::{CounterKey, CounterKind, partition_number};
use crate::documents::duplicate_key;
use crate::index::Owner;
use crate::index_keys::IndexKey;
use crate::partitions::Partitions;
use crate::publication::Publication;
use crate::sorted_entries::{self, CHECK_EVERY, Destination};
use crate::store::TreeNumber;
use crate::write_transaction::WriteTransaction;
use crate::{Catalog, CatalogError, Collection, ID_INDEX, Index, IndexDescription, Namespace, WriteError};

/// See the module's head. Dropping it leaves nothing behind.
pub struct BulkLoad {
    unpublished: UnpublishedCollection,
    account: QueryAccount,
    documents: Sorter,
    document_bytes: i64,
    indexes: Vec<IndexLoad>,
    partitions: Option<PartitionLoad>,
    state: LoadState,
    name: LoadName,
    began: Instant,
}

/// The partitions of a load.
struct PartitionLoad {
    shared: Arc<Partitions>,
    /// Documents and bytes by the number of the partition.
    totals: BTreeMap<u32, (i64, i64)>,
    /// The keys of the index on `_id` without their partitions; `None` where documents lie by `_id`.
    ids: Option<(Arc<Index>, Sorter)>,
}

impl PartitionLoad {
    fn of(collection: &Collection, account: &QueryAccount) -> Option<PartitionLoad> {
        let shared = Arc::clone(collection.shared_partitions()?);
        let ids = collection.id_index().map(|index| (Arc::clone(index), Sorter::new(account)));
        Some(PartitionLoad { shared, totals: BTreeMap::new(), ids })
    }

    fn take(
        &mut self,
        (key, document): (&[u8], &RawDocument),
        check: &mut dyn FnMut() -> Result<(), WriteError>,
    ) -> Result<(), WriteError> {
        let totals = self.totals.entry(self.shared.list().of_key(key).id).or_default();
        totals.0 += 1;
        totals.1 += document.as_bytes().len() as i64;
        let Some((index, ids)) = &mut self.ids else { return Ok(()) };
        for key in index.keys_of(document)?.keys {
            ids.push(&key.fields, &key.type_bits, check)?;
        }
        Ok(())
    }

    /// Refuses an `_id` that is there twice.
    fn check_ids(&mut self, operation: &Operation) -> Result<(), CatalogError> {
        let Some((index, ids)) = &mut self.ids else { return Ok(()) };
        let mut check = || Ok::<_, CatalogError>(operation.check_now()?);
        ids.finish(&mut check)?;
        let mut last = Vec::new();
        while let Some((fields, type_bits)) = ids.next(&mut check)? {
            if last == fields {
                let key = IndexKey { fields: last, type_bits: type_bits.to_vec() };
                return Err(duplicate_key(index, &key).into());
            }
            last.clear();
            last.extend_from_slice(fields);
        }
        ids.release();
        Ok(())
    }
}

/// Whether another collection may have the name of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoadName {
    /// It may not.
    New,
    /// It may: the load takes its place.
    Replaced,
}

/// An index of a load.
struct IndexLoad {
    index: Arc<Index>,
    entries: Sorter,
    /// Entries less documents.
    surplus: i64,
}

/// Whether the sorters have whole documents only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LoadState {
    /// They do.
    Whole,
    /// An insert has failed half way.
    Broken,
}

/// A collection whose trees are full, and which nobody can see yet. Dropping it drops the trees.
pub struct LoadedCollection {
    unpublished: UnpublishedCollection,
    documents: i64,
    document_bytes: i64,
    /// Of each index: entries less documents.
    surpluses: Vec<(TreeNumber, i64)>,
    /// Of each partition with documents: its number, documents and bytes.
    partitions: Vec<(u32, i64, i64)>,
}

/// A collection that the catalog tree does not know. Its trees go with it, unless it is published or may be.
pub(crate) struct UnpublishedCollection {
    collection: Option<Arc<Collection>>,
}

impl UnpublishedCollection {
    fn new(collection: Collection) -> UnpublishedCollection {
        UnpublishedCollection { collection: Some(Arc::new(collection)) }
    }

    /// The collection.
    ///
    /// # Panics
    /// Never: publishing consumes it.
    pub(crate) fn collection(&self) -> &Arc<Collection> {
        self.collection.as_ref().expect("a collection that is not published")
    }

    /// The catalog tree knows it from now on, or may do so: a store whose trees are missing does not open.
    pub(crate) fn keep_trees(mut self) {
        self.collection = None;
    }
}

impl Drop for UnpublishedCollection {
    fn drop(&mut self) {
        let Some(collection) = self.collection.take() else { return };
        for tree in collection.trees() {
            if let Err(error) = collection.engine().drop_tree(tree) {
                tracing::warn!(%tree, %error, "a tree of an unfinished load is left until the next start");
            }
        }
    }
}

/// The collection that a load makes.
pub(crate) struct NewLoad<'l> {
    pub namespace: &'l Namespace,
    pub options: RawDocumentBuf,
    pub uuid: [u8; 16],
    pub descriptions: Vec<IndexDescription>,
}

impl Catalog {
    /// Begins the load of a new collection. Its indexes are those of `descriptions`.
    ///
    /// # Errors
    /// The name is taken; the engine refuses an option of a tree.
    pub fn begin_load(
        &self,
        namespace: &Namespace,
        options: RawDocumentBuf,
        uuid: [u8; 16],
        descriptions: Vec<IndexDescription>,
    ) -> Result<BulkLoad, CatalogError> {
        namespace.check_writable()?;
        self.check_absent(namespace)?;
        if CappedLimits::of_options(&options).is_some() {
            let reason = "a capped collection is filled by inserts, and not by a load".to_owned();
            return Err(CatalogError::CollectionOptions { reason });
        }
        let load = NewLoad { namespace, options, uuid, descriptions };
        self.begin_load_of(load, LoadName::New)
    }

    /// Begins the load of a collection that takes the place of the one that has the name, if there is one. It
    /// has the options and the indexes of that. [`Catalog::publish_replacement`] ends it.
    ///
    /// # Errors
    /// The engine refuses an option of a tree.
    pub fn begin_replacement(
        &self,
        namespace: &Namespace,
        replaced: Option<&Collection>,
        uuid: [u8; 16],
    ) -> Result<BulkLoad, CatalogError> {
        let mut descriptions = Vec::new();
        for index in replaced.iter().flat_map(|replaced| replaced.indexes()) {
            // The index on `_id` comes with the options.
            if index.name() != ID_INDEX {
                descriptions.push(self.describe_index(index.specification())?);
            }
        }
        let options = replaced.map_or_else(RawDocumentBuf::new, |replaced| replaced.options().to_owned());
        let load = NewLoad { namespace, options, uuid, descriptions };
        let mut load = self.begin_load_of(load, LoadName::Replaced)?;
        if let (Some(partitions), Some(replaced)) =
            (&mut load.partitions, replaced.and_then(|replaced| replaced.shared_partitions()))
        {
            partitions.shared.begin_with(replaced.list().for_another());
        }
        Ok(load)
    }

    pub(crate) fn begin_load_of(&self, load: NewLoad<'_>, name: LoadName) -> Result<BulkLoad, CatalogError> {
        let NewLoad { namespace, options, uuid, descriptions } = load;
        namespace.check_writable()?;
        self.check_case(namespace.database())?;
        let parts = self.new_parts(namespace, options, uuid)?;
        let mark = CounterKey::new(CounterKind::Mark, parts.primary.number);
        let publication = Publication::pending(self.store().counters, mark.as_bytes());
        let entry = Arc::new(EntryState::pending());
        let mut parts = Parts { entry, publication: Some(Arc::new(publication)), ..parts };
        let store = self.store();
        let mut unpublished = UnpublishedCollection::new(Collection::new(parts.clone(), Arc::clone(store)));
        for description in descriptions {
            // The collection has each tree as soon as it is created, so that an error drops all.
            parts.indexes.push(self.new_index(description, parts.partitions.clone())?);
            unpublished.collection = Some(Arc::new(Collection::new(parts.clone(), Arc::clone(store))));
        }
        let account = self.query_memory().account();
        let entries_of = |index| IndexLoad { index, entries: Sorter::new(&account), surplus: 0 };
        let indexes = parts.indexes.iter().cloned().map(entries_of).collect();
        let partitions = PartitionLoad::of(unpublished.collection(), &account);
        let (documents, state, began) = (Sorter::new(&account), LoadState::Whole, Instant::now());
        Ok(BulkLoad {
            unpublished,
            account,
            documents,
            document_bytes: 0,
            indexes,
            partitions,
            state,
            name,
            began,
        })
    }

    fn check_absent(&self, namespace: &Namespace) -> Result<(), CatalogError> {
        match self.collection(namespace.database(), namespace.collection()) {
            None => Ok(()),
            Some(_) => Err(CatalogError::CollectionExists { namespace: namespace.to_string() }),
        }
    }
}

impl BulkLoad {
    /// The collection's name.
    pub fn namespace(&self) -> &Namespace {
        self.unpublished.collection().namespace()
    }

    /// Makes the partitions of the schedule, if there is one. The load has no documents yet.
    ///
    /// # Errors
    /// The bounds are too long.
    pub fn make_partitions(&mut self, now_ms: i64) -> Result<(), CatalogError> {
        let collection = self.unpublished.collection();
        if let (Some(partitions), Some(schedule)) = (&self.partitions, collection.schedule()) {
            partitions.shared.begin_with(collection.scheduled_partitions(schedule, now_ms)?);
        }
        Ok(())
    }

    /// The limits of a capped collection, which its filler keeps.
    pub(crate) fn capped_limits(&self) -> Option<CappedLimits> {
        self.unpublished.collection().capped_limits()
    }

    /// Documents so far.
    pub fn len(&self) -> u64 {
        self.documents.len()
    }

    /// Whether it has no document.
    pub fn is_empty(&self) -> bool {
        self.documents.is_empty()
    }

    /// Whether an insert has failed half way. The load can only be dropped then.
    pub fn is_broken(&self) -> bool {
        self.state == LoadState::Broken
    }

    /// Takes a document, whose `_id` must be there. May write to scratch files.
    ///
    /// # Errors
    /// An index cannot hold the document: the load goes on without it. Any other error
    /// [breaks](BulkLoad::is_broken) the load.
    pub fn insert(&mut self, document: &RawDocument, operation: &Operation) -> Result<(), WriteError> {
        document.get("_id")?.ok_or(WriteError::NoId)?;
        let key = self.unpublished.collection().new_key(document, BlockingMode::MayBlock)?;
        self.unpublished.collection().check_partitionable(&key, document)?;
        let derived = self.indexes.iter().map(|load| load.index.keys_of(document));
        let derived: Vec<_> = derived.collect::<Result<_, _>>()?;
        self.state = LoadState::Broken;
        let mut check = || Ok::<_, WriteError>(operation.check_now()?);
        self.documents.push(key.as_bytes(), document.as_bytes(), &mut check)?;
        if let Some(partitions) = &mut self.partitions {
            partitions.take((key.as_bytes(), document), &mut check)?;
        }
        self.document_bytes += document.as_bytes().len() as i64;
        if key.is_cut() {
            self.unpublished.collection().raise_primary_truncated();
        }
        let owner = Owner { primary_key: key.as_bytes(), document };
        for (load, derived) in self.indexes.iter_mut().zip(derived) {
            // The commit that publishes the collection writes the flags.
            load.index.raise(&derived.flags());
            load.surplus += derived.keys.len() as i64 - 1;
            for one in &derived.keys {
                let entry = entry_under_construction(&load.index, one, owner);
                load.entries.push(&entry.key, &entry.value, &mut check)?;
            }
        }
        self.state = LoadState::Whole;
        Ok(())
    }

    /// Tells an operation of the memory that the load holds, and of its spills.
    pub fn report(&self, operation: &Operation) {
        self.account.report(operation);
    }

    /// Writes all trees. Blocks.
    ///
    /// # Errors
    /// Another collection has the name by now. Two documents have one `_id`, or one key of a unique index.
    /// The operation has to end.
    pub fn finish(
        mut self,
        catalog: &Catalog,
        operation: &Operation,
    ) -> Result<LoadedCollection, CatalogError> {
        let collection = Arc::clone(self.unpublished.collection());
        if self.name == LoadName::New {
            catalog.check_absent(collection.namespace())?;
        }
        let engine = &**catalog.engine();
        let documents = self.documents.len();
        if let Some(partitions) = &mut self.partitions {
            partitions.check_ids(operation)?;
        }
        let writing = Destination::Documents(collection.primary_tree(), collection.text_order());
        write_tree(engine, writing, &mut self.documents, operation)?;
        let mut surpluses = Vec::with_capacity(self.indexes.len());
        for load in &mut self.indexes {
            write_tree(engine, Destination::Index(&load.index), &mut load.entries, operation)?;
            surpluses.push((load.index.number(), load.surplus));
        }
        self.report(operation);
        let (indexes, seconds) = (surpluses.len(), self.began.elapsed().as_secs_f64());
        tracing::info!(
            collection = collection.full_name(),
            documents,
            indexes,
            seconds,
            "loaded a collection"
        );
        let BulkLoad { unpublished, document_bytes, partitions, .. } = self;
        let documents = i64::try_from(documents).unwrap_or(i64::MAX);
        let partitions = partitions.into_iter().flat_map(|partitions| partitions.totals);
        let partitions = partitions.map(|(id, (documents, bytes))| (id, documents, bytes)).collect();
        Ok(LoadedCollection { unpublished, documents, document_bytes, surpluses, partitions })
    }
}

/// Sorts the rest of a sorter's entries and fills a tree with them.
fn write_tree(
    engine: &dyn pando_storage::Engine,
    destination: Destination<'_>,
    sorter: &mut Sorter,
    operation: &Operation,
) -> Result<(), CatalogError> {
    let total = sorter.len();
    if total == 0 {
        return Ok(());
    }
    let (step_sorting, step_writing) = match destination {
        Destination::Documents(..) => ("load: sorting documents", "load: writing documents"),
        Destination::Index(_) => ("load: sorting index entries", "load: writing index entries"),
    };
    let step = operation.begin_step(step_sorting, total);
    sorter.finish(&mut || Ok::<_, CatalogError>(operation.check_now()?))?;
    drop(step);
    let (mut step, mut done) = (operation.begin_step(step_writing, total), 0);
    let mut check = || {
        done += CHECK_EVERY;
        step.set_done(done);
        Ok(operation.check_now()?)
    };
    sorted_entries::load(engine, destination, sorter, &mut check)?;
    sorter.release();
    Ok(operation.check_now()?)
}

impl LoadedCollection {
    /// Notes what it has in the counters of the transaction that publishes it.
    pub(crate) fn count_in(&self, transaction: &mut WriteTransaction) {
        let number = self.collection().number();
        transaction.count_documents(number, self.documents, self.document_bytes);
        for (index, surplus) in &self.surpluses {
            transaction.count_surplus(*index, *surplus);
        }
        for (id, documents, bytes) in &self.partitions {
            transaction.count_in_partition(partition_number(number, *id), *documents, *bytes);
        }
    }

    /// The collection alone, once it is counted.
    pub(crate) fn into_unpublished(self) -> UnpublishedCollection {
        self.unpublished
    }

    pub(crate) fn collection(&self) -> &Arc<Collection> {
        self.unpublished.collection()
    }

    /// The collection's name.
    pub fn namespace(&self) -> &Namespace {
        self.unpublished.collection().namespace()
    }
}

impl std::fmt::Debug for BulkLoad {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "BulkLoad({}, {} documents, {:?})", self.namespace(), self.len(), self.state)
    }
}

impl std::fmt::Debug for LoadedCollection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LoadedCollection({}, {} documents)", self.namespace(), self.documents)
    }
}
