//! Inner nodes in memory: immutable, shared between versions of a tree, loaded when first visited.
//!
//! # Terms
//! - *Child*: a leaf or an inner node, with its counters.
//! - *Slices* of a child: the messages pending for it, see [`super::slice`]; newest first.
//! - *Part*: a child with its pivot and its slices, while a node is made.
//! - *Pivot* of a child: the smallest key that it can hold; empty for the first child of a node.
//! - *Dirty* node: one that no checkpoint has written yet. It is always loaded.
//!
//! # Invariants
//! - Pivots ascend strictly; the first is empty.
//! - A node never changes, except for [`NodeSlot::stored`] and [`NodeSlot::loaded`], each of which is set
//!   once, and for its read counts and use marks. Its content is released by putting another slot in its
//!   place ([`crate::tree::resident_nodes`]).
//! - All leaves of a tree stand at the same depth.
//! - A slice holds keys of its child only.

use pando_environment::sync::OnceLock;
use pando_environment::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::Arc;

use super::slice::{Slice, Slices};
use crate::base::Pointer;
use crate::base::SortedKeys;
use crate::format::inner_node::{StoredChild, StoredInnerNode};

/// A leaf, as its parent records it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeafChild {
    /// The leaf's directory.
    pub(crate) directory: Pointer,
    pub(crate) entries: u64,
    pub(crate) content_bytes: u64,
    /// The end, in units, of the last large value of the leaf; 0 without any.
    pub(crate) reach: u64,
}

/// A subtree.
#[derive(Clone, Debug)]
pub(crate) enum Child {
    Leaf(LeafChild),
    Inner(Arc<NodeSlot>),
}

impl Child {
    /// Entries (versions of keys) in the subtree, pending ones among them.
    pub(crate) fn entries(&self) -> u64 {
        match self {
            Child::Leaf(leaf) => leaf.entries,
            Child::Inner(slot) => slot.totals.entries,
        }
    }

    /// Bytes of keys and values in the subtree.
    pub(crate) fn content_bytes(&self) -> u64 {
        match self {
            Child::Leaf(leaf) => leaf.content_bytes,
            Child::Inner(slot) => slot.totals.content_bytes,
        }
    }

    /// The end, in units, of the last large value of the subtree, pending ones included; 0 without any.
    pub(crate) fn reach(&self) -> u64 {
        match self {
            Child::Leaf(leaf) => leaf.reach,
            Child::Inner(slot) => slot.totals.reach,
        }
    }

    /// Its address on disk; `None` for a dirty node.
    pub(crate) fn pointer(&self) -> Option<Pointer> {
        match self {
            Child::Leaf(leaf) => Some(leaf.directory),
            Child::Inner(slot) => slot.stored.get().copied(),
        }
    }
}

/// An inner node, on disk, in memory, or both.
#[derive(Debug)]
pub(crate) struct NodeSlot {
    stored: OnceLock<Pointer>,
    loaded: OnceLock<InnerNode>,
    height: u8,
    totals: Totals,
    used: Used,
}

/// The counters of a whole subtree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    /// Entries (versions of keys), pending ones among them.
    pub(crate) entries: u64,
    /// Bytes of keys and values.
    pub(crate) content_bytes: u64,
    /// The end, in units, of the last large value; 0 without any.
    pub(crate) reach: u64,
}

impl Totals {
    /// The sum of two counters. Counters come from disk: a wrong one makes the sum wrong, but must not panic.
    #[must_use]
    pub(crate) fn with(self, other: Totals) -> Totals {
        Totals {
            entries: self.entries.saturating_add(other.entries),
            content_bytes: self.content_bytes.saturating_add(other.content_bytes),
            reach: self.reach.max(other.reach),
        }
    }
}

impl NodeSlot {
    /// A node that is on disk only.
    pub(crate) fn on_disk(pointer: Pointer, height: u8, totals: Totals) -> NodeSlot {
        NodeSlot {
            stored: OnceLock::from(pointer),
            loaded: OnceLock::new(),
            height,
            totals,
            used: Used::default(),
        }
    }

