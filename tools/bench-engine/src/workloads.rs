//! The workloads, one file each. Every one checks what it reads: a store that answers wrongly has no figures.

pub mod ceiling;
pub mod hot_updates;
pub mod inserts;
pub mod many_trees;
pub mod point_reads;
pub mod recovery;
pub mod scans;
