//! The limit on resident inner nodes and filters: the part of the trees above the pages that stays in memory.
//!
//! Inner nodes, and slice indexes with their filters, are loaded when a read first needs them, and then stay.
//! Together they may take [`RESIDENT_PERCENT`] of the memory limit. Beyond that, once a second:
//!
//! 1. Nodes and indexes that were not used since the last check are released, tree by tree.
//! 2. If that is not enough, nodes are released with everything below them, used or not, from the lowest
//!    height up.
//!
//! Not here: how a tree releases them ([`ResidentTree`] is implemented by `tree`), and the limit on pages
//! (`cache`).

use std::sync::Arc;

use pando_environment::sync::atomic::{AtomicUsize, Ordering};

/// Percent of the memory limit for resident inner nodes and filters. Pages get less. An inner node or a
/// filter spares a device read to every reader that passes; a page spares one only to readers of its own
/// keys.
pub(crate) const RESIDENT_PERCENT: u64 = 40;
/// The divisor of the limit by which a release goes below it, so that the next one is not due at once.
const SLACK_DIVISOR: usize = 16;

/// Memory of resident inner nodes, and of indexes of slices with their filters, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ResidentBytes {
    pub(crate) nodes: usize,
    pub(crate) indexes: usize,
}

impl ResidentBytes {
    /// The sum of both.
    #[must_use]
    pub(crate) fn and(self, other: ResidentBytes) -> ResidentBytes {
        ResidentBytes { nodes: self.nodes + other.nodes, indexes: self.indexes + other.indexes }
    }

    pub(crate) fn total(self) -> usize {
        self.nodes + self.indexes
    }
}

/// The inner nodes and filters that may be released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Releasable {
    /// Those that were not used since the last check.
    Unused,
    /// Nodes up to this height with everything below them, used or not. The lower the height, the more nodes
    /// there are, and the fewer reads pass each of them.
    UpTo(u8),
}

/// A tree whose inner nodes and filters are partly in memory.
pub(crate) trait ResidentTree {
    /// The resident bytes of the newest version. Nodes of older versions are freed with their last reader.
    fn resident_bytes(&self) -> ResidentBytes;

    /// Levels of inner nodes.
    fn height(&self) -> u8;

    /// Releases up to `wanted` bytes and returns how many it released; none while the tree is being flushed.
    /// Each `turn` begins a node at another child, so that other keys have to wait for the device each time.
    fn release(&self, releasable: Releasable, wanted: usize, turn: usize) -> ResidentBytes;
}

/// The limit, with its statistics.
#[derive(Debug, Default)]
pub(crate) struct ResidentLimit {
    /// Bytes of inner nodes at the last check.
    node_bytes: AtomicUsize,
    /// Bytes released since the store was opened.
    released_bytes: AtomicUsize,
    turn: AtomicUsize,
}

impl ResidentLimit {
    /// Bytes of inner nodes at the last check.
    pub(crate) fn node_bytes(&self) -> usize {
        self.node_bytes.load(Ordering::Relaxed)
    }

    /// Bytes released since the store was opened.
    pub(crate) fn released_bytes(&self) -> usize {
        self.released_bytes.load(Ordering::Relaxed)
    }

    /// Measures the trees, and releases the excess over this part of `cache_bytes`.
    pub(crate) fn enforce<T: ResidentTree>(&self, mut trees: Vec<Arc<T>>, cache_bytes: u64) {
        let bytes =
            trees.iter().map(|tree| tree.resident_bytes()).fold(ResidentBytes::default(), ResidentBytes::and);
        let limit = usize::try_from(cache_bytes * RESIDENT_PERCENT / 100).unwrap_or(usize::MAX);
        let over = bytes.total().saturating_sub(limit);
        let released = if over > 0 {
            self.release(&mut trees, over + limit / SLACK_DIVISOR)
        } else {
            ResidentBytes::default()
        };
        self.node_bytes.store(bytes.nodes.saturating_sub(released.nodes), Ordering::Relaxed);
    }

    /// Releases `wanted` bytes, as far as possible. Returns the released bytes.
    fn release<T: ResidentTree>(&self, trees: &mut [Arc<T>], wanted: usize) -> ResidentBytes {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let count = trees.len().max(1);
        trees.rotate_left(turn % count);
        let mut released = ResidentBytes::default();
        let height = trees.iter().map(|tree| tree.height()).max().unwrap_or(0);
        for releasable in std::iter::once(Releasable::Unused).chain((1..=height).map(Releasable::UpTo)) {
            for tree in trees.iter() {
                if released.total() >= wanted {
                    break;
                }
                released = released.and(tree.release(releasable, wanted - released.total(), turn));
            }
        }
        self.released_bytes.fetch_add(released.total(), Ordering::Relaxed);
        released
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// Bytes that were not used, and bytes that were.
    struct Toy(Mutex<(usize, usize)>);

    impl ResidentTree for Toy {
        fn resident_bytes(&self) -> ResidentBytes {
            let (unused, used) = *self.0.lock().unwrap();
            ResidentBytes { nodes: used, indexes: unused }
        }

        fn height(&self) -> u8 {
            2
        }

        fn release(&self, releasable: Releasable, wanted: usize, _turn: usize) -> ResidentBytes {
            let mut bytes = self.0.lock().unwrap();
            match releasable {
                Releasable::Unused => {
                    let indexes = bytes.0.min(wanted);
                    bytes.0 -= indexes;
                    ResidentBytes { nodes: 0, indexes }
                }
                Releasable::UpTo(_) => {
                    let nodes = bytes.1.min(wanted);
                    bytes.1 -= nodes;
                    ResidentBytes { nodes, indexes: 0 }
                }
            }
        }
    }

    #[test]
    fn used_nodes_are_released_only_where_unused_ones_are_not_enough() {
        let limit = ResidentLimit::default();
        let trees: Vec<Arc<Toy>> =
            [(100, 200), (100, 200)].map(|bytes| Arc::new(Toy(Mutex::new(bytes)))).into();
        limit.enforce(trees.clone(), 2_000);
        assert_eq!((limit.released_bytes(), limit.node_bytes()), (0, 400), "600 of 800 bytes");
        limit.enforce(trees.clone(), 1_250);
        assert_eq!(limit.released_bytes(), 100 + 500 / 16);
        assert_eq!(limit.node_bytes(), 400, "unused indexes were enough");
        limit.enforce(trees.clone(), 500);
        let left: usize = trees.iter().map(|tree| tree.resident_bytes().total()).sum();
        assert_eq!((left, limit.node_bytes()), (200 - 200 / 16, 200 - 200 / 16));
    }
}
