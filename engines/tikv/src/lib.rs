//! The engine `tikv`: the storage contract over a TiKV cluster, whose nodes replicate and split the data.
//!
//! # How it keeps the contract
//! - *Transactions.* Writes collect in a private write set and claim their keys
//!   ([`SnapshotTransaction`](pando_storage::SnapshotTransaction)); reads go to the cluster at the timestamp
//!   of the begin. A commit is one optimistic transaction of TiKV: see `store` and `commit`.
//! - *Servers.* A store is open in one server at a time (`lease`), or in any number of servers that are told
//!   so (`servers`).
//! - *Trees* are ranges of keys behind the name of the store: see `layout`.
//! - *Values* have a byte for their kind before them, and large ones lie in pieces: see `value`,
//!   `large_values`.
//! - *Merges* are records of their own, so that two of them never conflict: see `pending_merges`.
//! - *Durability.* A commit is on most replicas before it is answered, whatever was asked.
//! - *Blocking mode.* Every read asks the cluster, so that one that must not block answers `WouldBlock`.
//! - *Upkeep.* Folds and dropped trees are the work of one thread, old versions and leases of one each: see
//!   `upkeep` and `versions`.
//!
//! # Invariants
//! - A commit is sent once. One whose answer is missing is looked for before the caller is told.
//! - No value is empty, and every key of a store begins with its name.
//!
//! # Not here
//! The descriptions of collections that several servers share (the catalog's `sharing`); reads of
//! followers, figures of regions:
//! [0051](../../../docs/decisions/0051-tikv.md).
//!
//! # Modules
//! ```arrows
//! engine -> cluster, lease, marker, opening, options, servers, store, transaction, upkeep, versions
//! transaction -> cluster, large_values, pending_merges, store, trees
//! upkeep -> cluster, large_values, lease, servers, store
//! versions -> cluster, servers, store
//! store -> cluster, commit, lease, opening, options, pending_merges, servers, tree_record, trees
//! store -> tree_totals
//! tree_totals -> cluster, opening, trees
//! commit -> cluster, large_values, pending_merges, trees
//! opening -> cluster, tree_record, trees
//! tree_record -> trees
//! large_values -> cluster
//! pending_merges -> cluster
//! lease -> cluster, servers
//! servers -> cluster
//! marker -> options
//! cluster -> options
//! locks -> failure
//! leaves: expected, failure, figures, kept, layout, live, locks, newest, value
//! ```
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]
#![warn(missing_docs)]

mod cluster;
mod commit;
mod engine;
mod expected;
mod failure;
mod figures;
mod kept;
mod large_values;
mod layout;
mod lease;
mod live;
mod locks;
mod marker;
mod newest;
mod opening;
mod options;
mod pending_merges;
mod servers;
mod store;
mod transaction;
mod tree_record;
mod tree_totals;
mod trees;
mod upkeep;
mod value;
mod versions;

pub use crate::engine::TikvEngine;
pub use crate::options::{Certificates, CommitMode, Servers, TikvOptions};
