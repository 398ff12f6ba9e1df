//! The publication of a collection that was loaded: the commit from which on snapshots see its documents.
//!
//! The trees of a load are filled before the commit that publishes them, outside of every transaction. So a
//! snapshot from before that commit might see their entries. A reader therefore asks here first.
//!
//! # Terms
//! - *Mark*: an entry that the publishing commit writes. A snapshot sees the commit if it sees the mark.
//! - *Pending*: the commit is not known to have succeeded. Its timestamp takes the place of the mark
//!   afterwards, and costs a comparison instead of a lookup.

use std::sync::atomic::{AtomicU64, Ordering};

use pando_storage::{BlockingMode, CommitTimestamp, StorageError, Transaction, TreeId};

/// The timestamp of a publication that is pending.
const PENDING: u64 = 0;

/// See the module's head.
#[derive(Debug)]
pub(crate) struct Publication {
    tree: TreeId,
    mark: Vec<u8>,
    at: AtomicU64,
}

impl Publication {
    /// A pending one, whose commit will put the entry `mark` into a tree.
    pub fn pending(tree: TreeId, mark: &[u8]) -> Publication {
        Publication { tree, mark: mark.to_vec(), at: AtomicU64::new(PENDING) }
    }

    /// It has committed. Nobody may remove the mark before.
    pub fn committed(&self, at: CommitTimestamp) {
        self.at.store(at.get(), Ordering::Release);
    }

    /// Whether a transaction sees it.
    pub fn is_seen_by(
        &self,
        transaction: &dyn Transaction,
        blocking: BlockingMode,
    ) -> Result<bool, StorageError> {
        let at = self.at.load(Ordering::Acquire);
        if at != PENDING && transaction.snapshot().sees(CommitTimestamp::new(at)) {
            return Ok(true);
        }
        // Also where the timestamp tells: a serializable transaction claims the mark, so that it does not
        // commit beside what it has not seen.
        Ok(transaction.get(self.tree, &self.mark, blocking)?.is_some())
    }
}
