//! The transaction of a session: many statements over one snapshot, and the catalog that the snapshot saw.
//!
//! # Terms
//! - *Names*: the descriptions of all collections at the begin. Statements that read resolve names by them.
//! - *Written*: the collections that statements have written to, each with its description at that time.
//! - *Created*: collections that this transaction creates. No other transaction sees them before the commit.
//! - *Loaded*: collections that were loaded for this transaction (`bulk_load`). Its commit publishes them.
//!   Its own statements are refused before: not every engine shows a loaded tree to an older snapshot.
//!
//! # Leases
//! A statement holds the lease of its collection only while it runs, so a change of the collection never
//! waits for the whole transaction. The description may change between two statements and before the commit.
//! Entries of an index that was announced, published or dropped between would then be lost. So the
//! transaction ends with a conflict instead, and its client runs it again:
//! 1. A statement that writes needs the description that earlier statements have written under, and indexes
//!    that the snapshot may use. (A unique index that was published later has entries that a check of
//!    uniqueness at this snapshot would miss.)
//! 2. The commit takes the leases of all written collections, in the order of their names, and compares the
//!    descriptions again. It holds the leases until its writes are visible.
//!
//! An index build replaces the description when it begins, when it gives writers a new tree of changes, and
//! when it publishes. So each change of a committed transaction is in the tree that its build applies, in the
//! snapshot that its build scans, or in the published index.
//!
//! # Reads
//! A collection that was dropped or replaced after the snapshot is read by its old description. The engine
//! keeps the dropped tree for old snapshots, or answers `NotFound`.
//!
//! # Serializable transactions
//! The engine sees to it that what they have read does not change before they commit. Names are no entries of
//! a tree. So such a transaction notes each name that it has looked up, with the collection or its absence.
//! Its commit finds the same, or is a conflict: it leases the collections, and holds the catalog's mutex for
//! those that were absent.
//!
//! # Invariants
//! - Leases are taken in the order of names, and before the catalog's mutex.
//! - The trees of created collections are dropped unless the transaction commits, or may have committed.

use std::collections::BTreeMap;
use std::sync::Arc;

use pando_document::RawDocumentBuf;
use pando_storage::{
    Begin, BlockingMode, Caller, CommitReceipt, Direction, Durability, Isolation, KeyRange,
    SnapshotTimestamp, StorageError, Transaction,
};
use parking_lot::Mutex;

use crate::bulk_load::{LoadedCollection, UnpublishedCollection};
use crate::catalog::{count_change, has_changed, put_entry};
use crate::collection::{EntryState, Parts};
use crate::counters::CounterChange;
use crate::seen_names::SeenNames;
use crate::store::TreeNumber;
use crate::{Catalog, CatalogError, Collection, IndexDescription, Lease, Namespace, WriteTransaction};

/// See the module's head. Dropping it rolls it back.
pub struct SessionTransaction {
    /// `None` only while it is committed or dropped.
    transaction: Option<WriteTransaction>,
    names: SeenNames,
    /// By `database.collection`.
    written: BTreeMap<String, Arc<Collection>>,
    created: Vec<Arc<Collection>>,
    loaded: Vec<UnpublishedCollection>,
    /// Of a serializable transaction.
    resolved: Option<Mutex<ResolvedNames>>,
}

/// The names that a serializable transaction has looked up, by `database.collection`: each with its
/// collection, if there was one.
type ResolvedNames = BTreeMap<String, (Namespace, Option<TreeNumber>)>;

/// The leases of all collections that a transaction has written to, checked for its commit.
pub struct CommitLeases {
    _leases: Vec<Lease>,
    /// Names that no collection may have until the commit is visible.
    absent: Vec<Namespace>,
}

impl Catalog {
    /// Begins the transaction of a session, at the newest snapshot.
    pub fn begin_session_transaction(&self) -> Result<SessionTransaction, StorageError> {
        self.begin_session_transaction_with(Isolation::Snapshot)
    }

