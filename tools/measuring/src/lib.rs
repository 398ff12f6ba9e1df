//! The parts that the benchmark lab (`tools/bench`) and the engines' benchmark (`tools/bench-engine`) share.
//! It knows no workload, no server and no engine.
//!
//! - [`counters`]: the kernel's counters of a process, of its disk and of the machine.
//! - [`control_group`]: the control group of a process.
//! - [`histogram`]: latencies, fine for a whole run and coarse for its intervals.
//! - [`random`]: generators that follow from a seed, and distributions of keys.
//! - [`page_cache`]: files are taken out of the kernel's page cache.
//! - [`chart`], [`table`], [`number`]: figures for a page, for a text file and for a terminal.

pub mod chart;
pub mod control_group;
pub mod counters;
pub mod histogram;
pub mod number;
pub mod page_cache;
pub mod random;
pub mod table;
