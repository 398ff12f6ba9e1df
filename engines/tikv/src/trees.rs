//! The list of trees in memory. Their records are read once, when the store is opened.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use pando_storage::{Estimate, StorageError, TreeDescription, TreeId};

use crate::failure::{invalid, no_tree};

/// Bytes of a tree's figures in the cluster.
const FIGURES_BYTES: usize = 16;

/// About how much a tree holds. Blind writes are taken for new entries, so that it may be too much.
#[derive(Default)]
pub(crate) struct TreeFigures {
    entries: AtomicI64,
    bytes: AtomicI64,
    is_changed: AtomicBool,
    /// The growth that the cluster does not know yet.
    new_entries: AtomicI64,
    new_bytes: AtomicI64,
}

/// The growth of a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Growth {
    pub(crate) entries: i64,
    pub(crate) bytes: i64,
}

impl TreeFigures {
    pub(crate) fn change(&self, entries: i64, bytes: i64) {
        self.entries.fetch_add(entries, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.give_back(Growth { entries, bytes });
        self.is_changed.store(true, Ordering::Relaxed);
    }

    /// The growth since it was taken last.
    pub(crate) fn take_growth(&self) -> Growth {
        Growth {
            entries: self.new_entries.swap(0, Ordering::Relaxed),
            bytes: self.new_bytes.swap(0, Ordering::Relaxed),
        }
    }

    /// Has the growth be taken another time.
    pub(crate) fn give_back(&self, growth: Growth) {
        self.new_entries.fetch_add(growth.entries, Ordering::Relaxed);
        self.new_bytes.fetch_add(growth.bytes, Ordering::Relaxed);
    }

    /// The figures are those of the cluster, and the growth that it does not know.
    pub(crate) fn set_total(&self, total: &TreeFigures) {
        let sum = |total: &AtomicI64, new: &AtomicI64| {
            total.load(Ordering::Relaxed).saturating_add(new.load(Ordering::Relaxed))
        };
        self.entries.store(sum(&total.entries, &self.new_entries), Ordering::Relaxed);
        self.bytes.store(sum(&total.bytes, &self.new_bytes), Ordering::Relaxed);
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let Estimate { entries, bytes } = self.estimate();
        [entries.to_be_bytes(), bytes.to_be_bytes()].concat()
    }

    pub(crate) fn estimate(&self) -> Estimate {
        let load = |figure: &AtomicI64| u64::try_from(figure.load(Ordering::Relaxed)).unwrap_or(0);
        Estimate { entries: load(&self.entries), bytes: load(&self.bytes) }
    }

    /// About the bytes of an entry.
    pub(crate) fn bytes_an_entry(&self) -> i64 {
        let entries = self.entries.load(Ordering::Relaxed).max(1);
        self.bytes.load(Ordering::Relaxed).max(0) / entries
    }

    /// The figures for the cluster, if they have changed since they were taken last.
    pub(crate) fn take_changed(&self) -> Option<Vec<u8>> {
        self.is_changed.swap(false, Ordering::Relaxed).then(|| self.encode())
    }

    /// Figures from the cluster; none where the bytes make no sense, as they only estimate.
    pub(crate) fn decode(bytes: &[u8]) -> TreeFigures {
        let figures = TreeFigures::default();
        if let (FIGURES_BYTES, Some((entries, bytes))) = (bytes.len(), bytes.split_first_chunk::<8>()) {
            figures.entries.store(i64::from_be_bytes(*entries), Ordering::Relaxed);
            let bytes = bytes.first_chunk::<8>().map_or(0, |bytes| i64::from_be_bytes(*bytes));
            figures.bytes.store(bytes, Ordering::Relaxed);
        }
        figures
    }
}

/// Whether a tree has had merges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Merging {
    /// It has: pending merges may lie over its entries.
    Yes,
    /// It has not.
    No,
}

/// One tree.
#[derive(Clone)]
pub(crate) struct Tree {
    pub(crate) name: Arc<str>,
    pub(crate) figures: Arc<TreeFigures>,
    pub(crate) merging: Merging,
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
    pub(crate) fn insert(&mut self, id: TreeId, name: &str, merging: Merging, figures: TreeFigures) {
        let name = Arc::<str>::from(name);
        self.names.insert(Arc::clone(&name));
        self.trees.insert(id, Tree { name, figures: Arc::new(figures), merging, seen_up_to: None });
    }

    /// Notes a tree that was dropped before the store was opened: its entries remain to be removed.
    pub(crate) fn insert_dropped(&mut self, id: TreeId) {
        self.dropped.push(id);
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

    /// Notes that a tree has merges.
    pub(crate) fn set_merging(&mut self, id: TreeId) {
        if let Some(tree) = self.trees.get_mut(&id) {
            tree.merging = Merging::Yes;
        }
    }

    /// Marks a tree as dropped for all but the transactions up to this number.
    pub(crate) fn drop_tree(&mut self, id: TreeId, youngest: u64) {
        if let Some(tree) = self.trees.get_mut(&id) {
            self.names.remove(&tree.name);
            tree.seen_up_to = Some(youngest);
            self.dropped.push(id);
        }
    }

    /// Takes over the list of trees of several servers. Trees that are not in it any more are dropped for all
    /// but the transactions up to this number.
    pub(crate) fn take_over(&mut self, found: BTreeMap<TreeId, (String, Merging)>, youngest: u64) {
        let gone: Vec<TreeId> =
            self.listed().map(|(id, _)| id).filter(|id| !found.contains_key(id)).collect();
        gone.into_iter().for_each(|id| self.drop_tree(id, youngest));
        for (id, (name, merging)) in found {
            match (self.trees.contains_key(&id), merging) {
                (false, _) => self.insert(id, &name, merging, TreeFigures::default()),
                (true, Merging::Yes) => self.set_merging(id),
                (true, Merging::No) => {}
            }
        }
    }

    /// Takes out the dropped trees that no live transaction sees, of which this is the oldest.
    pub(crate) fn take_unseen(&mut self, oldest_live: Option<u64>) -> Vec<TreeId> {
        let oldest = oldest_live.unwrap_or(u64::MAX);
        let is_unseen = |id: &TreeId| {
            self.trees.get(id).and_then(|tree| tree.seen_up_to).is_none_or(|last| last < oldest)
        };
        let (unseen, dropped) = std::mem::take(&mut self.dropped).into_iter().partition(is_unseen);
        self.dropped = dropped;
        let unseen: Vec<TreeId> = unseen;
        for id in &unseen {
            self.trees.remove(id);
        }
        unseen
    }

    /// Puts back a dropped tree whose entries could not be removed.
    pub(crate) fn put_back(&mut self, id: TreeId) {
        self.dropped.push(id);
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