    /// A node that is in memory only.
    pub(crate) fn dirty(node: InnerNode) -> NodeSlot {
        let (totals, height) = (node.totals(), node.height);
        NodeSlot {
            stored: OnceLock::new(),
            loaded: OnceLock::from(node),
            height,
            totals,
            used: Used::default(),
        }
    }

    /// The same node, on disk only; `None` for a dirty one.
    pub(crate) fn without_content(&self) -> Option<NodeSlot> {
        self.stored().map(|pointer| NodeSlot::on_disk(pointer, self.height, self.totals))
    }

    /// The same node with other content in memory, which stands for the same children and slices.
    pub(crate) fn with_content(&self, node: InnerNode) -> NodeSlot {
        assert!(node.height == self.height, "the node itself stays the same");
        let stored = self.stored().map_or_else(OnceLock::new, OnceLock::from);
        let loaded = OnceLock::from(node);
        NodeSlot { stored, loaded, height: self.height, totals: self.totals, used: Used::default() }
    }

    pub(crate) fn note_use(&self) {
        self.used.note();
    }

    /// Whether it was used since the last call.
    pub(crate) fn take_used(&self) -> bool {
        self.used.take()
    }

    pub(crate) fn loaded(&self) -> Option<&InnerNode> {
        self.loaded.get()
    }

    pub(crate) fn stored(&self) -> Option<Pointer> {
        self.stored.get().copied()
    }

    pub(crate) fn height(&self) -> u8 {
        self.height
    }

    /// Keeps a node that was read from disk. Of two threads that load at the same time, one wins.
    pub(crate) fn fill(&self, node: InnerNode) -> &InnerNode {
        self.loaded.get_or_init(|| node)
    }

    /// Notes the address at which a checkpoint wrote the node.
    pub(crate) fn set_stored(&self, pointer: Pointer) {
        self.stored.set(pointer).expect("a node is written by one checkpoint, once");
    }
}

/// A child on its way into a node.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    /// The smallest key that the child can hold.
    pub(crate) lower: Box<[u8]>,
    pub(crate) child: Child,
    pub(crate) slices: Slices,
}

/// Reads that had to merge the slices of a child, from which on flushing the child is worthwhile. The count
/// ends here, so that readers stop writing to the shared cache line of the counter.
const READS_WORTH: u8 = 16;

/// A mark that a node or slice was visited since the last call of [`take`](Used::take).
#[derive(Debug, Default)]
pub(super) struct Used(AtomicBool);

impl Used {
    pub(super) fn note(&self) {
        // A load first: readers share the cache line while the mark is set.
        if !self.0.load(Ordering::Relaxed) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    pub(super) fn take(&self) -> bool {
        self.0.load(Ordering::Relaxed) && self.0.swap(false, Ordering::Relaxed)
    }
}

/// An inner node.
#[derive(Debug)]
pub(crate) struct InnerNode {
    height: u8,
    pivots: SortedKeys,
    children: Vec<Child>,
    /// The slices of each child; empty if no child has any.
    pending: Vec<Slices>,
    /// The reads that had to merge the slices of each child, up to [`READS_WORTH`]; empty if no child has
    /// any.
    reads: Box<[AtomicU8]>,
}

impl InnerNode {
    /// A node of these parts. The first pivot is made empty: a node covers all keys that its parent gives it.
    pub(crate) fn new(height: u8, mut parts: Vec<Part>) -> InnerNode {
        assert!(!parts.is_empty(), "an inner node has a child");
        parts[0].lower = Box::default();
        let pivots = SortedKeys::new(parts.iter().map(|part| &*part.lower)).expect("pivots ascend");
        let has_pending = parts.iter().any(|part| !part.slices.is_empty());
        let (children, pending): (Vec<_>, Vec<_>) =
            parts.into_iter().map(|part| (part.child, part.slices)).unzip();
        let pending = if has_pending { pending } else { Vec::new() };
        let reads = pending.iter().map(|_| AtomicU8::new(0)).collect();
        InnerNode { height, pivots, children, pending, reads }
    }

