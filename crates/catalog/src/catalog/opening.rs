//! The opening of a catalog: descriptions from the catalog tree, and the removal of trees and counters that a
//! crash has left.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pando_storage::{
    Begin, BlockingMode, Cursor, Direction, Durability, ErrorKind, KeyRange, StorageError, TreeId,
};

use super::Names;
use crate::catalog_entry::{self, CATALOG_TREE, Entry};
use crate::collection::Parts;
use crate::counters::{self, COUNTERS_TREE};
use crate::index_description::Truncation;
use crate::partitions::Partitions;
use crate::session_records::SESSIONS_TREE;
use crate::store::{NamedTree, Store, TreeNumber};
use crate::{CatalogError, Collection, Index, Namespace};

/// Reads every entry of the catalog tree.
pub(super) fn read_names(store: &Arc<Store>, trees: &HashMap<String, TreeId>) -> Result<Names, CatalogError> {
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

fn parts_of(
    namespace: Namespace,
    entry: Entry,
    trees: &HashMap<String, TreeId>,
) -> Result<Parts, CatalogError> {
    let damaged = |reason: String| CatalogError::DamagedEntry { namespace: namespace.to_string(), reason };
    let find = |name: String| {
        let id = trees.get(&name).copied().ok_or_else(|| damaged(format!("its tree {name} is missing")))?;
        let number = TreeNumber::of_name(&name);
        let number = number.ok_or_else(|| damaged(format!("the name of its tree {name} has no number")))?;
        Ok::<_, CatalogError>(NamedTree { id, name, number })
    };
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

/// Drops trees that a crash has left between their creation and their entry, or between
/// their entry's end and theirs.
pub(super) fn drop_orphans(
    store: &Store,
    trees: &HashMap<String, TreeId>,
    names: &Names,
) -> Result<(), StorageError> {
    let wanted: HashSet<&str> =
        names.values().flat_map(BTreeMap::values).flat_map(|collection| collection.tree_names()).collect();
    for (name, tree) in trees {
        let is_own = [CATALOG_TREE, COUNTERS_TREE, SESSIONS_TREE].contains(&name.as_str());
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
pub(super) fn forget_counters_of_orphans(store: &Store, names: &Names) -> Result<(), StorageError> {
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
