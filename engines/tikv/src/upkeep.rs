//! The upkeep: the work of a store that no client waits for, a step at a time.
//!
//! | work | every |
//! |---|---|
//! | fold the merges of keys that have many | 1 s |
//! | remove the entries of dropped trees that no transaction reads | 1 s |
//! | write the figures of trees | 30 s |
//! | delete large values that no entry names | 10 minutes, a page at a time |
//!
//! A step that fails is tried again at its next turn: the cluster may be away. The lease has a thread of its
//! own ([`LeaseRenewal`]), because none of this work may keep it waiting. Only its loss ends the engine. Old
//! versions have another one (`versions`).

use std::sync::Arc;
use std::time::Duration;

use pando_environment::{Monotonic, Step};
use pando_storage::{ErrorKind, KeyRange, StorageError, TreeId};

use crate::cluster::Mutation;
use crate::large_values::{self, UNOWNED_FOR};
use crate::lease;
use crate::servers::{self, Record, Watch};
use crate::store::Store;

/// The time between two turns.
const TURN: Duration = Duration::from_secs(1);
const FIGURES_EVERY: Duration = Duration::from_secs(30);
const LARGE_VALUES_EVERY: Duration = Duration::from_secs(600);
/// Keys of a dropped tree that one transaction deletes, where the cluster cannot remove the range at once.
const KEYS_AT_ONCE: u32 = 4_096;
/// Folds of one turn.
const FOLDS_AT_ONCE: usize = 16;

/// See the module's head.
pub(crate) struct Upkeep {
    store: Arc<Store>,
    figures_written: Monotonic,
    large_values_looked_at: Monotonic,
    /// Where the look at large values goes on.
    large_values_from: Option<Vec<u8>>,
}

impl Upkeep {
    pub(crate) fn new(store: &Arc<Store>) -> Upkeep {
        let now = store.clock.monotonic();
        Upkeep {
            store: Arc::clone(store),
            figures_written: now,
            large_values_looked_at: now,
            large_values_from: None,
        }
    }

    /// One turn.
    pub(crate) fn step(&mut self) -> Step {
        // Each is tried again at its next turn.
        let _later = self.fold();
        let _later = self.remove_dropped_trees();
        let _later = self.write_figures();
        let _later = self.delete_large_values();
        Step::Wait(TURN)
    }

    fn is_due(&self, last: Monotonic, every: Duration) -> bool {
        self.store.clock.monotonic().since(last) >= every
    }

    fn fold(&self) -> Result<(), StorageError> {
        for _ in 0..FOLDS_AT_ONCE {
            if !self.store.fold_merges()? {
                break;
            }
        }
        Ok(())
    }

    fn remove_dropped_trees(&self) -> Result<(), StorageError> {
        let unseen = {
            let live = self.store.live.lock();
            self.store.trees.write().take_unseen(live.oldest())
        };
        if let Some(membership) = &self.store.membership {
            // Those of this server alone say nothing of the others.
            return membership.unseen().into_iter().try_for_each(|tree| self.remove_tree(tree));
        }
        for tree in unseen {
            if let Err(error) = self.remove_tree(tree) {
                self.store.trees.write().put_back(tree);
                return Err(error);
            }
        }
        Ok(())
    }

    fn remove_tree(&self, tree: TreeId) -> Result<(), StorageError> {
        let (cluster, keyspace) = (&self.store.cluster, &self.store.keyspace);
        let ranges = [keyspace.entries(tree, &KeyRange::all()), keyspace.merges(tree, &KeyRange::all())];
        for range in ranges.into_iter().flatten() {
            let is_destroyed = cluster.destroy(&range).is_ok();
            // A store without that request answers so, and one that was away may hold some.
            loop {
                let now = cluster.timestamp()?;
                let keys = cluster.scan_keys(now, &range, KEYS_AT_ONCE)?;
                if keys.is_empty() {
                    break;
                }
                if is_destroyed && keys.len() == KEYS_AT_ONCE as usize {
                    cluster.destroy(&range)?;
                }
                cluster.change(|_| Ok(keys.iter().cloned().map(Mutation::Delete).collect()))?;
            }
        }
        let records = [keyspace.tree_record(tree), keyspace.figures(tree), keyspace.merges_known(tree)];
        cluster.change(|_| Ok(records.iter().cloned().map(Mutation::Delete).collect()))
    }