    /// Begins a serializable one. Waits for commits under way.
    ///
    /// # Errors
    /// [`InvalidInput`](pando_storage::ErrorKind::InvalidInput) where the engine claims no reads.
    pub fn begin_serializable_transaction(&self) -> Result<SessionTransaction, StorageError> {
        self.begin_session_transaction_with(Isolation::Serializable)
    }

    /// Begins one at a past snapshot that some transaction holds, with the names that it saw.
    ///
    /// # Errors
    /// [`InvalidInput`](pando_storage::ErrorKind::InvalidInput) where the engine cannot.
    pub fn begin_session_transaction_at(
        &self,
        snapshot: SnapshotTimestamp,
        names: &SeenNames,
    ) -> Result<SessionTransaction, StorageError> {
        let transaction = self.begin_write_as(Begin { at: Some(snapshot), ..Begin::WRITE })?;
        Ok(SessionTransaction::new(transaction, names.clone(), Isolation::Snapshot))
    }

    /// Publishes a loaded collection by a commit of its own.
    ///
    /// # Errors
    /// The name is taken.
    pub fn publish_load(
        &self,
        loaded: LoadedCollection,
        caller: Caller<'_>,
        durability: Durability,
    ) -> Result<CommitReceipt, CatalogError> {
        let mut transaction = self.begin_session_transaction()?;
        transaction.adopt(self, loaded)?;
        let leases = transaction.commit_leases(self, caller)?;
        transaction.commit(self, leases, durability)
    }

    fn begin_session_transaction_with(
        &self,
        isolation: Isolation,
    ) -> Result<SessionTransaction, StorageError> {
        let transaction = self.begin_write_as(Begin { isolation, ..Begin::WRITE })?;
        let names = self.seen_names();
        Ok(SessionTransaction::new(transaction, names, isolation))
    }
}

impl SessionTransaction {
    fn new(transaction: WriteTransaction, names: SeenNames, isolation: Isolation) -> SessionTransaction {
        let (written, created, loaded) = (BTreeMap::new(), Vec::new(), Vec::new());
        let resolved = (isolation == Isolation::Serializable).then(Mutex::default);
        SessionTransaction { transaction: Some(transaction), names, written, created, loaded, resolved }
    }

    /// Its snapshot with its own writes.
    ///
    /// # Panics
    /// Never: it has its transaction until it ends, and ending consumes it.
    pub fn reader(&self) -> &dyn Transaction {
        let transaction = self.transaction.as_ref().expect("a transaction that has not ended");
        &**transaction
    }

    /// The transaction, to write documents to.
    ///
    /// # Panics
    /// Never, as [`reader`](SessionTransaction::reader).
    pub fn writer(&mut self) -> &mut WriteTransaction {
        self.transaction.as_mut().expect("a transaction that has not ended")
    }

    /// Whether it has written to a collection or creates one.
    pub fn has_written(&self) -> bool {
        !self.written.is_empty() || self.creates()
    }

    /// Whether it creates a collection, or publishes a loaded one.
    pub fn creates(&self) -> bool {
        !self.created.is_empty() || !self.loaded.is_empty()
    }

    /// Whether its commit changes or checks names, for which it may have to wait.
    pub fn needs_names(&self) -> bool {
        self.creates() || self.resolved.as_ref().is_some_and(|resolved| has_absent(&resolved.lock()))
    }

    /// Its writes so far.
    pub fn writes(&mut self) -> usize {
        self.writer().engine().savepoint().writes()
    }

    /// The collection of this name as its statements read it.
    ///
    /// # Errors
    /// The collection was loaded for this transaction.
    pub fn collection(
        &self,
        catalog: &Catalog,
        database: &str,
        collection: &str,
    ) -> Result<Option<Arc<Collection>>, CatalogError> {
        if let Some(created) = self.created(database, collection) {
            return Ok(Some(Arc::clone(created)));
        }
        self.check_not_loaded(database, collection)?;
        let found = self.names.collection(catalog, database, collection);
        self.note_resolved(database, collection, found.as_deref());
        Ok(found)
    }

