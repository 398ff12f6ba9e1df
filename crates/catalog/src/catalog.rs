//! The catalog: the collections that exist, and the statements that create, change and drop them.
//!
//! # Terms
//! - *Description*: an `Arc<Collection>`. A reader that holds one goes on with it, even if a newer one
//!   replaces it.
//! - *Names*: the map of all descriptions. It is swapped as a whole, so that the lookup of a collection takes
//!   no lock.
//! - *Latch*: a read-write lock of each collection. A statement that writes holds it shared, a change of the
//!   description holds it alone.
//! - *Lease*: a description, and a shared hold on the collection's latch for the length of
//!   a statement that writes.
//!
//! # Steps of a change to a collection that exists
//! 1. Take its latch alone: statements that write have ended, and new ones wait.
//! 2. Take the catalog's mutex, commit the new entry, swap the names, release the mutex.
//! 3. Drop the trees that no entry refers to any more.
//!
//! An index build does its long work before, while statements write (`index_build`).
//!
//! A store that several servers share has one step before these: a barrier, behind which no server writes to
//! the collection (`following`). Step 3 waits until all of them work by the new entry.
//!
//! # Invariants
//! - A build turn is taken before the latch, and the latch before the mutex, never after.
//! - A description in the map agrees with the catalog tree, with two exceptions. A flag is in the tree before
//!   it is raised in memory, and an index under construction is in memory only, unless several servers share
//!   the store.

mod creation;
mod entry_change;
mod following;
pub(crate) mod opening;
pub(crate) mod partition_keeping;
pub(crate) mod partitioning;
mod refresh;
pub(crate) mod renaming;
pub(crate) mod views;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use pando_document::{RawDocument, RawDocumentBuf};
use pando_storage::{
    Begin, BlockingMode, Caller, CommitReceipt, Durability, Operation, OperationWait, QueryMemory,
    SharedEngine, StorageError, Transaction, TreeId,
};
use parking_lot::{ArcRwLockReadGuard, ArcRwLockWriteGuard, RawRwLock};

use creation::check_partitionable;
pub(crate) use creation::put_entry;
use entry_change::{EntryChange, commit_entries};
pub(crate) use entry_change::{count_change, has_changed};
use following::Barrier;

use crate::capped::{CappedState, CappedTurn};
use crate::collection::{Collection, Parts};
use crate::counters::CounterChange;
use crate::error::{BuildEnd, CatalogError};
use crate::index::Index;
use crate::index_description::{IndexDescription, Uniqueness};
use crate::index_kind::IndexDefinition;
use crate::layout::{ID_INDEX, Layout};
use crate::namespace::Namespace;
use crate::store::Store;
use crate::tree_settings::tree_options;
use crate::write_transaction::WriteTransaction;

/// All descriptions, by database and collection.
pub(crate) type Names = BTreeMap<String, BTreeMap<String, Arc<Collection>>>;

/// The longest wait for a latch between two looks at the operation's interruption. Statements that write
/// queue up behind a change that waits, so that short ones end within this time and the change has its turn.
const LATCH_WAIT: Duration = Duration::from_millis(20);

/// The collections of a store.
pub struct Catalog {
    store: Arc<Store>,
    names: ArcSwap<Names>,
    session_records: Arc<Collection>,
}

/// A collection's description, and the promise that it stays the newest while this is held.
pub struct Lease {
    collection: Arc<Collection>,
    /// The turn of a writer of a capped collection. It ends before the latch does.
    _turn: Option<CappedTurn>,
    /// `None` for a collection that only the transaction which creates it can see.
    _latch: Option<ArcRwLockReadGuard<RawRwLock, ()>>,
}

impl Lease {
    /// The lease of a collection that no other transaction can see.
    pub(crate) fn of_own(collection: Arc<Collection>) -> Lease {
        Lease { collection, _turn: None, _latch: None }
    }
}

impl std::ops::Deref for Lease {
    type Target = Arc<Collection>;

    fn deref(&self) -> &Arc<Collection> {
        &self.collection
    }
}

/// The same, alone: no statement writes to the collection while it is held.
pub(crate) struct Exclusive {
    pub collection: Arc<Collection>,
    _latch: ArcRwLockWriteGuard<RawRwLock, ()>,
    /// In a shared store: what keeps the statements of other servers away.
    _barrier: Option<Barrier>,
}

