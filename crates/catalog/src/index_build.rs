//! Building indexes over documents that are there already, while statements go on reading and writing them.
//!
//! # Steps
//! 1. *Announce*: for an instant the collection is taken alone. From then on statements that write note what they change of the new
//!    indexes in trees of changes ([`crate::building`]); a snapshot begun in that instant has all that they will not note.
//! 2. *Scan*: documents are read from that snapshot, their entries sorted in memory that the engine
//!    [lends](pando_storage::Engine::lend_memory) ([`crate::sorter`]).
//! 3. *Load*: the sorted entries become full leaves, without log and buffers ([`Engine::load`](pando_storage::Engine::load)).
//! 4. *Catch up*: writers are handed new trees of changes, the old ones are worked in; again, until few changes come meanwhile.
//! 5. *Publish*: the collection is taken alone again, the last changes are worked in, and the description with the new indexes is
//!    committed. Readers see them from here on.
//!
//! # Unique indexes
//! Until step 5 nobody is told of a duplicate: the build fails where it finds one. It compares the entries of step 2, and the
//! state after each round of step 4, which is the collection's at the moment of the hand-over. So it fails only where two
//! documents did have one key at one of these moments.
//!
//! # Crashes and failures
//! Only step 5 writes to the catalog. A crash before it leaves trees that nothing refers to, and the next start drops them: there
//! is no half index, and the build is not resumed. A failure, a dropped collection or a dropped index does the same at once.

mod changes;
mod entries;

use std::sync::Arc;
use std::time::{Duration, Instant};

use pando_document::RawDocument;
use pando_storage::{
    Begin, BlockingMode, Cursor, Direction, Durability, ErrorKind, KeyRange, LoadDurability, StorageError,
    Transaction, TreeId, TreeOptions,
};
use parking_lot::{ArcMutexGuard, RawMutex};

use self::changes::Changes;
use self::entries::Entries;
use crate::building::{BuildEnd, BuildTicket, BuildingIndex, entry_under_construction};
use crate::catalog::Exclusive;
use crate::documents::with_truncation;
use crate::index_keys;
use crate::sorter::Sorter;
use crate::tree_layout::tree_options;
use crate::{Catalog, CatalogError, Collection, Index, IndexDescription, Namespace, WriteError};

/// Memory that all sorters of one build want. They get what the engine lends.
const SORT_BYTES_MAX: usize = 64 << 20;
/// How often the log says how far a build has got.
const PROGRESS_EVERY: Duration = Duration::from_secs(5);
/// How many documents or entries pass between two looks whether the build was ended.
const LOOK_EVERY: u64 = 256;
/// So few changes are worked in while writers wait: some ten milliseconds.
const LAST_CHANGES: u64 = 2_000;
/// After so many rounds writers are faster than the build, and have to wait for the rest.
const ROUNDS_MAX: u32 = 12;
/// Changes that are worked in by one transaction.
const CHANGES_A_COMMIT: u64 = 5_000;

impl Catalog {
    /// Builds indexes and adds them to the collection, all or none, while others go on reading and writing. Blocks until all
    /// are built, and before that until no other build of the collection is under way.
    pub fn create_indexes(
        &self,
        namespace: &Namespace,
        descriptions: Vec<IndexDescription>,
    ) -> Result<(), CatalogError> {
        self.index_build_turn(namespace)?.create(descriptions)
    }

    /// Waits until no other build of the collection is under way, and keeps others from beginning. Look at what indexes there
    /// are afterwards: they do not become more while this is held.
    pub fn index_build_turn(&self, namespace: &Namespace) -> Result<IndexBuildTurn<'_>, CatalogError> {
        loop {
            let found = self.existing(namespace)?;
            let turn = found.build_turn().lock_arc();
            // The collection may have been replaced by another of its name meanwhile.
            if Arc::ptr_eq(self.existing(namespace)?.build_turn(), found.build_turn()) {
                return Ok(IndexBuildTurn { catalog: self, namespace: namespace.clone(), _turn: turn });
            }
        }
    }
}

/// The right to build indexes of one collection.
pub struct IndexBuildTurn<'c> {
    catalog: &'c Catalog,
    namespace: Namespace,
    _turn: ArcMutexGuard<RawMutex, ()>,
}

