//! The model: every version of every key of every tree.

use std::collections::BTreeMap;

/// Trees by number; in each the versions of a key by commit time, `None` for a delete.
#[derive(Clone, Debug, Default)]
pub struct History {
    trees: BTreeMap<u32, BTreeMap<Vec<u8>, BTreeMap<u64, Option<Vec<u8>>>>>,
}

/// What one transaction has written, by tree and key.
pub type Writes = BTreeMap<(u32, Vec<u8>), Option<Vec<u8>>>;

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
        for ((tree, key), value) in writes {
            if let Some(tree) = self.trees.get_mut(tree) {
                tree.entry(key.clone()).or_default().insert(timestamp, value.clone());
            }
        }
    }

    /// Forgets what came after a time: a crash lost it.
    pub fn cut_after(&mut self, timestamp: u64) {
        for versions in self.trees.values_mut().flat_map(|tree| tree.values_mut()) {
            versions.retain(|time, _| *time <= timestamp);
        }
    }

    /// The newest time at which a key was written.
    pub fn last_write(&self, tree: u32, key: &[u8]) -> u64 {
        let versions = self.trees.get(&tree).and_then(|tree| tree.get(key));
        versions.and_then(|versions| versions.keys().next_back().copied()).unwrap_or(0)
    }

    /// All entries of a tree that a snapshot sees, with a transaction's own writes over them.
    pub fn entries(&self, tree: u32, snapshot: u64, own: &Writes) -> BTreeMap<Vec<u8>, Vec<u8>> {
        let mut entries = BTreeMap::new();
        for (key, versions) in &self.trees[&tree] {
            if let Some((_, Some(value))) = versions.range(..=snapshot).next_back() {
                entries.insert(key.clone(), value.clone());
            }
        }
        for ((_, key), value) in own.iter().filter(|((of, _), _)| *of == tree) {
            match value {
                Some(value) => entries.insert(key.clone(), value.clone()),
                None => entries.remove(key),
            };
        }
        entries
    }
}
