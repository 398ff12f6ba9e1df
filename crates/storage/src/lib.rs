//! The storage contract: the promises that every engine makes to the catalog, and the parts that engines
//! share.
//!
//! An [`Engine`] keeps named *trees*: ordered maps from byte keys to byte values. All reading and writing
//! happens in a [`Transaction`], which sees one *snapshot* and its own writes. Keys compare as unsigned bytes
//! (`memcmp`).
//!
//! # Terms
//! - *Tree*: an ordered map, created by name, addressed by [`TreeId`].
//! - *Snapshot*: the state after all commits up to a [`SnapshotTimestamp`], and without any later one.
//! - *Blocking mode*: whether a read may wait for the device ([`BlockingMode::MayBlock`]) or answers
//!   [`ErrorKind::WouldBlock`] instead ([`BlockingMode::CachedOnly`]).
//! - *Intent*: a transaction's claim on a key that it updates. A *blind* write takes none.
//! - *Read claim*: a serializable transaction's claim on a range that it has read.
//! - *Receipt*: the answer of a commit as soon as its writes are visible: its timestamp and its place in the
//!   log.
//! - *Operation*: the work for one request; a [`Caller`] is an operation with its blocking mode.
//! - *Durability*: how far a commit has got on its way to the device, see [`Durability`].
//!
//! # The life of a write
//! 1. [`Engine::begin`] gives a transaction at the newest snapshot.
//! 2. [`Transaction::put`] and [`Transaction::delete`] collect in a private write set. The first transaction
//!    to update a key wins, the other gets [`ErrorKind::Conflict`].
//! 3. [`Transaction::commit`] makes all of it visible at one timestamp and returns a [`CommitReceipt`].
//! 4. [`Engine::when_durable`] calls a waker once the receipt's LSN has reached the wanted [`Durability`].
//!
//! # Parts
//! - The contract: [`Engine`], [`Transaction`], their vocabulary, and [`emulate`] for optional methods.
//! - The shared half of every transaction: [`SnapshotTransaction`] over an engine's [`EngineSnapshot`], with
//!   [`Intents`] and [`SpillingWrites`].
//! - The checking wrapper: [`CheckedEngine`].
//! - The [`Operation`] that the layers above carry through their loops.
//! - The memory of queries ([`QueryMemory`]), and the [`Sorter`] and [`KeySet`] by which they spill.
//!
//! # Invariants (each is a test of the conformance suite)
//! - Snapshot isolation: a transaction never sees a commit later than its snapshot, and always its own
//!   writes.
//! - Atomicity: after a crash a transaction is there wholly or not at all; if a commit is there, so is every
//!   earlier one.
//! - Keys come out strictly ordered, in either direction, each once.
//! - Keys have at most [`KEY_BYTES_MAX`] bytes, values at most [`VALUE_BYTES_MAX`]; longer ones are
//!   [`ErrorKind::InvalidInput`].
//!
//! # Not here
//! The meaning of a key is the catalog's business; BSON is unknown below it. Each engine parses its own
//! options.
//!
//! # Modules
//! ```arrows
//! backup -> operation
//! check -> operation
//! contest -> identifiers
//! error -> contest
//! file_backup -> backup, operation
//! checked -> backup, batch, check, durability, engine, intents, limits, load, merge, operation, statistics
//! checked -> transaction
//! emulate -> engine, transaction
//! snapshot_transaction -> batch, durability, intents, limits, merge, read_claims, spill, statistics
//! snapshot_transaction -> transaction, write_set
//! engine -> backup, check, durability, intents, limits, load, operation, statistics, transaction
//! spill -> batch, fingerprint, merge, write_set
//! transaction -> batch, durability, intents, merge, statistics
//! write_set -> batch, fingerprint, merge
//! intents -> fingerprint
//! merge -> limits
//! sorter -> query_memory, run
//! key_set -> query_memory, run
//! query_memory -> engine, operation, run, scratch
//! run -> scratch
//! scratch -> operation
//! sync_state -> durability
//! shared_time -> identifiers
//! leaves: access, capabilities, contest, error, identifiers, key_filter, key_range, memory, shared_time
//! leaves: tournament, wait_signal
//! ```
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]
#![warn(missing_docs)]

