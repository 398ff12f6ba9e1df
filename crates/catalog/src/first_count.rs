//! The first count of a collection whose counters are not complete: one that a program without counters has
//! written.
//!
//! # Steps
//! 1. Take the build turn, so that no index comes meanwhile.
//! 2. Take the collection alone for an instant: remove what an interrupted count has left, have statements
//!    that write keep the counters from now on, and begin a snapshot. The snapshot has everything before.
//! 3. Scan the documents of the snapshot, while statements go on. Entries of indexes are derived from them.
//! 4. Add the sums to what the statements have added, and put the mark, in one commit. A snapshot that sees
//!    the mark therefore sees complete counters.
//!
//! An interrupted operation, or a crash before step 4, leaves counters without a mark. The next count, and
//! [`Catalog::open`](crate::Catalog::open), remove them.

use std::sync::Arc;

use pando_document::RawDocument;
use pando_storage::{
    Begin, BlockingMode, Caller, Direction, Durability, KeyRange, Operation, StorageError, Transaction,
};

use crate::Catalog;
use crate::collection::Collection;
use crate::counters::{CollectionCounts, CounterChange, CounterKind};
use crate::error::{CatalogError, WriteError};

impl Catalog {
    /// The counters of a collection as of now. Counts a collection without complete counters first, which
    /// reads all of its documents. Blocks.
    pub fn counts(
        &self,
        collection: &Collection,
        operation: &Operation,
    ) -> Result<CollectionCounts, CatalogError> {
        if let Some(counts) = self.counts_now(collection)? {
            return Ok(counts);
        }
        self.count_first(collection, operation)?;
        match self.counts_now(collection)? {
            Some(counts) => Ok(counts),
            // It has been dropped meanwhile.
            None => Ok(scan(collection, &*self.begin(Begin::READ)?, operation)?.into_counts(collection)),
        }
    }

    fn counts_now(&self, collection: &Collection) -> Result<Option<CollectionCounts>, StorageError> {
        let reader = self.begin(Begin::READ)?;
        let counts = collection.counts(&*reader, BlockingMode::MayBlock);
        reader.rollback();
        counts
    }

    /// Makes the counters of a collection complete, if they are not. Does nothing where the collection has
    /// been dropped or renamed meanwhile. Blocks; reads all documents.
    fn count_first(&self, collection: &Collection, operation: &Operation) -> Result<(), CatalogError> {
        if self.is_shared() {
            // Statements of other servers do not count. Every collection made there has its mark.
            return Ok(());
        }
        let namespace = collection.namespace();
        let turn = match self.index_build_turn(namespace, operation) {
            Err(CatalogError::CollectionNotFound { .. }) => return Ok(()),
            turn => turn?,
        };
        if self.counts_now(collection)?.is_some() {
            return Ok(());
        }
        let Some((collection, snapshot)) = self.begin_count(collection, operation)? else {
            return Ok(());
        };
        tracing::info!(collection = %namespace, "counting the documents of a collection that has no counters yet");
        let scanned = scan(&collection, &*snapshot, operation)?;
        snapshot.rollback();
        self.end_count(&collection, &scanned, operation)?;
        drop(turn);
        tracing::info!(collection = %namespace, documents = scanned.documents, "counted");
        Ok(())
    }

    /// Step 2. `None` where another collection has the name.
    fn begin_count(
        &self,
        collection: &Collection,
        operation: &Operation,
    ) -> Result<Option<(Arc<Collection>, Box<dyn Transaction>)>, CatalogError> {
        let number = collection.number();
        let alone = match self.exclusive(collection.namespace(), operation) {
            Err(CatalogError::CollectionNotFound { .. }) => return Ok(None),
            alone => alone?,
        };
        if alone.collection.number() != number {
            return Ok(None);
        }
        let mut transaction = self.begin(Begin::WRITE)?;
        let tree = self.store().counters;
        CounterChange::ForgetCollection(number).make(&mut *transaction, tree)?;
        for index in alone.collection.indexes() {
            CounterChange::ForgetIndex(index.number()).make(&mut *transaction, tree)?;
        }
        transaction.commit(Durability::None)?;
        alone.collection.keep_counters();
        // A session's transaction that has written without counting must not commit: its check compares
        // descriptions.
        let collection = self.show(alone.collection.parts())?;
        let snapshot = self.begin(Begin::READ)?;
        Ok(Some((collection, snapshot)))
    }

    /// Step 4.
    fn end_count(
        &self,
        collection: &Collection,
        scanned: &Scanned,
        operation: &Operation,
    ) -> Result<(), CatalogError> {
        let namespace = collection.namespace();
        let lease = self.lease(namespace.database(), namespace.collection(), Caller::may_block(operation))?;
        let Some(lease) = lease.filter(|lease| lease.number() == collection.number()) else {
            return Ok(());
        };
        let mut transaction = self.begin(Begin::WRITE)?;
        let add = |kind, number, amount| CounterChange::Add(kind, number, amount);
        let number = collection.number();
        let mut changes = vec![
            CounterChange::Mark(number),
            add(CounterKind::Documents, number, scanned.documents as i64),
            add(CounterKind::Bytes, number, scanned.bytes as i64),
        ];
        // An index that has been dropped meanwhile has no counter any more.
        let indexes = collection.indexes().iter().zip(&scanned.surpluses);
        let indexes = indexes
            .filter(|(index, _)| lease.index(index.name()).is_some_and(|now| now.number() == index.number()));
        changes.extend(indexes.map(|(index, surplus)| add(CounterKind::Surplus, index.number(), *surplus)));
        for change in changes {
            change.make(&mut *transaction, self.store().counters)?;
        }
        transaction.commit(Durability::None)?;
        Ok(())
    }
}

/// The counts of one scan.
struct Scanned {
    documents: u64,
    bytes: u64,
    /// Of each index: entries less documents.
    surpluses: Vec<i64>,
}

impl Scanned {
    fn into_counts(self, collection: &Collection) -> CollectionCounts {
        let entries = |surplus: &i64| self.documents.saturating_add_signed(*surplus);
        let names = collection.indexes().iter().map(|index| index.name().to_owned());
        CollectionCounts {
            documents: self.documents,
            data_bytes: self.bytes,
            patches: 0,
            index_entries: names.zip(self.surpluses.iter().map(entries)).collect(),
        }
    }
}

/// Counts documents, their bytes, and the entries that the indexes have for them.
fn scan(
    collection: &Collection,
    snapshot: &dyn Transaction,
    operation: &Operation,
) -> Result<Scanned, CatalogError> {
    let indexes = collection.indexes();
    let mut scanned = Scanned { documents: 0, bytes: 0, surpluses: vec![0; indexes.len()] };
    let mut documents = collection.scan_documents(KeyRange::all(), Direction::Forward);
    while let Some((_, bytes)) = documents.next(snapshot, BlockingMode::MayBlock)? {
        operation.check()?;
        scanned.documents += 1;
        scanned.bytes += bytes.len() as u64;
        for (index, surplus) in indexes.iter().zip(&mut scanned.surpluses) {
            if index.may_have_surplus() {
                let keys = index.keys_of(RawDocument::from_bytes(bytes).map_err(WriteError::from)?)?.keys;
                *surplus += keys.len() as i64 - 1;
            }
        }
    }
    Ok(scanned)
}
