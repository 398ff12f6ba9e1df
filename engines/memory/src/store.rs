//! The store behind the one lock: trees with their versions, the newest timestamp, and the live transactions.

mod versions;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pando_environment::Monotonic;
use pando_storage::{
    CommitTimestamp, ErrorKind, Estimate, LiveTransaction, SnapshotTimestamp, Statistics, StorageError,
    TreeDescription, TreeId, WriteSet,
};

pub(crate) use self::versions::Tree;

/// A transaction that has neither committed nor rolled back.
struct Live {
    snapshot: SnapshotTimestamp,
    begun: Monotonic,
    /// Keys in its write set, as it counts them.
    writes: Arc<AtomicU64>,
}

/// A transaction that was just begun.
pub(crate) struct Begun {
    pub(crate) number: u64,
    pub(crate) snapshot: SnapshotTimestamp,
    /// Where it shows how many keys it has written.
    pub(crate) writes_shown: Arc<AtomicU64>,
}

/// A key with versions that become invisible once every snapshot sees a commit.
struct Stale {
    since: CommitTimestamp,
    tree: TreeId,
    key: Box<[u8]>,
}

/// The whole store.
#[derive(Default)]
pub(crate) struct Store {
    trees: BTreeMap<TreeId, Tree>,
    trees_created: u32,
    newest: CommitTimestamp,
    transactions_begun: u64,
    live: BTreeMap<u64, Live>,
    /// In the order of their commits.
    stale: VecDeque<Stale>,
    is_closed: bool,
}

impl Store {
    pub(crate) fn check_open(&self) -> Result<(), StorageError> {
        if self.is_closed {
            return Err(StorageError::new(ErrorKind::Closed, "the engine `memory` is closed"));
        }
        Ok(())
    }

    pub(crate) fn create_tree(&mut self, name: &str) -> Result<TreeId, StorageError> {
        self.check_open()?;
        if self.trees.values().any(|tree| tree.is_listed() && tree.name() == name) {
            return Err(StorageError::new(
                ErrorKind::InvalidInput,
                format!("there is a tree `{name}` already"),
            ));
        }
        self.trees_created += 1;
        let id = TreeId::new(self.trees_created);
        self.trees.insert(id, Tree::new(name));
        Ok(id)
    }

    pub(crate) fn drop_tree(&mut self, id: TreeId) -> Result<(), StorageError> {
        self.check_open()?;
        let begun = self.transactions_begun;
        let tree = self.trees.get_mut(&id).filter(|tree| tree.is_listed());
        tree.ok_or_else(|| not_found(id))?.drop_for_transactions_after(begun);
        self.forget_unseen();
        Ok(())
    }

    pub(crate) fn list_trees(&self) -> Result<Vec<TreeDescription>, StorageError> {
        self.check_open()?;
        let listed = self.trees.iter().filter(|(_, tree)| tree.is_listed());
        Ok(listed.map(|(id, tree)| TreeDescription { id: *id, name: tree.name().to_owned() }).collect())
    }

    /// The tree as the transaction of this number may read it.
    pub(crate) fn tree(&self, id: TreeId, transaction: u64) -> Result<&Tree, StorageError> {
        self.check_open()?;
        self.trees.get(&id).filter(|tree| tree.is_seen_by(transaction)).ok_or_else(|| not_found(id))
    }

    /// Whether the tree takes writes: a dropped one does not, though it may still be read.
    pub(crate) fn check_writable(&self, id: TreeId) -> Result<(), StorageError> {
        self.listed(id).map(|_| ())
    }

    fn listed(&self, id: TreeId) -> Result<&Tree, StorageError> {
        self.check_open()?;
        self.trees.get(&id).filter(|tree| tree.is_listed()).ok_or_else(|| not_found(id))
    }

