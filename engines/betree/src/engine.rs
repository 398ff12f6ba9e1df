//! The engine: the storage contract's [`Engine`] over an open store.

mod bulk_load;

use std::path::Path;
use std::sync::Arc;

use pando_environment::sync::Mutex;
use pando_environment::{Environment, Task};
use pando_storage::{
    BackupReport, BackupRequest, Begin, CachedReads, Capabilities, CheckReport, CheckRequest, CommitReceipt,
    CommitTimestamp, Compacting, ConflictTime, Durability, DurabilityWaker, Engine, Estimate, EstimateOrigin,
    HeldMemory, History, Intents, Isolation, LiveTransaction, LoadDurability, Lsn, Merging, Operation,
    Persistence, RangeDeletes, ReadClaiming, Sharing, SnapshotTimestamp, SortedEntries, Statistics,
    StorageError, Transaction, TreeDescription, TreeId, TreeOptions, Wait,
};

use crate::backup::{BackupJob, BackupProgress};
use crate::commit_order::Live;
use crate::error::BetreeError;
use crate::format::record_payload::{Kind, write_create_tree, write_drop_tree, write_lay_out_tree};
use crate::log::{LogError, records_between};
use crate::options::Options;
use crate::recovery;
use crate::space::Shutdown;
use crate::store::Store;
use crate::transaction::BetreeSnapshot;
use crate::tree::estimate::estimate_all;
use crate::tree::node::Child;
use crate::tree::tree_state::Tree;
use crate::tree::view::TreeView;

/// The longest name of a tree, in bytes.
const NAME_BYTES_MAX: usize = 4096;

/// Bytes of the log that may stay after a requested checkpoint. With more, a second checkpoint follows.
const LOG_KEPT_BYTES_MAX: u64 = 1 << 20;
/// Freed bytes that may stay pending after a requested checkpoint. With more, a second checkpoint follows.
const PENDING_KEPT_BYTES_MAX: u64 = 1 << 20;

/// An open store. See the crate's head.
pub struct Betree {
    pub(crate) store: Arc<Store>,
    /// Background tasks; empty once the store is closed.
    tasks: Mutex<Vec<Task>>,
}

impl Betree {
    /// Opens the store in a folder, or creates one if there is none.
    ///
    /// # Errors
    /// The folder is in use, cannot be written, or holds a damaged store or one of another version; the
    /// options contradict each other.
    pub fn open(
        environment: &Environment,
        folder: &Path,
        options: Options,
    ) -> Result<Arc<Betree>, StorageError> {
        let opened = recovery::open(environment, folder, options)?;
        Ok(Arc::new(Betree { store: opened.store, tasks: Mutex::new(opened.tasks) }))
    }

    /// Whether a folder holds a store of this engine.
    ///
    /// # Errors
    /// The folder cannot be looked into.
    pub fn exists(environment: &Environment, folder: &Path) -> Result<bool, StorageError> {
        Ok(crate::space::BlockStore::exists(environment, folder)?)
    }

    /// Begins a [backup](Engine::backup) that the caller continues step by step. It is for tests that act
    /// between steps, and for callers that set the pace themselves. The moment of the backup lies within this
    /// call.
    ///
    /// # Errors
    /// As for [`Engine::backup`].
    pub fn begin_backup(&self, request: &BackupRequest<'_>) -> Result<BackupJob, StorageError> {
        Ok(BackupJob::begin(&self.store, request)?)
    }