    pub(crate) fn from_stored(stored: StoredInnerNode) -> InnerNode {
        let height = stored.height;
        let parts = stored.children.into_iter().map(|child| Part {
            lower: child.pivot,
            child: match height {
                1 => Child::Leaf(LeafChild {
                    directory: child.pointer,
                    entries: child.entries,
                    content_bytes: child.content_bytes,
                    reach: child.reach,
                }),
                _ => {
                    let totals = Totals {
                        entries: child.entries,
                        content_bytes: child.content_bytes,
                        reach: child.reach,
                    };
                    Child::Inner(Arc::new(NodeSlot::on_disk(child.pointer, height - 1, totals)))
                }
            },
            slices: child.slices.into_iter().map(|slice| Arc::new(Slice::on_disk(slice))).collect(),
        });
        // The decoder has checked that there is a child and that pivots ascend from the empty one.
        InnerNode::new(height, parts.collect())
    }

    /// The same node with the read counts of another node that has the same children.
    pub(crate) fn with_reads_of(self, other: &InnerNode) -> InnerNode {
        for (own, others) in self.reads.iter().zip(&other.reads) {
            own.store(others.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        self
    }

    /// The node as it is stored.
    ///
    /// # Panics
    /// If a child is dirty: children are written before their parents.
    pub(crate) fn to_stored(&self) -> StoredInnerNode {
        let children = (0..self.children.len()).map(|at| {
            let child = &self.children[at];
            StoredChild {
                pivot: self.pivots.get(at).into(),
                pointer: child.pointer().expect("children are written before their parents"),
                entries: child.entries(),
                content_bytes: child.content_bytes(),
                reach: child.reach(),
                slices: self.slices(at).iter().map(|slice| *slice.stored()).collect(),
            }
        });
        StoredInnerNode { height: self.height, children: children.collect() }
    }

    /// The counters of all children and slices.
    fn totals(&self) -> Totals {
        let children = self.children.iter().map(|child| Totals {
            entries: child.entries(),
            content_bytes: child.content_bytes(),
            reach: child.reach(),
        });
        let slices = self.pending.iter().flatten().map(|slice| Totals {
            entries: slice.entries(),
            content_bytes: slice.content_bytes(),
            reach: slice.reach(),
        });
        children.chain(slices).fold(Totals::default(), Totals::with)
    }

    pub(crate) fn height(&self) -> u8 {
        self.height
    }

    pub(crate) fn children(&self) -> &[Child] {
        &self.children
    }

    pub(crate) fn pivots(&self) -> &SortedKeys {
        &self.pivots
    }

    /// The slices of a child, newest first.
    pub(crate) fn slices(&self, child: usize) -> &[Arc<Slice>] {
        self.pending.get(child).map_or(&[], Vec::as_slice)
    }

    /// Notes that a read had to merge the slices of a child.
    pub(crate) fn note_read(&self, child: usize) {
        if let Some(reads) = self.reads.get(child)
            && reads.load(Ordering::Relaxed) < READS_WORTH
        {
            // Threads that pass the check at the same time count beyond the bound. Their number is far too
            // small to overflow the counter.
            reads.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Whether reads had to merge the slices of a child often.
    pub(crate) fn is_wanted(&self, child: usize) -> bool {
        self.reads.get(child).is_some_and(|reads| reads.load(Ordering::Relaxed) >= READS_WORTH)
    }

    /// All slices of the node.
    pub(crate) fn all_slices(&self) -> impl Iterator<Item = &Arc<Slice>> + '_ {
        self.pending.iter().flatten()
    }

    /// A child as a part; `lower` is the first key of the node.
    pub(crate) fn part(&self, at: usize, lower: &[u8]) -> Part {
        let lower = if at == 0 { lower } else { self.pivots.get(at) };
        Part { lower: lower.into(), child: self.children[at].clone(), slices: self.slices(at).to_vec() }
    }

    /// Memory of the node, without its children's and its slices'.
    pub(crate) fn heap_bytes(&self) -> usize {
        size_of::<NodeSlot>()
            + self.children.capacity() * (size_of::<Child>() + size_of::<Slices>())
            + self.pivots.heap_bytes()
    }
}
