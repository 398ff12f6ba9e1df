//! Background work: takes committed writes from the buffers down the trees, makes checkpoints, and slows
//! commits down where it falls behind.
//!
//! | part | what it does |
//! |---|---|
//! | [`write_buffers`] | holds what commits wrote, and says from when on it is flushed |
//! | [`backlog`] | queues of trees that are to be looked at |
//! | [`flush_scheduler`] | chooses the next step; flush tasks run it |
//! | [`buffer_flush`] | takes one frozen buffer down its tree |
//! | [`partial_flush`] | takes overdue messages below the buffers further down |
//! | [`range_delete_applier`] | applies range deletes to nodes and leaves |
//! | [`buffer_age`] | has old buffers flushed, so that no tree pins the log |
//! | [`checkpointer`] | makes images; the checkpoint task runs [`maintenance`] |
//! | [`dropped_trees`], [`space_return`], [`relocation`] | free room, and give it back to the device |
//! | [`key_rewriting`] | brings old blocks under a new data key |
//! | [`memory_sharing`] | shares the limit of memory out |
//! | [`flush_monitor`], [`commit_pace`], [`hot_set`], [`back_pressure`] | measure flushes, and keep commits at their pace |
//! | [`compaction`] | takes all pending messages into the leaves, on demand |
//!
//! Each part is a type with its own state. It holds the parts that it uses, and those above it in this table
//! never use it.

pub(crate) mod back_pressure;
pub(crate) mod backlog;
pub(crate) mod buffer_age;
pub(crate) mod buffer_flush;
pub(crate) mod checkpointer;
pub(crate) mod commit_pace;
pub(crate) mod compaction;
pub(crate) mod dropped_trees;
pub(crate) mod flush_monitor;
pub(crate) mod flush_scheduler;
pub(crate) mod hot_set;
pub(crate) mod key_rewriting;
pub(crate) mod maintenance;
pub(crate) mod memory_sharing;
pub(crate) mod partial_flush;
pub(crate) mod range_delete_applier;
pub(crate) mod relocation;
pub(crate) mod space_return;
pub(crate) mod write_buffers;
