//! A tree: immutable nodes and leaves below, mutable buffers above, one consistent view for readers.
//!
//! # The parts
//! - [`blocks`]: how trees read blocks. [`flush_read_ahead`]: the reads of a flush, done together.
//! - [`node`]: inner nodes in memory. [`view`]: what a reader takes hold of: partitions with their buffers,
//!   and a version.
//! - [`slice`]: what waits in an inner node for one of its children.
//! - [`lookup`] and [`scan`] read a view. [`flush`] takes [`messages`] of a frozen buffer down: into slices
//!   ([`run_writer`]) or into leaves ([`leaf_merge`], [`leaf_writer`]), with what waits on the way
//!   ([`taking_along`]), as [`policy`] says, and makes the nodes above anew. [`digest`] has what waits go
//!   down when nothing arrives; [`behind`] knows where.
//! - [`ranges`]: whole ranges of keys that were deleted at once, and [`work_in`]: how nodes and leaves do
//!   without what they had.
//!
//! # Where the newest version of a key is
//! The active buffer of its partition, else the partition's frozen buffer, else the slices of each node on
//! the way down, the newest first, else the leaf. Times descend strictly in that order, so that a lookup
//! stops at the first version that its snapshot sees; where that is a merge, it goes on to what the merge is
//! applied to ([`joining`]). Where it is older than a range delete over the key that the snapshot sees as
//! well, the key is not there ([`ranges`]).

pub(crate) mod blocks;
pub(crate) mod buffer;
pub(crate) mod estimate;
pub(crate) mod flush;
pub(crate) mod flush_debt;
pub(crate) mod flush_policy;
pub(crate) mod flush_read_ahead;
pub(crate) mod large_values;
pub(crate) mod leaf_growth;
pub(crate) mod leaf_merge;
pub(crate) mod leaf_writer;
pub(crate) mod load;
pub(crate) mod lookup;
pub(crate) mod messages;
pub(crate) mod node;
pub(crate) mod owned_extents;
pub(crate) mod partial_flush;
pub(crate) mod path;
pub(crate) mod pending_children;
pub(crate) mod pending_slices;
pub(crate) mod range_delete_step;
pub(crate) mod registry;
pub(crate) mod resident_nodes;
pub(crate) mod run_writer;
pub(crate) mod scan;
pub(crate) mod slice;
pub(crate) mod tree_state;
pub(crate) mod value_merge;
pub(crate) mod version_retention;
pub(crate) mod view;
