//! The inner nodes of a tree in memory: immutable, shared between versions, loaded when first visited.
//!
//! # Terms
//! - *Child*: a leaf or an inner node, with its counters.
//! - *Slices* of a child: what is pending for it, see [`super::slice`]; newest first.
//! - *Part*: a child with its pivot and its slices, while a node is made.
//! - *Pivot* of a child: the smallest key that it can hold; empty for the first child of a node.
//! - *Dirty* node: one that no checkpoint has written yet. It is always loaded.
//!
//! # Invariants
//! - Pivots ascend strictly; the first is empty.
//! - A node never changes but for [`NodeSlot::stored`] and [`NodeSlot::loaded`], each of which is set once, and for the counts of
//!   reads and whether it was used. To let go of what is in memory another takes its place ([`crate::tree::resident_nodes`]).
//! - All leaves of a tree stand at the same depth.
//! - A slice holds keys of its child only.

use pando_environment::sync::OnceLock;
use pando_environment::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::Arc;

use super::slice::{Slice, Slices};
use crate::base::Pointer;
use crate::base::SortedKeys;
use crate::format::inner_node::{StoredChild, StoredInnerNode};

/// A leaf as its parent knows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeafChild {
    /// The leaf's directory.
    pub(crate) directory: Pointer,
    pub(crate) entries: u64,
    pub(crate) content_bytes: u64,
    /// The unit behind the last that its large values have; 0 without any.
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

    /// The unit behind the last that large values of the subtree have, pending ones among them; 0 without any.
    pub(crate) fn reach(&self) -> u64 {
        match self {
            Child::Leaf(leaf) => leaf.reach,
            Child::Inner(slot) => slot.totals.reach,
        }
    }

    /// Where it is stored, unless it is dirty.
    pub(crate) fn pointer(&self) -> Option<Pointer> {
        match self {
            Child::Leaf(leaf) => Some(leaf.directory),
            Child::Inner(slot) => slot.stored.get().copied(),
        }
    }
}

/// The place of an inner node: on disk, in memory, or both.
#[derive(Debug)]
pub(crate) struct NodeSlot {
    stored: OnceLock<Pointer>,
    loaded: OnceLock<InnerNode>,
    height: u8,
    totals: Totals,
    used: Used,
}

/// What a subtree has altogether.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    /// Entries (versions of keys), pending ones among them.
    pub(crate) entries: u64,
    /// Bytes of keys and values.
    pub(crate) content_bytes: u64,
    /// The unit behind the last that large values have; 0 without any.
    pub(crate) reach: u64,
}

impl Totals {
    /// These and others together. Counters come from disk: a sum of wrong ones is wrong, but no reason to end.
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

    /// The same node with its content in other memory.
    pub(crate) fn with_content(&self, node: InnerNode) -> NodeSlot {
        assert!(node.height == self.height, "what is in memory changes, and not the node");
        let stored = self.stored().map_or_else(OnceLock::new, OnceLock::from);
        let loaded = OnceLock::from(node);
        NodeSlot { stored, loaded, height: self.height, totals: self.totals, used: Used::default() }
    }

    pub(crate) fn note_use(&self) {
        self.used.note();
    }

    /// Whether it was used since this was last asked.
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

    /// Keeps what was read from disk. Of two threads that load at the same time, one wins.
    pub(crate) fn fill(&self, node: InnerNode) -> &InnerNode {
        self.loaded.get_or_init(|| node)
    }

    /// Remembers where a checkpoint wrote the node.
    pub(crate) fn set_stored(&self, pointer: Pointer) {
        self.stored.set(pointer).expect("a node is written by one checkpoint, once");
    }
}

/// A child on its way into a node.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    /// The smallest key that it is for.
    pub(crate) lower: Box<[u8]>,
    pub(crate) child: Child,
    pub(crate) slices: Slices,
}

/// So many reads that had to merge what waits for a child make it worth sending down. They are not counted further, so that readers
/// do not take the line of the counter from one another for ever.
const READS_WORTH: u8 = 16;

/// Whether something was visited since somebody last asked.
#[derive(Debug, Default)]
pub(super) struct Used(AtomicBool);

impl Used {
    pub(super) fn note(&self) {
        // Readers share the line as long as nobody asks.
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
    /// For each child how many reads had to merge its slices, up to [`READS_WORTH`]; empty if no child has any.
    reads: Box<[AtomicU8]>,
}

impl InnerNode {
    /// A node of these parts. The first pivot is made empty: a node covers all that its parent gives it.
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

    /// With the counts of reads of another with the same children.
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

    /// What lies below, what is pending there among it.
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

    /// What is pending for a child, newest first.
    pub(crate) fn slices(&self, child: usize) -> &[Arc<Slice>] {
        self.pending.get(child).map_or(&[], Vec::as_slice)
    }

    /// A read had to merge the slices of a child.
    pub(crate) fn note_read(&self, child: usize) {
        if let Some(reads) = self.reads.get(child)
            && reads.load(Ordering::Relaxed) < READS_WORTH
        {
            // Threads that come here at the same time count beyond it, but far from overflowing: the load is a moment ago.
            reads.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Whether reads had to merge the slices of a child again and again.
    pub(crate) fn is_wanted(&self, child: usize) -> bool {
        self.reads.get(child).is_some_and(|reads| reads.load(Ordering::Relaxed) >= READS_WORTH)
    }

    /// All slices of the node.
    pub(crate) fn all_slices(&self) -> impl Iterator<Item = &Arc<Slice>> + '_ {
        self.pending.iter().flatten()
    }

    /// A child as a part; `lower` is where the node begins.
    pub(crate) fn part(&self, at: usize, lower: &[u8]) -> Part {
        let lower = if at == 0 { lower } else { self.pivots.get(at) };
        Part { lower: lower.into(), child: self.children[at].clone(), slices: self.slices(at).to_vec() }
    }

    /// Memory that the node takes, without its children's and its slices'.
    pub(crate) fn heap_bytes(&self) -> usize {
        size_of::<NodeSlot>()
            + self.children.capacity() * (size_of::<Child>() + size_of::<Slices>())
            + self.pivots.heap_bytes()
    }
}
