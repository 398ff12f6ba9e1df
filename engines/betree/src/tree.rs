//! A tree: immutable nodes and leaves below, mutable buffers above, one consistent view for readers.
//!
//! # The parts
//! - [`tree_blocks`]: how trees read blocks. [`flush_read_ahead`]: the reads of a flush, done together.
//! - [`buffer`]: committed writes in memory. [`node`], [`slice`](mod@slice): inner nodes, and the messages
//!   that they hold for their children. [`view`]: the buffers, nodes and range deletes that a reader takes
//!   hold of at once.
//! - [`lookup`] and [`scan`] read a view. [`path`] descends to a leaf. [`estimate`] counts roughly.
//! - [`flush`] takes the [`messages`] of a frozen buffer down, into runs ([`run_writer`]) and into leaves
//!   ([`leaf_merge`], [`leaf_writer`]). [`flush_policy`] chooses the children, and [`pending_slices`] merges
//!   their slices with the arriving messages.
//! - [`partial_flush_step`] begins at an inner node instead of a buffer; [`flush_debt`] knows where one is
//!   overdue.
//! - [`version_retention`] says which versions are still needed, [`value_merge`] applies merge operators.
//! - [`range_delete_step`] removes the versions under a range delete from nodes and leaves.
//! - [`tree_state`] holds all that belongs to one tree, [`registry`] all trees of a store.
//!
//! # Where the newest version of a key is
//! ```text
//!  active buffer  ->  frozen buffer  ->  slices of each node on the way down, newest first  ->  leaf
//! ```
//! The timestamps of a key descend strictly in that order, so a lookup stops at the first version that its
//! snapshot sees. If that version is a merge operator, the lookup goes on to the value that it applies to
//! ([`value_merge`]). If it is older than a range delete that the snapshot sees, the key is not there
//! ([`crate::range_deletes`]).

pub(crate) mod buffer;
pub(crate) mod estimate;
pub(crate) mod flush;
pub(crate) mod flush_debt;
pub(crate) mod flush_policy;
pub(crate) mod flush_read_ahead;
pub(crate) mod large_value_writer;
pub(crate) mod leaf_growth;
pub(crate) mod leaf_merge;
pub(crate) mod leaf_writer;
pub(crate) mod load;
pub(crate) mod lookup;
pub(crate) mod messages;
pub(crate) mod node;
pub(crate) mod owned_extents;
pub(crate) mod partial_flush_step;
pub(crate) mod path;
pub(crate) mod pending_children;
pub(crate) mod pending_slices;
pub(crate) mod range_delete_step;
pub(crate) mod registry;
pub(crate) mod resident_nodes;
pub(crate) mod run_writer;
pub(crate) mod scan;
pub(crate) mod slice;
pub(crate) mod tree_blocks;
pub(crate) mod tree_state;
pub(crate) mod value_merge;
pub(crate) mod version_retention;
pub(crate) mod view;
