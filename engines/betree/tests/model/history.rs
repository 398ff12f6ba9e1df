//! The model: every version of every key of every tree.

use std::collections::BTreeMap;

use pando_conformance::change::Change;
use pando_storage::Claim;

/// Trees by number; in each the versions of a key by commit time.
#[derive(Clone, Debug, Default)]
pub struct History {
    trees: BTreeMap<u32, BTreeMap<Vec<u8>, BTreeMap<u64, KeyWrites>>>,
}

/// What one transaction has done to a key.
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

    fn over(&self, value: Option<Vec<u8>>) -> Option<Vec<u8>> {
        self.changes.iter().fold(value, |value, change| change.over(value.as_deref()))
    }
}

/// What one transaction has written, by tree and key.
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

    pub fn commit(&mut self, timestamp: u64, writes: &Writes) {
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
    }

    /// The newest time at which a key was written by somebody who claimed it.
    pub fn last_write(&self, tree: u32, key: &[u8]) -> u64 {
        let versions = self.trees.get(&tree).and_then(|tree| tree.get(key));
        let claimed = |versions: &BTreeMap<u64, KeyWrites>| {
            versions.iter().rev().find(|(_, writes)| writes.is_claimed).map(|(time, _)| *time)
        };
        versions.and_then(claimed).unwrap_or(0)
    }

    /// All entries of a tree that a snapshot sees, with a transaction's own writes over them.
    pub fn entries(&self, tree: u32, snapshot: u64, own: &Writes) -> BTreeMap<Vec<u8>, Vec<u8>> {
        let mut entries = BTreeMap::new();
        for (key, versions) in &self.trees[&tree] {
            let seen = versions.range(..=snapshot);
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
