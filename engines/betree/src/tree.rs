//! A tree: immutable nodes and leaves below, mutable buffers above, one consistent view for readers.
//!
//! # The parts
//! - [`node`]: inner nodes in memory. [`view`]: what a reader takes hold of: partitions with their buffers, and a version.
//! - [`slice`]: what waits in an inner node for one of its children.
//! - [`lookup`] and [`scan`] read a view. [`flush`] takes [`messages`] of a frozen buffer down: into slices
//!   ([`run_writer`]) or into leaves ([`leaf_merge`], [`leaf_writer`]), with what waits on the way ([`taking_along`]), as [`policy`] says, and
//!   makes the nodes above anew. [`digest`] has what waits go down when nothing arrives; [`behind`] knows where.
//! - [`ranges`]: whole ranges of keys that were deleted at once, and [`work_in`]: how nodes and leaves do without what they had.
//!
//! # Where the newest version of a key is
//! The active buffer of its partition, else the partition's frozen buffer, else the slices of each node on the way down, the
//! newest first, else the leaf. Times descend strictly in that order, so that a lookup stops at the first version that its
//! snapshot sees; where that is a merge, it goes on to what the merge is applied to ([`joining`]). Where
//! it is older than a range delete over the key that the snapshot sees as well, the key is not there ([`ranges`]).

pub(crate) mod behind;
pub(crate) mod buffer;
pub(crate) mod digest;
pub(crate) mod estimate;
pub(crate) mod flush;
pub(crate) mod growth;
pub(crate) mod joining;
pub(crate) mod large_values;
pub(crate) mod leaf_merge;
pub(crate) mod leaf_writer;
pub(crate) mod load;
pub(crate) mod lookup;
pub(crate) mod messages;
pub(crate) mod node;
pub(crate) mod owners;
pub(crate) mod path;
pub(crate) mod policy;
pub(crate) mod ranges;
pub(crate) mod relocate;
pub(crate) mod retain;
pub(crate) mod run_writer;
pub(crate) mod scan;
pub(crate) mod settings;
pub(crate) mod shedding;
pub(crate) mod slice;
pub(crate) mod sorted_keys;
pub(crate) mod taking_along;
pub(crate) mod tree_state;
pub(crate) mod view;
pub(crate) mod waiting;
pub(crate) mod work_in;
