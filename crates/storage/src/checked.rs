//! The checking wrapper: it panics with a sentence when an engine, or its caller, breaks the contract.
//!
//! For tests and debug builds. A broken promise then shows where it is broken, and not three layers above as
//! a wrong answer. The wrapper changes no answer.
//!
//! # Checks
//! - Errors: each method answers only with the kinds that [`Call::allows`] lists; `WouldBlock` never with
//!   `MayBlock`.
//! - Scans: keys strictly ordered in their direction and within their bounds; limits kept; an empty batch
//!   only at the end.
//! - Sizes: keys and values that are too long are refused, and none comes out.
//! - Order: a snapshot is the one asked for; a commit is later than its snapshot; a closed engine stays
//!   closed.
//! - The caller: only `rollback` after a conflict; no writes that the engine lets pass in a reading
//!   transaction; no batch limit of zero entries.
//!
//! # Not here
//! Whether the values are right: the conformance suite (`tools/conformance`) tests that.

mod call;
mod transaction;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use self::call::Call;
use self::transaction::CheckedTransaction;
use crate::backup::{BackupReport, BackupRequest};
use crate::capabilities::Capabilities;
use crate::check::{CheckReport, CheckRequest};
use crate::durability::{CommitReceipt, Durability, DurabilityWaker};
use crate::engine::{Begin, Engine, SharedEngine, TreeDescription, TreeOptions};
use crate::error::StorageError;
use crate::identifiers::{SnapshotTimestamp, TreeId};
use crate::intents::Intents;
use crate::load::{LoadDurability, SortedEntries};
use crate::memory::HeldMemory;
use crate::operation::Operation;
use crate::shared_time::SharedTime;
use crate::statistics::{Estimate, LiveTransaction, Statistics, Wait};
use crate::transaction::Transaction;

/// An engine under supervision. See the module's head.
pub struct CheckedEngine {
    inner: SharedEngine,
    is_closed: AtomicBool,
}

impl CheckedEngine {
    /// Puts an engine under supervision.
    pub fn new(inner: SharedEngine) -> CheckedEngine {
        CheckedEngine { inner, is_closed: AtomicBool::new(false) }
    }

    /// The same as [`CheckedEngine::new`], ready to be handed around.
    pub fn shared(inner: SharedEngine) -> SharedEngine {
        Arc::new(CheckedEngine::new(inner))
    }

    /// Runs one call and checks its error, and that a closed engine does not go on working.
    fn checked<T>(
        &self,
        call: Call,
        run: impl FnOnce() -> Result<T, StorageError>,
    ) -> Result<T, StorageError> {
        let was_closed = self.is_closed.load(Ordering::Acquire);
        let outcome = call.check(run());
        assert!(!(was_closed && outcome.is_ok()), "{call:?} succeeded on an engine that had been closed");
        outcome
    }
}

impl Engine for CheckedEngine {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn create_tree(&self, name: &str, options: &TreeOptions) -> Result<TreeId, StorageError> {
        self.checked(Call::CreateTree, || self.inner.create_tree(name, options))
    }

    fn drop_tree(&self, tree: TreeId) -> Result<(), StorageError> {
        self.checked(Call::DropTree, || self.inner.drop_tree(tree))
    }

    fn list_trees(&self) -> Result<Vec<TreeDescription>, StorageError> {
        let trees = self.checked(Call::ListTrees, || self.inner.list_trees())?;
        assert!(
            trees.is_sorted_by(|a, b| a.id < b.id),
            "list_trees is not strictly ordered by number: {trees:?}"
        );
        Ok(trees)
    }

    fn begin(&self, begin: Begin) -> Result<Box<dyn Transaction>, StorageError> {
        let inner = self.checked(Call::Begin, || self.inner.begin(begin))?;
        if let Some(at) = begin.at {
            assert_eq!(inner.snapshot(), at, "begin gave another snapshot than the one asked for");
        }
        Ok(Box::new(CheckedTransaction::new(inner, begin)))
    }

    fn intents(&self) -> Option<&Intents> {
        self.inner.intents()
    }

    fn shared_time(&self) -> Option<SharedTime> {
        self.inner.shared_time()
    }

    fn recent_snapshot(&self, within: Duration) -> Option<SnapshotTimestamp> {
        self.inner.recent_snapshot(within)
    }

