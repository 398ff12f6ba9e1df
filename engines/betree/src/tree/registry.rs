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
use crate::base::{BLOCK_BYTES_MAX, LockWaits, WaitFor};
use crate::error::BetreeError;

/// The trees by number.
pub(crate) type Trees = hashbrown::HashMap<u32, Arc<Tree>>;

/// A write on its way into the buffers: the key, and the change.
pub(crate) type KeyWrite<'w> = (&'w [u8], Change<'w>);

/// Bytes of the catalog from which on no tree is created. The catalog is one block, and every checkpoint
/// writes it. The rest of the block is for the growth of the trees that there are: more partitions, range
/// deletes.
const CATALOG_BYTES_MAX: u64 = BLOCK_BYTES_MAX as u64 / 4 * 3;

/// Bytes of a tree without entries in the catalog, beside its name and options; somewhat more than it has.
const EMPTY_TREE_BYTES: u64 = 64;

/// The names in use, and the number of the next tree.
#[derive(Debug, Default)]
pub(crate) struct Naming {
    pub(crate) by_name: HashMap<String, TreeId>,
    pub(crate) next: u32,
    /// Estimated bytes of the catalog: of the last image, and of the trees that were created since.
    pub(crate) catalog_bytes: u64,
}

impl Naming {
    /// Takes room in the catalog for a new tree.
    ///
    /// # Errors
    /// The store has too many trees.
    pub(crate) fn take_catalog_room(
        &mut self,
        name: &str,
        options: &[(String, String)],
    ) -> Result<(), BetreeError> {
        let option_bytes: usize = options.iter().map(|(name, value)| name.len() + value.len()).sum();
        let bytes = EMPTY_TREE_BYTES + (name.len() + option_bytes) as u64;
        if self.catalog_bytes + bytes > CATALOG_BYTES_MAX {
            return Err(BetreeError::TooManyTrees { trees: self.by_name.len(), limit: CATALOG_BYTES_MAX });
        }
        self.catalog_bytes += bytes;
        Ok(())
    }
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
    fn no_tree_is_created_where_the_catalog_would_outgrow_its_block() {
        let mut naming = Naming { catalog_bytes: CATALOG_BYTES_MAX - 100, ..Naming::default() };
        let options = [("pageSize".to_owned(), "16KB".to_owned())];
        let error = naming.take_catalog_room(&"n".repeat(100), &options).expect_err("it is too long");
        assert!(error.to_string().contains("drop collections"), "{error}");
        naming.take_catalog_room("short", &options).expect("there is room");
        assert!(naming.take_catalog_room("short", &options).is_err(), "its bytes are counted");
        naming.catalog_bytes = 0;
        naming.take_catalog_room("short", &options).expect("an image without dropped trees is short");
    }

    #[test]
    fn trees_come_in_the_order_of_their_numbers() {
        let registry = registry();
        registry.add(&mut registry.lock_naming(), [tree(3), tree(1), tree(2)]);
        let numbers: Vec<u32> = registry.in_order().iter().map(|tree| tree.id.get()).collect();
        assert_eq!(numbers, [1, 2, 3]);
    }
}
