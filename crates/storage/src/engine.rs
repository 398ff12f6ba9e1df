//! The engine: a store of named trees, opened by the crate that implements it.

use std::sync::Arc;

use crate::{
    BackupReport, BackupRequest, Capabilities, CheckReport, CheckRequest, CommitReceipt, Durability,
    DurabilityWaker, ErrorKind, Estimate, HeldMemory, LiveTransaction, LoadDurability, Lsn, MemoryAccount,
    SnapshotTimestamp, SortedEntries, Statistics, StorageError, Transaction, TreeId, Wait,
};

/// Whether a transaction may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Reads only: `put` and `delete` are [`InvalidInput`](crate::ErrorKind::InvalidInput).
    Read,
    /// Reads and writes.
    Write,
}

/// How a transaction begins.
#[derive(Clone, Copy, Debug)]
pub struct Begin {
    /// Whether it may write.
    pub mode: Mode,
    /// `None`: the newest snapshot. `Some`: a past one, where the engine keeps history.
    pub at: Option<SnapshotTimestamp>,
}

impl Begin {
    /// A reader of the newest snapshot.
    pub const READ: Begin = Begin { mode: Mode::Read, at: None };
    /// A writer on the newest snapshot.
    pub const WRITE: Begin = Begin { mode: Mode::Write, at: None };
}

/// A tree as the engine lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeDescription {
    /// The engine's number.
    pub id: TreeId,
    /// The name it was created with.
    pub name: String,
}

/// How a new tree is to be laid out: the engine's own section of options as `(name, value)` pairs, which that engine
/// parses and refuses where unknown ([`InvalidInput`](crate::ErrorKind::InvalidInput)). Empty means the defaults.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TreeOptions {
    /// For example `("compression", "zstd")`, `("pageSize", "16KB")`.
    pub entries: Vec<(String, String)>,
}

/// A store of named trees.
///
/// # Threads
/// All methods may be called from any thread at any time. None blocks but those that say so.
///
/// # Durability of trees
/// `create_tree` and `drop_tree` are ordered in the log with commits: after a crash, a tree whose creation came before a
/// surviving commit exists. A created tree that no commit refers to may be there or not. The catalog therefore creates a
/// tree *before* it commits the reference, drops it *after* it has committed the removal, and at open drops the trees
/// that nothing refers to.
pub trait Engine: Send + Sync {
    /// The engine's name as the configuration knows it (`betree`, `memory`, …).
    fn name(&self) -> &'static str;

    /// What it declares of itself.
    fn capabilities(&self) -> Capabilities;

