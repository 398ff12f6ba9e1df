//! The engine: a store of named trees, opened by the crate that implements it.
//!
//! # How to implement one
//! 1. Copy `engines/memory`. It implements every required method in the plainest way.
//! 2. Implement [`EngineSnapshot`](crate::EngineSnapshot): reads of one snapshot, and one commit. `begin`
//!    returns a [`SnapshotTransaction`](crate::SnapshotTransaction) over it, which brings own writes, claims
//!    and savepoints.
//! 3. Keep a table of [`Intents`](crate::Intents), and tell it the oldest live snapshot whenever that moves.
//! 4. Declare [`Capabilities`], and let `engine_conformance!` of `tools/conformance` be the engine's test
//!    file.
//! 5. Methods with a default are emulations ([`emulate`](crate::emulate)). Override those that the engine
//!    does better.

pub(crate) mod emulate;

use std::sync::Arc;
use std::time::Duration;

use crate::access::{Isolation, Mode};
use crate::backup::{BackupReport, BackupRequest};
use crate::capabilities::{Capabilities, ReadClaiming};
use crate::check::{CheckReport, CheckRequest};
use crate::durability::{CommitReceipt, Durability, DurabilityWaker};
use crate::error::{ErrorKind, StorageError};
use crate::identifiers::{SnapshotTimestamp, TreeId};
use crate::intents::Intents;
use crate::load::{LoadDurability, SortedEntries};
use crate::memory::{HeldMemory, MemoryAccount};
use crate::operation::Operation;
use crate::shared_time::SharedTime;
use crate::statistics::{Estimate, LiveTransaction, Statistics, Wait};
use crate::transaction::Transaction;

/// How a transaction begins.
#[derive(Clone, Copy, Debug)]
pub struct Begin {
    /// Whether it may write.
    pub mode: Mode,
    /// `None`: the newest snapshot. `Some`: a past one, where the engine keeps history. Meant for snapshot
    /// sessions, which read at a snapshot that another transaction holds.
    pub at: Option<SnapshotTimestamp>,
    /// Whether its reads are claimed. A serializable transaction begins at the newest snapshot.
    pub isolation: Isolation,
}

impl Begin {
    /// A reader of the newest snapshot.
    pub const READ: Begin = Begin { mode: Mode::Read, at: None, isolation: Isolation::Snapshot };
    /// A writer on the newest snapshot.
    pub const WRITE: Begin = Begin { mode: Mode::Write, at: None, isolation: Isolation::Snapshot };
    /// A writer on the newest snapshot whose reads are claimed.
    pub const SERIALIZABLE: Begin = Begin { mode: Mode::Write, at: None, isolation: Isolation::Serializable };

    /// A reader of a past snapshot.
    pub const fn read_at(snapshot: SnapshotTimestamp) -> Begin {
        Begin { mode: Mode::Read, at: Some(snapshot), isolation: Isolation::Snapshot }
    }

    /// Refuses a serializable transaction, for an engine that claims no reads, and one at a past snapshot.
    pub fn check(&self, engine: &str, claims: ReadClaiming) -> Result<(), StorageError> {
        let refused = |message: String| Err(StorageError::new(ErrorKind::InvalidInput, message));
        match (self.isolation, claims, self.at) {
            (Isolation::Snapshot, _, _) => Ok(()),
            (Isolation::Serializable, ReadClaiming::None, _) => {
                refused(format!("the engine `{engine}` has no serializable transactions"))
            }
            (Isolation::Serializable, ReadClaiming::Ranges, Some(_)) => {
                refused("a serializable transaction begins at the newest snapshot".to_owned())
            }
            (Isolation::Serializable, ReadClaiming::Ranges, None) => Ok(()),
        }
    }
}

/// A tree as the engine lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeDescription {
    /// The engine's number.
    pub id: TreeId,
    /// The name it was created with.
    pub name: String,
}

/// The layout of a new tree: the engine's own section of options as `(name, value)` pairs. The engine parses
/// them, and refuses unknown ones as [`InvalidInput`](crate::ErrorKind::InvalidInput). Empty means the
/// defaults.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TreeOptions {
    /// For example `("compression", "zstd")`, `("pageSize", "16KB")`.
    pub entries: Vec<(String, String)>,
}

/// A store of named trees.
///
/// # Threads
/// Any thread may call any method at any time. A method blocks only if its description says so.
///
/// # Durability of trees
/// `create_tree` and `drop_tree` are ordered in the log with commits. After a crash, a tree whose creation
/// came before a surviving commit exists. A created tree to which no commit refers may exist or not. The
/// catalog therefore works in this order:
/// 1. Create a tree *before* committing the reference to it.
/// 2. Drop a tree *after* committing the removal of its reference.
/// 3. At open, drop the trees without a reference.
pub trait Engine: Send + Sync {
    /// The engine's name as the configuration knows it (`betree`, `memory`, …).
    fn name(&self) -> &'static str;

