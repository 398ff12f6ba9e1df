//! View: the partitions of a tree with their buffers, the version of its nodes, and its range deletes. A
//! reader takes hold of all of them at once.
//!
//! # Terms
//! - *Root partition*: a contiguous range of keys with one *active* buffer, which takes new writes. Sometimes
//!   it also has a *frozen* one, which is being flushed into runs and leaves.
//! - *Version* of a tree: an immutable root. Blocks that a newer version does not use are freed when no view
//!   holds the older version.
//! - *Flushed LSN* of a partition: the version has every write to the partition up to this record, and none
//!   after. It says nothing of durability: that takes a checkpoint.
//!
//! # Invariants
//! - Lower bounds ascend strictly; the first is empty: every key has one partition.
//! - A view never changes. A freeze or a finished flush makes a new one, under the tree's install lock. A
//!   range delete makes one without that lock: only the list of range deletes differs then.
//! - An exact cut lies between frozen and active buffer: the frozen one has all writes up to [`Frozen::cut`],
//!   the active one all later ones.

use std::sync::Arc;

use pando_storage::Lsn;

use super::buffer::SharedBuffer;
use super::node::Child;
use super::path::Target;
use crate::base::SortedKeys;
use crate::range_deletes::DeletedRanges;

/// A frozen buffer: it takes no more writes.
#[derive(Debug)]
pub(crate) struct Frozen {
    pub(crate) buffer: Arc<SharedBuffer>,
    /// The last log record whose writes it may have.
    pub(crate) cut: Lsn,
}

/// A root partition; it reaches up to the next one's lower bound.
#[derive(Debug)]
pub(crate) struct Partition {
    pub(crate) lower: Box<[u8]>,
    pub(crate) active: Arc<SharedBuffer>,
    pub(crate) frozen: Option<Arc<Frozen>>,
    pub(crate) flushed_lsn: Lsn,
}

impl Partition {
    /// A partition without writes.
    pub(crate) fn empty(lower: Box<[u8]>, flushed_lsn: Lsn) -> Partition {
        Partition { lower, active: Arc::new(SharedBuffer::new()), frozen: None, flushed_lsn }
    }

    /// The first log record whose writes are only in the partition's buffers.
    pub(crate) fn first_unflushed(&self) -> Option<Lsn> {
        let frozen = self.frozen.as_ref().and_then(|frozen| frozen.buffer.first_lsn());
        [frozen, self.active.first_lsn()].into_iter().flatten().min()
    }
}

/// A version of a tree: its nodes and leaves as of one flush.
#[derive(Debug, Default)]
pub(crate) struct TreeVersion {
    /// `None` for a tree without leaves.
    pub(crate) root: Option<Child>,
}

/// See the module's head.
#[derive(Debug)]
pub(crate) struct TreeView {
    pub(crate) partitions: Vec<Arc<Partition>>,
    pub(crate) version: Arc<TreeVersion>,
    /// Range deletes over versions that buffers, nodes and leaves may still have.
    pub(crate) ranges: Arc<DeletedRanges>,
    /// The lower bounds of the partitions, side by side in memory: every read searches them.
    bounds: Arc<SortedKeys>,
}

impl TreeView {
    /// The view of an empty tree.
    pub(crate) fn empty(flushed_lsn: Lsn) -> TreeView {
        let partition = Partition::empty(Box::default(), flushed_lsn);
        TreeView::new(vec![Arc::new(partition)], Arc::default())
    }

    /// A view of these parts.
    ///
    /// # Panics
    /// If lower bounds do not ascend from the empty key.
    pub(crate) fn new(partitions: Vec<Arc<Partition>>, version: Arc<TreeVersion>) -> TreeView {
        let bounds = SortedKeys::new(partitions.iter().map(|partition| &*partition.lower));
        let bounds = Arc::new(bounds.expect("the lower bounds of partitions ascend from the empty key"));
        assert!(!partitions.is_empty(), "every key has a partition");
        TreeView { partitions, version, ranges: Arc::default(), bounds }
    }

    /// This view with another version, and partitions with the same lower bounds.
    pub(crate) fn with_version(
        &self,
        partitions: Vec<Arc<Partition>>,
        version: Arc<TreeVersion>,
    ) -> TreeView {
        assert!(partitions.len() == self.partitions.len(), "the partitions keep their bounds");
        TreeView { partitions, version, ranges: Arc::clone(&self.ranges), bounds: Arc::clone(&self.bounds) }
    }

    /// The same with other range deletes.
    pub(crate) fn into_ranges(self, ranges: Arc<DeletedRanges>) -> TreeView {
        TreeView { ranges, ..self }
    }

    /// A copy of this view with other range deletes.
    pub(crate) fn with_ranges(&self, ranges: Arc<DeletedRanges>) -> TreeView {
        let (partitions, version) = (self.partitions.clone(), Arc::clone(&self.version));
        TreeView { partitions, version, ranges, bounds: Arc::clone(&self.bounds) }
    }

    /// The index of the partition of a key.
    pub(crate) fn partition_of(&self, key: &[u8]) -> usize {
        self.bounds.covering(key)
    }

    /// The index of the partition that a target names.
    pub(crate) fn partition_at(&self, target: Target<'_>) -> usize {
        target.among(&self.bounds)
    }

    /// The end of a partition: the next one's lower bound.
    pub(crate) fn upper_of(&self, partition: usize) -> Option<&[u8]> {
        self.partitions.get(partition + 1).map(|next| &*next.lower)
    }

    /// All buffers. A frozen one that several partitions share is listed once.
    pub(crate) fn buffers(&self) -> impl Iterator<Item = &Arc<SharedBuffer>> + '_ {
        let mut last: Option<&Arc<Frozen>> = None;
        self.partitions.iter().flat_map(move |partition| {
            let frozen = partition.frozen.as_ref();
            let is_new = match (last, frozen) {
                (Some(last), Some(frozen)) => !Arc::ptr_eq(last, frozen),
                (None, _) | (_, None) => true,
            };
            last = frozen;
            let frozen = frozen.filter(|_| is_new).map(|frozen| &frozen.buffer);
            [Some(&partition.active), frozen].into_iter().flatten()
        })
    }

    /// Bytes in all buffers.
    pub(crate) fn buffered_bytes(&self) -> usize {
        self.buffers().map(|buffer| buffer.bytes()).sum()
    }
}