mod access;
mod backup;
mod batch;
mod byte_size;
mod capabilities;
mod check;
mod checked;
mod contest;
mod durability;
mod engine;
mod error;
mod file_backup;
mod fingerprint;
mod identifiers;
mod intents;
mod key_filter;
mod key_range;
mod key_set;
pub mod limits;
mod load;
mod memory;
mod merge;
mod operation;
mod query_memory;
mod read_claims;
mod run;
mod scratch;
mod shared_time;
mod snapshot_transaction;
mod sorter;
mod spill;
mod statistics;
mod sync_state;
mod tournament;
mod transaction;
mod wait_signal;
mod write_set;

pub use access::{BlockingMode, Claim, Isolation, Mode};
pub use backup::{BackupExtent, BackupReport, BackupRequest};
pub use batch::{Batch, BatchLimits, ScanEnd};
pub use byte_size::{ByteSize, ByteSizeError};
pub use bytes::Bytes;
pub use capabilities::{
    CachedReads, Capabilities, Compacting, ConflictTime, EstimateOrigin, History, Merging, Persistence,
    RangeDeletes, ReadClaiming, SHARED_COMMIT_MAX, Sharing,
};
pub use check::{CheckReport, CheckRequest};
pub use checked::CheckedEngine;
pub use contest::{Contest, Contested};
pub use durability::{CommitReceipt, Durability, DurabilityWaker};
pub use engine::{Begin, Engine, SharedEngine, TreeDescription, TreeOptions};
pub use error::{ErrorKind, StorageError};
pub use file_backup::{FileBackup, FileBackups};
pub use identifiers::{CommitTimestamp, Lsn, Savepoint, SnapshotTimestamp, TransactionId, TreeId};
pub use intents::{CLAIMS_MAX, Claims, HeldKey, Intent, Intents, RANGE_CLAIMS_MAX, Ticket, WaitRequest};
pub use key_range::{Direction, KeyRange};
pub use key_set::KeySet;
pub use limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
pub use load::{IteratorEntries, LoadDurability, SortedEntries};
pub use memory::{HeldMemory, MemoryAccount};
pub use merge::{
    ADDITION_BYTES, MERGE_OPERAND_BYTES_MAX, MERGES_BYTES_MAX, Merge, Merges, PENDING_PATCHES_MAX,
};
pub use operation::{
    CHECKS_A_CLOCK, Caller, DeviceAccount, DeviceReads, DeviceWait, Interruption, Operation, OperationWait,
    ProgressFigures, ProgressStep, ThreadCharge, Usage, UsageFigures, Waiting,
};
pub use pando_environment::MissedRead;
pub use query_memory::{
    QUERY_MEMORY_MIN, QueryAccount, QueryMemory, QueryMemoryFigures, Reservation, StageFigures, StageUsage,
};
pub use read_claims::{EnteringReader, ReadClaims, SerializableReads};
pub use scratch::{ScratchFigures, ScratchSpace};
pub use shared_time::SharedTime;
pub use snapshot_transaction::{DeletedRange, EngineSnapshot, OverlaidScan, OwnChanges, SnapshotTransaction};
pub use sorter::Sorter;
pub use spill::{MergedWrites, SpillFigures, SpillSpace, SpillingWrites};
pub use statistics::{Estimate, LiveTransaction, Statistics, Wait};
pub use sync_state::SyncState;
pub use transaction::{Cursor, RunValues, Transaction};
pub use wait_signal::WaitSignal;
pub use write_set::{Change, Write, WriteSet};

/// The defaults of methods that an engine need not have, done with the methods that every engine has.
///
/// Each function is correct for every engine. Callers use the method where there is one, and never ask which
/// engine they have.
pub mod emulate {
    pub use crate::engine::emulate::{LOAD_BATCH_ENTRIES, backup, check, load, restore_backup};
    pub use crate::transaction::emulate::{ESTIMATE_ENTRIES_MAX, delete_range, estimate, merge};
}
