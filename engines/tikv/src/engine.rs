//! The engine as the contract has it.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use pando_environment::{Environment, Step, Task};
use pando_storage::{
    Begin, CachedReads, Capabilities, CommitReceipt, Compacting, ConflictTime, Durability, DurabilityWaker,
    Engine, Estimate, EstimateOrigin, History, Intents, Isolation, LiveTransaction, Merging, Mode,
    Persistence, RangeDeletes, ReadClaiming, ReadClaims, SharedTime, Sharing, SnapshotTimestamp, Statistics,
    StorageError, Transaction, TransactionId, TreeDescription, TreeId, TreeOptions,
};
use parking_lot::{Mutex, RwLock};

use crate::cluster::Cluster;
use crate::failure::{environment_failed, invalid};
use crate::kept::Kept;
use crate::layout::Keyspace;
use crate::lease::Claimant;
use crate::marker::Marker;
use crate::newest::Newest;
use crate::options::{CommitMode, Servers, TikvOptions};
use crate::servers::{Membership, Watch};
use crate::store::{Store, Writing};
use crate::transaction::TikvSnapshot;
use crate::upkeep::{LeaseRenewal, RecordRenewal, Upkeep};
use crate::versions::Versions;
use crate::{lease, opening};

/// A store in a TiKV cluster.
pub struct TikvEngine {
    // Dropped first: after that no step of them runs any more.
    tasks: Mutex<Vec<Task>>,
    store: Arc<Store>,
}

impl TikvEngine {
    /// Opens the store of a keyspace. The folder keeps what this server needs on its own machine.
    pub fn open(
        environment: &Environment,
        folder: &Path,
        options: TikvOptions,
    ) -> Result<TikvEngine, StorageError> {
        let failed = |error| environment_failed("cannot open the store", error);
        environment.files().create_dir(folder).map_err(failed)?;
        let lock = environment.files().lock(folder).map_err(failed)?;
        let clock = Arc::clone(environment.clock());
        let cluster = Cluster::connect(&options, &clock)?;
        let server = Marker::of_folder(environment, folder, &options)?.server;
        let keyspace = Keyspace::new(&options.keyspace);
        let claimant = match options.servers {
            Servers::One => Claimant::Alone { server },
            Servers::Several => Claimant::OneOfSeveral { server },
        };
        let number = lease::acquire(&cluster, &keyspace, claimant, &options.keyspace, clock.as_ref())?;
        let membership = (options.servers == Servers::Several).then(|| Membership::new(number));
        let renewed_at = clock.monotonic();
        opening::check_format(&cluster, &keyspace)?;
        let trees = opening::read_trees(&cluster, &keyspace)?;
        let asked_at = clock.monotonic();
        let now = cluster.timestamp()?;
        let store = Arc::new(Store {
            cluster,
            keyspace,
            options,
            server,
            membership,
            live: Mutex::default(),
            trees: RwLock::new(trees),
            ddl: Mutex::new(()),
            merge_gate: RwLock::new(()),
            counted_merges: Mutex::new(HashMap::new()),
            intents: Intents::new(),
            read_claims: ReadClaims::default(),
            newest: Newest::new(now, asked_at),
            kept: Kept::new(asked_at),
            numbers: AtomicU64::new(now),
            renewed_at: Mutex::new(renewed_at),
            failure: OnceLock::new(),
            is_closed: AtomicBool::new(false),
            clock,
            _lock: lock,
        });
        store.intents.set_oldest_snapshot(SnapshotTimestamp::new(now));
        warn_of_one_phase(&store.options);
        let (mut upkeep, mut versions) = (Upkeep::new(&store), Versions::new(&store));
        let failed = |error| environment_failed("cannot start a thread of the engine", error);
        let spawn = |name, step| environment.spawner().spawn(name, step).map_err(failed);
        let tasks = vec![
            spawn("tikv-upkeep", Box::new(move || upkeep.step()))?,
            spawn("tikv-versions", Box::new(move || versions.step()))?,
            spawn("tikv-lease", renewal_of(&store))?,
        ];
        Ok(TikvEngine { tasks: Mutex::new(tasks), store })
    }

    fn sharing(&self) -> Sharing {
        match self.store.options.servers {
            Servers::One => Sharing::Exclusive,
            Servers::Several => Sharing::Shared,
        }
    }

    /// What transactions read is claimed in the memory of one server.
    fn read_claiming(&self) -> ReadClaiming {
        match self.store.options.servers {
            Servers::One => ReadClaiming::Ranges,
            Servers::Several => ReadClaiming::None,
        }
    }
}

/// Tells people what they have chosen.
fn warn_of_one_phase(options: &TikvOptions) {
    if options.commit == CommitMode::OnePhase {
        tracing::warn!(
            "the option `commit` = one-phase is on: a transaction may see commits from after its begin, and a server that \
             dies while it commits may leave documents locked for the `history`; leave it out for two phases"
        );
    }
}

/// The step that keeps the store open for this server.
fn renewal_of(store: &Arc<Store>) -> Box<dyn FnMut() -> Step + Send> {
    let store = Arc::clone(store);
    match store.options.servers {
        Servers::One => {
            let mut renewal = LeaseRenewal { store };
            Box::new(move || renewal.step())
        }
        Servers::Several => {
            let mut renewal = RecordRenewal { store, watch: Watch::default() };
            Box::new(move || renewal.step())
        }
    }
}