    fn create(&self, name: &str, options: &TreeOptions) -> Result<TreeId, BetreeError> {
        if name.len() > NAME_BYTES_MAX {
            return Err(BetreeError::NameTooLong { bytes: name.len(), limit: NAME_BYTES_MAX });
        }
        let store = &self.store;
        let settings = store.options.tree.with_options(&options.entries)?;
        let mut naming = store.trees.lock_naming();
        if naming.by_name.contains_key(name) {
            return Err(BetreeError::NameTaken(name.to_owned()));
        }
        let id = TreeId::new(naming.next);
        naming.take_catalog_room(name, &options.entries)?;
        let payload = write_create_tree(id, name, &options.entries);
        let lsn = {
            let _gate = store.gate.enter();
            store.gate.check_open()?;
            let lsn = store.gate.log().append(Kind::CreateTree.into(), &[&payload])?;
            let view = TreeView::empty(lsn);
            let tree = Arc::new(Tree::new(id, name.to_owned(), options.entries.clone(), settings, view));
            store.trees.add(&mut naming, [tree]);
            lsn
        };
        naming.next += 1;
        naming.by_name.insert(name.to_owned(), id);
        store.visibility.publish(CommitTimestamp::new(lsn.get()));
        Ok(id)
    }

    fn change_layout(&self, id: TreeId, options: &TreeOptions) -> Result<(), BetreeError> {
        let store = &self.store;
        let settings = store.options.tree.with_options(&options.entries)?;
        let _naming = store.trees.lock_naming();
        let lsn = {
            let _gate = store.gate.enter();
            store.gate.check_open()?;
            let tree = store.trees.live(id)?;
            let payload = write_lay_out_tree(id, &options.entries);
            let lsn = store.gate.log().append(Kind::LayOutTree.into(), &[&payload])?;
            tree.change_layout(options.entries.clone(), settings);
            lsn
        };
        store.visibility.publish(CommitTimestamp::new(lsn.get()));
        Ok(())
    }

    fn drop(&self, id: TreeId) -> Result<(), BetreeError> {
        let store = &self.store;
        let mut naming = store.trees.lock_naming();
        let lsn = {
            let _gate = store.gate.enter();
            store.gate.check_open()?;
            let tree = store.trees.live(id)?;
            let lsn = store.gate.log().append(Kind::DropTree.into(), &[&write_drop_tree(id)])?;
            tree.set_dropped(CommitTimestamp::new(lsn.get()));
            naming.by_name.remove(&tree.name);
            lsn
        };
        store.visibility.publish(CommitTimestamp::new(lsn.get()));
        Ok(())
    }

    fn shut_down(&self) -> Result<(), BetreeError> {
        let store = &self.store;
        {
            // Commits that are under way finish first; later ones are refused.
            let _gate = store.gate.close();
            if !store.gate.set_closed() {
                return Ok(());
            }
        }
        let outcome =
            store.checkpointer.flush_everything().and_then(|()| store.checkpointer.checkpoint_at_end());
        self.tasks.lock().clear();
        let closed = store.gate.log().close();
        // A log that could not be synced is worse than a checkpoint that is missing.
        closed?;
        outcome
    }
}