    fn check_not_loaded(&self, database: &str, collection: &str) -> Result<(), CatalogError> {
        let is_wanted = |name: &Namespace| name.database() == database && name.collection() == collection;
        match self.loaded.iter().map(|loaded| loaded.collection().namespace()).find(|name| is_wanted(name)) {
            None => Ok(()),
            Some(namespace) => Err(CatalogError::LoadUncommitted { namespace: namespace.to_string() }),
        }
    }

    /// Notes a look for a name, which the commit repeats.
    fn note_resolved(&self, database: &str, collection: &str, found: Option<&Collection>) {
        let Some(resolved) = &self.resolved else { return };
        let mut resolved = resolved.lock();
        let name = format!("{database}.{collection}");
        if !resolved.contains_key(&name)
            && let Ok(namespace) = Namespace::new(database, collection)
        {
            resolved.insert(name, (namespace, found.map(Collection::number)));
        }
    }

    fn seen(&self, database: &str, collection: &str) -> Option<&Arc<Collection>> {
        self.names.get(database, collection)
    }

    fn created(&self, database: &str, collection: &str) -> Option<&Arc<Collection>> {
        self.created.iter().find(|created| {
            let namespace = created.namespace();
            namespace.database() == database && namespace.collection() == collection
        })
    }

    /// The collection for a statement that writes; `None` if there is none.
    ///
    /// # Errors
    /// A conflict where the collection has changed so that the transaction cannot go on.
    pub fn lease(
        &mut self,
        catalog: &Catalog,
        namespace: &Namespace,
        caller: Caller<'_>,
    ) -> Result<Option<Lease>, CatalogError> {
        let (database, collection) = (namespace.database(), namespace.collection());
        if let Some(created) = self.created(database, collection) {
            refuse_capped(created)?;
            return Ok(Some(Lease::of_own(Arc::clone(created))));
        }
        self.check_not_loaded(database, collection)?;
        if let Some(found) = catalog.collection(database, collection) {
            refuse_capped(&found)?;
        }
        let lease = catalog.lease(database, collection, caller)?;
        let Some(lease) = lease else {
            if self.seen(database, collection).is_some() {
                // Dropped or renamed since the snapshot, whose documents its reads still see.
                return Err(StorageError::conflict().into());
            }
            self.note_resolved(database, collection, None);
            return Ok(None);
        };
        if self.seen(database, collection).is_none_or(|seen| seen.number() != lease.number()) {
            return Err(CatalogError::CollectionChanged { namespace: namespace.to_string() });
        }
        let snapshot = self.reader().snapshot();
        let is_usable = lease.indexes().iter().all(|index| index.is_usable_at(snapshot));
        if !is_usable || !self.is_as_written(&lease) {
            return Err(StorageError::conflict().into());
        }
        if !self.written.contains_key(lease.full_name()) {
            self.written.insert(lease.full_name().to_owned(), Arc::clone(&*lease));
        }
        Ok(Some(lease))
    }

    fn is_as_written(&self, lease: &Lease) -> bool {
        self.written.get(lease.full_name()).is_none_or(|written| Arc::ptr_eq(written, lease))
    }

    /// Creates an empty collection that others see from the commit on. Blocks.
    pub fn create_collection(
        &mut self,
        catalog: &Catalog,
        namespace: &Namespace,
        options: RawDocumentBuf,
        uuid: [u8; 16],
    ) -> Result<Arc<Collection>, CatalogError> {
        self.check_new(catalog, namespace)?;
        let parts = catalog.new_parts(namespace, options, uuid)?;
        let parts = Parts { entry: Arc::new(EntryState::pending()), ..parts };
        let created = Arc::new(Collection::new(parts, Arc::clone(catalog.store())));
        self.created.push(Arc::clone(&created));
        Ok(created)
    }

    /// Takes a loaded collection over, which the commit publishes.
    ///
    /// # Errors
    /// The name is taken, or was taken since the snapshot, which is a conflict.
    pub fn adopt(&mut self, catalog: &Catalog, loaded: LoadedCollection) -> Result<(), CatalogError> {
        self.check_new(catalog, loaded.namespace())?;
        loaded.count_in(self.writer());
        self.loaded.push(loaded.into_unpublished());
        Ok(())
    }

