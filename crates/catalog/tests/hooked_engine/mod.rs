//! An engine that calls the test back in the middle of an index build: when the documents have been read,
//! before their entries are loaded. Or as soon as a commit is visible ([`hooked_commit`]). It counts the
//! memory that it lends, and can refuse a commit of the catalog or lose its answer.

mod hooked_commit;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub use hooked_commit::Refusal;
use hooked_commit::{CommitHook, HookedCommit};
use pando_catalog::{
    Begin, CommitReceipt, Durability, DurabilityWaker, Engine, Estimate, LiveTransaction, SharedEngine,
    Statistics, StorageError, Transaction, TreeOptions,
};
use pando_environment::Environment;
use pando_memory::MemoryEngine;
use pando_storage::{
    Capabilities, HeldMemory, LoadDurability, MemoryAccount, ReadClaiming, SharedTime, Sharing,
    SortedEntries, TreeDescription, TreeId,
};
use parking_lot::Mutex;

/// Called once.
type Hook = Box<dyn FnOnce() + Send>;

pub struct HookedEngine {
    inner: MemoryEngine,
    hook: Mutex<Option<Hook>>,
    commit_hook: Mutex<Option<Hook>>,
    /// The next commit to the catalog fails.
    refuses: Arc<AtomicBool>,
    refusal: Mutex<Refusal>,
    lent: MemoryAccount,
    sharing: Sharing,
}

impl HookedEngine {
    pub fn shared() -> Arc<HookedEngine> {
        HookedEngine::with(Sharing::Exclusive)
    }

    /// One that says that several servers may have its store open.
    pub fn of_several_servers() -> Arc<HookedEngine> {
        HookedEngine::with(Sharing::Shared)
    }

    fn with(sharing: Sharing) -> Arc<HookedEngine> {
        Arc::new(HookedEngine {
            inner: MemoryEngine::new(&Environment::real()),
            hook: Mutex::new(None),
            commit_hook: Mutex::new(None),
            refuses: Arc::default(),
            refusal: Mutex::default(),
            lent: MemoryAccount::default(),
            sharing,
        })
    }

    /// Bytes lent now.
    pub fn lent_bytes(&self) -> usize {
        self.lent.bytes()
    }

    pub fn as_engine(self: &Arc<Self>) -> SharedEngine {
        Arc::clone(self) as SharedEngine
    }

    /// Has something done in the middle of the next build.
    pub fn during_the_next_build(&self, hook: impl FnOnce() + Send + 'static) {
        *self.hook.lock() = Some(Box::new(hook));
    }

    /// Has something done as soon as the commit of the transaction that begins next is visible.
    pub fn behind_the_next_commit(&self, hook: impl FnOnce() + Send + 'static) {
        *self.commit_hook.lock() = Some(Box::new(hook));
    }

    /// Has the next commit fail that changes a description in the catalog.
    pub fn refuse_the_next_change_of_the_catalog(&self) {
        self.lose_the_next_change_of_the_catalog(Refusal::Failed);
    }

    /// The same, in a way.
    pub fn lose_the_next_change_of_the_catalog(&self, refusal: Refusal) {
        *self.refusal.lock() = refusal;
        self.refuses.store(true, Ordering::SeqCst);
    }

    /// Whether that commit is still to come.
    pub fn refuses(&self) -> bool {
        self.refuses.load(Ordering::SeqCst)
    }

    /// The names of all trees but the catalog's.
    pub fn tree_names(&self) -> Vec<String> {
        let trees = self.list_trees().expect("the trees can be listed");
        let is_of_catalog =
            |name: &String| matches!(name.as_str(), "catalog" | "counters" | "servers" | "sessions");
        trees.into_iter().map(|tree| tree.name).filter(|name| !is_of_catalog(name)).collect()
    }
}

impl Engine for HookedEngine {
    fn load(
        &self,
        tree: TreeId,
        entries: &mut dyn SortedEntries,
        durability: LoadDurability,
    ) -> Result<u64, StorageError> {
        let hook = self.hook.lock().take();
        if let Some(hook) = hook {
            hook();
        }
        self.inner.load(tree, entries, durability)
    }

    fn lend_memory(&self, wanted: usize) -> HeldMemory {
        self.lent.hold(wanted)
    }

    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn capabilities(&self) -> Capabilities {
        let Capabilities { read_claims, .. } = self.inner.capabilities();
        let read_claims = if self.sharing == Sharing::Shared { ReadClaiming::None } else { read_claims };
        Capabilities { sharing: self.sharing, read_claims, ..self.inner.capabilities() }
    }

    fn create_tree(&self, name: &str, options: &TreeOptions) -> Result<TreeId, StorageError> {
        self.inner.create_tree(name, options)
    }

    fn drop_tree(&self, tree: TreeId) -> Result<(), StorageError> {
        self.inner.drop_tree(tree)
    }

    fn list_trees(&self) -> Result<Vec<TreeDescription>, StorageError> {
        self.inner.list_trees()
    }

    fn begin(&self, begin: Begin) -> Result<Box<dyn Transaction>, StorageError> {
        let transaction = self.inner.begin(begin)?;
        let hook = match self.commit_hook.lock().take() {
            Some(hook) => CommitHook::Behind(hook),
            None if self.refuses() => {
                let trees = self.inner.list_trees()?;
                let Some(catalog) = trees.into_iter().find(|tree| tree.name == "catalog") else {
                    return Ok(transaction);
                };
                let (is_armed, refusal) = (Arc::clone(&self.refuses), *self.refusal.lock());
                CommitHook::Refuse { tree: catalog.id, is_armed, writes: false, refusal }
            }
            None => return Ok(transaction),
        };
        Ok(Box::new(HookedCommit { inner: transaction, hook }))
    }

    /// All servers of a test have this engine.
    fn shared_time(&self) -> Option<SharedTime> {
        let newest = || Some(SharedTime::of_snapshot(self.inner.begin(Begin::READ).ok()?.snapshot()));
        (self.sharing == Sharing::Shared).then(newest).flatten()
    }

    fn when_durable(&self, receipt: CommitReceipt, durability: Durability, waker: DurabilityWaker) {
        self.inner.when_durable(receipt, durability, waker);
    }

    fn wait_durable(&self, receipt: CommitReceipt, durability: Durability) -> Result<(), StorageError> {
        self.inner.wait_durable(receipt, durability)
    }

    fn checkpoint(&self) -> Result<(), StorageError> {
        self.inner.checkpoint()
    }

    fn tree_estimate(&self, tree: TreeId) -> Result<Estimate, StorageError> {
        self.inner.tree_estimate(tree)
    }

    fn bytes_on_disk(&self, tree: Option<TreeId>) -> Result<u64, StorageError> {
        self.inner.bytes_on_disk(tree)
    }

    fn statistics(&self) -> Statistics {
        self.inner.statistics()
    }

    fn live_transactions(&self) -> Vec<LiveTransaction> {
        self.inner.live_transactions()
    }

    fn close(&self) -> Result<(), StorageError> {
        self.inner.close()
    }
}
