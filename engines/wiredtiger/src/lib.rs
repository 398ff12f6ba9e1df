//! The engine `wiredtiger`: the storage contract over WiredTiger 3.2, the engine of MongoDB, with its B-trees
//! and LSM trees.
//!
//! # How it keeps the contract
//! - *Trees* are tables of their own, so that each has its type, its compression and its pages: see `layout`.
//! - *Snapshots* are WiredTiger's: a transaction reads in a session with a transaction of the isolation
//!   *snapshot*.
//! - *Writes* collect in a private write set and claim their keys
//!   ([`SnapshotTransaction`](pando_storage::SnapshotTransaction)). Only `commit` writes to WiredTiger, in a
//!   second transaction: see `commit`.
//! - *Numbers.* WiredTiger does not number commits, so the engine does: see `store` and `visibility`.
//! - *Durability.* A commit leaves its log record in memory. [`Logged`](Durability::Logged) hands the log to
//!   the kernel. A task syncs it within 100 ms, or at once when a client waits; one sync serves all who wait.
//! - *Blocking mode.* No call of WiredTiger tells whether a page is in its cache, so every `CachedOnly` read
//!   answers `WouldBlock`.
//!
//! Why the engine does not use WiredTiger's own conflicts stands in
//! [0041](../../../docs/decisions/0041-wiredtiger.md).
//!
//! # Invariants
//! - All unsafe code is in the module `library`.
//! - A table without a record is no tree; one is dropped when the store is opened.
//!
//! # Not here
//! Counts of subtrees, which WiredTiger does not keep: a range is estimated by counting a little
//! ([`emulate`](pando_storage::emulate)).
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]
#![warn(missing_docs)]

mod backup;
mod check;
mod commit;
mod engine;
mod failure;
mod figures;
mod layout;
mod library;
mod live;
mod load;
mod options;
mod records;
mod session_pool;
mod snapshot;
mod store;
mod trees;
mod verify;
mod visibility;

pub use crate::backup::restore;
pub use crate::engine::WiredTigerEngine;
pub use crate::options::{BlockCompressor, TableType, WiredTigerOptions};
pub use crate::verify::{Verified, verify};
