//! Bulk load: fills an empty tree with sorted entries ([`Engine::load`](pando_storage::Engine::load)).
//!
//! 1. Leaves are written as they fill, without log and buffers ([`TreeLoad`]). Memory: one leaf, and a
//!    hundred bytes for each leaf.
//! 2. The root over them is installed, if the tree is still empty.
//! 3. Two checkpoints make the load durable. Later log records may refer to the tree, and a lost superblock
//!    is replaced by the one before: so both superblocks must have the load.
//!
//! A crash before that leaves the tree empty, as it was created. The space is free, since no space map has
//! it.

use pando_storage::limits::{check_key, check_value};
use pando_storage::{LoadDurability, SortedEntries, StorageError, TreeId};

use crate::error::BetreeError;
use crate::range_deletes::DeletedRanges;
use crate::space::Shutdown;
use crate::store::Store;
use crate::tree::load::TreeLoad;
use crate::tree::tree_state::Tree;

/// Entries between two checks that the engine is open and the tree is not dropped.
const LOOK_ENTRIES: u64 = 1024;

/// Runs a load. Returns the number of entries.
pub(crate) fn load(
    store: &Store,
    id: TreeId,
    entries: &mut dyn SortedEntries,
    durability: LoadDurability,
) -> Result<u64, StorageError> {
    store.gate.check_open()?;
    let tree = store.trees.live(id)?;
    check_empty(&tree)?;
    let mut load = TreeLoad::new(&store.blocks, id, tree.settings());
    while let Some((key, value)) = entries.next()? {
        check_key(key)?;
        check_value(value)?;
        load.push(key, value)?;
        if load.entries().is_multiple_of(LOOK_ENTRIES) {
            store.gate.check_open()?;
            store.trees.live(id)?;
        }
    }
    let count = load.entries();
    if count > 0 {
        install_load(store, &tree, load)?;
    }
    if durability == LoadDurability::Durable {
        for _ in 0..2 {
            store.gate.check_open()?;
            store.checkpointer.checkpoint(Shutdown::Running)?;
        }
    }
    Ok(count)
}

fn install_load(store: &Store, tree: &Tree, load: TreeLoad<'_>) -> Result<(), BetreeError> {
    let entries = load.entries();
    // From here to the installation no flush gives the tree a root.
    let flush_guard = tree.lock_flush();
    store.gate.check_open()?;
    store.trees.live(tree.id)?;
    check_empty(tree)?;
    let flushed = load.into_flushed()?;
    // The tree is empty, so the range deletes delete no entry. The loaded entries have no timestamps and
    // would be taken for older ones.
    tree.change_ranges(DeletedRanges::cleared);
    store.counters.loaded_entries.add(entries);
    store.counters.loaded_leaves.add(flushed.figures.leaves.leaves);
    store.counters.loaded_bytes.add(flushed.figures.leaf_bytes);
    store.counters.large_values.add(flushed.figures.large_values);
    store.counters.large_bytes.add(flushed.figures.large_bytes);
    tree.install(&store.blocks, None, flushed);
    drop(flush_guard);
    Ok(())
}

/// Refuses a tree that has entries.
fn check_empty(tree: &Tree) -> Result<(), BetreeError> {
    let view = tree.view();
    if view.version.root.is_some() || view.partitions.iter().any(|one| one.first_unflushed().is_some()) {
        return Err(BetreeError::LoadNotEmpty(tree.id));
    }
    Ok(())
}
