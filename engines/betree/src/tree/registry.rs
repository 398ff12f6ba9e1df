//! The registry of trees: which trees a store has, by number and by name.
//!
//! Reads look a tree up in a map that is replaced as a whole, so that they take no lock. Creating and
//! dropping trees, and giving one another layout, takes the lock of the names first.
//!
//! # Invariants
//! - The map changes only under the lock of the names, but while the store is opened by one thread.
//! - A dropped tree stays in the map until no snapshot sees it and its space is reclaimed.

use std::collections::HashMap;
use std::sync::Arc;

use pando_environment::sync::{ArcSwap, Mutex, MutexGuard};
use pando_storage::{Change, SnapshotTimestamp, TreeId};

use super::tree_state::Tree;
use super::view::TreeView;
use crate::base::{LockWaits, WaitFor};
use crate::error::BetreeError;

/// The trees by number.
pub(crate) type Trees = hashbrown::HashMap<u32, Arc<Tree>>;

/// A write on its way into the buffers: the key, and the change.
pub(crate) type KeyWrite<'w> = (&'w [u8], Change<'w>);

/// The names in use, and the number of the next tree.
#[derive(Debug, Default)]
pub(crate) struct Naming {
    pub(crate) by_name: HashMap<String, TreeId>,
    pub(crate) next: u32,
}

/// See the module's head.
pub(crate) struct TreeRegistry {
    trees: ArcSwap<Trees>,
    naming: Mutex<Naming>,
    waits: Arc<LockWaits>,
}

impl TreeRegistry {
    pub(crate) fn new(waits: Arc<LockWaits>) -> TreeRegistry {
        TreeRegistry { trees: ArcSwap::default(), naming: Mutex::default(), waits }
    }

    /// All trees, for a short use.
    pub(crate) fn all(&self) -> arc_swap::Guard<Arc<Trees>> {
        self.trees.load()
    }

    /// All trees, by number.
    pub(crate) fn in_order(&self) -> Vec<Arc<Tree>> {
        let mut trees: Vec<Arc<Tree>> = self.trees.load().values().cloned().collect();
        trees.sort_unstable_by_key(|tree| tree.id);
        trees
    }

    /// The tree of a number, dropped or not.
    pub(crate) fn get(&self, id: TreeId) -> Option<Arc<Tree>> {
        self.trees.load().get(&id.get()).cloned()
    }

    /// A tree that is not dropped.
    ///
    /// # Errors
    /// There is no such tree.
    pub(crate) fn live(&self, id: TreeId) -> Result<Arc<Tree>, BetreeError> {
        match self.trees.load().get(&id.get()) {
            Some(tree) if !tree.is_dropped() => Ok(Arc::clone(tree)),
            _ => Err(BetreeError::NoTree(id)),
        }
    }

    /// Checks that there is such a tree and that it is not dropped. Cheaper than
    /// [`live`](TreeRegistry::live).
    ///
    /// # Errors
    /// There is no such tree.
    pub(crate) fn check_live(&self, id: TreeId) -> Result<(), BetreeError> {
        match self.trees.load().get(&id.get()) {
            Some(tree) if !tree.is_dropped() => Ok(()),
            _ => Err(BetreeError::NoTree(id)),
        }
    }

    /// Calls `read` with the newest view of a tree that a snapshot may use.
    ///
    /// # Errors
    /// There is no such tree, or the error of `read`.
    pub(crate) fn with_view<T>(
        &self,
        id: TreeId,
        snapshot: SnapshotTimestamp,
        read: impl FnOnce(&Tree, &TreeView) -> Result<T, BetreeError>,
    ) -> Result<T, BetreeError> {
        let trees = self.trees.load();
        match trees.get(&id.get()) {
            Some(tree) if tree.is_usable_at(snapshot) => read(tree, &tree.view()),
            _ => Err(BetreeError::NoTree(id)),
        }
    }

    /// Locks the names. The lock is held to create, drop or lay out a tree.
    pub(crate) fn lock_naming(&self) -> MutexGuard<'_, Naming> {
        self.waits.lock(WaitFor::TreeNames, &self.naming)
    }

    /// Adds a tree. The guard shows that the caller has the names.
    pub(crate) fn add(
        &self,
        _naming: &mut MutexGuard<'_, Naming>,
        trees: impl IntoIterator<Item = Arc<Tree>>,
    ) {
        let mut all = Trees::clone(&self.trees.load());
        all.extend(trees.into_iter().map(|tree| (tree.id.get(), tree)));
        self.trees.store(Arc::new(all));
    }

    /// Removes a dropped tree whose space is reclaimed.
    pub(crate) fn remove(&self, id: TreeId) {
        let _naming = self.naming.lock();
        let mut all = Trees::clone(&self.trees.load());
        all.remove(&id.get());
        self.trees.store(Arc::new(all));
    }
}

#[cfg(test)]
mod tests {
    use pando_environment::{Clock, MockClock};
    use pando_storage::CommitTimestamp;

    use super::*;
    use crate::options::tree_settings::TreeSettings;

    fn registry() -> TreeRegistry {
        let clock: Arc<dyn Clock> = Arc::new(MockClock::new());
        TreeRegistry::new(Arc::new(LockWaits::new(&clock)))
    }

    fn tree(number: u32) -> Arc<Tree> {
        let view = TreeView::empty(pando_storage::Lsn::ZERO);
        let settings = TreeSettings::default();
        Arc::new(Tree::new(TreeId::new(number), format!("tree {number}"), Vec::new(), settings, view))
    }

    #[test]
    fn a_dropped_tree_is_found_by_older_snapshots_only() {
        let registry = registry();
        registry.add(&mut registry.lock_naming(), [tree(7)]);
        let id = TreeId::new(7);
        assert!(registry.check_live(id).is_ok());
        registry.get(id).unwrap().set_dropped(CommitTimestamp::new(5));
        assert!(matches!(registry.live(id), Err(BetreeError::NoTree(_))));
        assert!(registry.check_live(id).is_err());
        assert!(registry.with_view(id, SnapshotTimestamp::new(4), |_, _| Ok(())).is_ok());
        assert!(registry.with_view(id, SnapshotTimestamp::new(5), |_, _| Ok(())).is_err());
        registry.remove(id);
        assert!(registry.get(id).is_none());
    }

    #[test]
    fn trees_come_in_the_order_of_their_numbers() {
        let registry = registry();
        registry.add(&mut registry.lock_naming(), [tree(3), tree(1), tree(2)]);
        let numbers: Vec<u32> = registry.in_order().iter().map(|tree| tree.id.get()).collect();
        assert_eq!(numbers, [1, 2, 3]);
    }
}
