//! Applies a write set to LMDB's table, and computes the new sizes of the trees that changed.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use heed::RwTxn;
use pando_storage::{Change, Estimate, StorageError, TreeId, Write, WriteSet};
use parking_lot::RwLock;

use crate::data_file::Table;
use crate::failure::lmdb_failed;
use crate::layout::{self, table_key};
use crate::trees::Trees;

/// Trees with their new sizes.
pub(crate) type Sizes = BTreeMap<TreeId, Estimate>;

/// Writes a set in the order of its keys, so that neighbours share their pages. After an error the
/// transaction must be dropped. A tree that is not there (any more) fails the whole set.
pub(crate) fn apply(
    table: Table,
    writer: &mut RwTxn<'_>,
    writes: &WriteSet,
    trees: &RwLock<Trees>,
) -> Result<Sizes, StorageError> {
    let mut sizes = Sizes::new();
    for write in writes.sorted() {
        let size = match sizes.entry(write.tree) {
            Entry::Occupied(size) => size.into_mut(),
            Entry::Vacant(free) => free.insert(trees.read().size(write.tree)?),
        };
        apply_write(table, writer, &write, size).map_err(|error| lmdb_failed("writing an entry", error))?;
    }
    for (tree, size) in &sizes {
        let record = layout::tree_record(*size, trees.read().name(*tree)?);
        table
            .put(writer, &layout::tree_record_key(*tree), &record)
            .map_err(|error| lmdb_failed("writing a tree record", error))?;
    }
    Ok(sizes)
}

fn apply_write(
    table: Table,
    writer: &mut RwTxn<'_>,
    write: &Write<'_>,
    size: &mut Estimate,
) -> Result<(), heed::Error> {
    let key = table_key(write.tree, write.key);
    let entry_bytes = |value: usize| (write.key.len() + value) as u64;
    match write.change {
        Change::Put(value) => {
            // Most puts are of new keys: this one looks and writes in one descent.
            if let Some(old) = table.get_or_put(writer, &key, value)? {
                size.bytes = size.bytes.saturating_sub(entry_bytes(old.len()));
                table.put(writer, &key, value)?;
            } else {
                size.entries += 1;
            }
            size.bytes += entry_bytes(value.len());
        }
        Change::Merge(merges) => {
            let old = table.get(writer, &key)?;
            let before = old.map(<[u8]>::len);
            let Some(new) = merges.apply(old) else { return Ok(()) };
            let new = new.into_owned();
            table.put(writer, &key, &new)?;
            size.entries += u64::from(before.is_none());
            size.bytes = size.bytes.saturating_sub(before.map_or(0, entry_bytes)) + entry_bytes(new.len());
        }
        Change::Delete => {
            let Some(old) = table.get(writer, &key)?.map(<[u8]>::len) else { return Ok(()) };
            table.delete(writer, &key)?;
            size.entries = size.entries.saturating_sub(1);
            size.bytes = size.bytes.saturating_sub(entry_bytes(old));
        }
    }
    Ok(())
}
