//! How a tree comes to have merges, and how all servers learn it.
//!
//! A server that does not know of it would read values without their pending merges. So:
//! 1. The record of the tree says so ([`Store::make_merging`]).
//! 2. The first commit with merges waits until every server has read the records of the trees since, or is
//!    dead ([`Store::tell_of_merges`]). A record of the tree keeps that they know, so that no later commit
//!    waits.
//!
//! A commit has not the time to wait for a dead server. So the first merge of a transaction waits before it
//! ([`Store::wait_before_merges`]).

use std::collections::BTreeSet;
use std::time::Duration;

use pando_storage::{StorageError, TreeId};

use super::Store;
use crate::cluster::Mutation;
use crate::servers;
use crate::tree_record::TreeRecord;
use crate::trees::Merging;

/// The value that says that all servers know of a tree's merges.
const MERGES_KNOWN: &[u8] = b"1";
/// The pause between two looks at the records of other servers.
const ANSWERS_EVERY: Duration = Duration::from_millis(20);

impl Store {
    pub(super) fn make_merging(&self, tree: TreeId) -> Result<(), StorageError> {
        let _turn = self.ddl.lock();
        let name = self.trees.read().get(tree)?.name.to_string();
        let record = TreeRecord::Live { name, merging: Merging::Yes }.encode();
        let key = self.keyspace.tree_record(tree);
        self.cluster.change(|_| Ok(vec![Mutation::Put(key.clone(), record.clone())]))?;
        self.trees.write().set_merging(tree);
        Ok(())
    }

    /// Waits until all servers know that these trees have merges.
    pub(super) fn tell_of_merges(&self, trees: &BTreeSet<TreeId>) -> Result<(), StorageError> {
        let Some(membership) = &self.membership else { return Ok(()) };
        if membership.all_know_merges_of(trees) {
            return Ok(());
        }
        let now = self.cluster.timestamp()?;
        let keys: Vec<Vec<u8>> = trees.iter().map(|tree| self.keyspace.merges_known(*tree)).collect();
        if self.cluster.get_all(now, &keys)?.len() < keys.len() {
            self.wait_until_read(now)?;
            let known = |key: &Vec<u8>| Mutation::Put(key.clone(), MERGES_KNOWN.to_vec());
            self.cluster.change(|_| Ok(keys.iter().map(known).collect()))?;
        }
        membership.note_merges_known(trees);
        Ok(())
    }

    /// Waits before the first merges in a tree until servers that have fallen silent answer, or are held for
    /// dead. The commit waits for all servers, too, but its time does not last until then. Gives whether it
    /// has waited.
    pub(crate) fn wait_before_merges(&self, tree: TreeId) -> Result<bool, StorageError> {
        let Some(membership) = &self.membership else { return Ok(false) };
        let trees = BTreeSet::from([tree]);
        if membership.all_know_merges_of(&trees) {
            return Ok(false);
        }
        let now = self.cluster.timestamp()?;
        if self.cluster.get(now, &self.keyspace.merges_known(tree))?.is_some() {
            membership.note_merges_known(&trees);
            return Ok(false);
        }
        self.wait_until_read(now)?;
        Ok(true)
    }

    /// Waits until all servers have read the list of trees after a timestamp, or are dead.
    fn wait_until_read(&self, after: u64) -> Result<(), StorageError> {
        loop {
            self.check_open()?;
            self.check_lease()?;
            let records = servers::read(&self.cluster, &self.keyspace, self.cluster.timestamp()?)?;
            if records.values().all(|record| record.read_at >= after) {
                return Ok(());
            }
            std::thread::sleep(ANSWERS_EVERY);
        }
    }
}
