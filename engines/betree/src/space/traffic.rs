//! Statistics of reads and writes of the data file: by cause, and by tree and cause.
//!
//! Both blocks (with the bytes of their grains) and device calls are counted. One call may read or write
//! several blocks. It counts for the first of them. The calls of all causes together are those of
//! [`SpaceStatistics`](super::block_store::SpaceStatistics), without failed calls and without calls whose
//! first block did not match its pointer. A read counts only when it goes to the device, which costs far more
//! than the counting.

use pando_environment::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use pando_environment::sync::RwLock;
use pando_storage::TreeId;

use crate::base::{BlockKind, GRAIN_BYTES, Pointer};

/// The purpose of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Pages and directories of leaves.
    Leaves,
    /// Large values, which have blocks of their own.
    LargeValues,
    /// Pages, indexes and filters of runs.
    Runs,
    /// Inner nodes.
    Nodes,
    /// The list of trees.
    Catalog,
    /// The space map.
    SpaceMap,
}

impl Cause {
    const COUNT: usize = 6;

    /// The causes that trees have.
    pub(crate) const OF_TREES: [Cause; 4] = [Cause::Leaves, Cause::LargeValues, Cause::Runs, Cause::Nodes];

    /// All causes.
    pub(crate) const ALL: [Cause; Cause::COUNT] =
        [Cause::Leaves, Cause::LargeValues, Cause::Runs, Cause::Nodes, Cause::Catalog, Cause::SpaceMap];

    pub(crate) const fn of(kind: BlockKind) -> Cause {
        match kind {
            BlockKind::LeafDirectory | BlockKind::Page => Cause::Leaves,
            BlockKind::LargeValue => Cause::LargeValues,
            BlockKind::RunIndex | BlockKind::RunPage | BlockKind::Filter => Cause::Runs,
            BlockKind::InnerNode => Cause::Nodes,
            BlockKind::Catalog => Cause::Catalog,
            BlockKind::SpaceRoot | BlockKind::SpaceSnapshot | BlockKind::SpaceDelta => Cause::SpaceMap,
        }
    }
}

/// The place of a block in its device call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Passage {
    /// The first block of its call.
    First,
    /// A later block of its call.
    Later,
}

impl Passage {
    /// The passage of the block at this place of a call.
    pub(super) const fn of(place_in_call: usize) -> Passage {
        if place_in_call == 0 { Passage::First } else { Passage::Later }
    }

    const fn calls(self) -> u64 {
        match self {
            Passage::First => 1,
            Passage::Later => 0,
        }
    }
}

/// Calls, blocks and bytes of one cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flow {
    pub(crate) read_calls: u64,
    pub(crate) blocks_read: u64,
    pub(crate) bytes_read: u64,
    pub(crate) write_calls: u64,
    pub(crate) blocks_written: u64,
    pub(crate) bytes_written: u64,
}

#[derive(Debug, Default)]
struct Counts {
    read_calls: AtomicU64,
    blocks_read: AtomicU64,
    bytes_read: AtomicU64,
    write_calls: AtomicU64,
    blocks_written: AtomicU64,
    bytes_written: AtomicU64,
}

impl Counts {
    fn flow(&self) -> Flow {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Flow {
            read_calls: load(&self.read_calls),
            blocks_read: load(&self.blocks_read),
            bytes_read: load(&self.bytes_read),
            write_calls: load(&self.write_calls),
            blocks_written: load(&self.blocks_written),
            bytes_written: load(&self.bytes_written),
        }
    }

    fn read(&self, passage: Passage, bytes: u64) {
        self.read_calls.fetch_add(passage.calls(), Ordering::Relaxed);
        self.blocks_read.fetch_add(1, Ordering::Relaxed);
        self.bytes_read.fetch_add(bytes, Ordering::Relaxed);
    }

    fn wrote(&self, passage: Passage, bytes: u64) {
        self.write_calls.fetch_add(passage.calls(), Ordering::Relaxed);
        self.blocks_written.fetch_add(1, Ordering::Relaxed);
        self.bytes_written.fetch_add(bytes, Ordering::Relaxed);
    }
}

type ByCause = [Counts; Cause::COUNT];

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    all: ByCause,
    trees: RwLock<hashbrown::HashMap<u32, Arc<ByCause>>>,
}

impl Traffic {
    /// Counts a block of a tree (0: of none) that came from the device.
    pub(super) fn read(&self, tree: TreeId, pointer: &Pointer, passage: Passage) {
        let (cause, bytes) = (Cause::of(pointer.kind()) as usize, grains(pointer.disk_length()));
        self.all[cause].read(passage, bytes);
        self.with_tree(tree, |counts| counts[cause].read(passage, bytes));
    }

    /// Counts a block that was written.
    pub(super) fn wrote(&self, tree: TreeId, kind: BlockKind, disk_length: u32, passage: Passage) {
        let (cause, bytes) = (Cause::of(kind) as usize, grains(disk_length));
        self.all[cause].wrote(passage, bytes);
        self.with_tree(tree, |counts| counts[cause].wrote(passage, bytes));
    }

    fn with_tree(&self, tree: TreeId, count: impl Fn(&ByCause)) {
        if tree.get() == 0 {
            return;
        }
        if let Some(counts) = self.trees.read().get(&tree.get()) {
            return count(counts);
        }
        count(self.trees.write().entry(tree.get()).or_default());
    }

    /// Forgets a tree that was dropped for good.
    pub(crate) fn forget(&self, tree: TreeId) {
        self.trees.write().remove(&tree.get());
    }

    /// The totals of one cause since the store was opened.
    pub(crate) fn of_cause(&self, cause: Cause) -> Flow {
        self.all[cause as usize].flow()
    }

    /// The totals of one cause and tree since the store was opened.
    pub(crate) fn of_tree(&self, tree: TreeId, cause: Cause) -> Flow {
        self.trees.read().get(&tree.get()).map_or_else(Flow::default, |counts| counts[cause as usize].flow())
    }
}

fn grains(disk_length: u32) -> u64 {
    u64::from(disk_length).next_multiple_of(GRAIN_BYTES)
}
