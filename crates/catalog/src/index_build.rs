//! Index builds over existing documents, while statements go on reading and writing them.
//!
//! # Steps
//! 1. *Announce*: take the collection alone for an instant, and begin a snapshot. From then on, statements
//!    that write record their changes of the new indexes in trees of changes (`building`). The snapshot has
//!    everything before.
//! 2. *Scan*: read the documents of the snapshot, and sort their entries by the external sorter that queries
//!    use, in their memory ([`pando_storage::Sorter`]).
//! 3. *Load*: write the sorted entries as full leaves, without log and buffers
//!    ([`Engine::load`](pando_storage::Engine::load)).
//! 4. *Catch up*: give writers new trees of changes, apply the old ones to the indexes, and repeat until few
//!    changes come during a round.
//! 5. *Publish*: take the collection alone again, apply the last changes, and commit the description with the
//!    new indexes. Readers see them from here on.
//!
//! # Unique indexes
//! A statement that writes is told of no duplicate before step 5. The build looks for duplicates
//! itself: among the entries of step 2, and after each round of step 4. The state after a round is
//! that of the collection when the round began. So the build fails only if two documents had one key
//! at one of these moments.
//!
//! # Crashes and failures
//! Only step 5 writes to the catalog. A crash before it leaves trees that no entry refers to, and the next
//! start drops them: the build is not resumed. A failure, a dropped collection or a dropped index drops the
//! trees at once. Where the outcome of that commit is unknown, the indexes keep their trees: the catalog may
//! name them.
#![allow(clippy::disallowed_methods, reason = "the time goes into log lines on progress and decides nothing")]

mod changes;

use std::sync::Arc;
use std::time::{Duration, Instant};

use pando_document::RawDocument;
use pando_storage::{
    Begin, BlockingMode, Cursor, Direction, Durability, ErrorKind, KeyRange, Operation, OperationWait,
    Sorter, StorageError, Transaction, TreeId, TreeOptions,
};
use parking_lot::{ArcMutexGuard, RawMutex};

use self::changes::Changes;
use crate::building::{BuildTicket, BuildingIndex, entry_under_construction};
use crate::catalog::Exclusive;
use crate::counters::{CounterChange, CounterKind};
use crate::error::BuildEnd;
use crate::index::Owner;
use crate::sorted_entries::{self, CHECK_EVERY, Destination};
use crate::{Catalog, CatalogError, Collection, Index, IndexDescription, Namespace, WriteError};

/// How often the log reports the progress of a build.
const PROGRESS_EVERY: Duration = Duration::from_secs(5);
/// The longest wait for another build between two looks at the operation's interruption.
const TURN_WAIT: Duration = Duration::from_millis(20);
/// Most changes that are applied while writers wait: some ten milliseconds of work.
const LAST_CHANGES_MAX: u64 = 2_000;
/// Most rounds of catching up. Writers that are faster than the build wait after the last one.
const ROUNDS_MAX: u32 = 12;
/// Changes that one transaction applies.
const CHANGES_PER_COMMIT: u64 = 5_000;

impl Catalog {
    /// Builds indexes and adds them to the collection, all or none, while others go on reading and writing.
    /// Blocks until all are built, and before that until no other build of the collection is under way.
    pub fn create_indexes(
        &self,
        namespace: &Namespace,
        descriptions: Vec<IndexDescription>,
        operation: &Operation,
    ) -> Result<(), CatalogError> {
        self.index_build_turn(namespace, operation)?.create(descriptions)
    }

    /// Waits until no other build of the collection is under way, and keeps others from beginning. No index
    /// is added while this is held, so a caller that wants to know which exist looks afterwards.
    pub fn index_build_turn<'c>(
        &'c self,
        namespace: &Namespace,
        operation: &'c Operation,
    ) -> Result<IndexBuildTurn<'c>, CatalogError> {
        loop {
            let found = self.existing(namespace)?;
            let turn = operation
                .wait_for(OperationWait::IndexBuild, || found.build_turn().try_lock_arc_for(TURN_WAIT))?;
            // The collection may have been replaced by another of its name meanwhile.
            if Arc::ptr_eq(self.existing(namespace)?.build_turn(), found.build_turn()) {
                let namespace = namespace.clone();
                return Ok(IndexBuildTurn { catalog: self, namespace, operation, _turn: turn });
            }
        }
    }
}

/// The right to build indexes of one collection, held by one caller at a time.
pub struct IndexBuildTurn<'c> {
    catalog: &'c Catalog,
    namespace: Namespace,
    /// The operation that the build is.
    operation: &'c Operation,
    _turn: ArcMutexGuard<RawMutex, ()>,
}