    /// Creates an empty tree, for use at once, by transactions that are already under way too. A name that exists is
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput), as are unknown options.
    fn create_tree(&self, name: &str, options: &TreeOptions) -> Result<TreeId, StorageError>;

    /// Removes a tree. Transactions that began before may go on reading it; later ones get
    /// [`NotFound`](crate::ErrorKind::NotFound). A write to it that has not been committed is lost: `put` or `commit` may say
    /// so by [`NotFound`](crate::ErrorKind::NotFound). Its name may be given to another tree at once; its number never. Its
    /// space comes back when no one reads it any more.
    fn drop_tree(&self, tree: TreeId) -> Result<(), StorageError>;

    /// All trees, by number.
    fn list_trees(&self) -> Result<Vec<TreeDescription>, StorageError>;

    /// Begins a transaction. A snapshot that is gone or in the future is [`InvalidInput`](crate::ErrorKind::InvalidInput).
    fn begin(&self, begin: Begin) -> Result<Box<dyn Transaction>, StorageError>;

    /// Calls the waker when the log up to `receipt.lsn` has reached `durability`: at once, on this thread, if it has.
    /// Asking for [`Synced`](Durability::Synced) starts a sync that all waiters share. Never blocks.
    fn when_durable(&self, receipt: CommitReceipt, durability: Durability, waker: DurabilityWaker);

    /// Waits until the log up to `receipt.lsn` has reached `durability`. Blocks.
    fn wait_durable(&self, receipt: CommitReceipt, durability: Durability) -> Result<(), StorageError>;

    /// The end of the log that is durable to this degree: every record at or before it survives.
    fn durable_to(&self, durability: Durability) -> Lsn;

    /// Writes all that has been committed to its final place, so that recovery has nothing to replay from before. Blocks the
    /// caller, and nobody else.
    fn checkpoint(&self) -> Result<(), StorageError>;

    /// Makes some trees, or all where none is named, as small and as quick to read as they can be, and gives back to the device what
    /// that frees, as far as the engine can: one that keeps nothing waiting only makes a [checkpoint](Engine::checkpoint).
    /// Changes nothing that a reader could see. Blocks the caller, and nobody else.
    fn compact(&self, trees: &[TreeId]) -> Result<(), StorageError> {
        for tree in trees {
            self.tree_estimate(*tree)?;
        }
        self.checkpoint()
    }

    /// Roughly how much lies in a whole tree, cheaply.
    fn tree_estimate(&self, tree: TreeId) -> Result<Estimate, StorageError>;

    /// Bytes that the tree takes on the device, and bytes of the whole store for `None`.
    fn bytes_on_disk(&self, tree: Option<TreeId>) -> Result<u64, StorageError>;

    /// Counters and gauges.
    fn statistics(&self) -> Statistics;

    /// Counters and gauges of one tree. An engine may keep none.
    fn tree_statistics(&self, tree: TreeId) -> Result<Statistics, StorageError> {
        self.tree_estimate(tree).map(|_| Statistics::new())
    }

    /// What was waited for most since the store was opened, the longest first.
    fn waits(&self) -> Vec<Wait> {
        Vec::new()
    }

    /// The settings that can be changed while the engine is open, in its own words, with their present values.
    fn settings(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// Changes some of the [settings](Engine::settings), all or none, until the store is closed. A name or a value that cannot be
    /// is [`InvalidInput`](crate::ErrorKind::InvalidInput).
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

    /// Memory for work beside the engine, such as sorting, which counts against the engine's limit as long as it is held: as much as
    /// is wanted, or less, where the engine has a limit and no more is to be had. The caller keeps to what it got.
    fn lend_memory(&self, wanted: usize) -> HeldMemory {
        MemoryAccount::default().hold(wanted)
    }

    /// Gives a tree other options in place of those that it was made with: what is written from now on keeps to them. Durable
    /// and in order with commits, as the creation of a tree is. Unknown ones are
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

    /// Fills a tree that nobody has written to, and nobody else writes to meanwhile, with entries in ascending order of their
    /// keys; the number of entries. All transactions see them, those too that began before. A tree that has entries, and keys
    /// that do not ascend strictly, are [`InvalidInput`](crate::ErrorKind::InvalidInput).
    ///
    /// With [`LoadDurability::Durable`] the entries survive any crash from when this returns. Until then, after an error, and
    /// without it until the store is closed, the tree may be there after a crash with all, some or none of them: refer to it
    /// only afterwards, and drop it after an error. Blocks the caller, and nobody else.
    fn load(
        &self,
        tree: TreeId,
        entries: &mut dyn SortedEntries,
        durability: LoadDurability,
    ) -> Result<u64, StorageError> {
        crate::emulate::load(self, tree, entries, durability)
    }

    /// Transactions that have neither committed nor rolled back, oldest first.
    fn live_transactions(&self) -> Vec<LiveTransaction>;

    /// Reads everything in some trees, or in all, and says what is damaged, while commits go on. Damage is no error of the
    /// call. Blocks the caller, and nobody else.
    fn check(&self, request: &CheckRequest<'_>) -> Result<CheckReport, StorageError> {
        crate::emulate::check(self, request)
    }

    /// Writes a backup of everything into a folder, while commits go on: it holds exactly the commits up to one that was the
    /// newest at some moment of the call. A folder that holds anything but an unfinished backup, or a `since` that is no
    /// backup of this store, is [`InvalidInput`](crate::ErrorKind::InvalidInput). After an error the folder holds no finished
    /// backup, and the store is as it was. Blocks the caller, and nobody else.
    fn backup(&self, request: &BackupRequest<'_>) -> Result<BackupReport, StorageError> {
        crate::emulate::backup(self, request)
    }

    /// Ends cleanly: syncs, checkpoints, stops background work. Later calls fail with
    /// [`Closed`](crate::ErrorKind::Closed). Dropping an engine without it is a crash as far as durability goes. Blocks.
    fn close(&self) -> Result<(), StorageError>;
}

/// An engine as it is handed around.
pub type SharedEngine = Arc<dyn Engine>;
