//! The opening of a catalog: descriptions from the catalog tree, and the removal of trees and counters that a
//! crash has left.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;
use pando_environment::Clock;
use pando_storage::{
    Begin, BlockingMode, CheckedEngine, Cursor, Direction, Durability, ErrorKind, KeyRange, QueryMemory,
    SharedEngine, Sharing, StorageError, TreeId, TreeOptions,
};

use super::{Catalog, Names};
use crate::catalog_entry::{self, CATALOG_TREE, Entry};
use crate::collection::Parts;
use crate::counters::{self, COUNTERS_TREE};
use crate::index_description::Truncation;
use crate::index_kind::{IndexFactory, OrdinaryIndexes};
use crate::layout::Layout;
use crate::partitions::Partitions;
use crate::session_records::{self, SESSIONS_TREE};
use crate::sharing::{SERVERS_TREE, Sharing as Membership};
use crate::store::{NamedTree, OwnTrees, Store, TreeNumber};
use crate::{CatalogError, Collection, Index, Namespace};

/// The trees that every opening reads: a store with damage in one of them does not open.
pub const TREES_READ_AT_OPENING: [&str; 2] = [CATALOG_TREE, COUNTERS_TREE];

impl Catalog {
    /// Reads the catalog tree, or makes one in an empty store, and drops trees that
    /// nothing refers to. Blocks.
    ///
    /// In debug builds every call goes through [`CheckedEngine`], which panics at the first broken promise of
    /// the contract, by the catalog or by the engine.
    pub fn open(engine: SharedEngine) -> Result<Catalog, CatalogError> {
        let memory = QueryMemory::new(&engine, usize::MAX, None);
        Catalog::open_with(engine, memory, Arc::new(OrdinaryIndexes))
    }

    /// The same with a budget for the memory of queries and index builds, and with indexes of more kinds:
    /// the factory makes those of the store, and all new ones.
    ///
    /// # Errors
    /// As for [`open`](Catalog::open).
    pub fn open_with(
        engine: SharedEngine,
        memory: QueryMemory,
        factory: Arc<dyn IndexFactory>,
    ) -> Result<Catalog, CatalogError> {
        if engine.capabilities().sharing == Sharing::Shared {
            let message = "several servers may have the store open, so that it is opened as one of them";
            return Err(StorageError::new(ErrorKind::InvalidInput, message).into());
        }
        let (store, trees) = open_store(engine, memory, factory)?;
        let store = Arc::new(store);
        let names = read_names(&store, &trees)?;
        drop_orphans(&store, &trees, &names)?;
        forget_counters_of_orphans(&store, &names)?;
        let session_records = session_records::collection_of(&store)?;
        Ok(Catalog { store, names: ArcSwap::from_pointee(names), session_records })
    }

    /// Opens a store that other servers may have open, as one of them with a name. The caller goes on to
    /// [follow](Catalog::follow) them.
    ///
    /// # Errors
    /// As for [`open`](Catalog::open).
    pub fn open_shared(
        engine: SharedEngine,
        memory: QueryMemory,
        factory: Arc<dyn IndexFactory>,
        clock: Arc<dyn Clock>,
        name: &str,
    ) -> Result<Catalog, CatalogError> {
        let (store, trees) = open_store(engine, memory, factory)?;
        let servers = own_tree(&store.engine, &trees, SERVERS_TREE)?;
        let membership = Arc::new(Membership::join(Arc::clone(&store.engine), servers, clock, name)?);
        let store = Arc::new(store.shared_as(Arc::clone(&membership)));
        let session_records = session_records::collection_of(&store)?;
        let catalog = Catalog { store, names: ArcSwap::default(), session_records };
        catalog.follow()?;
        if let Err(refused) = catalog.check_collections_shareable() {
            catalog.leave()?;
            return Err(refused);
        }
        // Another server may be about to refer to a tree that no entry names yet.
        if membership.read_board()?.members.len() == 1 {
            let trees = tree_numbers(&catalog.store.engine)?;
            drop_orphans(&catalog.store, &trees, &catalog.names())?;
            forget_counters_of_orphans(&catalog.store, &catalog.names())?;
        }
        Ok(catalog)
    }
}

impl Catalog {
    /// Refuses a store that one server has had alone, if it has collections that only one server can have.
    fn check_collections_shareable(&self) -> Result<(), CatalogError> {
        let names = self.names();
        let is_refused =
            |one: &&Arc<Collection>| *one.layout() == Layout::Heap || one.shared_partitions().is_some();
        match names.values().flat_map(BTreeMap::values).find(is_refused) {
            None => Ok(()),
            Some(found) => {
                let reason = format!(
                    "{} is a capped or partitioned collection, or one in the layout \"heap\", and several servers \
                     cannot share it: open the store in one server and drop the collection first",
                    found.full_name()
                );
                Err(CatalogError::CollectionOptions { reason })
            }
        }
    }
}

/// The engine's trees by name.
pub(super) fn tree_numbers(engine: &SharedEngine) -> Result<HashMap<String, TreeId>, StorageError> {
    Ok(engine.list_trees()?.into_iter().map(|tree| (tree.name, tree.id)).collect())
}

/// A tree of the catalog itself, made where it is not there.
fn own_tree(
    engine: &SharedEngine,
    trees: &HashMap<String, TreeId>,
    name: &str,
) -> Result<TreeId, StorageError> {
    match trees.get(name) {
        Some(tree) => Ok(*tree),
        None => match engine.create_tree(name, &TreeOptions::default()) {
            // Another server may have made it at this moment.
            Err(error) => tree_numbers(engine)?.get(name).copied().ok_or(error),
            made => made,
        },
    }
}