impl IndexBuildTurn<'_> {
    /// Builds indexes, none of which exists, and adds them, all or none. Blocks.
    pub fn create(self, descriptions: Vec<IndexDescription>) -> Result<(), CatalogError> {
        self.build(descriptions, None)
    }

    /// Builds an index that takes the place of one with the same name, in one commit. Blocks. An index that
    /// was dropped or changed meanwhile ends the build.
    pub fn replace(self, old: &Arc<Index>, description: IndexDescription) -> Result<(), CatalogError> {
        self.build(vec![description], Some(Arc::clone(old)))
    }

    fn build(
        self,
        descriptions: Vec<IndexDescription>,
        replaced: Option<Arc<Index>>,
    ) -> Result<(), CatalogError> {
        let mut build = Build {
            catalog: self.catalog,
            namespace: &self.namespace,
            operation: self.operation,
            ticket: Arc::default(),
            indexes: Vec::with_capacity(descriptions.len()),
            replaced,
            surpluses: vec![0; descriptions.len()],
            scratch: Vec::new(),
            stage: Stage::Unpublished,
            reported: Instant::now(),
        };
        build.run(descriptions)
    }
}

/// A build under way. Dropping it takes away all that is not published.
struct Build<'b> {
    catalog: &'b Catalog,
    namespace: &'b Namespace,
    operation: &'b Operation,
    ticket: Arc<BuildTicket>,
    indexes: Vec<Arc<Index>>,
    /// The index whose place the only one of this build takes.
    replaced: Option<Arc<Index>>,
    /// Of each index: entries less documents in the snapshot. Statements that write add their own from the
    /// announcement on.
    surpluses: Vec<i64>,
    /// Trees that go at the end, however it ends.
    scratch: Vec<TreeId>,
    stage: Stage,
    /// When the log last reported progress.
    reported: Instant,
}

/// Whether the catalog names the indexes of a build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// It does not.
    Unpublished,
    /// It may: the outcome of the commit is unknown.
    Undetermined,
    /// It does.
    Published,
}

