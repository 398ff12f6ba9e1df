//! The storage contract: what every engine promises to the catalog, and nothing about how.
//!
//! An [`Engine`] keeps named *trees*: ordered maps from byte keys to byte values. All reading and writing happens in a
//! [`Transaction`], which sees one *snapshot* and its own writes. Keys compare as unsigned bytes (`memcmp`).
//!
//! # Terms
//! - *Tree*: an ordered map, created by name, addressed by [`TreeId`].
//! - *Snapshot*: the state after all commits up to a [`SnapshotTimestamp`], and of nothing later.
//! - *BlockingMode*: whether a read may wait for the device ([`BlockingMode::MayBlock`]) or answers
//!   [`ErrorKind::WouldBlock`] instead ([`BlockingMode::CachedOnly`]).
//! - *Receipt*: what a commit returns as soon as its writes are visible: its timestamp and its place in the log.
//! - *Durability*: how far a commit has got on its way to the device, see [`Durability`].
//!
//! # The life of a write
//! 1. [`Engine::begin`] gives a transaction at the newest snapshot.
//! 2. [`Transaction::put`] and [`Transaction::delete`] collect in a private write set; the first transaction to update a
//!    key wins, the other gets [`ErrorKind::Conflict`].
//! 3. [`Transaction::commit`] makes all of it visible at one timestamp and returns a [`CommitReceipt`].
//! 4. [`Engine::when_durable`] calls a waker once the receipt's LSN has reached the wanted [`Durability`].
//!
//! # Invariants (each is a test of the conformance suite)
//! - Snapshot isolation: a transaction never sees a commit later than its snapshot, and always its own writes.
//! - Atomicity: after a crash a transaction is there wholly or not at all; if a commit is there, so is every earlier one.
//! - Keys come out strictly ordered, in either direction, each once.
//! - Keys have at most [`KEY_BYTES_MAX`] bytes, values at most [`VALUE_BYTES_MAX`]: beyond is [`ErrorKind::InvalidInput`].
//!
//! # Not here
//! What a key means is the catalog's business; BSON is unknown below it. Engines' options are parsed by each engine.
#![warn(missing_docs)]

mod backup;
mod capabilities;
mod check;
mod checked;
mod durability;
pub mod emulate;
mod engine;
mod error;
mod identifiers;
mod intents;
mod key_filter;
pub mod limits;
mod load;
mod memory;
mod merge;
mod scan;
mod snapshot_transaction;
mod spill;
mod statistics;
mod transaction;
mod write_set;

pub use backup::{BackupExtent, BackupReport, BackupRequest};
pub use bytes::Bytes;
pub use capabilities::{
    CachedReads, Capabilities, ConflictTime, History, Merging, Persistence, RangeDeletes,
};
pub use check::{CheckReport, CheckRequest};
pub use checked::CheckedEngine;
pub use durability::{CommitReceipt, Durability, DurabilityWaker};
pub use engine::{Begin, Engine, Mode, SharedEngine, TreeDescription, TreeOptions};
pub use error::{ErrorKind, StorageError};
pub use identifiers::{CommitTimestamp, Lsn, SnapshotTimestamp, TreeId};
pub use intents::{CLAIMS_MAX, Claims, Intent, Intents, RANGE_CLAIMS_MAX, TransactionId};
pub use load::{IteratorEntries, LoadDurability, SortedEntries};
pub use memory::{HeldMemory, MemoryAccount};
pub use merge::{MERGE_OPERAND_BYTES_MAX, MERGES_BYTES_MAX, Merge, Merges};
pub use pando_environment::MissedRead;
pub use scan::{Batch, BatchLimits, Cursor, Direction, KeyRange, ScanEnd};
pub use snapshot_transaction::{DeletedRange, EngineSnapshot, OverlaidScan, OwnChanges, SnapshotTransaction};
pub use spill::{MergedWrites, SpillFigures, SpillSpace, SpillingWrites};
pub use statistics::{Estimate, LiveTransaction, Statistics, Wait};
pub use transaction::{BlockingMode, Savepoint, Transaction};
pub use write_set::{Change, Claim, Write, WriteSet};

/// Longest key that an engine takes, in bytes.
pub const KEY_BYTES_MAX: usize = 1_900;

/// Longest value that an engine takes, in bytes: a 16 MiB document with room for what surrounds it.
pub const VALUE_BYTES_MAX: usize = 17 * 1024 * 1024;
