//! Background work: flushes, partial flushes, range deletes, checkpoints, relocation, and back-pressure on commits.

pub(crate) mod back_pressure;
pub(crate) mod buffer_age;
pub(crate) mod checkpoint;
pub(crate) mod commit_pace;
pub(crate) mod compaction;
pub(crate) mod dropped_trees;
pub(crate) mod flush;
pub(crate) mod hot_set;
pub(crate) mod partial_flush;
pub(crate) mod range_deletes;
pub(crate) mod relocation;