impl Build<'_> {
    fn run(&mut self, descriptions: Vec<IndexDescription>) -> Result<(), CatalogError> {
        let began = Instant::now();
        let partitions = self.catalog.existing(self.namespace)?.shared_partitions().cloned();
        for description in descriptions {
            self.indexes.push(self.catalog.new_index(description, partitions.clone())?);
        }
        if self.publish_if_empty()? {
            return Ok(());
        }
        let (collection, snapshot) = self.announce()?;
        tracing::info!(collection = %self.namespace, indexes = ?self.names(), "building indexes");
        let mut sorters = self.scan(&collection, &*snapshot)?;
        // The rest of the sort reads no documents. A snapshot kept open would keep old
        // versions from being reclaimed.
        snapshot.rollback();
        self.finish(&mut sorters)?;
        let entries: Vec<u64> = sorters.iter().map(Sorter::len).collect();
        for (at, sorter) in sorters.iter_mut().enumerate() {
            self.load(at, sorter)?;
        }
        drop(sorters);
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
        let alone = self.catalog.exclusive(self.namespace, self.operation)?;
        self.check_partitions(&alone.collection)?;
        let is_empty = is_empty(&alone.collection)?;
        if is_empty {
            self.publish(&alone)?;
        }
        Ok(is_empty)
    }

    /// Refuses a collection that has taken the name since the indexes were made, with other partitions.
    fn check_partitions(&self, collection: &Collection) -> Result<(), CatalogError> {
        let own = |index: &Arc<Index>| match (index.partitions(), collection.shared_partitions()) {
            (None, None) => true,
            (Some(own), Some(now)) => Arc::ptr_eq(own, now),
            _ => false,
        };
        match self.indexes.iter().all(own) {
            true => Ok(()),
            false => Err(CatalogError::CollectionChanged { namespace: self.namespace.to_string() }),
        }
    }

    /// Has writers record their changes, and begins the snapshot that has everything before: step 1.
    fn announce(&mut self) -> Result<(Arc<Collection>, Box<dyn Transaction>), CatalogError> {
        let building = self.new_changes()?;
        let alone = self.catalog.exclusive(self.namespace, self.operation)?;
        self.check_partitions(&alone.collection)?;
        let mut parts = alone.collection.parts();
        parts.building.extend(building);
        let collection = self.catalog.show(parts)?;
        let snapshot = self.catalog.begin(Begin::READ)?;
        Ok((collection, snapshot))
    }

    /// The indexes with an empty tree of changes each.
    fn new_changes(&mut self) -> Result<Vec<Arc<BuildingIndex>>, StorageError> {
        let mut building = Vec::with_capacity(self.indexes.len());
        for index in &self.indexes {
            let changes = self.catalog.store().create_tree("changes", &TreeOptions::default())?;
            self.scratch.push(changes.id);
            let (index, ticket) = (Arc::clone(index), Arc::clone(&self.ticket));
            let builder = self.catalog.store().sharing.as_ref().map_or(0, |sharing| sharing.member());
            building.push(Arc::new(BuildingIndex::new(index, changes, builder, ticket)));
        }
        Ok(building)
    }

    /// Reads all documents, and gives their entries to a sorter for each index.
    fn scan(
        &mut self,
        collection: &Collection,
        snapshot: &dyn Transaction,
    ) -> Result<Vec<Sorter>, CatalogError> {
        let account = self.catalog.query_memory().account();
        let mut sorters: Vec<Sorter> = self.indexes.iter().map(|_| Sorter::new(&account)).collect();
        self.scan_into(collection, snapshot, &mut sorters)?;
        Ok(sorters)
    }

    /// Sorts the entries in memory, and reduces the runs to as many as one merge reads.
    fn finish(&mut self, sorters: &mut [Sorter]) -> Result<(), CatalogError> {
        let mut check = || self.check();
        sorters.iter_mut().try_for_each(|sorter| sorter.finish(&mut check))
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
        let (mut documents, ticket) = (0_u64, Arc::clone(&self.ticket));
        let mut step = self.operation.begin_step("index build: reading documents", expected);
        let mut check = || ticket.check();
        while let Some((primary_key, bytes)) = scan.next(snapshot, BlockingMode::MayBlock)? {
            let document = RawDocument::from_bytes(bytes).map_err(WriteError::from)?;
            let surpluses = &mut self.surpluses;
            for ((index, sorter), surplus) in self.indexes.iter().zip(&mut *sorters).zip(surpluses) {
                let derived = index.keys_of(document)?;
                // No entry refers to the index yet: its flags go to the catalog with its first entry there.
                index.raise(&derived.flags());
                *surplus += derived.keys.len() as i64 - 1;
                for key in &derived.keys {
                    let entry = entry_under_construction(index, key, Owner { primary_key, document });
                    sorter.push(&entry.key, &entry.value, &mut check)?;
                }
            }
            documents += 1;
            self.operation.check()?;
            if documents.is_multiple_of(CHECK_EVERY) {
                self.ticket.check()?;
                step.set_done(documents);
                if self.is_time_to_report() {
                    tracing::info!(collection = %self.namespace, indexes = ?self.names(), documents, expected, "building indexes: reading documents");
                }
            }
        }
        Ok(())
    }

    /// Fills the tree of an index with its sorted entries.
    fn load(&mut self, at: usize, sorter: &mut Sorter) -> Result<(), CatalogError> {
        let index = Arc::clone(&self.indexes[at]);
        let (catalog, total, mut count) = (self.catalog, sorter.len(), 0);
        let mut step = self.operation.begin_step("index build: writing entries", total);
        let mut check = || {
            count += CHECK_EVERY;
            step.set_done(count);
            self.check()?;
            if self.is_time_to_report() {
                tracing::info!(collection = %self.namespace, index = index.name(), entries = count, total, "building indexes: writing entries");
            }
            Ok(())
        };
        let destination = Destination::Index(&index);
        match sorted_entries::load(&**catalog.engine(), destination, sorter, &mut check) {
            Err(CatalogError::Storage(error)) => Err(self.or_end(error)),
            other => other,
        }
    }

    /// Applies the changes that writers have recorded, until few are left, and publishes.
    fn catch_up(&mut self) -> Result<(), CatalogError> {
        // In a shared store each server counts its own notes: the round before tells about how many there
        // are.
        let mut applied = u64::MAX;
        for round in 0..ROUNDS_MAX {
            let collection = self.catalog.existing(self.namespace)?;
            let noted: u64 = self.mine(&collection)?.iter().map(|building| building.noted()).sum();
            let noted = if self.catalog.is_shared() { applied } else { noted };
            if noted <= LAST_CHANGES_MAX {
                break;
            }
            tracing::info!(collection = %self.namespace, indexes = ?self.names(), round, noted, "building indexes: applying changes");
            let fresh = self.new_changes()?;
            let before = {
                let alone = self.catalog.exclusive(self.namespace, self.operation)?;
                let before = self.mine(&alone.collection)?;
                let mut parts = alone.collection.parts();
                parts.building.retain(|building| !Arc::ptr_eq(&building.ticket, &self.ticket));
                parts.building.extend(fresh);
                self.catalog.show(parts)?;
                before
            };
            applied = 0;
            for building in &before {
                applied += self.apply_changes(building)?;
                // A failure costs only space, and the end of the build tries again.
                let _dropped = self.catalog.drop_tree(building.changes);
            }
        }
        let alone = self.catalog.exclusive(self.namespace, self.operation)?;
        for building in self.mine(&alone.collection)? {
            self.apply_changes(&building)?;
        }
        self.publish(&alone)
    }

    /// Applies all changes of one tree to its index, and gives their number. No statement writes to either.
    fn apply_changes(&self, building: &BuildingIndex) -> Result<u64, CatalogError> {
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
            self.operation.check()?;
            if count.is_multiple_of(CHANGES_PER_COMMIT) {
                self.ticket.check()?;
                // The next transaction begins after the commit: an earlier snapshot
                // would not have its writes.
                transaction.commit(Durability::None)?;
                transaction = self.catalog.begin(Begin::WRITE)?;
            }
        }
        changes.end_group(&mut *transaction)?;
        transaction.commit(Durability::None)?;
        Ok(count)
    }

    /// Commits the description with the new indexes, and the surpluses that the scan has found.
    fn publish(&mut self, alone: &Exclusive) -> Result<(), CatalogError> {
        // The build turn keeps a first count from beginning between the announcement and here.
        let counted = alone.collection.keeps_counters();
        let surpluses = self.indexes.iter().zip(&self.surpluses).filter(|_| counted);
        let mut counters: Vec<_> = surpluses
            .map(|(index, surplus)| CounterChange::Add(CounterKind::Surplus, index.number(), *surplus))
            .collect();
        let mut parts = alone.collection.parts();
        parts.building.retain(|building| !Arc::ptr_eq(&building.ticket, &self.ticket));
        match &self.replaced {
            None => parts.indexes.extend(self.indexes.iter().cloned()),
            Some(replaced) => {
                let same = |index: &Arc<Index>| {
                    index.tree() == replaced.tree() && index.specification() == replaced.specification()
                };
                let at = parts.indexes.iter().position(same);
                let at = at.ok_or(CatalogError::IndexBuildEnded { reason: BuildEnd::IndexDropped })?;
                counters.push(CounterChange::ForgetIndex(replaced.number()));
                parts.indexes.splice(at..=at, self.indexes.iter().cloned());
            }
        }
        let committed = self.catalog.replace_with_new(parts, &self.indexes, &counters);
        self.stage = match &committed {
            Ok(()) => Stage::Published,
            Err(error) if error.is_undetermined() => Stage::Undetermined,
            Err(_) => Stage::Unpublished,
        };
        committed?;
        // Until that commit the catalog names the tree of the old index.
        self.scratch.extend(self.replaced.as_ref().map(|replaced| replaced.tree()));
        Ok(())
    }

    /// The indexes of this build in a description, as writers see them; an error if the build was ended.
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

    /// Fails if the build was ended from outside, or its operation has to end.
    fn check(&self) -> Result<(), CatalogError> {
        self.operation.check_now()?;
        self.ticket.check()
    }

    /// An error of a tree that is gone because the build was ended is the end of the build.
    fn or_end(&self, error: StorageError) -> CatalogError {
        match self.ticket.check() {
            Err(ended) => ended,
            Ok(()) => error.into(),
        }
    }

    fn is_time_to_report(&mut self) -> bool {
        let is_time = self.reported.elapsed() >= PROGRESS_EVERY;
        if is_time {
            self.reported = Instant::now();
        }
        is_time
    }

    /// Takes the build out of the description that writers see.
    ///
    /// # Errors
    /// In a shared store the cluster could not be reached. [`Catalog::end_abandoned_builds`] does it later.
    fn withdraw(&self) -> Result<(), CatalogError> {
        self.ticket.end(BuildEnd::IndexDropped);
        // The interruption that ended the build must not keep it from being taken back, neither here nor in
        // waits of the engine.
        let operation = Operation::default();
        let _charge = operation.device().charge_thread();
        let alone = match self.catalog.exclusive(self.namespace, &operation) {
            Err(CatalogError::CollectionNotFound { .. }) => return Ok(()),
            alone => alone?,
        };
        let mut parts = alone.collection.parts();
        let before = parts.building.len();
        // A description that was read anew, after a commit with an unknown outcome, has other tickets.
        let is_own = |tree: TreeId| self.indexes.iter().any(|index| index.tree() == tree);
        parts.building.retain(|building| !is_own(building.index.tree()));
        if parts.building.len() < before {
            self.catalog.show(parts)?;
        }
        Ok(())
    }
}

impl Drop for Build<'_> {
    fn drop(&mut self) {
        if self.stage != Stage::Published
            && let Err(error) = self.withdraw()
        {
            tracing::warn!(collection = %self.namespace, %error, "a build that has failed is ended later");
            return;
        }
        if self.stage == Stage::Unpublished {
            self.scratch.extend(self.indexes.iter().map(|index| index.tree()));
        }
        for tree in self.scratch.drain(..) {
            match self.catalog.drop_tree(tree) {
                Err(CatalogError::Storage(error)) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => {
                    tracing::warn!(%tree, %error, "a tree of an index build is left until the next start");
                }
                Ok(()) => {}
            }
        }
    }
}