impl Catalog {
    /// The description of an index that is to be created with this specification.
    pub fn describe_index(&self, specification: &RawDocument) -> Result<IndexDescription, CatalogError> {
        self.store.factory.define(specification).map(|definition| definition.description).map_err(|reason| {
            let name = specification.get("name").ok().flatten().and_then(|name| name.as_str());
            CatalogError::IndexSpecification { name: name.unwrap_or_default().to_owned(), reason }
        })
    }

    /// The engine below.
    pub fn engine(&self) -> &SharedEngine {
        &self.store.engine
    }

    /// The memory of queries.
    pub fn query_memory(&self) -> &QueryMemory {
        &self.store.query_memory
    }

    /// Begins a transaction. One that writes documents begins by [`begin_write`](Catalog::begin_write).
    pub fn begin(&self, begin: Begin) -> Result<Box<dyn Transaction>, StorageError> {
        let transaction = self.store.engine.begin(begin)?;
        if let Some(sharing) = &self.store.sharing {
            sharing.check_trusted()?;
        }
        Ok(transaction)
    }

    /// Begins a transaction that may write documents.
    pub fn begin_write(&self) -> Result<WriteTransaction, StorageError> {
        self.begin_write_as(Begin::WRITE)
    }

    /// The same, begun so. The begin of a serializable one waits for commits under way.
    pub(crate) fn begin_write_as(&self, begin: Begin) -> Result<WriteTransaction, StorageError> {
        // Before the begin: a lapse in between fails the commit.
        let epoch = self.store.sharing.as_ref().map(|sharing| sharing.epoch());
        Ok(WriteTransaction::new(self.begin(begin)?, &self.store, epoch))
    }

    /// Commits a record that changes nothing. All that a reader has seen before comes earlier in the log.
    pub fn commit_marker(&self, durability: Durability) -> Result<CommitReceipt, StorageError> {
        let mut transaction = self.begin(Begin::WRITE)?;
        // No session has an empty key.
        transaction.delete_blind(self.store.sessions, &[])?;
        transaction.commit(durability)
    }

    /// The collection of this name, as it is now.
    pub fn collection(&self, database: &str, collection: &str) -> Option<Arc<Collection>> {
        self.names.load().get(database)?.get(collection).cloned()
    }

    /// The records of sessions as a collection, for reading.
    pub fn session_records(&self) -> &Arc<Collection> {
        &self.session_records
    }

    /// The collection of this identity.
    pub fn collection_by_uuid(&self, database: &str, uuid: [u8; 16]) -> Option<Arc<Collection>> {
        self.names.load().get(database)?.values().find(|collection| collection.uuid() == uuid).cloned()
    }

    /// Databases that have a collection, in order.
    pub fn databases(&self) -> Vec<String> {
        self.names.load().keys().cloned().collect()
    }

    /// The collections of a database, in order of their names.
    pub fn collections(&self, database: &str) -> Vec<Arc<Collection>> {
        self.names.load().get(database).map(|names| names.values().cloned().collect()).unwrap_or_default()
    }

    /// The collection for a statement that writes. Begin its transaction after the lease, and commit before
    /// dropping it. `None` if there is no such collection; `WouldBlock` if another statement holds it alone
    /// and the caller must not block. The wait of one that may ends with an interruption.
    pub fn lease(
        &self,
        database: &str,
        collection: &str,
        caller: Caller<'_>,
    ) -> Result<Option<Lease>, CatalogError> {
        loop {
            let Some(found) = self.collection(database, collection) else { return Ok(None) };
            let latch = match (found.latch().try_read_arc(), caller.blocking) {
                (Some(latch), _) => latch,
                (None, BlockingMode::CachedOnly) => return Err(StorageError::would_block().into()),
                (None, BlockingMode::MayBlock) => caller
                    .operation
                    .wait_for(OperationWait::Collection, || found.latch().try_read_arc_for(LATCH_WAIT))?,
            };
            if self.store.is_unsettled() {
                self.settle(caller.blocking)?;
            }
            // The description may have been replaced while this waited.
            match self.collection(database, collection) {
                Some(now) if Arc::ptr_eq(&now, &found) => {
                    let turn = match now.capped_state() {
                        None => None,
                        Some(state) => Some(turn_of(state, caller)?),
                    };
                    return Ok(Some(Lease { collection: now, _turn: turn, _latch: Some(latch) }));
                }
                _ => continue,
            }
        }
    }

    /// The collection alone. Blocks, unless the operation is interrupted.
    pub(crate) fn exclusive(
        &self,
        namespace: &Namespace,
        operation: &Operation,
    ) -> Result<Exclusive, CatalogError> {
        self.exclusive_after(namespace, operation, &|_| {})
    }

