//! The engine `memory`: the storage contract at its simplest, in memory, gone with the process.
//!
//! It is the executable specification. Read it to learn what the contract means, copy it to begin a new
//! engine, and compare any other engine's answers with it. It is complete and correct, not tuned: one lock
//! guards everything.
//!
//! # Terms
//! - *Version*: a value (or deletion) of a key with the timestamp of its commit.
//! - *Live* transaction: begun, and neither committed nor rolled back.
//! - *Oldest snapshot*: that of the oldest live transaction; without one, the newest commit.
//!
//! # Algorithm
//! 1. `begin` notes the newest commit's timestamp as the snapshot. Own writes and claims are kept by the
//!    [`SnapshotTransaction`] over it.
//! 2. A read of the snapshot looks for the newest version that it sees.
//! 3. `commit` takes the next timestamp and adds a version for each written key, under the lock: all or
//!    nothing.
//! 4. When the oldest snapshot moves, versions that no snapshot can see are dropped. Of each key there stay
//!    the newest one at or before the oldest snapshot, and those after it.
//!
//! # Invariants
//! - Versions of a key are in the order of their timestamps, each once.
//! - A key whose only version is a deletion that every snapshot sees is not kept.
//! - No timestamp in the store is beyond the newest commit.
//!
//! # Not here
//! Durability: a receipt's place in the log is its timestamp, and counts as durable to every degree at once.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]
#![warn(missing_docs)]

mod options;
mod store;
mod transaction;

use std::sync::Arc;

use pando_environment::{Clock, Environment};
use pando_storage::{
    Begin, CachedReads, Capabilities, Claims, CommitReceipt, Compacting, ConflictTime, Durability,
    DurabilityWaker, Engine, ErrorKind, Estimate, EstimateOrigin, History, Intents, Isolation,
    LiveTransaction, Merging, Persistence, RangeDeletes, ReadClaiming, ReadClaims, Sharing,
    SnapshotTimestamp, SnapshotTransaction, SpillingWrites, Statistics, StorageError, Transaction,
    TransactionId, TreeDescription, TreeId, TreeOptions,
};
use parking_lot::RwLock;

pub use crate::options::MemoryOptions;
use crate::store::Store;
use crate::transaction::MemorySnapshot;

/// The state that the engine and its transactions share.
struct Shared {
    store: RwLock<Store>,
    intents: Intents,
    read_claims: ReadClaims,
    clock: Arc<dyn Clock>,
    options: MemoryOptions,
}

/// A store of trees in memory.
pub struct MemoryEngine {
    shared: Arc<Shared>,
}

impl MemoryEngine {
    /// An empty store. Only the clock of the environment is used, for the age of transactions.
    pub fn new(environment: &Environment) -> MemoryEngine {
        MemoryEngine::with_options(environment, MemoryOptions::default())
    }

    /// As [`MemoryEngine::new`], with options.
    pub fn with_options(environment: &Environment, options: MemoryOptions) -> MemoryEngine {
        let shared = Shared {
            store: RwLock::default(),
            intents: Intents::new(),
            read_claims: ReadClaims::default(),
            clock: Arc::clone(environment.clock()),
            options,
        };
        MemoryEngine { shared: Arc::new(shared) }
    }
}

impl Engine for MemoryEngine {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            conflicts: ConflictTime::AtUpdate,
            history: History::WhileHeld,
            durable: Persistence::Volatile,
            cached_reads: CachedReads::Told,
            merges: Merging::Blind,
            estimates: EstimateOrigin::FirstEntries,
            range_deletes: RangeDeletes::Emulated,
            read_claims: ReadClaiming::Ranges,
            sharing: Sharing::Exclusive,
            compacting: Compacting::BesideTransactions,
        }
    }

    fn create_tree(&self, name: &str, options: &TreeOptions) -> Result<TreeId, StorageError> {
        if let Some((option, _)) = options.entries.first() {
            let message = format!("the engine `memory` has no option `{option}` for a tree");
            return Err(StorageError::new(ErrorKind::InvalidInput, message));
        }
        self.shared.store.write().create_tree(name)
    }

    fn drop_tree(&self, tree: TreeId) -> Result<(), StorageError> {
        self.shared.store.write().drop_tree(tree)
    }

    fn list_trees(&self) -> Result<Vec<TreeDescription>, StorageError> {
        self.shared.store.read().list_trees()
    }

    fn begin(&self, begin: Begin) -> Result<Box<dyn Transaction>, StorageError> {
        begin.check(self.name(), self.capabilities().read_claims)?;
        let is_serializable = begin.isolation == Isolation::Serializable;
        let entering = is_serializable.then(|| self.shared.read_claims.enter());
        let now = self.shared.clock.monotonic();
        let begun = self.shared.store.write().begin(begin.at, now)?;
        // Every key is claimed exactly: the versions take more memory than the intents.
        let owner = TransactionId::new(begun.number);
        let claims = Claims::with_intents_max(owner, begun.snapshot, usize::MAX);
        let reads = entering.map(|entering| entering.begin(owner, begun.snapshot));
        let snapshot = MemorySnapshot { shared: Arc::clone(&self.shared), begun };
        let writes = SpillingWrites::default();
        Ok(Box::new(SnapshotTransaction::new(snapshot, begin.mode, claims, writes).claiming(reads)))
    }

    fn intents(&self) -> Option<&Intents> {
        Some(&self.shared.intents)
    }

    fn when_durable(&self, _: CommitReceipt, _: Durability, waker: DurabilityWaker) {
        waker(Ok(()));
    }

    fn wait_durable(&self, _: CommitReceipt, _: Durability) -> Result<(), StorageError> {
        Ok(())
    }

    fn checkpoint(&self) -> Result<(), StorageError> {
        self.shared.store.read().check_open()
    }

    fn tree_estimate(&self, tree: TreeId) -> Result<Estimate, StorageError> {
        self.shared.store.read().estimate(tree)
    }

    /// Counts bytes in memory, the only device of this engine.
    fn bytes_on_disk(&self, tree: Option<TreeId>) -> Result<u64, StorageError> {
        self.shared.store.read().bytes(tree)
    }

    fn statistics(&self) -> Statistics {
        let mut statistics = Statistics::new();
        statistics.set("intents.entries", self.shared.intents.len() as u64);
        statistics.set("read_claims.transactions", self.shared.read_claims.readers() as u64);
        statistics.set("read_claims.ranges", self.shared.read_claims.ranges() as u64);
        self.shared.store.read().report(&mut statistics);
        statistics
    }

    fn live_transactions(&self) -> Vec<LiveTransaction> {
        self.shared.store.read().live_transactions(self.shared.clock.monotonic())
    }

    fn close(&self) -> Result<(), StorageError> {
        self.shared.store.write().close();
        Ok(())
    }
}

impl Shared {
    /// Takes a transaction from the list of live ones, and drops what only it could still see.
    fn end(&self, store: &mut Store, number: u64) {
        let oldest: SnapshotTimestamp = store.end(number);
        self.intents.set_oldest_snapshot(oldest);
    }
}
