//! The list of trees in memory. LMDB's records of them are read once, when the store is opened.

use std::collections::BTreeMap;

use pando_storage::{ErrorKind, Estimate, StorageError, TreeDescription, TreeId};

use crate::failure::no_tree;

struct Tree {
    name: String,
    size: Estimate,
    /// `Some`: dropped, and seen only by transactions up to this number.
    seen_up_to: Option<u64>,
}

/// Trees by number, with those that were dropped while someone may still read them.
#[derive(Default)]
pub(crate) struct Trees {
    trees: BTreeMap<TreeId, Tree>,
}

impl Trees {
    pub(crate) fn insert(&mut self, id: TreeId, name: String, size: Estimate) {
        self.trees.insert(id, Tree { name, size, seen_up_to: None });
    }

    /// Refuses a name that is in use.
    pub(crate) fn check_name_is_free(&self, name: &str) -> Result<(), StorageError> {
        if self.trees.values().any(|tree| tree.seen_up_to.is_none() && tree.name == name) {
            return Err(StorageError::new(
                ErrorKind::InvalidInput,
                format!("there is a tree `{name}` already"),
            ));
        }
        Ok(())
    }

    /// Refuses a tree that the transaction of this number does not see.
    pub(crate) fn check_readable(&self, id: TreeId, transaction: u64) -> Result<(), StorageError> {
        let tree = self.trees.get(&id).ok_or_else(|| no_tree(id))?;
        match tree.seen_up_to {
            Some(last) if transaction > last => Err(no_tree(id)),
            Some(_) | None => Ok(()),
        }
    }

    /// The size of a tree that has not been dropped.
    pub(crate) fn size(&self, id: TreeId) -> Result<Estimate, StorageError> {
        let tree = self.trees.get(&id).filter(|tree| tree.seen_up_to.is_none());
        tree.map(|tree| tree.size).ok_or_else(|| no_tree(id))
    }

    /// The name of a tree that has not been dropped.
    pub(crate) fn name(&self, id: TreeId) -> Result<&str, StorageError> {
        let tree = self.trees.get(&id).filter(|tree| tree.seen_up_to.is_none());
        tree.map(|tree| tree.name.as_str()).ok_or_else(|| no_tree(id))
    }

    pub(crate) fn set_size(&mut self, id: TreeId, size: Estimate) {
        if let Some(tree) = self.trees.get_mut(&id) {
            tree.size = size;
        }
    }

    /// Marks a tree as dropped for all but the transactions up to this number, and forgets dropped trees that
    /// no live transaction sees.
    pub(crate) fn drop_tree(&mut self, id: TreeId, youngest: u64, oldest_live: Option<u64>) {
        if let Some(tree) = self.trees.get_mut(&id) {
            tree.seen_up_to = Some(youngest);
        }
        let oldest = oldest_live.unwrap_or(u64::MAX);
        self.trees.retain(|_, tree| tree.seen_up_to.is_none_or(|last| last >= oldest));
    }

    pub(crate) fn list(&self) -> Vec<TreeDescription> {
        let listed = self.trees.iter().filter(|(_, tree)| tree.seen_up_to.is_none());
        listed.map(|(id, tree)| TreeDescription { id: *id, name: tree.name.clone() }).collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.trees.values().filter(|tree| tree.seen_up_to.is_none()).count()
    }
}
