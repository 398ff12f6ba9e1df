//! A transaction's changes as one batch of RocksDB: ranges first, then writes, as these lie over the ranges.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use pando_storage::{Change, Claims, DeletedRange, StorageError, TreeId, WriteSet};
use parking_lot::RwLock;
use rocksdb::WriteBatch;

use crate::layout::{PREFIX_BYTES, family_range};
use crate::trees::{Tree, Trees};

/// All that the store needs for a commit.
pub(crate) struct Commit<'t> {
    pub(crate) writes: &'t WriteSet,
    pub(crate) ranges: &'t [DeletedRange],
    pub(crate) claims: &'t Claims,
}

/// A tree that a commit changes, and how many entries the commit puts.
pub(crate) struct Touched {
    pub(crate) tree: Tree,
    pub(crate) entries: u64,
    pub(crate) bytes: u64,
}

/// A batch with the trees that it changes.
pub(crate) struct PreparedCommit {
    pub(crate) batch: WriteBatch,
    pub(crate) touched: BTreeMap<TreeId, Touched>,
}

/// Makes the batch. A tree that is not there (any more) fails the whole commit.
pub(crate) fn prepare(commit: &Commit<'_>, trees: &RwLock<Trees>) -> Result<PreparedCommit, StorageError> {
    let trees = trees.read();
    let (mut batch, mut touched) = (WriteBatch::default(), BTreeMap::new());
    for deleted in commit.ranges {
        let tree = &touch(&mut touched, &trees, deleted.tree)?.tree;
        if let Some(range) = family_range(deleted.tree, &deleted.range) {
            batch.delete_range_cf(tree.family.handle(), range.lower, range.upper);
        }
    }
    let mut key = Vec::new();
    for write in commit.writes.iter() {
        key.clear();
        key.reserve(PREFIX_BYTES + write.key.len());
        key.extend_from_slice(&write.tree.get().to_be_bytes());
        key.extend_from_slice(write.key);
        let touched = touch(&mut touched, &trees, write.tree)?;
        let family = touched.tree.family.handle();
        match write.change {
            Change::Put(value) => batch.put_cf(family, &key, value),
            Change::Delete => {
                batch.delete_cf(family, &key);
                continue;
            }
            Change::Merge(merges) => batch.merge_cf(family, &key, merges.as_bytes()),
        }
        touched.entries += 1;
        touched.bytes += (write.key.len() + write.change.bytes().len()) as u64;
    }
    Ok(PreparedCommit { batch, touched })
}

fn touch<'m>(
    touched: &'m mut BTreeMap<TreeId, Touched>,
    trees: &Trees,
    id: TreeId,
) -> Result<&'m mut Touched, StorageError> {
    Ok(match touched.entry(id) {
        Entry::Occupied(touched) => touched.into_mut(),
        Entry::Vacant(free) => free.insert(Touched { tree: trees.get(id)?.clone(), entries: 0, bytes: 0 }),
    })
}