    /// Refuses the name of a new collection that is not new.
    fn check_new(&self, catalog: &Catalog, namespace: &Namespace) -> Result<(), CatalogError> {
        namespace.check_writable()?;
        let (database, collection) = (namespace.database(), namespace.collection());
        self.check_not_loaded(database, collection)?;
        let is_there = catalog.collection(database, collection).is_some();
        if is_there && self.seen(database, collection).is_none() {
            // Another transaction has created it since the snapshot.
            return Err(StorageError::conflict().into());
        }
        if is_there || self.created(database, collection).is_some() {
            return Err(CatalogError::CollectionExists { namespace: namespace.to_string() });
        }
        catalog.check_case(database)
    }

    /// Adds indexes to a collection that this transaction creates. False where another transaction has
    /// created the collection. Blocks.
    ///
    /// # Errors
    /// The collection has documents already.
    pub fn create_indexes(
        &mut self,
        catalog: &Catalog,
        namespace: &Namespace,
        descriptions: Vec<IndexDescription>,
    ) -> Result<bool, CatalogError> {
        let at = self.created.iter().position(|created| created.namespace() == namespace);
        let Some(at) = at else { return Ok(false) };
        let mut documents = self.created[at].scan_documents(KeyRange::all(), Direction::Forward);
        if documents.next(self.reader(), BlockingMode::MayBlock)?.is_some() {
            return Err(CatalogError::CollectionNotEmpty { namespace: namespace.to_string() });
        }
        let store = catalog.store();
        let mut parts = self.created[at].parts();
        for description in descriptions {
            parts.indexes.push(catalog.new_index(description, parts.partitions.clone())?);
            self.created[at] = Arc::new(Collection::new(parts.clone(), Arc::clone(store)));
        }
        Ok(true)
    }

    /// Takes the leases for the commit.
    ///
    /// # Errors
    /// A conflict where a collection has changed since it was written to. After `WouldBlock` the transaction
    /// is as it was.
    pub fn commit_leases(&self, catalog: &Catalog, caller: Caller<'_>) -> Result<CommitLeases, CatalogError> {
        let mut wanted: BTreeMap<&str, Leased<'_>> = BTreeMap::new();
        let mut absent = Vec::new();
        let resolved = self.resolved.as_ref().filter(|_| self.has_written()).map(Mutex::lock);
        for (name, (namespace, number)) in resolved.iter().flat_map(|resolved| resolved.iter()) {
            match number {
                Some(number) => {
                    wanted.insert(name, Leased { namespace, must_be: MustBe::Numbered(*number) });
                }
                None => absent.push(namespace.clone()),
            }
        }
        for (name, written) in &self.written {
            let must_be = MustBe::Unchanged(written);
            wanted.insert(name, Leased { namespace: written.namespace(), must_be });
        }
        let mut leases = Vec::with_capacity(wanted.len());
        for Leased { namespace, must_be } in wanted.values() {
            match catalog.lease(namespace.database(), namespace.collection(), caller)? {
                Some(lease) if must_be.admits(&lease) => leases.push(lease),
                Some(_) | None => return Err(StorageError::conflict().into()),
            }
        }
        Ok(CommitLeases { _leases: leases, absent })
    }

