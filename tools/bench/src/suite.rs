//! Suites: a matrix of servers, caches, workloads and clients from one TOML file.
//!
//! # Terms
//! - *Suite*: the file. *Cell*: one call of a workload against one server with one cache, one number of
//!   clients, one repeat.
//! - *State* of a cell: *fresh* (the folder was emptied, the server is new, the data was loaded right
//!   before), *cold* (the server was started anew, and no page of its data is in the kernel's cache) or
//!   *warm* (it has been running, and the cell's own warm-up comes before its window).
//!
//! # The life of a suite
//! 1. [`file`] reads and checks it: unknown keys, impossible values, missing programs and arguments that a
//!    workload does not have are refused before anything starts.
//! 2. [`matrix`] makes the cells, in an order with few loads and starts.
//! 3. A lock on the folder keeps a second call out.
//! 4. [`conduct`] goes through the cells: starts servers, brings each into the state that the cell asks for,
//!    calls this program for the cell, and keeps its files. It prints how long the rest will take.
//! 5. [`kept`] remembers what is done, so that the next call goes on where this one was interrupted, and
//!    servers that a killed call left behind are ended.
//!
//! # Invariants
//! - Each file in `DIR/results` is whole: a cell writes elsewhere, and its files are moved when it has ended
//!   well.
//! - A cell is done again if anything in its definition has changed.
//! - A cell is *cold* only if the server was started anew for it and the page cache was dropped; where that
//!   cannot be done, it fails.

mod caches;
pub mod command;
pub mod conduct;
pub mod file;
mod folder_lock;
pub mod kept;
pub mod matrix;
pub mod page_cache;