    /// The same. Calls `before_wait` with the collection before each wait.
    pub(crate) fn exclusive_after(
        &self,
        namespace: &Namespace,
        operation: &Operation,
        before_wait: &dyn Fn(&Collection),
    ) -> Result<Exclusive, CatalogError> {
        let barrier = self.barrier_before(namespace, operation)?;
        loop {
            let found = self.existing(namespace)?;
            let latch = operation.wait_for(OperationWait::Collection, || {
                before_wait(&found);
                found.latch().try_write_arc_for(LATCH_WAIT)
            })?;
            if self.store.is_unsettled() {
                self.settle(BlockingMode::MayBlock)?;
            }
            let now = self.existing(namespace)?;
            if Arc::ptr_eq(&now, &found) {
                return Ok(Exclusive { collection: now, _latch: latch, _barrier: barrier });
            }
        }
    }

    pub(crate) fn existing(&self, namespace: &Namespace) -> Result<Arc<Collection>, CatalogError> {
        self.collection(namespace.database(), namespace.collection())
            .ok_or_else(|| CatalogError::CollectionNotFound { namespace: namespace.to_string() })
    }

    /// Creates an empty collection. One that exists is an error.
    pub fn create_collection(
        &self,
        namespace: &Namespace,
        options: RawDocumentBuf,
        uuid: [u8; 16],
    ) -> Result<Arc<Collection>, CatalogError> {
        namespace.check_writable()?;
        self.create_collection_of_server(namespace, options, uuid)
    }

    /// The same, also for a name that only the server may write to.
    pub fn create_collection_of_server(
        &self,
        namespace: &Namespace,
        options: RawDocumentBuf,
        uuid: [u8; 16],
    ) -> Result<Arc<Collection>, CatalogError> {
        let mut parts: Option<Parts> = None;
        let created = self.changing(|| {
            if self.collection(namespace.database(), namespace.collection()).is_some()
                || self.has_view(namespace)?
            {
                return Err(CatalogError::CollectionExists { namespace: namespace.to_string() });
            }
            self.check_case(namespace.database())?;
            // Its trees are made once, also where the commit is tried again.
            let made = match parts.take() {
                Some(made) => made,
                None => self.new_parts(namespace, options.clone(), uuid)?,
            };
            let mark = CounterChange::Mark(made.primary.number);
            let collection = Arc::new(Collection::new(made.clone(), Arc::clone(&self.store)));
            parts = Some(made);
            let change = EntryChange { gone: &[], come: &[&collection], counters: &[mark] };
            commit_entries(&self.store, change)?;
            self.swap(&[], &[&collection]);
            Ok(collection)
        });
        if let (Err(CatalogError::CollectionExists { .. }), Some(parts)) = (&created, parts) {
            // Another server was faster. After any other error the commit may have been made.
            let trees = parts.indexes.iter().map(|index| index.tree());
            for tree in trees.chain([parts.primary.id]) {
                self.store.engine.drop_tree(tree)?;
            }
        }
        created
    }

    /// Refuses a new database whose name differs from another's in upper and lower case only: a file system
    /// may not tell them apart when they are restored into MongoDB.
    pub(crate) fn check_case(&self, database: &str) -> Result<(), CatalogError> {
        let names = self.names.load();
        if names.contains_key(database) {
            return Ok(());
        }
        match names.keys().find(|existing| existing.to_lowercase() == database.to_lowercase()) {
            None => Ok(()),
            Some(existing) => Err(CatalogError::DatabaseDiffersInCase {
                existing: existing.clone(),
                wanted: database.to_owned(),
            }),
        }
    }

    /// Drops a collection with its indexes. `end_users` asks the statements that use the collection to end:
    /// it is called before each wait for them, and again when no new one can find the collection.
    pub fn drop_collection(
        &self,
        namespace: &Namespace,
        operation: &Operation,
        end_users: &dyn Fn(&Collection),
    ) -> Result<Arc<Collection>, CatalogError> {
        let alone = self.exclusive_after(namespace, operation, end_users)?;
        let counters = renaming::forgotten(&alone.collection);
        self.changing(|| {
            let change = EntryChange { gone: &[namespace], come: &[], counters: &counters };
            commit_entries(&self.store, change)?;
            self.swap(&[namespace], &[]);
            Ok(())
        })?;
        end_users(&alone.collection);
        for building in alone.collection.building() {
            building.ticket.end(BuildEnd::CollectionDropped);
        }
        for tree in alone.collection.trees() {
            self.drop_tree(tree)?;
        }
        Ok(alone.collection)
    }