impl Engine for TikvEngine {
    fn name(&self) -> &'static str {
        "tikv"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            conflicts: ConflictTime::AtUpdate,
            history: History::WhileHeld,
            durable: Persistence::Durable,
            cached_reads: CachedReads::NotTold,
            merges: Merging::Blind,
            estimates: EstimateOrigin::FirstEntries,
            range_deletes: RangeDeletes::Emulated,
            read_claims: self.read_claiming(),
            sharing: self.sharing(),
            compacting: Compacting::BesideTransactions,
        }
    }

    fn create_tree(&self, name: &str, options: &TreeOptions) -> Result<TreeId, StorageError> {
        if let Some((option, _)) = options.entries.first() {
            return Err(invalid(format!("the engine `tikv` has no option `{option}` for a tree")));
        }
        self.store.create_tree(name)
    }

    /// Quick: the entries are removed in the background.
    fn drop_tree(&self, tree: TreeId) -> Result<(), StorageError> {
        self.store.drop_tree(tree)
    }

    fn list_trees(&self) -> Result<Vec<TreeDescription>, StorageError> {
        self.store.check_open()?;
        if let Some(membership) = &self.store.membership {
            self.store.read_trees(membership)?;
        }
        Ok(self.store.trees.read().list())
    }

    /// Asks the placement driver for a timestamp.
    fn begin(&self, begin: Begin) -> Result<Box<dyn Transaction>, StorageError> {
        begin.check(self.name(), self.read_claiming())?;
        let is_serializable = begin.isolation == Isolation::Serializable;
        let entering = is_serializable.then(|| self.store.read_claims.enter());
        let writing = match begin.mode {
            Mode::Write => Writing::Yes,
            Mode::Read => Writing::No,
        };
        let begun = self.store.begin(begin.at, writing)?;
        let owner = TransactionId::new(begun.entered.number);
        let reads = entering.map(|entering| entering.begin(owner, SnapshotTimestamp::new(begun.snapshot)));
        Ok(Box::new(TikvSnapshot::begin(Arc::clone(&self.store), begun, begin.mode).claiming(reads)))
    }

    fn intents(&self) -> Option<&Intents> {
        Some(&self.store.intents)
    }

    /// The placement driver's clock. A server that has the store alone keeps its own.
    fn shared_time(&self) -> Option<SharedTime> {
        self.store.membership.as_ref().map(|_| SharedTime::new(self.store.newest.get()))
    }

    fn recent_snapshot(&self, within: Duration) -> Option<SnapshotTimestamp> {
        self.store.recent_snapshot(within).map(SnapshotTimestamp::new)
    }

    /// Timestamps are the time of the placement driver.
    fn commits_between(&self, _: SnapshotTimestamp, _: SnapshotTimestamp) -> Option<u64> {
        None
    }

    /// A commit is on the devices of most replicas when the cluster answers.
    fn when_durable(&self, _: CommitReceipt, _: Durability, waker: DurabilityWaker) {
        waker(Ok(()));
    }

    fn wait_durable(&self, _: CommitReceipt, _: Durability) -> Result<(), StorageError> {
        Ok(())
    }

    /// The cluster makes its own checkpoints.
    fn checkpoint(&self) -> Result<(), StorageError> {
        self.store.check_open()
    }

    fn tree_estimate(&self, tree: TreeId) -> Result<Estimate, StorageError> {
        self.store.check_open()?;
        self.store.trees.read().get(tree).map(|tree| tree.figures.estimate())
    }

    /// About the bytes of keys and values: the placement driver tells no more by the client's protocol.
    fn bytes_on_disk(&self, tree: Option<TreeId>) -> Result<u64, StorageError> {
        self.store.check_open()?;
        let trees = self.store.trees.read();
        match tree {
            Some(tree) => trees.get(tree).map(|tree| tree.figures.estimate().bytes),
            None => Ok(trees.listed().map(|(_, tree)| tree.figures.estimate().bytes).sum()),
        }
    }

    fn statistics(&self) -> Statistics {
        let mut statistics = Statistics::new();
        let store = &self.store;
        store.cluster.figures.write(store.newest.get(), &mut statistics);
        statistics.set("intents.entries", store.intents.len() as u64);
        statistics.set("read_claims.ranges", store.read_claims.ranges() as u64);
        statistics.set("read_claims.transactions", store.read_claims.readers() as u64);
        statistics.set("snapshots.age_ms", store.snapshot_age().as_millis() as u64);
        statistics.set("transactions.live", store.live.lock().len() as u64);
        if let Some(membership) = &store.membership {
            statistics.set("trees.dropped", membership.dropped() as u64);
        }
        statistics.set("trees.count", store.trees.read().len() as u64);
        statistics
    }

    /// Estimates, as those of the tree are.
    fn tree_statistics(&self, tree: TreeId) -> Result<Statistics, StorageError> {
        let size = self.tree_estimate(tree)?;
        let mut statistics = Statistics::new();
        statistics.set("content_bytes", size.bytes);
        statistics.set("entries", size.entries);
        Ok(statistics)
    }

    fn live_transactions(&self) -> Vec<LiveTransaction> {
        self.store.live.lock().describe(self.store.clock.monotonic())
    }

    fn close(&self) -> Result<(), StorageError> {
        let tasks = std::mem::take(&mut *self.tasks.lock());
        drop(tasks);
        self.store.close()
    }
}
