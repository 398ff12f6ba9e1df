//! The engine as the storage contract wants it.

mod bulk_load;

use std::path::Path;
use std::sync::Arc;

use pando_environment::sync::Mutex;
use pando_environment::{Environment, Task};
use pando_storage::{
    BackupReport, BackupRequest, Begin, CachedReads, Capabilities, CheckReport, CheckRequest, CommitReceipt,
    CommitTimestamp, ConflictTime, Durability, DurabilityWaker, Engine, Estimate, HeldMemory, History,
    LiveTransaction, LoadDurability, Lsn, Merging, Persistence, RangeDeletes, SortedEntries, Statistics,
    StorageError, Transaction, TreeDescription, TreeId, TreeOptions, Wait,
};

use crate::backup::{BackupJob, BackupProgress};
use crate::base::WaitFor;
use crate::core::Core;
use crate::error::BetreeError;
use crate::format::record::{Kind, write_create_tree, write_drop_tree, write_lay_out_tree};
use crate::log::LogError;
use crate::options::Options;
use crate::recovery;
use crate::space::Shutdown;
use crate::transaction::{BetreeTransaction, Live};
use crate::tree::estimate::estimate_all;
use crate::tree::node::Child;
use crate::tree::tree_state::Tree;
use crate::tree::view::TreeView;

/// The longest name of a tree, in bytes.
const NAME_BYTES_MAX: usize = 4096;

/// A checkpoint that is asked for leaves no more of the log than this, in bytes.
const LOG_KEPT_BYTES_MAX: u64 = 1 << 20;
/// So much that was freed may wait for further checkpoints after one that was asked for.
const PENDING_KEPT_BYTES_MAX: u64 = 1 << 20;

/// An open store. See the crate's head.
pub struct Betree {
    pub(crate) core: Arc<Core>,
    /// Background work; gone once the store is closed.
    tasks: Mutex<Vec<Task>>,
}

impl Betree {
    /// Opens the store in a folder, or makes one where there is none.
    ///
    /// # Errors
    /// The folder is in use, cannot be written, or holds another version's or a damaged store; options that cannot be.
    pub fn open(
        environment: &Environment,
        folder: &Path,
        options: Options,
    ) -> Result<Arc<Betree>, StorageError> {
        let opened = recovery::open(environment, folder, options)?;
        Ok(Arc::new(Betree { core: opened.core, tasks: Mutex::new(opened.tasks) }))
    }

    /// Whether a folder holds a store of this engine.
    ///
    /// # Errors
    /// The folder cannot be looked into.
    pub fn exists(environment: &Environment, folder: &Path) -> Result<bool, StorageError> {
        Ok(crate::space::BlockStore::exists(environment, folder)?)
    }

    /// Begins a [backup](Engine::backup) that the caller carries on step by step: for tests that want something to happen
    /// meanwhile, and for callers with a pace of their own. The moment of the backup lies within this call.
    ///
    /// # Errors
    /// As for [`Engine::backup`].
    pub fn begin_backup(&self, request: &BackupRequest<'_>) -> Result<BackupJob, StorageError> {
        Ok(BackupJob::begin(&self.core, request)?)
    }

    #[cfg(test)]
    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    fn create(&self, name: &str, options: &TreeOptions) -> Result<TreeId, BetreeError> {
        if name.len() > NAME_BYTES_MAX {
            return Err(BetreeError::NameTooLong { bytes: name.len(), limit: NAME_BYTES_MAX });
        }
        let core = &self.core;
        let settings = core.options.tree.with_options(&options.entries)?;
        let mut naming = core.waits.lock(WaitFor::Naming, &core.naming);
        if naming.by_name.contains_key(name) {
            return Err(BetreeError::NameTaken(name.to_owned()));
        }
        let id = TreeId::new(naming.next);
        let payload = write_create_tree(id, name, &options.entries);
        let lsn = {
            let _gate = core.gate.read();
            core.check_open()?;
            let lsn = core.log().append(Kind::CreateTree.into(), &[&payload])?;
            let view = TreeView::empty(lsn);
            let tree = Arc::new(Tree::new(id, name.to_owned(), options.entries.clone(), settings, view));
            core.change_trees(|trees| {
                trees.insert(id.get(), tree);
            });
            lsn
        };
        naming.next += 1;
        naming.by_name.insert(name.to_owned(), id);
        core.publisher.publish(CommitTimestamp::new(lsn.get()));
        Ok(id)
    }

