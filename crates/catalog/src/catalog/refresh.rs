//! The descriptions in memory are made those of the catalog tree: other servers of a shared store have
//! changed it, or a commit of this server has ended with an unknown outcome.
//!
//! # Unknown outcomes
//! An engine whose nodes are elsewhere may answer a commit by [`Undetermined`]. Statements that write by a
//! description which the tree does not have would lose entries. So such a commit leaves the catalog
//! *unsettled*, and drops no tree that it has named. The next lease or change reads the tree first.
//!
//! [`Undetermined`]: pando_storage::ErrorKind::Undetermined
//!
//! # Invariants
//! - A collection whose entry means the same keeps its description, so that leases and transactions of
//!   sessions find it unchanged. Flags are raised in place.
//! - All descriptions of one collection, by its tree, share the latch and the other state of [`Parts`].
//! - An index that another server has published is usable from the snapshot on at which it was found.
//!
//! # Not here
//! The list of partitions of a known collection, which only a store of one server has: it is not read again
//! after a change of it with an unknown outcome.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use pando_storage::{
    Begin, BlockingMode, CommitTimestamp, Cursor, Direction, KeyRange, SnapshotTimestamp, StorageError,
    Transaction, TreeId,
};

use super::opening::{find_tree, parts_of, tree_numbers};
use super::{Catalog, Names};
use crate::building::{BuildTicket, BuildingIndex};
use crate::catalog_entry::{self, BuildingEntry, Entry};
use crate::collection::{Collection, Parts};
use crate::counters::{self, CounterKey, CounterKind};
use crate::error::{BuildEnd, CatalogError};
use crate::index::Index;
use crate::index_description::Truncation;
use crate::index_kind::IndexDefinition;
use crate::namespace::Namespace;
use crate::publication::Publication;

/// What the entries are read with.
struct Reading<'r> {
    trees: &'r HashMap<String, TreeId>,
    snapshot: SnapshotTimestamp,
    version: u64,
}

impl Catalog {
    /// Takes over the changes that other servers have made, and those of this one with an unknown outcome, if
    /// there are any. The caller holds the catalog's mutex.
    pub(crate) fn refresh(&self) -> Result<(), CatalogError> {
        let sharing = self.store.sharing.as_deref();
        if sharing.is_none() && !self.store.is_unsettled() {
            return Ok(());
        }
        let reader = self.store.engine.begin(Begin::READ)?;
        let version = sharing.map_or(Ok(0), |sharing| sharing.version_at(&*reader))?;
        let snapshot = reader.snapshot();
        if let Some(sharing) = sharing.filter(|sharing| version == sharing.seen()) {
            sharing.note_look(snapshot);
            self.store.settled();
            return Ok(());
        }
        let trees = tree_numbers(&self.store.engine)?;
        let before = self.names();
        let names = self.names_at(&*reader, &before, &Reading { trees: &trees, snapshot, version })?;
        reader.rollback();
        end_builds_that_are_gone(&before, &names);
        self.names.store(Arc::new(names));
        if let Some(sharing) = sharing {
            sharing.note_find(snapshot);
            sharing.set_seen(version);
            sharing.note_look(snapshot);
        }
        self.store.settled();
        Ok(())
    }

    /// Settles a commit with an unknown outcome before a statement goes on.
    ///
    /// # Errors
    /// The engine does not answer yet; the caller must not block.
    #[cold]
    pub(super) fn settle(&self, blocking: BlockingMode) -> Result<(), CatalogError> {
        if blocking == BlockingMode::CachedOnly {
            return Err(StorageError::would_block().into());
        }
        let _changing = self.store.changing.lock();
        self.refresh()
    }

    /// The descriptions of all entries, as far as possible those of before.
    fn names_at(
        &self,
        reader: &dyn Transaction,
        before: &Names,
        reading: &Reading<'_>,
    ) -> Result<Names, CatalogError> {
        let known: HashMap<&str, &Arc<Collection>> = before
            .values()
            .flat_map(|names| names.values())
            .map(|collection| (collection.primary_tree_name(), collection))
            .collect();
        let mut names = Names::new();
        let mut cursor = Cursor::new(self.store.tree, KeyRange::all(), Direction::Forward);
        while let Some((key, value)) = cursor.next(reader, BlockingMode::MayBlock)? {
            let (namespace, entry) = self.read_entry(key, value)?;
            let collection = match known.get(entry.tree.as_str()) {
                Some(known) if self.is_shared() => self.described_anew(known, namespace, entry, reading)?,
                Some(known) => self.described_alone(known, namespace, entry, reading)?,
                None => self.discovered(namespace, entry, reading)?,
            };
            let namespace = collection.namespace();
            let collections = names.entry(namespace.database().to_owned()).or_default();
            collections.insert(namespace.collection().to_owned(), collection);
        }
        // Counters of collections that were found may be complete.
        let marked = counters::marked(reader, self.store.counters)?;
        for collection in names.values().flat_map(|names| names.values()) {
            if marked.contains(&collection.number()) {
                collection.keep_counters();
            }
        }
        Ok(names)
    }

