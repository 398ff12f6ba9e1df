//! The state of one tree while its store is open: its view, its layout, and the space that it gained and lost
//! since the last checkpoint.
//!
//! # Locks
//! - `flush`: held for the whole of a flush of this tree, so that one flush is under way at a time.
//! - `installed`: held while the view is replaced, and while a checkpoint writes the tree's inner nodes.
//!   Readers and commits never wait for it. A thread that holds both takes `flush` first; the commit gate
//!   comes after both.
//! - `view_swap`: held for the instant in which one view takes the place of another. It is needed because
//!   commits that delete a range replace the view as well. No other lock is taken under it.

use pando_environment::sync::atomic::{AtomicU64, Ordering};
use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use hashbrown::HashSet;
use pando_environment::sync::ArcSwap;
use pando_environment::sync::{LeafMutex, Mutex, MutexGuard};
use pando_storage::{CommitTimestamp, Lsn, SnapshotTimestamp, TreeId};

use super::flush::Flushed;
use super::view::{Frozen, Partition, TreeVersion, TreeView};
use crate::base::KeySpan;
use crate::base::{BlockAddress, Extent, Generation, Pointer, UNIT_BYTES, extents_of};
use crate::options::tree_settings::TreeSettings;
use crate::range_deletes::DeletedRanges;
use crate::space::SpaceChange;
use crate::tree::flush_debt::FlushDebt;
use crate::tree::leaf_growth::Growth;
use crate::tree::tree_blocks::Blocks;

/// See the module's head.
pub(crate) struct Tree {
    pub(crate) id: TreeId,
    pub(crate) name: String,
    layout: ArcSwap<Layout>,
    pub(crate) growth: Growth,
    pub(crate) flush_debt: Mutex<FlushDebt>,
    /// Addresses of leaf directories and slice indexes that could not be read when relocation tried.
    pub(crate) unmovable: LeafMutex<HashSet<BlockAddress>>,
    view: ArcSwap<TreeView>,
    view_swap: Mutex<()>,
    flush: Mutex<()>,
    pub(crate) installed: Mutex<Installed>,
    /// The timestamp of the commit that dropped it; 0 while it is live.
    dropped_at: AtomicU64,
}

/// The layout of blocks that are written from now on.
struct Layout {
    /// The options as the caller gave them; the catalog stores them.
    options: Vec<(String, String)>,
    settings: TreeSettings,
}

/// The space accounts of a tree's newest view.
#[derive(Default)]
pub(crate) struct Installed {
    /// Extents that the view gained and lost since the last checkpoint took this.
    pub(crate) change: SpaceChange,
    /// Extents that only older versions hold, the oldest version first.
    retired: VecDeque<Retired>,
}

/// Extents that are freed once no reader holds a version.
struct Retired {
    version: Weak<TreeVersion>,
    extents: Vec<(Extent, Generation)>,
}

impl Installed {
    /// Frees the extents of versions that no reader holds. Versions go in order, since a newer one shares
    /// extents with the older.
    pub(crate) fn reclaim(&mut self, blocks: &Blocks) {
        while let Some(oldest) = self.retired.front() {
            if oldest.version.strong_count() > 0 {
                return;
            }
            for (extent, birth) in &oldest.extents {
                blocks.store().free(*extent, *birth);
            }
            self.retired.pop_front();
        }
    }

    /// Bytes of the data file that only readers of older versions hold.
    pub(crate) fn retired_bytes(&self) -> u64 {
        let extents = self.retired.iter().flat_map(|retired| &retired.extents);
        extents.map(|(extent, _)| (extent.end() - extent.start()) * UNIT_BYTES).sum()
    }

    /// Whether a reader still holds a version that has been replaced.
    pub(crate) fn has_retired(&self) -> bool {
        !self.retired.is_empty()
    }

    /// The versions that have been replaced, and that a reader may still hold.
    pub(crate) fn older_versions(&self) -> impl Iterator<Item = Weak<TreeVersion>> + '_ {
        self.retired.iter().map(|retired| Weak::clone(&retired.version))
    }

    /// Takes blocks, grouped by owner, out of the view; `version` is the last that has them.
    pub(crate) fn retire(&mut self, version: &Arc<TreeVersion>, owners: &[Vec<Pointer>]) {
        let mut extents = Vec::new();
        for blocks in owners {
            let Some(birth) = blocks.iter().map(Pointer::birth).max() else { continue };
            let owned = extents_of(blocks);
            self.change.detach(owned.iter().copied());
            extents.extend(owned.into_iter().map(|extent| (extent, birth)));
        }
        self.retired.push_back(Retired { version: Arc::downgrade(version), extents });
    }

    /// Takes extents, each with its birth, out of the view; `version` is the last that has them.
    pub(crate) fn retire_extents(&mut self, version: &Arc<TreeVersion>, extents: Vec<(Extent, Generation)>) {
        self.change.detach(extents.iter().map(|(extent, _)| *extent));
        self.retired.push_back(Retired { version: Arc::downgrade(version), extents });
    }
}

