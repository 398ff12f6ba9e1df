//! The inner nodes of a tree in memory: immutable, shared between versions, loaded when first visited.
//!
//! # Terms
//! - *Child*: a leaf or an inner node, with its counters.
//! - *Pivot* of a child: the smallest key that it can hold; empty for the first child of a node.
//! - *Dirty* node: one that no checkpoint has written yet. It is always loaded.
//!
//! # Invariants
//! - Pivots ascend strictly; the first is empty.
//! - A node never changes but for [`NodeSlot::stored`] and [`NodeSlot::loaded`], each of which is set once.
//! - All leaves of a tree stand at the same depth.

use std::sync::{Arc, OnceLock};

use super::sorted_keys::SortedKeys;
use crate::format::inner_node::{StoredChild, StoredInnerNode};
use crate::space::Pointer;

/// A leaf as its parent knows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeafChild {
    /// The leaf's directory.
    pub(crate) directory: Pointer,
    pub(crate) entries: u64,
    pub(crate) content_bytes: u64,
}

/// A subtree.
#[derive(Clone, Debug)]
pub(crate) enum Child {
    Leaf(LeafChild),
    Inner(Arc<NodeSlot>),
}

impl Child {
    /// Entries (versions of keys) in the subtree.
    pub(crate) fn entries(&self) -> u64 {
        match self {
            Child::Leaf(leaf) => leaf.entries,
            Child::Inner(slot) => slot.entries,
        }
    }

    /// Bytes of keys and values in the subtree.
    pub(crate) fn content_bytes(&self) -> u64 {
        match self {
            Child::Leaf(leaf) => leaf.content_bytes,
            Child::Inner(slot) => slot.content_bytes,
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
    entries: u64,
    content_bytes: u64,
}

impl NodeSlot {
    /// A node that is on disk only.
    pub(crate) fn on_disk(pointer: Pointer, height: u8, entries: u64, content_bytes: u64) -> NodeSlot {
        NodeSlot { stored: OnceLock::from(pointer), loaded: OnceLock::new(), height, entries, content_bytes }
    }

    /// A node that is in memory only.
    pub(crate) fn dirty(node: InnerNode) -> NodeSlot {
        let entries = node.children.iter().map(Child::entries).sum();
        let content_bytes = node.children.iter().map(Child::content_bytes).sum();
        let height = node.height;
        NodeSlot { stored: OnceLock::new(), loaded: OnceLock::from(node), height, entries, content_bytes }
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

/// An inner node.
#[derive(Clone, Debug)]
pub(crate) struct InnerNode {
    height: u8,
    pivots: SortedKeys,
    children: Vec<Child>,
}

impl InnerNode {
    /// A node of these children, each with its pivot. The first pivot is made empty: a node covers all that its parent gives it.
    pub(crate) fn new(height: u8, mut children: Vec<(Box<[u8]>, Child)>) -> InnerNode {
        assert!(!children.is_empty(), "an inner node has a child");
        children[0].0 = Box::default();
        let pivots = SortedKeys::new(children.iter().map(|(pivot, _)| &**pivot)).expect("pivots ascend");
        let children = children.into_iter().map(|(_, child)| child).collect();
        InnerNode { height, pivots, children }
    }

    pub(crate) fn from_stored(stored: StoredInnerNode) -> InnerNode {
        let height = stored.height;
        let pivots = SortedKeys::new(stored.children.iter().map(|child| &*child.pivot));
        let pivots = pivots.expect("the decoder has checked that pivots ascend");
        let children = stored.children.into_iter().map(|child| match height {
            1 => Child::Leaf(LeafChild {
                directory: child.pointer,
                entries: child.entries,
                content_bytes: child.content_bytes,
            }),
            _ => {
                let slot = NodeSlot::on_disk(child.pointer, height - 1, child.entries, child.content_bytes);
                Child::Inner(Arc::new(slot))
            }
        });
        InnerNode { height, pivots, children: children.collect() }
    }

    /// The node as it is stored.
    ///
    /// # Panics
    /// If a child is dirty: children are written before their parents.
    pub(crate) fn to_stored(&self) -> StoredInnerNode {
        let children = self.pivots.iter().zip(&self.children).map(|(pivot, child)| StoredChild {
            pivot: pivot.into(),
            pointer: child.pointer().expect("children are written before their parents"),
            entries: child.entries(),
            content_bytes: child.content_bytes(),
        });
        StoredInnerNode { height: self.height, children: children.collect() }
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

    /// Memory that the node takes, without its children's.
    pub(crate) fn heap_bytes(&self) -> usize {
        size_of::<NodeSlot>() + self.children.capacity() * size_of::<Child>() + self.pivots.heap_bytes()
    }
}