    /// Commits. Its collections and its writes become visible together: a snapshot that sees one of its
    /// writes finds its collections. The leases end afterwards.
    ///
    /// # Errors
    /// A conflict where another transaction has created a collection or a view of the same name, or a
    /// collection that a serializable transaction has not found.
    pub fn commit(
        mut self,
        catalog: &Catalog,
        leases: CommitLeases,
        durability: Durability,
    ) -> Result<CommitReceipt, CatalogError> {
        let CommitLeases { _leases, absent } = leases;
        let coming = self.coming();
        if coming.is_empty() && absent.is_empty() {
            return Ok(self.take().commit(durability)?);
        }
        let store = catalog.store();
        let _changing = store.changing.lock();
        catalog.refresh()?;
        let is_there = |name: &Namespace| catalog.collection(name.database(), name.collection()).is_some();
        if absent.iter().any(is_there) {
            return Err(StorageError::conflict().into());
        }
        if coming.is_empty() {
            return Ok(self.take().commit(durability)?);
        }
        let mut transaction = self.take();
        for collection in &coming {
            let namespace = collection.namespace();
            if is_there(namespace) || catalog.has_view(namespace)? {
                return Err(StorageError::conflict().into());
            }
            catalog.check_case(namespace.database())?;
            put_entry(store, transaction.engine(), collection)?;
            CounterChange::Mark(collection.number()).make(transaction.engine(), store.counters)?;
        }
        let names = coming.iter().map(|collection| collection.namespace());
        let version = count_change(store, transaction.engine(), names)?;
        // The names come before the writes: a snapshot that sees a write of this transaction then finds the
        // collection, too. Until the commit the collection is empty for all others, and the latches keep
        // statements that write away from it.
        let latches: Vec<_> = coming.iter().map(|collection| collection.latch().write_arc()).collect();
        catalog.swap(&[], &coming.iter().collect::<Vec<_>>());
        let committed = transaction.commit(durability).map_err(CatalogError::from);
        store.note_outcome(&committed);
        match &committed {
            Ok(receipt) => {
                has_changed(store, version);
                self.published(&coming, receipt);
            }
            Err(error) => {
                catalog.swap(&coming.iter().map(|one| one.namespace()).collect::<Vec<_>>(), &[]);
                if error.is_undetermined() {
                    self.keep_trees();
                }
            }
        }
        drop(latches);
        committed
    }

    /// The collections that its commit publishes.
    fn coming(&self) -> Vec<Arc<Collection>> {
        let loaded = self.loaded.iter().map(UnpublishedCollection::collection);
        self.created.iter().chain(loaded).cloned().collect()
    }

    /// They are published.
    fn published(&mut self, coming: &[Arc<Collection>], receipt: &CommitReceipt) {
        for collection in coming {
            collection.entry_committed();
            if let Some(publication) = collection.publication() {
                publication.committed(receipt.timestamp);
            }
        }
        self.keep_trees();
    }

    /// The catalog tree names the trees of its collections, or may do so.
    fn keep_trees(&mut self) {
        self.created.clear();
        self.loaded.drain(..).for_each(UnpublishedCollection::keep_trees);
    }

    fn take(&mut self) -> WriteTransaction {
        self.transaction.take().expect("a transaction that has not ended")
    }
}

/// Writers of a capped collection take turns, and a transaction would have its turn for as long as it is
/// open.
fn refuse_capped(collection: &Collection) -> Result<(), CatalogError> {
    match collection.capped_limits() {
        None => Ok(()),
        Some(_) => Err(CatalogError::CappedInTransaction { namespace: collection.full_name().to_owned() }),
    }
}

/// A collection that a commit leases.
struct Leased<'t> {
    namespace: &'t Namespace,
    must_be: MustBe<'t>,
}

/// The state of a collection without which the transaction cannot commit.
enum MustBe<'t> {
    /// It has this description.
    Unchanged(&'t Arc<Collection>),
    /// It has this number: it was not dropped, renamed or replaced.
    Numbered(TreeNumber),
}

impl MustBe<'_> {
    fn admits(&self, lease: &Lease) -> bool {
        match self {
            MustBe::Unchanged(written) => Arc::ptr_eq(lease, written),
            MustBe::Numbered(number) => lease.number() == *number,
        }
    }
}

fn has_absent(resolved: &ResolvedNames) -> bool {
    resolved.values().any(|(_, number)| number.is_none())
}

impl Drop for SessionTransaction {
    fn drop(&mut self) {
        if let Some(transaction) = self.transaction.take() {
            transaction.rollback();
        }
        for collection in self.created.drain(..) {
            for tree in collection.trees() {
                if let Err(error) = collection.engine().drop_tree(tree) {
                    tracing::warn!(%tree, %error, "a tree of a rolled back transaction is left until the next start");
                }
            }
        }
    }
}