impl Tree {
    pub(crate) fn new(
        id: TreeId,
        name: String,
        options: Vec<(String, String)>,
        settings: TreeSettings,
        view: TreeView,
    ) -> Tree {
        Tree {
            id,
            name,
            layout: ArcSwap::from_pointee(Layout { options, settings }),
            growth: Growth::default(),
            flush_debt: Mutex::default(),
            unmovable: LeafMutex::default(),
            view: ArcSwap::from_pointee(view),
            view_swap: Mutex::new(()),
            flush: Mutex::new(()),
            installed: Mutex::default(),
            dropped_at: AtomicU64::new(0),
        }
    }

    /// The settings for blocks that are written from now on.
    pub(crate) fn settings(&self) -> TreeSettings {
        self.layout.load().settings
    }

    /// The options of the layout, as the caller gave them.
    pub(crate) fn options(&self) -> Vec<(String, String)> {
        self.layout.load().options.clone()
    }

    /// Changes the layout of blocks that are written from now on.
    pub(crate) fn change_layout(&self, options: Vec<(String, String)>, settings: TreeSettings) {
        self.layout.store(Arc::new(Layout { options, settings }));
    }

    /// The newest view, for a short use: cheaper than [`view_owned`](Tree::view_owned), and without a lock.
    pub(crate) fn view(&self) -> arc_swap::Guard<Arc<TreeView>> {
        self.view.load()
    }

    /// The newest view, for a longer use.
    pub(crate) fn view_owned(&self) -> Arc<TreeView> {
        self.view.load_full()
    }

    /// Replaces the view, but keeps the newest range deletes. The caller holds `installed`.
    pub(crate) fn set_view(&self, _installed: &mut MutexGuard<'_, Installed>, view: TreeView) {
        let _swap = self.view_swap.lock();
        let ranges = Arc::clone(&self.view.load().ranges);
        self.view.store(Arc::new(view.into_ranges(ranges)));
    }

    /// Replaces the range deletes of the view.
    pub(crate) fn change_ranges(&self, change: impl FnOnce(&DeletedRanges) -> DeletedRanges) {
        let _swap = self.view_swap.lock();
        let view = self.view.load();
        let ranges = change(&view.ranges);
        self.view.store(Arc::new(view.with_ranges(Arc::new(ranges))));
    }

    /// Adds the range deletes of a commit, in the order of the log; the caller holds the gate. Replay brings
    /// some that are there already.
    pub(crate) fn delete_ranges<'s>(
        &self,
        spans: impl Iterator<Item = &'s KeySpan>,
        time: CommitTimestamp,
        lsn: Lsn,
    ) {
        self.change_ranges(|ranges| {
            if lsn <= ranges.seen() { ranges.clone() } else { ranges.with_all(spans, time, lsn) }
        });
    }

    pub(crate) fn lock_flush(&self) -> MutexGuard<'_, ()> {
        self.flush.lock()
    }

    pub(crate) fn try_lock_flush(&self) -> Option<MutexGuard<'_, ()>> {
        self.flush.try_lock()
    }

    /// Whether a transaction of this snapshot may use the tree: the snapshot does not see the drop.
    pub(crate) fn is_usable_at(&self, snapshot: SnapshotTimestamp) -> bool {
        match self.dropped_at.load(Ordering::Acquire) {
            0 => true,
            dropped => !snapshot.sees(CommitTimestamp::new(dropped)),
        }
    }

    pub(crate) fn is_dropped(&self) -> bool {
        self.dropped_at.load(Ordering::Acquire) != 0
    }

    /// Marks the tree dropped; false if it was already.
    pub(crate) fn set_dropped(&self, at: CommitTimestamp) -> bool {
        self.dropped_at.compare_exchange(0, at.get().max(1), Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Installs the result of a flush: its root replaces the old one, and the frozen buffer that it flushed
    /// leaves its partitions.
    pub(crate) fn install(&self, blocks: &Blocks, frozen: Option<&Arc<Frozen>>, flushed: Flushed) {
        let mut installed = self.installed.lock();
        let before = self.view.load_full();
        let partitions = before.partitions.iter().map(|partition| match (&partition.frozen, frozen) {
            (Some(own), Some(frozen)) if Arc::ptr_eq(own, frozen) => Arc::new(Partition {
                lower: partition.lower.clone(),
                active: Arc::clone(&partition.active),
                frozen: None,
                flushed_lsn: frozen.cut,
            }),
            _ => Arc::clone(partition),
        });
        let version = Arc::new(TreeVersion { root: flushed.root });
        let view = before.with_version(partitions.collect(), version);
        installed.change.attach(flushed.written);
        let mut owners = flushed.replaced;
        // A checkpoint writes nodes under this lock: replaced nodes that are not stored now never will be.
        let nodes = flushed.replaced_nodes.iter().filter_map(|slot| slot.stored());
        owners.extend(nodes.map(|pointer| vec![pointer]));
        installed.retire(&before.version, &owners);
        self.set_view(&mut installed, view);
        drop(before);
        owners.iter().flatten().for_each(|pointer| blocks.forget(pointer));
        installed.reclaim(blocks);
    }
}