    fn change_layout(&self, id: TreeId, options: &TreeOptions) -> Result<(), BetreeError> {
        let core = &self.core;
        let settings = core.options.tree.with_options(&options.entries)?;
        let _naming = core.waits.lock(WaitFor::Naming, &core.naming);
        let lsn = {
            let _gate = core.gate.read();
            core.check_open()?;
            let tree = core.live_tree(id)?;
            let payload = write_lay_out_tree(id, &options.entries);
            let lsn = core.log().append(Kind::LayOutTree.into(), &[&payload])?;
            tree.change_layout(options.entries.clone(), settings);
            lsn
        };
        core.publisher.publish(CommitTimestamp::new(lsn.get()));
        Ok(())
    }

    fn drop(&self, id: TreeId) -> Result<(), BetreeError> {
        let core = &self.core;
        let mut naming = core.naming.lock();
        let lsn = {
            let _gate = core.gate.read();
            core.check_open()?;
            let tree = core.live_tree(id)?;
            let lsn = core.log().append(Kind::DropTree.into(), &[&write_drop_tree(id)])?;
            tree.set_dropped(CommitTimestamp::new(lsn.get()));
            naming.by_name.remove(&tree.name);
            lsn
        };
        core.publisher.publish(CommitTimestamp::new(lsn.get()));
        Ok(())
    }