    fn write_figures(&mut self) -> Result<(), StorageError> {
        if !self.is_due(self.figures_written, FIGURES_EVERY) {
            return Ok(());
        }
        self.figures_written = self.store.clock.monotonic();
        self.store.write_figures()
    }

    fn delete_large_values(&mut self) -> Result<(), StorageError> {
        if !self.store.does_work_of_all() {
            return Ok(());
        }
        if self.large_values_from.is_none() && !self.is_due(self.large_values_looked_at, LARGE_VALUES_EVERY) {
            return Ok(());
        }
        self.large_values_looked_at = self.store.clock.monotonic();
        let from = self.large_values_from.take();
        let (cluster, keyspace) = (&self.store.cluster, &self.store.keyspace);
        self.large_values_from = large_values::delete_unowned(cluster, keyspace, from, UNOWNED_FOR)?;
        Ok(())
    }
}

/// The renewal of the lease, every [`RENEWED_EVERY`](lease::RENEWED_EVERY).
pub(crate) struct LeaseRenewal {
    pub(crate) store: Arc<Store>,
}

impl LeaseRenewal {
    /// Renews it once. A cluster that is away is asked again.
    pub(crate) fn step(&mut self) -> Step {
        // The lease is as old as the moment before it was renewed.
        let now = self.store.clock.monotonic();
        match lease::renew(&self.store.cluster, &self.store.keyspace, self.store.server) {
            Ok(()) => *self.store.renewed_at.lock() = now,
            Err(error) if error.kind() == ErrorKind::Closed => {
                self.store.failure.get_or_init(|| error);
                return Step::Done;
            }
            Err(_) => {}
        }
        Step::Wait(lease::RENEWED_EVERY)
    }
}

/// The record of one of several servers, written every [`RENEWED_EVERY`](servers::RENEWED_EVERY).
pub(crate) struct RecordRenewal {
    pub(crate) store: Arc<Store>,
    pub(crate) watch: Watch,
}

impl RecordRenewal {
    /// Writes it once. A cluster that is away is asked again.
    pub(crate) fn step(&mut self) -> Step {
        match self.renew() {
            Err(error) if error.kind() == ErrorKind::Closed => {
                self.store.failure.get_or_init(|| error);
                Step::Done
            }
            Ok(()) | Err(_) => Step::Wait(servers::RENEWED_EVERY),
        }
    }

    fn renew(&mut self) -> Result<(), StorageError> {
        let store = &self.store;
        let Some(membership) = &store.membership else { return Ok(()) };
        // The record is as old as the moment before it was written.
        let now = store.clock.monotonic();
        let read_at = store.read_trees(membership)?;
        let oldest = store.live.lock().oldest_snapshot().unwrap_or(read_at).min(read_at);
        let record = Record { read_at, oldest };
        let (cluster, keyspace, number) = (&store.cluster, &store.keyspace, membership.number());
        let mut number_now = number;
        cluster.change(|at| {
            if lease::is_owned(cluster, keyspace, at)? {
                let message = "another server has taken over the store in the TiKV cluster for itself, as this one could \
                               not be reached for a while: start it again to take the store back";
                return Err(StorageError::new(ErrorKind::Closed, message));
            }
            let is_there = cluster.get(at, &keyspace.server(number))?.is_some();
            number_now = if is_there { number } else { at };
            let lease = Mutation::Delete(keyspace.lease());
            let renewed = Mutation::Put(keyspace.server(number_now), record.encode());
            // A server that comes back conflicts with one that takes the store for itself.
            Ok(if is_there { vec![renewed] } else { vec![lease, renewed] })
        })?;
        if number_now != number {
            membership.note_lapse(number_now);
        }
        *store.renewed_at.lock() = now;
        membership.note(&self.watch.clear(cluster, keyspace, store.clock.as_ref())?);
        Ok(())
    }
}