    fn when_durable(&self, receipt: CommitReceipt, durability: Durability, waker: DurabilityWaker) {
        self.inner.when_durable(receipt, durability, waker);
    }

    fn wait_durable(&self, receipt: CommitReceipt, durability: Durability) -> Result<(), StorageError> {
        // Not through `check`: a commit that was durable before the engine closed may still be reported as
        // durable.
        Call::WaitDurable.check(self.inner.wait_durable(receipt, durability))
    }

    fn checkpoint(&self) -> Result<(), StorageError> {
        self.checked(Call::Checkpoint, || self.inner.checkpoint())
    }

    fn tree_estimate(&self, tree: TreeId) -> Result<Estimate, StorageError> {
        self.checked(Call::TreeFigure, || self.inner.tree_estimate(tree))
    }

    fn bytes_on_disk(&self, tree: Option<TreeId>) -> Result<u64, StorageError> {
        self.checked(Call::TreeFigure, || self.inner.bytes_on_disk(tree))
    }

    fn bytes_on_disk_of(&self, trees: &[TreeId]) -> Result<Vec<u64>, StorageError> {
        self.checked(Call::TreeFigure, || self.inner.bytes_on_disk_of(trees))
    }

    fn statistics(&self) -> Statistics {
        self.inner.statistics()
    }

    fn tree_statistics(&self, tree: TreeId) -> Result<Statistics, StorageError> {
        self.checked(Call::TreeFigure, || self.inner.tree_statistics(tree))
    }

    fn waits(&self) -> Vec<Wait> {
        self.inner.waits()
    }

    fn commits_between(&self, older: SnapshotTimestamp, newer: SnapshotTimestamp) -> Option<u64> {
        self.inner.commits_between(older, newer)
    }

    fn failure(&self) -> Option<StorageError> {
        let failure = self.inner.failure();
        if let Some(failure) = &failure {
            assert!(failure.kind().poisons_engine(), "an engine that has stopped itself says {failure:?}");
        }
        failure
    }

    fn settings(&self) -> Vec<(&'static str, String)> {
        self.inner.settings()
    }

    fn change_settings(&self, changes: &[(&str, &str)]) -> Result<(), StorageError> {
        self.checked(Call::Change, || self.inner.change_settings(changes))
    }

    fn lend_memory(&self, wanted: usize) -> HeldMemory {
        let lent = self.inner.lend_memory(wanted);
        assert!(lent.bytes() <= wanted, "no more is lent than is wanted");
        lent
    }

    fn change_tree_options(&self, tree: TreeId, options: &TreeOptions) -> Result<(), StorageError> {
        self.checked(Call::Change, || self.inner.change_tree_options(tree, options))
    }

    fn compact(&self, trees: &[TreeId], operation: &Operation) -> Result<(), StorageError> {
        self.checked(Call::Load, || self.inner.compact(trees, operation))
    }

    fn check(&self, request: &CheckRequest<'_>) -> Result<CheckReport, StorageError> {
        self.checked(Call::Backup, || self.inner.check(request))
    }

    fn load(
        &self,
        tree: TreeId,
        entries: &mut dyn SortedEntries,
        durability: LoadDurability,
    ) -> Result<u64, StorageError> {
        self.checked(Call::Load, || self.inner.load(tree, entries, durability))
    }

    fn live_transactions(&self) -> Vec<LiveTransaction> {
        let live = self.inner.live_transactions();
        assert!(live.is_sorted_by(|a, b| a.age >= b.age), "live_transactions is not ordered, oldest first");
        live
    }

    fn backup(&self, request: &BackupRequest<'_>) -> Result<BackupReport, StorageError> {
        let before = self.checked(Call::Begin, || self.inner.begin(Begin::READ))?.snapshot();
        let report = self.checked(Call::Backup, || self.inner.backup(request))?;
        assert!(
            report.moment.get() >= before.get(),
            "a backup ends at {:?}, before {before:?}, which was committed when it began",
            report.moment
        );
        Ok(report)
    }

    fn close(&self) -> Result<(), StorageError> {
        let outcome = Call::Close.check(self.inner.close());
        if outcome.is_ok() {
            self.is_closed.store(true, Ordering::Release);
        }
        outcome
    }
}

#[cfg(test)]
mod tests;