    fn read_entry(&self, key: &[u8], value: &[u8]) -> Result<(Namespace, Entry), CatalogError> {
        let full = catalog_entry::namespace_of(key).unwrap_or_default();
        let (database, name) = full.split_once('.').ok_or_else(|| CatalogError::DamagedEntry {
            namespace: full.to_owned(),
            reason: "its key is not a namespace".to_owned(),
        })?;
        Ok((Namespace::new(database, name)?, catalog_entry::decode(full, value, &*self.store.factory)?))
    }

    /// A collection that this server has not known. A snapshot from before its publication sees none of it.
    fn discovered(
        &self,
        namespace: Namespace,
        mut entry: Entry,
        reading: &Reading<'_>,
    ) -> Result<Arc<Collection>, CatalogError> {
        let building = std::mem::take(&mut entry.building);
        let mut parts = parts_of(namespace.clone(), entry, reading.trees)?;
        for index in &parts.indexes {
            index.set_published(CommitTimestamp::new(reading.snapshot.get()));
        }
        let mark = CounterKey::new(CounterKind::Mark, parts.primary.number);
        let publication = Publication::pending(self.store.counters, mark.as_bytes());
        publication.committed(CommitTimestamp::new(reading.snapshot.get()));
        parts.publication = Some(Arc::new(publication));
        for one in building {
            let found = building_of(&namespace, one, None, reading)?;
            parts.building.push(found);
        }
        Ok(Arc::new(Collection::new(parts, Arc::clone(&self.store))))
    }

    /// The same as [`described_anew`](Catalog::described_anew) in a store of one server, whose entries do not
    /// name indexes under construction.
    fn described_alone(
        &self,
        known: &Arc<Collection>,
        namespace: Namespace,
        entry: Entry,
        reading: &Reading<'_>,
    ) -> Result<Arc<Collection>, CatalogError> {
        let described = self.described_anew(known, namespace, entry, reading)?;
        if known.building().is_empty() {
            return Ok(described);
        }
        let is_published = |tree: &str| described.indexes().iter().any(|index| index.tree_name() == tree);
        let building = known.building().iter().filter(|building| {
            building.ticket.ended().is_none() && !is_published(building.index.tree_name())
        });
        let parts = Parts { building: building.cloned().collect(), ..described.parts() };
        Ok(Arc::new(Collection::new(parts, Arc::clone(&self.store))))
    }

    /// The description of a known collection by its entry: the same one where that means the same.
    fn described_anew(
        &self,
        known: &Arc<Collection>,
        namespace: Namespace,
        entry: Entry,
        reading: &Reading<'_>,
    ) -> Result<Arc<Collection>, CatalogError> {
        if known.raise_flags_of(&entry) {
            known.flags_logged(reading.version);
        }
        if *known.namespace() == namespace && known.is_described_by(&entry) {
            return Ok(Arc::clone(known));
        }
        let mut parts = Parts { uuid: entry.uuid, options: entry.options, ..known.parts() };
        (parts.indexes, parts.building) = (Vec::new(), Vec::new());
        for (definition, tree) in entry.indexes {
            parts.indexes.push(published_of(&namespace, (definition, tree), known, reading)?);
        }
        for one in entry.building {
            let found = building_of(&namespace, one, Some(known), reading)?;
            parts.building.push(found);
        }
        let parts = Parts { namespace, ..parts };
        Ok(Arc::new(Collection::new(parts, Arc::clone(&self.store))))
    }
}

impl Collection {
    /// Raises the flags of its entry in memory; tells whether there were new ones.
    pub(crate) fn raise_flags_of(&self, entry: &Entry) -> bool {
        let mut has_raised = false;
        if entry.id_truncated == Truncation::Truncated && !self.is_primary_truncated() {
            self.raise_primary_truncated();
            has_raised = true;
        }
        let built = entry.building.iter().map(|one| (&one.definition, &one.tree));
        for (definition, tree) in
            entry.indexes.iter().map(|(definition, tree)| (definition, tree)).chain(built)
        {
            let flags = definition.description.raised();
            for index in self.indexes_of_tree(tree).filter(|index| index.lacks(&flags)) {
                index.raise(&flags);
                has_raised = true;
            }
        }
        has_raised
    }

