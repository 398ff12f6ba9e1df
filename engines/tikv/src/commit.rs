//! A transaction's changes as changes of the cluster's keys, in the order in which they are sent.
//!
//! # Steps
//! 1. Large values are written, each as a group of pieces.
//! 2. A merge becomes a record of its own. A put or a delete of a key of a merging tree removes the records
//!    that it covers.
//! 3. The first change is one by which the commit can be recognised, if there is such: its key is the primary
//!    key of TiKV's transaction, whose fate is that of all others.

use std::collections::{BTreeMap, BTreeSet};

use pando_storage::{Change, Merge, Merges, StorageError, TreeId, WriteSet};

use crate::cluster::{Cluster, Mutation};
use crate::large_values::{self, LARGE_FROM};
use crate::layout::Keyspace;
use crate::pending_merges;
use crate::trees::{Merging, Tree};
use crate::value::{large, numbered, whole};

/// The effect of a commit on the merges of other commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MergeUse {
    /// It has none, and touches no key that may have.
    None,
    /// It adds to counters: in any order with others.
    Adds,
    /// It merges by another operator, or puts or deletes where pending merges may lie: alone.
    Orders,
}

/// The effect of a commit on merges, and the trees that get their first ones.
pub(crate) struct MergePlan {
    pub(crate) usage: MergeUse,
    pub(crate) first_merges: Vec<TreeId>,
    /// All trees that it merges into.
    pub(crate) merged: BTreeSet<TreeId>,
}

/// The trees that a commit changes.
pub(crate) type TouchedTrees = BTreeMap<TreeId, Tree>;

/// Looks through the writes for merges.
pub(crate) fn plan_merges(writes: &WriteSet, trees: &TouchedTrees) -> MergePlan {
    let mut plan = MergePlan { usage: MergeUse::None, first_merges: Vec::new(), merged: BTreeSet::new() };
    for write in writes.iter() {
        let is_merging = trees.get(&write.tree).is_some_and(|tree| tree.merging == Merging::Yes);
        let usage = match write.change {
            Change::Merge(merges) => {
                plan.merged.insert(write.tree);
                if !is_merging && !plan.first_merges.contains(&write.tree) {
                    plan.first_merges.push(write.tree);
                }
                if is_addition(merges) { MergeUse::Adds } else { MergeUse::Orders }
            }
            Change::Put(_) | Change::Delete if is_merging => MergeUse::Orders,
            Change::Put(_) | Change::Delete => MergeUse::None,
        };
        plan.usage = plan.usage.max(usage);
    }
    // The first merges of a tree come after all that is in it.
    if !plan.first_merges.is_empty() {
        plan.usage = MergeUse::Orders;
    }
    plan
}

fn is_addition(merges: Merges<'_>) -> bool {
    merges.iter().all(|merge| matches!(merge, Merge::Add(_)))
}

/// The parts of a commit.
pub(crate) struct Commit<'c> {
    pub(crate) cluster: &'c Cluster,
    pub(crate) keyspace: &'c Keyspace,
    pub(crate) writes: &'c WriteSet,
    pub(crate) trees: &'c TouchedTrees,
    /// The timestamp at which the transaction reads.
    pub(crate) at: u64,
    /// Its number among the commits of the store.
    pub(crate) number: u64,
}

/// A commit's changes.
pub(crate) struct PreparedCommit {
    pub(crate) mutations: Vec<Mutation>,
    /// The key whose value has the number of the commit.
    pub(crate) recognised_by: Option<Vec<u8>>,
    /// Entries and bytes that each tree gets more.
    pub(crate) growth: BTreeMap<TreeId, (i64, i64)>,
    /// The keys that were merged.
    pub(crate) merged: Vec<(TreeId, Vec<u8>)>,
}

impl Commit<'_> {
    /// Writes the large values, and lists all other changes.
    pub(crate) fn prepare(&self) -> Result<PreparedCommit, StorageError> {
        let mut prepared = PreparedCommit {
            mutations: Vec::with_capacity(self.writes.len()),
            recognised_by: None,
            growth: BTreeMap::new(),
            merged: Vec::new(),
        };
        for write in self.writes.iter() {
            let (tree, key) = (write.tree, write.key);
            let Some(touched) = self.trees.get(&tree) else { continue };
            let growth = prepared.growth.entry(tree).or_default();
            match write.change {
                Change::Put(value) => {
                    growth.0 += 1;
                    growth.1 += (key.len() + value.len()) as i64;
                    let entry = self.keyspace.entry(tree, key);
                    let stored = if value.len() >= LARGE_FROM {
                        let group = self.cluster.timestamp()?;
                        large_values::write(self.cluster, self.keyspace, group, (tree, key), value)?;
                        large(group, value.len() as u64)
                    } else if prepared.recognised_by.is_none() {
                        prepared.recognised_by = Some(entry.clone());
                        numbered(value, self.number)
                    } else {
                        whole(value)
                    };
                    prepared.mutations.push(Mutation::Put(entry, stored));
                }
                Change::Delete => {
                    growth.0 -= 1;
                    growth.1 -= touched.figures.bytes_an_entry();
                    prepared.mutations.push(Mutation::Delete(self.keyspace.entry(tree, key)));
                }
                Change::Merge(merges) => {
                    let record = self.keyspace.merge(tree, key, self.number);
                    let stored = numbered(merges.as_bytes(), self.number);
                    prepared.recognised_by.get_or_insert_with(|| record.clone());
                    prepared.mutations.push(Mutation::Put(record, stored));
                    prepared.merged.push((tree, key.to_vec()));
                    continue;
                }
            }
            if touched.merging == Merging::Yes {
                let removals = pending_merges::removals(self.cluster, self.keyspace, self.at, tree, key)?;
                prepared.mutations.extend(removals);
            }
        }
        prepared.put_recognised_first();
        Ok(prepared)
    }
}

impl PreparedCommit {
    fn put_recognised_first(&mut self) {
        let Some(recognised) = &self.recognised_by else { return };
        let is_it = |mutation: &Mutation| matches!(mutation, Mutation::Put(key, _) if key == recognised);
        if let Some(at) = self.mutations.iter().position(is_it) {
            self.mutations.swap(0, at);
        }
    }
}