impl Engine for Betree {
    fn name(&self) -> &'static str {
        "betree"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            conflicts: ConflictTime::AtUpdate,
            history: History::WhileHeld,
            durable: Persistence::Durable,
            cached_reads: CachedReads::Told,
            merges: Merging::Blind,
            estimates: EstimateOrigin::Pages,
            range_deletes: RangeDeletes::OneMessage,
            read_claims: ReadClaiming::Ranges,
            sharing: Sharing::Exclusive,
            compacting: Compacting::BesideTransactions,
        }
    }

    fn create_tree(&self, name: &str, options: &TreeOptions) -> Result<TreeId, StorageError> {
        Ok(self.create(name, options)?)
    }

    fn drop_tree(&self, tree: TreeId) -> Result<(), StorageError> {
        Ok(self.drop(tree)?)
    }

    fn list_trees(&self) -> Result<Vec<TreeDescription>, StorageError> {
        self.store.gate.check_open()?;
        let trees = self.store.trees.in_order();
        let live = trees.iter().filter(|tree| !tree.is_dropped());
        Ok(live.map(|tree| TreeDescription { id: tree.id, name: tree.name.clone() }).collect())
    }

    fn begin(&self, begin: Begin) -> Result<Box<dyn Transaction>, StorageError> {
        let store = &self.store;
        store.gate.check_open()?;
        begin.check(self.name(), ReadClaiming::Ranges)?;
        let is_serializable = begin.isolation == Isolation::Serializable;
        let entering = is_serializable.then(|| store.visibility.read_claims.enter());
        let now = store.environment.clock().monotonic();
        let live = match begin.at {
            None => store.visibility.snapshots.begin(&store.visibility.publisher, now),
            Some(at) => {
                store.visibility.snapshots.begin_at(&store.visibility.publisher, now, at).ok_or_else(
                    || {
                        let retained = store.visibility.snapshots.retained(&store.visibility.publisher);
                        let (oldest, newest) =
                            (retained.oldest().get(), store.visibility.publisher.newest().get());
                        BetreeError::NoSnapshot { asked: at.get(), oldest, newest }
                    },
                )?
            }
        };
        let reads = entering.map(|entering| entering.begin(live.id, live.snapshot));
        Ok(Box::new(BetreeSnapshot::begin(Arc::clone(store), live, begin.mode).claiming(reads)))
    }

    fn intents(&self) -> Option<&Intents> {
        Some(&self.store.visibility.intents)
    }

    fn when_durable(&self, receipt: CommitReceipt, durability: Durability, waker: DurabilityWaker) {
        if receipt.lsn == Lsn::ZERO || durability == Durability::None {
            return waker(Ok(()));
        }
        let waker = Box::new(move |outcome: Result<(), LogError>| waker(outcome.map_err(StorageError::from)));
        match durability {
            Durability::None | Durability::Logged => self.store.gate.log().on_logged(receipt.lsn, waker),
            Durability::Synced => self.store.gate.log().on_durable(receipt.lsn, waker),
        }
    }

    fn wait_durable(&self, receipt: CommitReceipt, durability: Durability) -> Result<(), StorageError> {
        if receipt.lsn == Lsn::ZERO {
            return Ok(());
        }
        match durability {
            Durability::None => {}
            Durability::Logged => self.store.gate.log().write_through(receipt.lsn)?,
            Durability::Synced => self.store.gate.log().sync(receipt.lsn)?,
        }
        Ok(())
    }

    fn checkpoint(&self) -> Result<(), StorageError> {
        self.store.gate.check_open()?;
        self.store.checkpointer.flush_everything()?;
        self.store.gate.log().sync(self.store.gate.log().appended_lsn())?;
        // While others write, the log cannot be shortened. The next commit reports any error of the log.
        let is_shorter = matches!(self.store.gate.log().shorten(), Ok(true));
        self.store.checkpointer.checkpoint(Shutdown::Running)?;
        let space = self.store.blocks.store().statistics();
        let is_log_long = self.store.gate.log().live_bytes() > LOG_KEPT_BYTES_MAX;
        if is_shorter || is_log_long || space.pending_bytes > PENDING_KEPT_BYTES_MAX {
            // The older superblock still needs its log and the freed extents. Once both superblocks are new,
            // these can go.
            self.store.checkpointer.checkpoint(Shutdown::Running)?;
            let _tried = self.store.gate.log().shorten();
        }
        self.store.space_return.return_all();
        Ok(())
    }

    fn compact(&self, trees: &[TreeId], operation: &Operation) -> Result<(), StorageError> {
        self.store.gate.check_open()?;
        self.store.compaction.compact(trees, operation)?;
        self.checkpoint()
    }

    fn tree_estimate(&self, tree: TreeId) -> Result<Estimate, StorageError> {
        self.store.gate.check_open()?;
        let tree = self.store.trees.live(tree)?;
        Ok(estimate_all(&tree.view(), &tree.growth))
    }

    fn bytes_on_disk(&self, tree: Option<TreeId>) -> Result<u64, StorageError> {
        match tree {
            Some(tree) => Ok(self.bytes_on_disk_of(&[tree])?.into_iter().sum()),
            None => {
                self.store.gate.check_open()?;
                Ok(bytes_used(&self.store))
            }
        }
    }

    fn bytes_on_disk_of(&self, trees: &[TreeId]) -> Result<Vec<u64>, StorageError> {
        self.store.gate.check_open()?;
        let all_used = bytes_used(&self.store);
        // A tree's share, by content: exact figures would read every directory.
        let all: u64 = self.store.trees.all().values().map(|tree| content_bytes(tree)).sum();
        let share = |own: u64| (u128::from(all_used) * u128::from(own) / u128::from(all.max(1))) as u64;
        trees.iter().map(|tree| Ok(share(content_bytes(&*self.store.trees.live(*tree)?)))).collect()
    }

    fn statistics(&self) -> Statistics {
        crate::statistics::statistics(&self.store)
    }

    fn tree_statistics(&self, tree: TreeId) -> Result<Statistics, StorageError> {
        Ok(crate::statistics::tree_statistics(&self.store, tree)?)
    }

    /// A timestamp is the LSN of its commit.
    fn commits_between(&self, older: SnapshotTimestamp, newer: SnapshotTimestamp) -> Option<u64> {
        Some(records_between(Lsn::new(older.get()), Lsn::new(newer.get())))
    }

    fn waits(&self) -> Vec<Wait> {
        crate::statistics::all_waits(&self.store)
    }

    fn failure(&self) -> Option<StorageError> {
        let of_log = self.store.gate.log().check_poison().err().map(StorageError::from);
        of_log.or_else(|| self.store.blocks.store().check_poison().err().map(StorageError::from))
    }

    fn settings(&self) -> Vec<(&'static str, String)> {
        crate::store::settings::settings(&self.store)
    }

    fn change_settings(&self, changes: &[(&str, &str)]) -> Result<(), StorageError> {
        Ok(crate::store::settings::change_settings(&self.store, changes)?)
    }

    fn lend_memory(&self, wanted: usize) -> HeldMemory {
        self.store.memory.lend(wanted)
    }

    fn change_tree_options(&self, tree: TreeId, options: &TreeOptions) -> Result<(), StorageError> {
        Ok(self.change_layout(tree, options)?)
    }

    fn check(&self, request: &CheckRequest<'_>) -> Result<CheckReport, StorageError> {
        Ok(crate::verify::check_open(&self.store, request)?)
    }

    fn load(
        &self,
        tree: TreeId,
        entries: &mut dyn SortedEntries,
        durability: LoadDurability,
    ) -> Result<u64, StorageError> {
        bulk_load::load(&self.store, tree, entries, durability)
    }

    fn live_transactions(&self) -> Vec<LiveTransaction> {
        let now = self.store.environment.clock().monotonic();
        let live = self.store.visibility.snapshots.all();
        LiveTransaction::oldest_first(live.iter().map(|live| describe(live, now)))
    }

    fn backup(&self, request: &BackupRequest<'_>) -> Result<BackupReport, StorageError> {
        let mut job = self.begin_backup(request)?;
        loop {
            if let BackupProgress::Finished(report) = job.step()? {
                return Ok(report);
            }
            if let Some(operation) = request.operation {
                operation.check_now()?;
            }
        }
    }

    fn close(&self) -> Result<(), StorageError> {
        Ok(self.shut_down()?)
    }
}

fn describe(live: &Live, now: pando_environment::Monotonic) -> LiveTransaction {
    LiveTransaction {
        number: live.id.get(),
        age: now.since(live.began),
        writes: live.writes.load(pando_environment::sync::atomic::Ordering::Relaxed),
        snapshot: live.snapshot,
    }
}

/// Bytes that the store takes on the device.
fn bytes_used(store: &Store) -> u64 {
    let space = store.blocks.store().statistics();
    let used = space.file_bytes.saturating_sub(space.free_bytes);
    // Writes that are still in the buffers are on the device in the log.
    used + store.gate.log().live_bytes()
}

/// Bytes of a tree's entries before compression, in its leaves and nodes and in its buffers.
fn content_bytes(tree: &Tree) -> u64 {
    let view = tree.view();
    let flushed = view.version.root.as_ref().map_or(0, Child::content_bytes);
    let buffers = view.buffers().filter(|buffer| !buffer.is_empty());
    flushed + buffers.map(|buffer| buffer.read().content_bytes() as u64).sum::<u64>()
}

#[cfg(test)]
mod tests;