    fn shut_down(&self) -> Result<(), BetreeError> {
        let core = &self.core;
        {
            // Commits that are under way end first, later ones are refused.
            let _gate = core.gate.write();
            if !core.set_closed() {
                return Ok(());
            }
        }
        let outcome = core.merge_everything().and_then(|()| core.checkpoint_at_end());
        self.tasks.lock().clear();
        let closed = core.log().close();
        outcome?;
        Ok(closed?)
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
            range_deletes: RangeDeletes::OneMessage,
        }
    }

    fn create_tree(&self, name: &str, options: &TreeOptions) -> Result<TreeId, StorageError> {
        Ok(self.create(name, options)?)
    }

    fn drop_tree(&self, tree: TreeId) -> Result<(), StorageError> {
        Ok(self.drop(tree)?)
    }

    fn list_trees(&self) -> Result<Vec<TreeDescription>, StorageError> {
        self.core.check_open()?;
        let trees = self.core.trees_in_order();
        let live = trees.iter().filter(|tree| !tree.is_dropped());
        Ok(live.map(|tree| TreeDescription { id: tree.id, name: tree.name.clone() }).collect())
    }

    fn begin(&self, begin: Begin) -> Result<Box<dyn Transaction>, StorageError> {
        let core = &self.core;
        core.check_open()?;
        let now = core.environment.clock().monotonic();
        let live = match begin.at {
            None => core.snapshots.begin(&core.publisher, now),
            Some(at) => core.snapshots.begin_at(&core.publisher, now, at).ok_or_else(|| {
                let retained = core.snapshots.retained(&core.publisher);
                let (oldest, newest) = (retained.oldest().get(), core.publisher.newest().get());
                BetreeError::NoSnapshot { asked: at.get(), oldest, newest }
            })?,
        };
        Ok(Box::new(BetreeTransaction::new(Arc::clone(core), live, begin.mode)))
    }

    fn when_durable(&self, receipt: CommitReceipt, durability: Durability, waker: DurabilityWaker) {
        if receipt.lsn == Lsn::ZERO || durability == Durability::None {
            return waker(Ok(()));
        }
        let waker = Box::new(move |outcome: Result<(), LogError>| waker(outcome.map_err(StorageError::from)));
        match durability {
            Durability::None | Durability::Logged => self.core.log().on_logged(receipt.lsn, waker),
            Durability::Synced => self.core.log().on_durable(receipt.lsn, waker),
        }
    }

    fn wait_durable(&self, receipt: CommitReceipt, durability: Durability) -> Result<(), StorageError> {
        if receipt.lsn == Lsn::ZERO {
            return Ok(());
        }
        match durability {
            Durability::None => {}
            Durability::Logged => self.core.log().write_through(receipt.lsn)?,
            Durability::Synced => self.core.log().sync(receipt.lsn)?,
        }
        Ok(())
    }

    fn durable_to(&self, durability: Durability) -> Lsn {
        match durability {
            Durability::None => Lsn::new(self.core.publisher.newest().get()),
            Durability::Logged => self.core.log().logged_lsn(),
            Durability::Synced => self.core.log().durable_lsn(),
        }
    }

    fn checkpoint(&self) -> Result<(), StorageError> {
        self.core.check_open()?;
        self.core.merge_everything()?;
        self.core.log().sync(self.core.log().appended_lsn())?;
        // Where others write, the log goes on as it is. What is wrong with it, the next commit is told.
        let is_shorter = matches!(self.core.log().shorten(), Ok(true));
        self.core.checkpoint(Shutdown::Running)?;
        let space = self.core.blocks.store().statistics();
        let is_log_long = self.core.log().live_bytes() > LOG_KEPT_BYTES_MAX;
        if is_shorter || is_log_long || space.pending_bytes > PENDING_KEPT_BYTES_MAX {
            // The older superblock still wants the log since then, and what was freed; once both are new it can go.
            self.core.checkpoint(Shutdown::Running)?;
            let _tried = self.core.log().shorten();
        }
        self.core.give_all_room_back();
        Ok(())
    }

    fn compact(&self, trees: &[TreeId]) -> Result<(), StorageError> {
        self.core.check_open()?;
        self.core.send_all_down(trees)?;
        self.checkpoint()
    }

    fn tree_estimate(&self, tree: TreeId) -> Result<Estimate, StorageError> {
        self.core.check_open()?;
        let tree = self.core.live_tree(tree)?;
        Ok(estimate_all(&tree.view(), &tree.growth))
    }

    fn bytes_on_disk(&self, tree: Option<TreeId>) -> Result<u64, StorageError> {
        self.core.check_open()?;
        let space = self.core.blocks.store().statistics();
        let used = space.file_bytes.saturating_sub(space.free_bytes);
        let Some(tree) = tree else { return Ok(used + self.core.log().live_bytes()) };
        // Its share of what is in use, by content: exact figures would read every directory.
        let bytes_of = |tree: &Tree| tree.view().version.root.as_ref().map_or(0, Child::content_bytes);
        let own = bytes_of(&*self.core.live_tree(tree)?);
        let all: u64 = self.core.trees().values().map(|tree| bytes_of(tree)).sum();
        Ok((u128::from(used) * u128::from(own) / u128::from(all.max(1))) as u64)
    }

    fn statistics(&self) -> Statistics {
        self.core.statistics()
    }

    fn tree_statistics(&self, tree: TreeId) -> Result<Statistics, StorageError> {
        Ok(self.core.tree_statistics(tree)?)
    }

    fn waits(&self) -> Vec<Wait> {
        self.core.all_waits()
    }

    fn settings(&self) -> Vec<(&'static str, String)> {
        self.core.settings()
    }

    fn change_settings(&self, changes: &[(&str, &str)]) -> Result<(), StorageError> {
        Ok(self.core.change_settings(changes)?)
    }

    fn lend_memory(&self, wanted: usize) -> HeldMemory {
        self.core.lend_memory(wanted)
    }

    fn change_tree_options(&self, tree: TreeId, options: &TreeOptions) -> Result<(), StorageError> {
        Ok(self.change_layout(tree, options)?)
    }

    fn check(&self, request: &CheckRequest<'_>) -> Result<CheckReport, StorageError> {
        Ok(crate::verify::check_open(&self.core, request)?)
    }

    fn load(
        &self,
        tree: TreeId,
        entries: &mut dyn SortedEntries,
        durability: LoadDurability,
    ) -> Result<u64, StorageError> {
        self.core.load(tree, entries, durability)
    }

    fn live_transactions(&self) -> Vec<LiveTransaction> {
        let now = self.core.environment.clock().monotonic();
        let mut live: Vec<LiveTransaction> =
            self.core.snapshots.all().iter().map(|live| describe(live, now)).collect();
        live.sort_by_key(|transaction| std::cmp::Reverse(transaction.age));
        live
    }

    fn backup(&self, request: &BackupRequest<'_>) -> Result<BackupReport, StorageError> {
        let mut job = self.begin_backup(request)?;
        loop {
            if let BackupProgress::Finished(report) = job.step()? {
                return Ok(report);
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

#[cfg(test)]
mod tests;
