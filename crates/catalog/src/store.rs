//! The engine, with what every change to the catalog tree needs: the tree, a mutex, and names for new trees.

use std::sync::atomic::{AtomicU64, Ordering};

use pando_storage::{SharedEngine, StorageError, TreeId, TreeOptions};
use parking_lot::Mutex;

/// Shared by the catalog and by every description.
pub(crate) struct Store {
    pub engine: SharedEngine,
    /// The catalog tree.
    pub tree: TreeId,
    /// The catalog's mutex, held while the catalog tree and the names change.
    pub changing: Mutex<()>,
    next_number: AtomicU64,
}

impl Store {
    /// A store whose new trees are numbered from `next_number`, above the numbers of all that are there.
    pub(crate) fn new(engine: SharedEngine, tree: TreeId, next_number: u64) -> Store {
        Store { engine, tree, changing: Mutex::new(()), next_number: AtomicU64::new(next_number) }
    }

    /// A new tree with a name that was never used.
    pub(crate) fn create_tree(
        &self,
        kind: &str,
        options: &TreeOptions,
    ) -> Result<(String, TreeId), StorageError> {
        let name = format!("{kind}-{}", self.next_number.fetch_add(1, Ordering::Relaxed));
        let tree = self.engine.create_tree(&name, options)?;
        Ok((name, tree))
    }
}