    /// Its indexes over a tree, those under construction among them.
    fn indexes_of_tree<'c>(&'c self, tree: &'c str) -> impl Iterator<Item = &'c Arc<Index>> {
        let building = self.building().iter().map(|building| &building.index);
        self.indexes().iter().chain(building).filter(move |index| index.tree_name() == tree)
    }

    /// Whether an entry means this description, but for its flags.
    pub(crate) fn is_described_by(&self, entry: &Entry) -> bool {
        let is_index = |index: &Arc<Index>, (definition, tree): (&IndexDefinition, &String)| {
            index.tree_name() == tree && *index.specification() == definition.description.specification
        };
        let is_building = |(have, entry): (&Arc<BuildingIndex>, &BuildingEntry)| {
            have.changes_name == entry.changes
                && have.builder == entry.builder
                && is_index(&have.index, (&entry.definition, &entry.tree))
        };
        self.uuid() == entry.uuid
            && self.primary_tree_name() == entry.tree
            && self.options().as_bytes() == entry.options.as_bytes()
            && self.indexes().len() == entry.indexes.len()
            && self
                .indexes()
                .iter()
                .zip(&entry.indexes)
                .all(|(index, (definition, tree))| is_index(index, (definition, tree)))
            && self.building().len() == entry.building.len()
            && self.building().iter().zip(&entry.building).all(is_building)
    }

    /// Notes that the catalog tree has had flags of it since a version.
    pub(crate) fn flags_logged(&self, version: u64) {
        self.flags_version().fetch_max(version, Ordering::AcqRel);
    }
}

/// An index of an entry. One that is known keeps its state.
fn published_of(
    namespace: &Namespace,
    (definition, tree): (IndexDefinition, String),
    known: &Collection,
    reading: &Reading<'_>,
) -> Result<Arc<Index>, CatalogError> {
    let is_same = |index: &&Arc<Index>| *index.specification() == definition.description.specification;
    let same = known.indexes_of_tree(&tree).find(is_same).cloned();
    let is_new =
        !known.indexes().iter().any(|index| same.as_ref().is_some_and(|same| Arc::ptr_eq(same, index)));
    let index = match same {
        Some(same) => same,
        None => {
            let tree = find_tree(namespace, tree, reading.trees)?;
            Arc::new(Index::new(definition, tree, known.shared_partitions().cloned()))
        }
    };
    if is_new {
        index.set_published(CommitTimestamp::new(reading.snapshot.get()));
    }
    Ok(index)
}

/// An index under construction of an entry. One that is known keeps its state.
fn building_of(
    namespace: &Namespace,
    entry: BuildingEntry,
    known: Option<&Collection>,
    reading: &Reading<'_>,
) -> Result<Arc<BuildingIndex>, CatalogError> {
    let BuildingEntry { definition, tree, changes, builder } = entry;
    let mut known_ones = known.iter().flat_map(|known| known.building());
    let same = known_ones.find(|one| one.index.tree_name() == tree);
    if let Some(same) = same.filter(|same| same.changes_name == changes) {
        return Ok(Arc::clone(same));
    }
    let changes = find_tree(namespace, changes, reading.trees)?;
    let (index, ticket) = match same {
        Some(same) => (Arc::clone(&same.index), Arc::clone(&same.ticket)),
        None => {
            let tree = find_tree(namespace, tree, reading.trees)?;
            let partitions = known.and_then(|known| known.shared_partitions().cloned());
            (Arc::new(Index::new(definition, tree, partitions)), Arc::<BuildTicket>::default())
        }
    };
    Ok(Arc::new(BuildingIndex::new(index, changes, builder, ticket)))
}

/// Tells the builds of this server that another one has ended them.
fn end_builds_that_are_gone(before: &Names, now: &Names) {
    let all = |names: &Names| -> Vec<Arc<Collection>> {
        names.values().flat_map(|names| names.values()).cloned().collect()
    };
    let now = all(now);
    for old in all(before).iter().filter(|old| !old.building().is_empty()) {
        let new = now.iter().find(|new| new.number() == old.number());
        for building in old.building() {
            let is_there = |new: &Arc<Collection>| {
                new.building().iter().any(|one| Arc::ptr_eq(&one.ticket, &building.ticket))
            };
            match new {
                None => building.ticket.end(BuildEnd::CollectionDropped),
                Some(new) if !is_there(new) => building.ticket.end(BuildEnd::IndexDropped),
                Some(_) => {}
            }
        }
    }
}
