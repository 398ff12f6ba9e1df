//! The engine, with what every change to the catalog tree needs: the trees of the catalog itself, a mutex,
//! and names for new trees.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use pando_storage::{QueryMemory, SharedEngine, StorageError, TreeId, TreeOptions};
use parking_lot::Mutex;

use crate::error::CatalogError;
use crate::index_description::IndexDescription;
use crate::index_kind::{IndexFactory, IndexMethods};
use crate::sharing::Sharing;

/// The number at the end of a tree's name. No two trees that a store has, or has had since it was opened,
/// share a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TreeNumber(u64);

impl TreeNumber {
    pub(crate) const fn new(number: u64) -> TreeNumber {
        TreeNumber(number)
    }

    /// The number in the name of a tree that a collection or an index has.
    pub(crate) fn of_name(name: &str) -> Option<TreeNumber> {
        name.rsplit_once('-')?.1.parse().ok().map(TreeNumber)
    }

    pub(crate) const fn get(self) -> u64 {
        self.0
    }
}

/// A tree of a collection or an index.
#[derive(Clone, Debug)]
pub(crate) struct NamedTree {
    /// The engine's number. A store that is restored from a backup may give the tree another one.
    pub id: TreeId,
    pub name: String,
    /// The number in the name.
    pub number: TreeNumber,
}

/// The trees that belong to no collection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnTrees {
    pub catalog: TreeId,
    pub counters: TreeId,
    pub sessions: TreeId,
}

/// Shared by the catalog and by every description.
pub(crate) struct Store {
    pub engine: SharedEngine,
    /// The memory of queries, and of index builds.
    pub query_memory: QueryMemory,
    /// The catalog tree.
    pub tree: TreeId,
    /// The tree of counters.
    pub counters: TreeId,
    /// The tree of the records of sessions.
    pub sessions: TreeId,
    /// Makes indexes from their specifications.
    pub factory: Arc<dyn IndexFactory>,
    /// The catalog's mutex, held while the catalog tree and the names change.
    pub changing: Mutex<()>,
    /// The membership in a store that several servers have open.
    pub sharing: Option<Arc<Sharing>>,
    /// Whether a commit to the catalog tree may have happened or not. Set and cleared under the mutex, and
    /// set before the latches of the collections of that commit are let go.
    is_unsettled: AtomicBool,
    next_number: AtomicU64,
}

impl Store {
    /// The methods of an index.
    pub(crate) fn methods(&self, description: &IndexDescription) -> Result<IndexMethods, CatalogError> {
        match self.factory.define(&description.specification) {
            Ok(definition) => Ok(definition.methods),
            Err(reason) => Err(CatalogError::IndexSpecification { name: description.name.clone(), reason }),
        }
    }

    /// A store whose new trees are numbered from `next_number`, above the numbers of all that are there.
    pub(crate) fn new(
        engine: SharedEngine,
        query_memory: QueryMemory,
        trees: OwnTrees,
        factory: Arc<dyn IndexFactory>,
        next_number: TreeNumber,
    ) -> Store {
        let OwnTrees { catalog: tree, counters, sessions } = trees;
        let next_number = AtomicU64::new(next_number.get());
        let changing = Mutex::new(());
        Store {
            engine,
            query_memory,
            tree,
            counters,
            sessions,
            factory,
            changing,
            sharing: None,
            is_unsettled: AtomicBool::new(false),
            next_number,
        }
    }

    /// The same store as a member has it.
    pub(crate) fn shared_as(self, sharing: Arc<Sharing>) -> Store {
        Store { sharing: Some(sharing), ..self }
    }

    /// Notes the outcome of a commit to the catalog tree. The caller holds the catalog's mutex.
    pub(crate) fn note_outcome<T>(&self, outcome: &Result<T, CatalogError>) {
        if outcome.as_ref().is_err_and(CatalogError::is_undetermined) {
            self.is_unsettled.store(true, Ordering::Release);
        }
    }

    /// Whether the descriptions in memory may differ from the catalog tree, because nobody knows whether a
    /// commit has happened.
    pub(crate) fn is_unsettled(&self) -> bool {
        self.is_unsettled.load(Ordering::Acquire)
    }

    /// The descriptions in memory are those of the catalog tree. The caller holds the catalog's mutex.
    pub(crate) fn settled(&self) {
        self.is_unsettled.store(false, Ordering::Release);
    }

    fn take_number(&self) -> Result<u64, StorageError> {
        match &self.sharing {
            None => Ok(self.next_number.fetch_add(1, Ordering::Relaxed)),
            Some(sharing) => sharing.next_tree_number(self.next_number.load(Ordering::Relaxed) - 1),
        }
    }

    /// A new tree with a name that was never used.
    pub(crate) fn create_tree(&self, kind: &str, options: &TreeOptions) -> Result<NamedTree, StorageError> {
        let number = TreeNumber::new(self.take_number()?);
        let name = format!("{kind}-{}", number.get());
        let id = self.engine.create_tree(&name, options)?;
        Ok(NamedTree { id, name, number })
    }
}
