//! A tree: immutable nodes and leaves below, mutable buffers above, one consistent view for readers.
//!
//! # The parts
//! - [`node`]: inner nodes in memory. [`view`]: what a reader takes hold of: partitions with their buffers, and a version.
//! - [`lookup`] and [`scan`] read a view. [`merge`] writes the leaves that a frozen buffer touches; [`rebuild`] makes the
//!   inner nodes above them anew.
//!
//! # Where the newest version of a key is
//! The active buffer of its partition, else the partition's frozen buffer, else the leaf. Times descend strictly in that
//! order, so that a lookup stops at the first version that its snapshot sees.

pub(crate) mod buffer;
pub(crate) mod estimate;
pub(crate) mod leaf_writer;
pub(crate) mod lookup;
pub(crate) mod merge;
pub(crate) mod node;
pub(crate) mod path;
pub(crate) mod rebuild;
pub(crate) mod retain;
pub(crate) mod scan;
pub(crate) mod settings;
pub(crate) mod sorted_keys;
pub(crate) mod tree_state;
pub(crate) mod view;