impl IndexBuildTurn<'_> {
    /// Builds indexes, none of which exists, and adds them, all or none. Blocks.
    pub fn create(self, descriptions: Vec<IndexDescription>) -> Result<(), CatalogError> {
        let mut build = Build {
            catalog: self.catalog,
            namespace: &self.namespace,
            ticket: Arc::default(),
            indexes: Vec::with_capacity(descriptions.len()),
            scratch: Vec::new(),
            is_published: false,
            said: Instant::now(),
        };
        build.run(descriptions)
    }
}

/// A build under way. Dropping it takes away all that is not published.
struct Build<'b> {
    catalog: &'b Catalog,
    namespace: &'b Namespace,
    ticket: Arc<BuildTicket>,
    indexes: Vec<Arc<Index>>,
    /// Trees that go at the end, however it ends.
    scratch: Vec<TreeId>,
    is_published: bool,
    /// When the log was last told how far the build is.
    said: Instant,
}

impl Build<'_> {
    fn run(&mut self, descriptions: Vec<IndexDescription>) -> Result<(), CatalogError> {
        let began = Instant::now();
        for description in descriptions {
            let layout = tree_options(&description.specification, self.catalog.engine().name())?;
            let (name, tree) = self.catalog.store().create_tree("index", &layout)?;
            self.indexes.push(Arc::new(Index::new(description, tree, name)));
        }
        if self.publish_if_empty()? {
            return Ok(());
        }
        let (collection, snapshot) = self.announce()?;
        tracing::info!(collection = %self.namespace, indexes = ?self.names(), "building indexes");
        let lent = self.catalog.engine().lend_memory(SORT_BYTES_MAX);
        let mut sorters = self.scan(&collection, &*snapshot, lent.bytes())?;
        // What is sorted further does not look at documents: room that others free is not kept for it.
        snapshot.rollback();
        self.finish(&mut sorters)?;
        let entries: Vec<u64> = sorters.iter().map(Sorter::len).collect();
        for (at, sorter) in sorters.iter_mut().enumerate() {
            self.load(at, sorter)?;
        }
        drop((sorters, lent));
        self.catch_up()?;
        let seconds = began.elapsed().as_secs_f64();
        tracing::info!(collection = %self.namespace, indexes = ?self.names(), ?entries, seconds, "built indexes");
        Ok(())
    }

    fn names(&self) -> Vec<&str> {
        self.indexes.iter().map(|index| index.name()).collect()
    }

    /// Where there is no document there is nothing to build.
    fn publish_if_empty(&mut self) -> Result<bool, CatalogError> {
        let is_empty = |collection: &Collection| -> Result<bool, StorageError> {
            let reader = self.catalog.begin(Begin::READ)?;
            let mut scan = collection.scan_documents(KeyRange::all(), Direction::Forward);
            Ok(scan.next(&*reader, BlockingMode::MayBlock)?.is_none())
        };
        if !is_empty(&*self.catalog.existing(self.namespace)?)? {
            return Ok(false);
        }
        let alone = self.catalog.exclusive(self.namespace)?;
        let is_empty = is_empty(&alone.collection)?;
        if is_empty {
            self.publish(&alone)?;
        }
        Ok(is_empty)
    }

    /// Has writers note their changes, and begins the snapshot that has all before. See the module's head.
    fn announce(&mut self) -> Result<(Arc<Collection>, Box<dyn Transaction>), CatalogError> {
        let building = self.new_changes()?;
        let alone = self.catalog.exclusive(self.namespace)?;
        let mut parts = alone.collection.parts();
        parts.building.extend(building);
        let collection = self.catalog.show(parts);
        let snapshot = self.catalog.begin(Begin::READ)?;
        Ok((collection, snapshot))
    }

    /// The indexes with an empty tree of changes each.
    fn new_changes(&mut self) -> Result<Vec<Arc<BuildingIndex>>, StorageError> {
        let mut building = Vec::with_capacity(self.indexes.len());
        for index in &self.indexes {
            let (_, changes) = self.catalog.store().create_tree("changes", &TreeOptions::default())?;
            self.scratch.push(changes);
            building.push(Arc::new(BuildingIndex::new(Arc::clone(index), changes, Arc::clone(&self.ticket))));
        }
        Ok(building)
    }

    /// Reads all documents and sorts their entries in so much memory.
    fn scan(
        &mut self,
        collection: &Collection,
        snapshot: &dyn Transaction,
        memory: usize,
    ) -> Result<Vec<Sorter>, CatalogError> {
        let memory_of_each = memory / self.indexes.len().max(1);
        let mut sorters: Vec<Sorter> = self.indexes.iter().map(|_| Sorter::new(memory_of_each)).collect();
        let scanned = self.scan_into(collection, snapshot, &mut sorters);
        if scanned.is_err() {
            self.scratch.extend(sorters.iter().flat_map(Sorter::runs));
        }
        scanned.map(|()| sorters)
    }

    /// Sorts what there is, and what was put out.
    fn finish(&mut self, sorters: &mut [Sorter]) -> Result<(), CatalogError> {
        let (store, mut look) = (self.catalog.store(), || self.ticket.check());
        let finished = sorters.iter_mut().try_for_each(|sorter| sorter.finish(store, &mut look));
        self.scratch.extend(sorters.iter().flat_map(Sorter::runs));
        finished
    }

    fn scan_into(
        &mut self,
        collection: &Collection,
        snapshot: &dyn Transaction,
        sorters: &mut [Sorter],
    ) -> Result<(), CatalogError> {
        let store = self.catalog.store();
        let expected = store.engine.tree_estimate(collection.primary_tree())?.entries;
        let mut scan = collection.scan_documents(KeyRange::all(), Direction::Forward);
        let mut documents: u64 = 0;
        while let Some((primary_key, bytes)) = scan.next(snapshot, BlockingMode::MayBlock)? {
            let document = RawDocument::from_bytes(bytes).map_err(WriteError::from)?;
            for (index, sorter) in self.indexes.iter().zip(&mut *sorters) {
                let derived = index_keys::keys_of(index, document)?;
                // Nothing refers to the index yet: its flags go to the catalog with its first entry there.
                index.raise(&with_truncation(derived.flags, &derived.keys));
                for key in &derived.keys {
                    let entry = entry_under_construction(index.uniqueness(), key, primary_key);
                    sorter.push(store, &entry.key, &entry.value)?;
                }
            }
            documents += 1;
            if documents.is_multiple_of(LOOK_EVERY) {
                self.ticket.check()?;
                if self.is_time_to_speak() {
                    tracing::info!(collection = %self.namespace, indexes = ?self.names(), documents, expected, "building indexes: reading documents");
                }
            }
        }
        Ok(())
    }

    /// Fills the tree of an index with its sorted entries.
    fn load(&mut self, at: usize, sorter: &mut Sorter) -> Result<(), CatalogError> {
        let index = Arc::clone(&self.indexes[at]);
        let reader = self.catalog.begin(Begin::READ)?;
        let (catalog, total, mut count) = (self.catalog, sorter.len(), 0);
        let mut look = || {
            count += LOOK_EVERY;
            self.ticket.check()?;
            if self.is_time_to_speak() {
                tracing::info!(collection = %self.namespace, index = index.name(), entries = count, total, "building indexes: writing entries");
            }
            Ok(())
        };
        let mut entries = Entries::new(&index, sorter.merge(&*reader)?, &mut look);
        let loaded = catalog.engine().load(index.tree(), &mut entries, LoadDurability::Durable);
        match (entries.into_failure(), loaded) {
            (Some(failure), _) => Err(failure),
            (None, Err(error)) => Err(self.or_end(error)),
            (None, Ok(_)) => Ok(()),
        }
    }

    /// Works in what writers have noted, until the rest is little, and publishes.
    fn catch_up(&mut self) -> Result<(), CatalogError> {
        for round in 0..ROUNDS_MAX {
            let collection = self.catalog.existing(self.namespace)?;
            let noted: u64 = self.mine(&collection)?.iter().map(|building| building.noted()).sum();
            if noted <= LAST_CHANGES {
                break;
            }
            tracing::info!(collection = %self.namespace, indexes = ?self.names(), round, noted, "building indexes: working in changes");
            let fresh = self.new_changes()?;
            let before = {
                let alone = self.catalog.exclusive(self.namespace)?;
                let before = self.mine(&alone.collection)?;
                let mut parts = alone.collection.parts();
                parts.building.retain(|building| !Arc::ptr_eq(&building.ticket, &self.ticket));
                parts.building.extend(fresh);
                self.catalog.show(parts);
                before
            };
            for building in &before {
                self.work_in(building)?;
                // Only room: where it fails, the end of the build tries again.
                let _dropped = self.catalog.engine().drop_tree(building.changes);
            }
        }
        let alone = self.catalog.exclusive(self.namespace)?;
        for building in self.mine(&alone.collection)? {
            self.work_in(&building)?;
        }
        self.publish(&alone)
    }

    /// Puts all changes of one tree into the index. Nobody writes to either.
    fn work_in(&self, building: &BuildingIndex) -> Result<(), CatalogError> {
        let reader = self.catalog.begin(Begin::READ)?;
        let mut cursor = Cursor::new(building.changes, KeyRange::all(), Direction::Forward);
        let mut transaction = self.catalog.begin(Begin::WRITE)?;
        let mut changes = Changes::new(&building.index);
        let mut count: u64 = 0;
        while let Some((key, value)) =
            cursor.next(&*reader, BlockingMode::MayBlock).map_err(|error| self.or_end(error))?
        {
            changes.take(&mut *transaction, key, value)?;
            count += 1;
            if count.is_multiple_of(CHANGES_A_COMMIT) {
                self.ticket.check()?;
                // One after the other: a snapshot begun before the commit would not have it.
                transaction.commit(Durability::None)?;
                transaction = self.catalog.begin(Begin::WRITE)?;
            }
        }
        changes.end_group(&mut *transaction)?;
        transaction.commit(Durability::None)?;
        Ok(())
    }

    /// Commits the description with the new indexes.
    fn publish(&mut self, alone: &Exclusive) -> Result<(), CatalogError> {
        let mut parts = alone.collection.parts();
        parts.building.retain(|building| !Arc::ptr_eq(&building.ticket, &self.ticket));
        parts.indexes.extend(self.indexes.iter().cloned());
        self.catalog.replace_with_new(parts, &self.indexes)?;
        self.is_published = true;
        Ok(())
    }

    /// What writers see of this build in a description; an error if it was ended.
    fn mine(&self, collection: &Collection) -> Result<Vec<Arc<BuildingIndex>>, CatalogError> {
        self.ticket.check()?;
        let mine = |building: &&Arc<BuildingIndex>| Arc::ptr_eq(&building.ticket, &self.ticket);
        let found: Vec<_> = collection.building().iter().filter(mine).cloned().collect();
        if found.len() < self.indexes.len() {
            // Another collection has the name by now.
            return Err(CatalogError::IndexBuildEnded { reason: BuildEnd::CollectionDropped });
        }
        Ok(found)
    }

    /// An error of a tree that is gone because the build was ended is the end of the build.
    fn or_end(&self, error: StorageError) -> CatalogError {
        match self.ticket.check() {
            Err(ended) => ended,
            Ok(()) => error.into(),
        }
    }

    fn is_time_to_speak(&mut self) -> bool {
        let is_time = self.said.elapsed() >= PROGRESS_EVERY;
        if is_time {
            self.said = Instant::now();
        }
        is_time
    }

    /// Takes the build out of the description that writers see.
    fn withdraw(&self) {
        let Ok(alone) = self.catalog.exclusive(self.namespace) else { return };
        let mut parts = alone.collection.parts();
        let before = parts.building.len();
        parts.building.retain(|building| !Arc::ptr_eq(&building.ticket, &self.ticket));
        if parts.building.len() < before {
            self.catalog.show(parts);
        }
    }
}

impl Drop for Build<'_> {
    fn drop(&mut self) {
        if !self.is_published {
            self.withdraw();
            self.scratch.extend(self.indexes.iter().map(|index| index.tree()));
        }
        for tree in self.scratch.drain(..) {
            match self.catalog.engine().drop_tree(tree) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    tracing::warn!(%tree, %error, "a tree of an index build is left until the next start");
                }
                Ok(()) | Err(_) => {}
            }
        }
    }
}