/// The store without descriptions, and the trees that it has.
fn open_store(
    engine: SharedEngine,
    memory: QueryMemory,
    factory: Arc<dyn IndexFactory>,
) -> Result<(Store, HashMap<String, TreeId>), CatalogError> {
    let engine = if cfg!(debug_assertions) { CheckedEngine::shared(engine) } else { engine };
    let trees = tree_numbers(&engine)?;
    let own_trees = OwnTrees {
        catalog: own_tree(&engine, &trees, CATALOG_TREE)?,
        counters: own_tree(&engine, &trees, COUNTERS_TREE)?,
        sessions: own_tree(&engine, &trees, SESSIONS_TREE)?,
    };
    let numbers = trees.keys().filter_map(|name| TreeNumber::of_name(name));
    let next_number = TreeNumber::new(numbers.max().map_or(1, |number| number.get() + 1));
    Ok((Store::new(engine, memory, own_trees, factory, next_number), trees))
}

/// Reads every entry of the catalog tree.
fn read_names(store: &Arc<Store>, trees: &HashMap<String, TreeId>) -> Result<Names, CatalogError> {
    let mut names = Names::new();
    let transaction = store.engine.begin(Begin::READ)?;
    let marked = counters::marked(&*transaction, store.counters)?;
    let mut cursor = Cursor::new(store.tree, KeyRange::all(), Direction::Forward);
    while let Some((key, value)) = cursor.next(&*transaction, BlockingMode::MayBlock)? {
        let full = catalog_entry::namespace_of(key).unwrap_or_default();
        let damaged = |reason: &str| CatalogError::DamagedEntry {
            namespace: full.to_owned(),
            reason: reason.to_owned(),
        };
        let (database, name) = full.split_once('.').ok_or_else(|| damaged("its key is not a namespace"))?;
        let namespace = Namespace::new(database, name)?;
        let entry = catalog_entry::decode(full, value, &*store.factory)?;
        let parts = parts_of(namespace, entry, trees)?;
        if marked.contains(&parts.primary.number) {
            parts.counters_kept.store(true, Ordering::Release);
        }
        let collection = Arc::new(Collection::new(parts, Arc::clone(store)));
        names.entry(database.to_owned()).or_default().insert(name.to_owned(), collection);
    }
    transaction.rollback();
    Ok(names)
}

pub(super) fn parts_of(
    namespace: Namespace,
    entry: Entry,
    trees: &HashMap<String, TreeId>,
) -> Result<Parts, CatalogError> {
    let find = |name: String| find_tree(&namespace, name, trees);
    let partitions = entry.partitions.map(Partitions::new);
    let mut indexes = Vec::with_capacity(entry.indexes.len());
    for (definition, tree_name) in entry.indexes {
        indexes.push(Arc::new(Index::new(definition, find(tree_name)?, partitions.clone())));
    }
    let primary_truncated = Arc::new(AtomicBool::new(entry.id_truncated == Truncation::Truncated));
    let Entry { uuid, options, layout, text_order, .. } = entry;
    let of_tree = Parts::of_tree(namespace.clone(), find(entry.tree)?);
    Ok(Parts { uuid, options, layout, text_order, partitions, primary_truncated, indexes, ..of_tree })
}

/// The tree of a collection's entry by its name.
pub(super) fn find_tree(
    namespace: &Namespace,
    name: String,
    trees: &HashMap<String, TreeId>,
) -> Result<NamedTree, CatalogError> {
    let damaged = |reason: String| CatalogError::DamagedEntry { namespace: namespace.to_string(), reason };
    let id = trees.get(&name).copied().ok_or_else(|| damaged(format!("its tree {name} is missing")))?;
    let number = TreeNumber::of_name(&name);
    let number = number.ok_or_else(|| damaged(format!("the name of its tree {name} has no number")))?;
    Ok(NamedTree { id, name, number })
}

/// Drops trees that a crash has left between their creation and their entry, or between
/// their entry's end and theirs.
fn drop_orphans(store: &Store, trees: &HashMap<String, TreeId>, names: &Names) -> Result<(), StorageError> {
    let wanted: HashSet<&str> = names
        .values()
        .flat_map(BTreeMap::values)
        .flat_map(|one| one.tree_names().chain(one.names_of_trees_being_built()))
        .collect();
    for (name, tree) in trees {
        let is_own = [CATALOG_TREE, COUNTERS_TREE, SESSIONS_TREE, SERVERS_TREE].contains(&name.as_str());
        if !is_own && !wanted.contains(name.as_str()) {
            tracing::info!(tree = %name, "dropping a tree that no collection refers to, left by an interrupted statement");
            match store.engine.drop_tree(*tree) {
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                other => other?,
            }
        }
    }
    Ok(())
}

/// Removes the counters that belong to no collection that is counted, and to none of its indexes.
fn forget_counters_of_orphans(store: &Store, names: &Names) -> Result<(), StorageError> {
    let counted = names.values().flat_map(BTreeMap::values).filter(|collection| collection.keeps_counters());
    let wanted = counted.flat_map(|collection| {
        std::iter::once(collection.number()).chain(collection.indexes().iter().map(|index| index.number()))
    });
    let wanted: HashSet<TreeNumber> = wanted.collect();
    let mut transaction = store.engine.begin(Begin::WRITE)?;
    counters::remove_others(&mut *transaction, store.counters, &wanted)?;
    transaction.commit(Durability::None)?;
    Ok(())
}
