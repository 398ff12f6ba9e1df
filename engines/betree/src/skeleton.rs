//! What counts against the limit of memory beside pages, and the bound on what leads to them.
//!
//! # What counts
//! | what | its part of the limit |
//! |---|---|
//! | write buffers | their budget, a quarter as it comes |
//! | write sets of transactions in memory | theirs |
//! | indexes and filters of what of them is on the device | what they take: a few percent of it |
//! | inner nodes and indexes of slices (the *skeleton*, [`crate::tree::resident_nodes`]) | [`SKELETON_SHARE`] |
//! | who updates which key (intents) | what the live snapshots need |
//! | what lies between pages ([`crate::memory::page_memory`]) | a sixteenth of the pages at most |
//! | what merges, loads, cursors and index builds have in their hands | see [`crate::memory::accounts`] |
//! | directories of leaves, pages of runs, pages of leaves | what all these leave ([`crate::cache`]) |
//!
//! Beside the limit stand what is handed on from one read to the next (buffers of 16 to 64 KiB for as many as were under way at once, four of up to 2 MiB, 16 contexts of 96 KB;
//! [`crate::memory::object_pool`]), the queues of threads that merge (up to 2 MiB each), pages that a reader holds after the cache has dropped them, what
//! lies between pages beyond that sixteenth where many have gone and few have come, and what the allocator keeps for a moment.
//!
//! # Steps, once a second
//! 1. Measure the skeleton. While it is within its part, nothing happens.
//! 2. Let go of what was not used since the last time, tree by tree; then, if that was not enough, of nodes with what waits in them, used or
//!    not, from the lowest up.
//! 3. Share out anew what is left for directories and pages.

use std::sync::Arc;

use pando_environment::sync::atomic::{AtomicUsize, Ordering};
use pando_storage::HeldMemory;

use crate::core::Core;
use crate::memory::LENT_LEAST;
use crate::memory::page_memory;
use crate::tree::node::Child;
use crate::tree::resident_nodes::{Choice, Shedding, SkeletonBytes};
use crate::tree::tree_state::Tree;
use crate::tree::view::Version;

/// Hundredths of the limit that inner nodes and indexes of slices may take. More than pages get then: what leads to pages spares a read to each
/// that comes by, and a page only to those that want it.
const SKELETON_SHARE: u64 = 40;
/// It is brought below its part by this part of it, so that it is not done again at once.
const SLACK_SHARE: usize = 16;

/// What is known of the skeleton.
#[derive(Debug, Default)]
pub(crate) struct Skeleton {
    /// Bytes of inner nodes at the last look.
    nodes: AtomicUsize,
    /// Bytes let go since the store was opened.
    shed: AtomicUsize,
    turn: AtomicUsize,
}

impl Core {
    /// Keeps the skeleton within its part, and has directories and pages get what everything else leaves.
    pub(crate) fn share_out_memory(&self) {
        page_memory::settle();
        self.blocks.accounts.look();
        self.bound_skeleton();
        self.blocks.cache().rebalance(self.bytes_beside_pages() as u64);
    }

    /// Bytes that count against the limit and are neither pages nor directories.
    pub(crate) fn bytes_beside_pages(&self) -> usize {
        let spill = self.spill.figures();
        let transactions = spill.memory_bytes.saturating_add(spill.layer_memory_bytes);
        let transactions = usize::try_from(transactions).unwrap_or(usize::MAX);
        [
            self.buffered_bytes(),
            self.blocks.index_memory.bytes(),
            self.node_bytes(),
            self.intents.memory(),
            page_memory::between_bytes(
                self.blocks.cache().decoded_bytes() + self.blocks.cache().compressed_bytes(),
            ),
            self.blocks.scan_ahead.bytes(),
            self.blocks.accounts.bytes(),
        ]
        .into_iter()
        .fold(transactions, usize::saturating_add)
    }

    /// Memory for callers, as much of what is wanted as its part of the limit leaves; pages make room at once for what is much.
    pub(crate) fn lend_memory(&self, wanted: usize) -> HeldMemory {
        let lent = self.blocks.accounts.lend(wanted, self.options.cache_bytes as usize);
        if lent.bytes() >= LENT_LEAST {
            self.blocks.cache().note_others(self.bytes_beside_pages() as u64);
        }
        lent
    }

    /// Bytes of inner nodes at the last look.
    pub(crate) fn node_bytes(&self) -> usize {
        self.skeleton.nodes.load(Ordering::Relaxed)
    }

    /// Bytes of the skeleton that were let go.
    pub(crate) fn shed_bytes(&self) -> usize {
        self.skeleton.shed.load(Ordering::Relaxed)
    }

    fn bound_skeleton(&self) {
        // Of the newest versions: what only readers of older ones hold goes with them, however little the newest are left with.
        let bytes_of = |tree: &Arc<Tree>| {
            tree.view().version.root.as_ref().map_or(SkeletonBytes::default(), SkeletonBytes::of)
        };
        let bytes = self.trees().values().map(bytes_of).fold(SkeletonBytes::default(), SkeletonBytes::and);
        let limit = usize::try_from(self.options.cache_bytes * SKELETON_SHARE / 100).unwrap_or(usize::MAX);
        let over = bytes.total().saturating_sub(limit);
        let shed = if over > 0 { self.shed(over + limit / SLACK_SHARE) } else { SkeletonBytes::default() };
        self.skeleton.nodes.store(bytes.nodes.saturating_sub(shed.nodes), Ordering::Relaxed);
    }

    /// Lets go of so many bytes, or as many as may go; what it was.
    fn shed(&self, wanted: usize) -> SkeletonBytes {
        let turn = self.skeleton.turn.fetch_add(1, Ordering::Relaxed);
        let mut trees = self.trees_in_order();
        let count = trees.len().max(1);
        trees.rotate_left(turn % count);
        let mut shed = SkeletonBytes::default();
        let height_of = |tree: &Arc<Tree>| match &tree.view().version.root {
            Some(Child::Inner(slot)) => slot.height(),
            _ => 0,
        };
        let height = trees.iter().map(height_of).max().unwrap_or(0);
        for choice in std::iter::once(Choice::Unused).chain((1..=height).map(Choice::UpTo)) {
            for tree in &trees {
                if shed.total() >= wanted {
                    break;
                }
                let mut shedding = Shedding::new(choice, wanted - shed.total(), turn);
                tree.shed(&mut shedding);
                shed = shed.and(shedding.shed());
            }
        }
        self.skeleton.shed.fetch_add(shed.total(), Ordering::Relaxed);
        shed
    }
}

impl Tree {
    /// Lets go of parts of the skeleton, unless somebody is merging the tree.
    fn shed(&self, shedding: &mut Shedding) {
        let Some(_merging) = self.try_lock_merging() else { return };
        // A checkpoint writes nodes under this lock.
        let mut installed = self.installed.lock();
        let before = self.view_to_keep();
        let Some(root) = before.version.root.as_ref().and_then(|root| shedding.root(root)) else { return };
        let version = Arc::new(Version { root: Some(root) });
        let view = before.with_version(before.partitions.clone(), version);
        // Whoever reads the old version needs what the new one will free: versions are reclaimed in order.
        installed.retire(&before.version, &[]);
        self.set_view(&mut installed, view);
    }
}

#[cfg(test)]
mod tests;