    /// Enters a transaction into the list of live ones.
    pub(crate) fn begin(
        &mut self,
        at: Option<SnapshotTimestamp>,
        now: Monotonic,
    ) -> Result<Begun, StorageError> {
        self.check_open()?;
        let newest = SnapshotTimestamp::after(self.newest);
        let snapshot = at.unwrap_or(newest);
        if snapshot > newest || snapshot < self.oldest_snapshot() {
            let message = format!("{snapshot:?} is not between {:?} and {newest:?}", self.oldest_snapshot());
            return Err(StorageError::new(ErrorKind::InvalidInput, message));
        }
        self.transactions_begun += 1;
        let writes_shown = Arc::new(AtomicU64::new(0));
        let writes = Arc::clone(&writes_shown);
        self.live.insert(self.transactions_begun, Live { snapshot, begun: now, writes });
        Ok(Begun { number: self.transactions_begun, snapshot, writes_shown })
    }

    /// The timestamp for a commit of these writes, or the reason against it. Changes no state.
    pub(crate) fn next_commit(&self, writes: &WriteSet) -> Result<CommitTimestamp, StorageError> {
        self.check_open()?;
        writes.iter().try_for_each(|write| self.check_writable(write.tree))?;
        Ok(self.newest.next())
    }

    /// Adds the writes as versions of the timestamp that [`Store::next_commit`] gave, and lets new snapshots
    /// see them.
    pub(crate) fn apply(&mut self, writes: &WriteSet, timestamp: CommitTimestamp) {
        assert_eq!(timestamp, self.newest.next(), "commits are applied in their order");
        for write in writes.iter() {
            let tree =
                self.trees.get_mut(&write.tree).expect("next_commit found every tree under the same lock");
            if tree.add(write.key, write.change, timestamp) {
                self.stale.push_back(Stale { since: timestamp, tree: write.tree, key: write.key.into() });
            }
        }
        self.newest = timestamp;
    }

    /// Takes a transaction from the list of live ones, and returns the oldest snapshot that is left.
    pub(crate) fn end(&mut self, transaction: u64) -> SnapshotTimestamp {
        self.live.remove(&transaction);
        self.forget_unseen();
        self.oldest_snapshot()
    }

    /// Drops versions and trees that nobody can see any more.
    fn forget_unseen(&mut self) {
        let oldest = self.oldest_snapshot();
        while let Some(stale) = self.stale.pop_front_if(|stale| oldest.sees(stale.since)) {
            if let Some(tree) = self.trees.get_mut(&stale.tree) {
                tree.prune(&stale.key, oldest);
            }
        }
        let first_live = self.live.keys().next().copied().unwrap_or(u64::MAX);
        self.trees.retain(|_, tree| tree.is_seen_by(first_live));
    }

    fn oldest_snapshot(&self) -> SnapshotTimestamp {
        let newest = SnapshotTimestamp::after(self.newest);
        self.live.values().map(|live| live.snapshot).min().unwrap_or(newest)
    }

    pub(crate) fn estimate(&self, id: TreeId) -> Result<Estimate, StorageError> {
        self.listed(id).map(Tree::estimate)
    }

    pub(crate) fn bytes(&self, id: Option<TreeId>) -> Result<u64, StorageError> {
        self.check_open()?;
        match id {
            Some(id) => self.listed(id).map(|tree| tree.estimate().bytes),
            None => Ok(self.trees.values().map(|tree| tree.estimate().bytes).sum()),
        }
    }

    pub(crate) fn report(&self, statistics: &mut Statistics) {
        statistics.set("commits.newest", self.newest.get());
        statistics.set("transactions.begun", self.transactions_begun);
        statistics.set("transactions.live", self.live.len() as u64);
        statistics.set("trees.count", self.trees.len() as u64);
        statistics.set("versions.stale", self.stale.len() as u64);
    }

    pub(crate) fn live_transactions(&self, now: Monotonic) -> Vec<LiveTransaction> {
        let describe = |(number, live): (&u64, &Live)| LiveTransaction {
            number: *number,
            age: now.since(live.begun),
            writes: live.writes.load(Ordering::Relaxed),
            snapshot: live.snapshot,
        };
        LiveTransaction::oldest_first(self.live.iter().map(describe))
    }

    pub(crate) fn close(&mut self) {
        self.is_closed = true;
    }
}

fn not_found(id: TreeId) -> StorageError {
    StorageError::new(ErrorKind::NotFound, format!("there is no {id}"))
}
