//! The model: every version of every key of every tree.

use std::collections::BTreeMap;

use pando_conformance::change::Change;
use pando_storage::{Claim, KeyRange};

/// Trees by number; in each the versions of a key by commit time.
#[derive(Clone, Debug, Default)]
pub struct History {
    trees: BTreeMap<u32, BTreeMap<Vec<u8>, BTreeMap<u64, KeyWrites>>>,
    /// Ranges that commits have deleted, with their times: under what the same commit wrote.
    ranges: Vec<(u32, KeyRange, u64)>,
}

/// The changes that one transaction has made to a key.
#[derive(Clone, Debug, Default)]
pub struct KeyWrites {
    changes: Vec<Change>,
    /// Whether one of them took an intent.
    is_claimed: bool,
}

impl KeyWrites {
    pub fn add(&mut self, change: Change, claim: Claim) {
        self.changes.push(change);
        self.is_claimed |= claim == Claim::Intent;
    }

    /// A range was deleted: the changes before it are gone.
    pub fn reset(&mut self) {
        self.changes = vec![Change::Delete];
    }

    fn over(&self, value: Option<Vec<u8>>) -> Option<Vec<u8>> {
        self.changes.iter().fold(value, |value, change| change.over(value.as_deref()))
    }
}

/// The writes of one transaction, by tree and key.
pub type Writes = BTreeMap<(u32, Vec<u8>), KeyWrites>;

impl History {
    pub fn add_tree(&mut self, tree: u32) {
        self.trees.insert(tree, BTreeMap::new());
    }

    pub fn remove_tree(&mut self, tree: u32) {
        self.trees.remove(&tree);
    }

    pub fn trees(&self) -> Vec<u32> {
        self.trees.keys().copied().collect()
    }

    pub fn commit(&mut self, timestamp: u64, writes: &Writes, ranges: &[(u32, KeyRange)]) {
        self.ranges.extend(ranges.iter().map(|(tree, range)| (*tree, range.clone(), timestamp)));
        for ((tree, key), changes) in writes {
            if let Some(tree) = self.trees.get_mut(tree) {
                tree.entry(key.clone()).or_default().insert(timestamp, changes.clone());
            }
        }
    }

    /// Forgets what came after a time: a crash lost it.
    pub fn cut_after(&mut self, timestamp: u64) {
        for versions in self.trees.values_mut().flat_map(|tree| tree.values_mut()) {
            versions.retain(|time, _| *time <= timestamp);
        }
        self.ranges.retain(|(_, _, time)| *time <= timestamp);
    }

    /// The newest time at which a key was written by somebody who claimed it.
    pub fn last_write(&self, tree: u32, key: &[u8]) -> u64 {
        let versions = self.trees.get(&tree).and_then(|tree| tree.get(key));
        let claimed = |versions: &BTreeMap<u64, KeyWrites>| {
            versions.iter().rev().find(|(_, writes)| writes.is_claimed).map(|(time, _)| *time)
        };
        versions.and_then(claimed).unwrap_or(0)
    }

    /// The newest time at which any key of a tree was written.
    pub fn last_write_of_tree(&self, tree: u32) -> u64 {
        let keys = self.trees.get(&tree).into_iter().flat_map(|tree| tree.values());
        keys.filter_map(|versions| versions.keys().next_back().copied()).max().unwrap_or(0)
    }

    /// Whether a range with this key was deleted after a time.
    pub fn is_erased_since(&self, time: u64, tree: u32, key: &[u8]) -> bool {
        self.erased(tree, key).any(|at| at > time)
    }

    /// Whether any range of a tree was deleted after a time.
    pub fn is_any_erased_since(&self, time: u64, tree: u32) -> bool {
        self.ranges.iter().any(|(of, _, at)| *of == tree && *at > time)
    }

    /// When ranges with this key were deleted, the oldest first.
    fn erased<'h>(&'h self, tree: u32, key: &'h [u8]) -> impl Iterator<Item = u64> + 'h {
        let ranges = self.ranges.iter().filter(move |(of, range, _)| *of == tree && range.contains(key));
        ranges.map(|(_, _, time)| *time)
    }

    /// All entries of a tree that a snapshot sees, with a transaction's own writes over its own ranges over
    /// them.
    pub fn entries(
        &self,
        tree: u32,
        snapshot: u64,
        own: &Writes,
        own_ranges: &[(u32, KeyRange)],
    ) -> BTreeMap<Vec<u8>, Vec<u8>> {
        let mut entries = BTreeMap::new();
        for (key, versions) in &self.trees[&tree] {
            let erased = self.erased(tree, key).filter(|time| *time <= snapshot).last().unwrap_or(0);
            let seen = versions.range(erased..=snapshot);
            let is_own = own_ranges.iter().any(|(of, range)| *of == tree && range.contains(key));
            if is_own {
                continue;
            }
            if let Some(value) = seen.fold(None, |value, (_, changes)| changes.over(value)) {
                entries.insert(key.clone(), value);
            }
        }
        for ((_, key), changes) in own.iter().filter(|((of, _), _)| *of == tree) {
            match changes.over(entries.get(key).cloned()) {
                Some(value) => entries.insert(key.clone(), value),
                None => entries.remove(key),
            };
        }
        entries
    }
}