    /// Changes a collection's options. `change` gets the collection as it is while no other changes it, so
    /// that of two changes at once none is lost. It must not change a collection itself.
    pub fn change_options<E: From<CatalogError>>(
        &self,
        namespace: &Namespace,
        operation: &Operation,
        change: impl FnOnce(&Collection) -> Result<RawDocumentBuf, E>,
    ) -> Result<(), E> {
        let alone = self.exclusive(namespace, operation)?;
        let options = change(&alone.collection)?;
        let layout = Layout::of_options(&options);
        // An older program made no heaps of collections that called themselves capped.
        let is_old = alone.collection.layout().is_by_id() && layout == Ok(Layout::Heap);
        assert!(is_old || layout.as_ref() == Ok(alone.collection.layout()), "a layout never changes");
        let parts = Parts { options, ..alone.collection.parts() };
        Ok(self.replace(parts)?)
    }

    /// Ends all index builds of a collection, as [`drop_index`](Catalog::drop_index) does.
    pub fn end_index_builds(&self, namespace: &Namespace, operation: &Operation) -> Result<(), CatalogError> {
        let alone = self.exclusive(namespace, operation)?;
        let mut parts = alone.collection.parts();
        for building in parts.building.drain(..) {
            building.ticket.end(BuildEnd::IndexDropped);
        }
        self.show(parts)?;
        Ok(())
    }

    /// Drops a secondary index, but not that on `_id`. One under construction goes with its whole build.
    pub fn drop_index(
        &self,
        namespace: &Namespace,
        name: &str,
        operation: &Operation,
    ) -> Result<(), CatalogError> {
        let alone = self.exclusive(namespace, operation)?;
        let mut parts = alone.collection.parts();
        if let Some(at) = parts.building.iter().position(|building| building.index.name() == name) {
            let ticket = Arc::clone(&parts.building[at].ticket);
            ticket.end(BuildEnd::IndexDropped);
            parts.building.retain(|building| !Arc::ptr_eq(&building.ticket, &ticket));
            // A build that replaces an index has its name.
            if parts.indexes.iter().all(|index| index.name() != name) {
                self.show(parts)?;
                return Ok(());
            }
        }
        let at = parts.indexes.iter().position(|index| index.name() == name);
        let at = at.filter(|at| *at > 0 || alone.collection.id_index().is_none());
        let at = at.ok_or_else(|| CatalogError::IndexNotFound { name: name.to_owned() })?;
        let gone = parts.indexes.remove(at);
        self.replace_counting(parts, &[CounterChange::ForgetIndex(gone.number())])?;
        self.drop_tree(gone.tree())
    }

    /// Replaces an index's specification by one that means the same tree (hidden or not, another expiry).
    /// `change` gets the index as it is while no other changes it, as for
    /// [`change_options`](Catalog::change_options).
    pub fn change_index_specification<E: From<CatalogError>>(
        &self,
        namespace: &Namespace,
        name: &str,
        operation: &Operation,
        change: impl FnOnce(&Index) -> Result<RawDocumentBuf, E>,
    ) -> Result<(), E> {
        let alone = self.exclusive(namespace, operation)?;
        let mut parts = alone.collection.parts();
        let at = parts.indexes.iter().position(|index| index.name() == name);
        let at = at.ok_or_else(|| CatalogError::IndexNotFound { name: name.to_owned() })?;
        let have = &parts.indexes[at];
        let specification = change(have)?;
        let now = have.describe();
        let mut description = self.describe_index(&specification)?;
        assert_eq!(description.fields, now.fields, "a new specification of an index has the same key");
        check_partitionable(&description, parts.partitions.is_some() && name != ID_INDEX)?;
        description.multikey = now.multikey;
        description.truncated = now.truncated;
        let methods = self.store.methods(&description)?;
        let is_prepared = description.unique == Uniqueness::Prepared && now.unique == Uniqueness::NotUnique;
        let (definition, tree) = (IndexDefinition { description, methods }, have.named_tree().clone());
        let changed = Index::new(definition, tree, parts.partitions.clone());
        changed.set_published(have.published());
        let changed = Arc::new(changed);
        parts.indexes[at] = Arc::clone(&changed);
        if is_prepared {
            // A transaction with an older snapshot does not see the keys that were written since: it may not
            // write beside them.
            return Ok(self.replace_with_new(parts, &[changed], &[])?);
        }
        Ok(self.replace(parts)?)
    }

