//! A transaction that calls the test back as soon as its commit is visible, before its caller knows. Or one
//! whose commit fails, as on a full disk or beside a network that loses messages, if it writes to a tree.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pando_catalog::{CommitReceipt, Durability, Estimate, StorageError, Transaction};
use pando_storage::{
    Batch, BatchLimits, BlockingMode, Bytes, Claim, Direction, ErrorKind, KeyRange, Merge, Savepoint,
    ScanEnd, SnapshotTimestamp, TreeId,
};

pub struct HookedCommit {
    pub inner: Box<dyn Transaction>,
    pub hook: CommitHook,
}

/// The time at which the test interferes.
pub enum CommitHook {
    /// The commit is visible.
    Behind(super::Hook),
    /// The commit fails, if it writes to this tree and no other one has failed.
    Refuse { tree: TreeId, is_armed: Arc<AtomicBool>, writes: bool, refusal: Refusal },
}

/// The way in which a commit fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Refusal {
    /// It has not happened.
    #[default]
    Failed,
    /// It has not happened, and the caller does not know.
    RequestLost,
    /// It has happened, and the caller does not know.
    AnswerLost,
}

impl HookedCommit {
    fn note(&mut self, written: TreeId) {
        if let CommitHook::Refuse { tree, writes, .. } = &mut self.hook {
            *writes |= *tree == written;
        }
    }
}

impl Transaction for HookedCommit {
    fn snapshot(&self) -> SnapshotTimestamp {
        self.inner.snapshot()
    }

    fn get(&self, tree: TreeId, key: &[u8], blocking: BlockingMode) -> Result<Option<Bytes>, StorageError> {
        self.inner.get(tree, key, blocking)
    }

    fn put(&mut self, tree: TreeId, key: &[u8], value: &[u8]) -> Result<(), StorageError> {
        self.note(tree);
        self.inner.put(tree, key, value)
    }

    fn delete(&mut self, tree: TreeId, key: &[u8]) -> Result<(), StorageError> {
        self.note(tree);
        self.inner.delete(tree, key)
    }

    fn merge(
        &mut self,
        tree: TreeId,
        key: &[u8],
        merge: Merge<'_>,
        claim: Claim,
        blocking: BlockingMode,
    ) -> Result<(), StorageError> {
        self.inner.merge(tree, key, merge, claim, blocking)
    }

    fn scan(
        &self,
        tree: TreeId,
        range: &KeyRange,
        direction: Direction,
        limits: BatchLimits,
        blocking: BlockingMode,
        batch: &mut Batch,
    ) -> Result<ScanEnd, StorageError> {
        self.inner.scan(tree, range, direction, limits, blocking, batch)
    }

    fn estimate(
        &self,
        tree: TreeId,
        range: &KeyRange,
        blocking: BlockingMode,
    ) -> Result<Estimate, StorageError> {
        self.inner.estimate(tree, range, blocking)
    }

    fn has_writes(&self) -> bool {
        self.inner.has_writes()
    }

    fn is_large(&self) -> bool {
        self.inner.is_large()
    }

    fn savepoint(&mut self) -> Savepoint {
        self.inner.savepoint()
    }

    fn rollback_to(&mut self, savepoint: Savepoint) {
        self.inner.rollback_to(savepoint);
    }

    fn commit(self: Box<Self>, durability: Durability) -> Result<CommitReceipt, StorageError> {
        match self.hook {
            CommitHook::Refuse { writes: true, is_armed, refusal, .. }
                if is_armed.swap(false, Ordering::SeqCst) =>
            {
                match refusal {
                    Refusal::Failed | Refusal::RequestLost => self.inner.rollback(),
                    Refusal::AnswerLost => drop(self.inner.commit(durability)?),
                }
                Err(match refusal {
                    Refusal::Failed => StorageError::new(ErrorKind::Io, "no space is left, says the test"),
                    Refusal::RequestLost | Refusal::AnswerLost => {
                        StorageError::new(ErrorKind::Undetermined, "a message is lost, says the test")
                    }
                })
            }
            CommitHook::Refuse { .. } => self.inner.commit(durability),
            CommitHook::Behind(hook) => {
                let receipt = self.inner.commit(durability)?;
                hook();
                Ok(receipt)
            }
        }
    }

    fn rollback(self: Box<Self>) {
        self.inner.rollback();
    }

    fn as_dyn(&self) -> &dyn Transaction {
        self
    }

    fn as_dyn_mut(&mut self) -> &mut dyn Transaction {
        self
    }
}
