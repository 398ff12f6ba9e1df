//! The list of trees in memory. Their records are read once, when the store is opened.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pando_storage::{StorageError, TreeDescription, TreeId};

use crate::failure::{invalid, no_tree};
use crate::library::Family;

/// Writes to a tree since the store was opened.
#[derive(Default)]
pub(crate) struct WriteFigures {
    entries: AtomicU64,
    bytes: AtomicU64,
}

impl WriteFigures {
    /// Counts entries that were put.
    pub(crate) fn add(&self, entries: u64, bytes: u64) {
        self.entries.fetch_add(entries, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Entries that were put, new or not.
    pub(crate) fn entries(&self) -> u64 {
        self.entries.load(Ordering::Relaxed)
    }

    /// Bytes of their keys and values.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

/// One tree.
#[derive(Clone)]
pub(crate) struct Tree {
    name: Arc<str>,
    pub(crate) family: Arc<Family>,
    pub(crate) writes: Arc<WriteFigures>,
    /// `Some`: dropped, and seen only by transactions up to this number.
    seen_up_to: Option<u64>,
}

/// Trees by number, with those that were dropped while someone may still read them.
#[derive(Default)]
pub(crate) struct Trees {
    trees: BTreeMap<TreeId, Tree>,
    /// The names of those that have not been dropped.
    names: BTreeSet<Arc<str>>,
    /// Those that have been.
    dropped: Vec<TreeId>,
}

impl Trees {
    pub(crate) fn insert(&mut self, id: TreeId, name: &str, family: Arc<Family>) {
        let (name, writes) = (Arc::<str>::from(name), Arc::new(WriteFigures::default()));
        self.names.insert(Arc::clone(&name));
        self.trees.insert(id, Tree { name, family, writes, seen_up_to: None });
    }

    /// Refuses a name that is in use.
    pub(crate) fn check_name_is_free(&self, name: &str) -> Result<(), StorageError> {
        if self.names.contains(name) {
            return Err(invalid(format!("there is a tree `{name}` already")));
        }
        Ok(())
    }

    /// The tree as the transaction of this number may read it.
    pub(crate) fn readable(&self, id: TreeId, transaction: u64) -> Result<&Tree, StorageError> {
        let tree = self.trees.get(&id).ok_or_else(|| no_tree(id))?;
        match tree.seen_up_to {
            Some(last) if transaction > last => Err(no_tree(id)),
            Some(_) | None => Ok(tree),
        }
    }

    /// A tree that has not been dropped.
    pub(crate) fn get(&self, id: TreeId) -> Result<&Tree, StorageError> {
        self.trees.get(&id).filter(|tree| tree.seen_up_to.is_none()).ok_or_else(|| no_tree(id))
    }

    /// Marks a tree as dropped for all but the transactions up to this number.
    pub(crate) fn drop_tree(&mut self, id: TreeId, youngest: u64) {
        if let Some(tree) = self.trees.get_mut(&id) {
            self.names.remove(&tree.name);
            tree.seen_up_to = Some(youngest);
            self.dropped.push(id);
        }
    }

    /// Takes out the dropped trees that no live transaction sees, of which this is the oldest.
    pub(crate) fn take_unseen(&mut self, oldest_live: Option<u64>) -> Vec<(TreeId, Arc<Family>)> {
        let oldest = oldest_live.unwrap_or(u64::MAX);
        let is_unseen = |id: &TreeId| {
            self.trees.get(id).and_then(|tree| tree.seen_up_to).is_none_or(|last| last < oldest)
        };
        let (unseen, dropped) = std::mem::take(&mut self.dropped).into_iter().partition(is_unseen);
        self.dropped = dropped;
        let unseen: Vec<TreeId> = unseen;
        unseen.into_iter().filter_map(|id| Some((id, self.trees.remove(&id)?.family))).collect()
    }

    /// Whether there are dropped trees that were not taken out.
    pub(crate) fn has_dropped(&self) -> bool {
        !self.dropped.is_empty()
    }

    pub(crate) fn list(&self) -> Vec<TreeDescription> {
        let listed = self.listed();
        listed.map(|(id, tree)| TreeDescription { id, name: tree.name.to_string() }).collect()
    }

    /// All that have not been dropped.
    pub(crate) fn listed(&self) -> impl Iterator<Item = (TreeId, &Tree)> {
        self.trees.iter().filter(|(_, tree)| tree.seen_up_to.is_none()).map(|(id, tree)| (*id, tree))
    }

    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }
}
