//! What becomes of a tree that was dropped, once no snapshot sees it any more.
//!
//! 1. Everything that it owns is collected: directories, nodes and indexes of slices are read for that, and not kept.
//! 2. All of it is freed at once, in the image that a checkpoint is about to write.
//!
//! A tree of which something cannot be read keeps its room, since nobody knows all of it; it keeps no log.

use std::sync::Arc;

use crate::core::Core;
use crate::error::BetreeError;
use crate::space::SpaceChange;
use crate::tree::owned_extents::Owners;
use crate::tree::tree_state::Tree;
use crate::tree::view::TreeView;

impl Core {
    /// Frees everything that a dropped tree has. After an error it is whole, and tried again.
    pub(crate) fn take_apart(&self, tree: &Tree) -> Result<SpaceChange, BetreeError> {
        let merging = tree.lock_merging();
        let view = tree.view_to_keep();
        let mut owners = Owners::default();
        if let Some(root) = &view.version.root {
            owners.collect(&self.blocks, root)?;
        }
        let mut installed = tree.installed.lock();
        installed.retire_extents(&view.version, owners.extents);
        installed.retire_extents(&view.version, owners.values);
        let bytes = view.buffered_bytes();
        tree.set_view(&mut installed, TreeView::empty(self.last_lsn()));
        self.remove_buffered(bytes);
        let change = std::mem::take(&mut installed.change);
        drop((view, merging));
        installed.reclaim(&self.blocks);
        self.blocks.store().traffic().forget(tree.id);
        Ok(change)
    }

    /// Empties the buffers of a dropped tree that nobody reads any more: they keep no log, and are not merged.
    pub(crate) fn forget_buffered(&self, tree: &Tree) {
        let _merging = tree.lock_merging();
        let mut installed = tree.installed.lock();
        let view = tree.view_to_keep();
        let empty = TreeView::empty(self.last_lsn());
        tree.set_view(&mut installed, TreeView::new(empty.partitions, Arc::clone(&view.version)));
        self.remove_buffered(view.buffered_bytes());
    }
}
