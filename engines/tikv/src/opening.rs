//! The opening of a store in the cluster: its format, and the list of its trees.

use pando_storage::{StorageError, TreeId};

use crate::cluster::{Cluster, Mutation, Order};
use crate::failure::{corrupt, invalid};
use crate::layout::{FORMAT, Keyspace};
use crate::tree_record::TreeRecord;
use crate::trees::{TreeFigures, Trees};

/// Trees of a page.
const PAGE: u32 = 4_096;

/// Refuses a store of another format, and makes a new one.
pub(crate) fn check_format(cluster: &Cluster, keyspace: &Keyspace) -> Result<(), StorageError> {
    match cluster.get(cluster.timestamp()?, &keyspace.format())? {
        None => cluster.change(|_| Ok(vec![Mutation::Put(keyspace.format(), FORMAT.to_vec())])),
        Some(format) if format == FORMAT => Ok(()),
        Some(format) => {
            let format = String::from_utf8_lossy(&format).into_owned();
            Err(invalid(format!(
                "the store has the format {format:?}: open it with a newer version of Pando"
            )))
        }
    }
}

/// Reads the list of trees.
pub(crate) fn read_trees(cluster: &Cluster, keyspace: &Keyspace) -> Result<Trees, StorageError> {
    let now = cluster.timestamp()?;
    let no_number = || corrupt("the number of a tree makes no sense");
    let mut figures = std::collections::BTreeMap::<TreeId, TreeFigures>::new();
    for (key, stored) in read_all(cluster, now, keyspace.all_figures())? {
        figures.insert(keyspace.tree_of(&key).ok_or_else(no_number)?, TreeFigures::decode(&stored));
    }
    let mut trees = Trees::default();
    for (key, record) in read_all(cluster, now, keyspace.tree_records())? {
        let tree = keyspace.tree_of(&key).ok_or_else(no_number)?;
        match TreeRecord::decode(&record)? {
            TreeRecord::Live { name, merging } => {
                trees.insert(tree, &name, merging, figures.remove(&tree).unwrap_or_default());
            }
            TreeRecord::Dropped => trees.insert_dropped(tree),
        }
    }
    Ok(trees)
}

/// Reads all pages of a range.
pub(crate) fn read_all(
    cluster: &Cluster,
    at: u64,
    mut range: std::ops::Range<Vec<u8>>,
) -> Result<Vec<(Vec<u8>, Vec<u8>)>, StorageError> {
    let mut all = Vec::new();
    loop {
        let page = cluster.scan(at, &range, Order::Ascending, PAGE)?;
        let is_last = page.len() < PAGE as usize;
        all.extend(page);
        match all.last() {
            Some((last, _)) if !is_last => range.start = [last, &[0][..]].concat(),
            _ => return Ok(all),
        }
    }
}