    /// The capabilities that the engine declares.
    fn capabilities(&self) -> Capabilities;

    /// Creates an empty tree. Transactions may use it at once, also those that are already live. A name that
    /// exists is [`InvalidInput`](crate::ErrorKind::InvalidInput), and so are unknown options.
    fn create_tree(&self, name: &str, options: &TreeOptions) -> Result<TreeId, StorageError>;

    /// Removes a tree.
    ///
    /// - Transactions that began before may go on reading it. Later ones get
    ///   [`NotFound`](crate::ErrorKind::NotFound).
    /// - A write to it that has not been committed is lost. `put` or `commit` may report that by
    ///   [`NotFound`](crate::ErrorKind::NotFound).
    /// - Its name may be used for another tree at once, its number never.
    /// - Its space comes back when no transaction reads it any more.
    fn drop_tree(&self, tree: TreeId) -> Result<(), StorageError>;

    /// All trees, by number.
    fn list_trees(&self) -> Result<Vec<TreeDescription>, StorageError>;

    /// Begins a transaction. A snapshot that is gone or in the future is
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput), and so is a serializable one where the engine claims
    /// no reads ([`Begin::check`]). The begin of a serializable transaction waits for commits under way;
    /// every other begin is quick, unless a compaction [lets nobody begin](crate::Compacting).
    fn begin(&self, begin: Begin) -> Result<Box<dyn Transaction>, StorageError>;

    /// The table of intents, whose queues take those who wait for a claimed key; `None` where the engine
    /// reports conflicts in another way.
    fn intents(&self) -> Option<&Intents> {
        None
    }

    /// In a [shared](crate::Sharing::Shared) store whose servers have their timestamps from one clock: the
    /// newest moment of that clock that this server has seen. Cheap. `None` where there is no such clock.
    ///
    /// The timestamps of snapshots and commits are numbers of moments. A begin takes a moment at or after all
    /// that any server has been given before. A reader may also begin at a moment of the last minutes.
    fn shared_time(&self) -> Option<SharedTime> {
        None
    }

    /// A snapshot that sees all commits of this process, and those that others made this long ago, where a
    /// reader of it is cheaper than one of the newest snapshot: over a network, a begin asks for a timestamp.
    /// A transaction may [begin](Engine::begin) at it at once. `None` where no begin is dear, or there is
    /// none so recent.
    fn recent_snapshot(&self, within: Duration) -> Option<SnapshotTimestamp> {
        let _none_is_dear = within;
        None
    }

    /// Calls the waker when the log up to `receipt.lsn` has reached `durability`: at once, on this thread, if
    /// it has. Asking for [`Synced`](Durability::Synced) starts a sync that all waiters share. Never blocks.
    fn when_durable(&self, receipt: CommitReceipt, durability: Durability, waker: DurabilityWaker);

    /// Waits until the log up to `receipt.lsn` has reached `durability`. Blocks.
    fn wait_durable(&self, receipt: CommitReceipt, durability: Durability) -> Result<(), StorageError>;

    /// Writes all committed data to its final place, so that recovery need not replay the log before it.
    /// Blocks its caller only.
    fn checkpoint(&self) -> Result<(), StorageError>;

    /// Makes some trees as small and as quick to read as possible; all if none is named. Returns the freed
    /// space to the device as far as the engine can. An engine without pending work only makes a
    /// [checkpoint](Engine::checkpoint). Changes no answer of a read. Blocks its caller only, unless the
    /// [capabilities](crate::Compacting) say otherwise. An interruption of the operation ends it between two
    /// steps, as [`Busy`](crate::ErrorKind::Busy); the steps that were made stay.
    fn compact(&self, trees: &[TreeId], operation: &Operation) -> Result<(), StorageError> {
        for tree in trees {
            operation.check_now()?;
            self.tree_estimate(*tree)?;
        }
        self.checkpoint()
    }

    /// Entries and bytes of a whole tree, about; cheap.
    fn tree_estimate(&self, tree: TreeId) -> Result<Estimate, StorageError>;

    /// Bytes that the tree takes on the device; for `None` those of the whole store.
    fn bytes_on_disk(&self, tree: Option<TreeId>) -> Result<u64, StorageError>;

    /// The same for several trees, in their order. An engine that shares the room out among all of its trees
    /// looks at them once.
    fn bytes_on_disk_of(&self, trees: &[TreeId]) -> Result<Vec<u64>, StorageError> {
        trees.iter().map(|tree| self.bytes_on_disk(Some(*tree))).collect()
    }

    /// Counters and gauges.
    fn statistics(&self) -> Statistics;

    /// Counters and gauges of one tree. An engine may keep none.
    fn tree_statistics(&self, tree: TreeId) -> Result<Statistics, StorageError> {
        self.tree_estimate(tree).map(|_| Statistics::new())
    }

    /// The longest waits since the store was opened, the longest first.
    fn waits(&self) -> Vec<Wait> {
        Vec::new()
    }

    /// The commits from one snapshot to a newer one, as far as timestamps tell. `None` where they do not
    /// count commits: those of a cluster are the time of its clock.
    fn commits_between(&self, older: SnapshotTimestamp, newer: SnapshotTimestamp) -> Option<u64> {
        Some(newer.get().saturating_sub(older.get()))
    }

    /// The failure after which the engine has stopped itself, such as a failed sync of its log. It takes no
    /// write any more, and only opening the store again helps. `None` while it works, and once it is closed.
    fn failure(&self) -> Option<StorageError> {
        None
    }

    /// The settings that can be changed while the engine is open, by the engine's own names, with their
    /// present values.
    fn settings(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// Changes some of the [settings](Engine::settings), all or none, until the store is closed. An unknown
    /// name or an impossible value is [`InvalidInput`](crate::ErrorKind::InvalidInput).
    fn change_settings(&self, changes: &[(&str, &str)]) -> Result<(), StorageError> {
        match changes.first() {
            None => Ok(()),
            Some((name, _)) => {
                let message =
                    format!("the engine {} has no setting {name:?} that can be changed", self.name());
                Err(StorageError::new(ErrorKind::InvalidInput, message))
            }
        }
    }

    /// Lends memory for work beside the engine, such as sorting. It counts against the engine's limit as long
    /// as it is held. The answer has the wanted bytes, or fewer where the limit leaves no more; the caller
    /// uses no more than it got.
    fn lend_memory(&self, wanted: usize) -> HeldMemory {
        MemoryAccount::default().hold(wanted)
    }

    /// Gives a tree other options. Data written from now on keeps to them. The change is durable and in order
    /// with commits, as the creation of a tree is. Unknown options are
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput).
    fn change_tree_options(&self, tree: TreeId, options: &TreeOptions) -> Result<(), StorageError> {
        self.tree_estimate(tree)?;
        match options.entries.first() {
            None => Ok(()),
            Some((name, _)) => {
                let message = format!("trees of the engine {} have no option {name:?}", self.name());
                Err(StorageError::new(ErrorKind::InvalidInput, message))
            }
        }
    }

    /// Fills an empty tree with entries in ascending order of their keys; returns their number. No
    /// transaction may have written to the tree or write to it meanwhile. All transactions see the entries,
    /// also those that began before. A tree that has entries, and keys that do not ascend strictly, are
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput).
    ///
    /// With [`LoadDurability::Durable`] the entries survive any crash once this has returned. Until then,
    /// after an error, and with [`LoadDurability::Scratch`], the tree may be there after a crash with all,
    /// some or none of them. So refer to the tree only afterwards, and drop it after an error. Blocks its
    /// caller only.
    fn load(
        &self,
        tree: TreeId,
        entries: &mut dyn SortedEntries,
        durability: LoadDurability,
    ) -> Result<u64, StorageError> {
        emulate::load(self, tree, entries, durability)
    }

    /// Transactions that have neither committed nor rolled back, oldest first.
    fn live_transactions(&self) -> Vec<LiveTransaction>;

    /// Reads everything in some trees, or in all, and reports damage, while commits go on. Damage is no error
    /// of the call. Blocks its caller only.
    fn check(&self, request: &CheckRequest<'_>) -> Result<CheckReport, StorageError> {
        emulate::check(self, request)
    }

    /// Writes a backup of the whole store into a folder, while commits go on. It holds exactly the commits up
    /// to one that was the newest at a moment within the call.
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) is the answer for a folder that holds anything but an
    /// unfinished backup, and for a `since` that is no backup of this store. After an error the folder holds
    /// no finished backup, and the store is unchanged. Blocks its caller only.
    fn backup(&self, request: &BackupRequest<'_>) -> Result<BackupReport, StorageError> {
        emulate::backup(self, request)
    }

    /// Ends cleanly: syncs, checkpoints, stops background work. Later calls fail with
    /// [`Closed`](crate::ErrorKind::Closed). An engine that is dropped without it counts as crashed as far as
    /// durability goes. Blocks.
    fn close(&self) -> Result<(), StorageError>;
}

/// An engine as it is handed around.
pub type SharedEngine = Arc<dyn Engine>;
