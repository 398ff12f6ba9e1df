//! The figures of trees in the cluster: about how many entries and bytes each has.

use std::collections::HashMap;

use pando_storage::{StorageError, TreeId};
use parking_lot::RwLock;

use crate::cluster::{Cluster, Mutation};
use crate::layout::Keyspace;
use crate::opening;
use crate::trees::{Growth, Tree, TreeFigures, Trees};

/// Writes the figures that have changed, for a server that has the store alone.
pub(crate) fn write(
    cluster: &Cluster,
    keyspace: &Keyspace,
    trees: &RwLock<Trees>,
) -> Result<(), StorageError> {
    let changed: Vec<(TreeId, Vec<u8>)> = {
        let trees = trees.read();
        let taken = trees.listed().filter_map(|(id, tree)| Some((id, tree.figures.take_changed()?)));
        taken.collect()
    };
    let put = |(tree, figures): &(TreeId, Vec<u8>)| Mutation::Put(keyspace.figures(*tree), figures.clone());
    cluster.change(|_| Ok(changed.iter().map(put).collect()))
}

/// Adds the growth of trees to the figures in the cluster, and takes over what other servers have added.
pub(crate) fn add(cluster: &Cluster, keyspace: &Keyspace, trees: &RwLock<Trees>) -> Result<(), StorageError> {
    let listed: Vec<(TreeId, Tree)> = trees.read().listed().map(|(id, tree)| (id, tree.clone())).collect();
    for (id, tree) in &listed {
        let growth = tree.figures.take_growth();
        if growth == Growth::default() {
            continue;
        }
        let key = keyspace.figures(*id);
        let added = cluster.change(|at| {
            let stored = cluster.get(at, &key)?;
            let total = TreeFigures::decode(stored.as_deref().unwrap_or_default());
            total.change(growth.entries, growth.bytes);
            Ok(vec![Mutation::Put(key.clone(), total.encode())])
        });
        if added.is_err() {
            tree.figures.give_back(growth);
            return added;
        }
    }
    let mut stored = HashMap::new();
    let now = cluster.timestamp()?;
    for (key, figures) in opening::read_all(cluster, now, keyspace.all_figures())? {
        stored.extend(keyspace.tree_of(&key).map(|tree| (tree, figures)));
    }
    for (id, tree) in &listed {
        if let Some(total) = stored.get(id) {
            tree.figures.set_total(&TreeFigures::decode(total));
        }
    }
    Ok(())
}
