//! Dropped trees: frees their room once no snapshot sees them any more.
//!
//! 1. Everything that the tree owns is collected. Directories, nodes and indexes of slices are read for it,
//!    and not kept.
//! 2. All of it is freed at once, in the image that a checkpoint is about to write.
//!
//! A tree with an unreadable block keeps its room, since the walk cannot find all of it. It does not pin the
//! log.

use std::sync::Arc;

use super::write_buffers::WriteBuffers;
use crate::commit_order::CommitGate;
use crate::error::BetreeError;
use crate::space::SpaceChange;
use crate::tree::owned_extents::Owners;
use crate::tree::tree_blocks::Blocks;
use crate::tree::tree_state::Tree;
use crate::tree::view::TreeView;

/// Reclaims dropped trees.
pub(crate) struct DroppedTrees {
    pub(crate) blocks: Arc<Blocks>,
    pub(crate) gate: Arc<CommitGate>,
    pub(crate) buffers: Arc<WriteBuffers>,
}

impl DroppedTrees {
    /// Frees all room of a dropped tree. After an error the tree is whole, and reclaimed later.
    pub(crate) fn reclaim(&self, tree: &Tree) -> Result<SpaceChange, BetreeError> {
        let flushing = tree.lock_flush();
        let view = tree.view_owned();
        let mut owners = Owners::default();
        if let Some(root) = &view.version.root {
            owners.collect(&self.blocks, root)?;
        }
        let mut installed = tree.installed.lock();
        installed.retire_extents(&view.version, owners.extents);
        installed.retire_extents(&view.version, owners.values);
        let bytes = view.buffered_bytes();
        tree.set_view(&mut installed, TreeView::empty(self.gate.last_lsn()));
        self.buffers.remove(bytes);
        let change = std::mem::take(&mut installed.change);
        drop((view, flushing));
        installed.reclaim(&self.blocks);
        self.blocks.store().traffic().forget(tree.id);
        Ok(change)
    }

    /// Empties the buffers of a dropped tree that nobody reads any more: they pin no log, and are not
    /// flushed.
    pub(crate) fn forget_buffered(&self, tree: &Tree) {
        let _flushing = tree.lock_flush();
        let mut installed = tree.installed.lock();
        let view = tree.view_owned();
        let empty = TreeView::empty(self.gate.last_lsn());
        tree.set_view(&mut installed, TreeView::new(empty.partitions, Arc::clone(&view.version)));
        self.buffers.remove(view.buffered_bytes());
    }
}