    /// [Changes](Catalog::change_options) a collection's options, and gives the tree of its documents the
    /// settings in them.
    pub fn change_settings<E: From<CatalogError>>(
        &self,
        namespace: &Namespace,
        operation: &Operation,
        change: impl FnOnce(&Collection) -> Result<RawDocumentBuf, E>,
    ) -> Result<(), E> {
        self.change_options(namespace, operation, |collection| {
            let options = change(collection)?;
            self.lay_out(collection.primary_tree(), &options)?;
            Ok(options)
        })
    }

    /// Gives a tree the settings in options or in a specification.
    fn lay_out(&self, tree: TreeId, options: &RawDocument) -> Result<(), CatalogError> {
        let settings = tree_options(options, self.engine().name())?;
        Ok(self.engine().change_tree_options(tree, &settings)?)
    }

    /// [Changes](Catalog::change_index_specification) an index's specification, and gives the tree the
    /// settings in it.
    pub fn change_index_settings<E: From<CatalogError>>(
        &self,
        namespace: &Namespace,
        name: &str,
        operation: &Operation,
        change: impl FnOnce(&Index) -> Result<RawDocumentBuf, E>,
    ) -> Result<(), E> {
        self.change_index_specification(namespace, name, operation, |index| {
            let specification = change(index)?;
            self.lay_out(index.tree(), &specification)?;
            Ok(specification)
        })
    }

    /// Commits and shows a new description of a collection whose latch the caller holds alone.
    pub(crate) fn replace(&self, parts: Parts) -> Result<(), CatalogError> {
        self.replace_counting(parts, &[])
    }

    /// The same, and changes counters in the same commit.
    fn replace_counting(&self, parts: Parts, counters: &[CounterChange]) -> Result<(), CatalogError> {
        self.replace_with_new(parts, &[], counters)
    }

    /// The same, and publishes indexes that the description has for the first time.
    pub(crate) fn replace_with_new(
        &self,
        parts: Parts,
        new: &[Arc<Index>],
        counters: &[CounterChange],
    ) -> Result<(), CatalogError> {
        let collection = Arc::new(Collection::new(parts, Arc::clone(&self.store)));
        self.changing(|| {
            let at = commit_entries(&self.store, EntryChange { gone: &[], come: &[&collection], counters })?;
            for index in new {
                index.set_published(at);
            }
            self.swap(&[], &[&collection]);
            Ok(())
        })
    }

    /// Shows a new description of a collection whose latch the caller holds alone. Only the indexes under
    /// construction may differ, so that the catalog tree needs no change where no other server reads it.
    pub(crate) fn show(&self, parts: Parts) -> Result<Arc<Collection>, CatalogError> {
        let collection = Arc::new(Collection::new(parts, Arc::clone(&self.store)));
        self.changing(|| {
            if self.is_shared() {
                let change = EntryChange { gone: &[], come: &[&collection], counters: &[] };
                commit_entries(&self.store, change)?;
            }
            self.swap(&[], &[&collection]);
            Ok(Arc::clone(&collection))
        })
    }

    /// All descriptions of this moment.
    pub(crate) fn names(&self) -> Arc<Names> {
        self.names.load_full()
    }

    pub(crate) fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Changes the names. The caller holds the catalog's mutex.
    pub(crate) fn swap(&self, gone: &[&Namespace], come: &[&Arc<Collection>]) {
        let mut names = Names::clone(&self.names.load());
        for namespace in gone {
            if let Some(collections) = names.get_mut(namespace.database()) {
                collections.remove(namespace.collection());
                if collections.is_empty() {
                    names.remove(namespace.database());
                }
            }
        }
        for collection in come {
            let namespace = collection.namespace();
            let collections = names.entry(namespace.database().to_owned()).or_default();
            collections.insert(namespace.collection().to_owned(), Arc::clone(collection));
        }
        self.names.store(Arc::new(names));
    }
}

/// The turn of a writer of a capped collection.
#[cold]
fn turn_of(state: &Arc<CappedState>, caller: Caller<'_>) -> Result<CappedTurn, CatalogError> {
    let lock = state.turn_lock();
    let guard = match (lock.try_lock_arc(), caller.blocking) {
        (Some(guard), _) => guard,
        (None, BlockingMode::CachedOnly) => return Err(StorageError::would_block().into()),
        (None, BlockingMode::MayBlock) => {
            caller.operation.wait_for(OperationWait::Collection, || lock.try_lock_arc_for(LATCH_WAIT))?
        }
    };
    Ok(CappedTurn::new(guard, state))
}
