//! The engine `rocksdb`: the storage contract over RocksDB, a log-structured merge tree.
//!
//! # How it keeps the contract
//! - *Transactions.* Writes collect in a private write set and claim their keys
//!   ([`SnapshotTransaction`](pando_storage::SnapshotTransaction)); reads go to a snapshot of RocksDB. A
//!   commit is one batch. RocksDB's own transactions are not used: see
//!   [0040](../../../docs/decisions/0040-rocksdb.md).
//! - *Numbers.* The timestamp of a commit is the sequence number that RocksDB gives to its last entry: see
//!   `store`.
//! - *Trees* with the same options share a column family, their numbers before the keys: see `layout`.
//! - *Merges* and *range deletes* are RocksDB's own: see `merge_operator`. A dropped tree is one range
//!   delete, and its files are removed once no transaction reads it.
//! - *Durability.* RocksDB hands each batch to the kernel before it returns, which is all that
//!   [`Logged`](Durability::Logged) asks. A task syncs the log within 100 ms, or at once when a client waits.
//!   The file `synced` says how far, so that a damaged log is told from one that a power cut ended: see
//!   `sync_mark`.
//! - *Blocking mode.* A `CachedOnly` read looks into write buffers and the block cache only.
//!
//! # Invariants
//! - One batch is written at a time, and the sequence number moves by its entries only.
//! - An entry of a dropped tree is in no later snapshot, and its number is never used again.
//!
//! # Modules
//! ```arrows
//! engine -> backup, library, opening, options, store, transaction
//! backup -> opening, store, sync_mark
//! figures -> store
//! opening -> library, options, store, sync_mark, trees, tuning
//! settings -> options, store
//! sizes -> library, store, trees
//! transaction -> commit, library, store
//! store -> commit, library, live, options, sync_mark, trees, tuning
//! commit -> trees
//! live -> library
//! trees -> library
//! library -> options
//! tuning -> merge_operator, options
//! leaves: failure, layout
//! ```
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]
#![warn(missing_docs)]

mod backup;
mod commit;
mod engine;
mod failure;
mod figures;
mod layout;
mod library;
mod live;
mod merge_operator;
mod opening;
mod options;
mod settings;
mod sizes;
mod store;
mod sync_mark;
mod transaction;
mod trees;
mod tuning;

#[cfg(doc)]
use pando_storage::Durability;

pub use crate::backup::restore;
pub use crate::engine::RocksdbEngine;
pub use crate::options::{CacheKind, RocksdbOptions};
