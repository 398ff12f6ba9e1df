//! The load that a connection has open: TokuMX's `beginLoad`.
//!
//! # Terms
//! - *Bound*: begun while the connection has a transaction of its own. The commit of that publishes the
//!   collection. Any other load publishes it by a commit of its own.
//! - *Ended*: given back before its client has ended it, because a request or the transaction has failed.
//!   The connection keeps an ended load, so that later inserts make no collection of the rest.
//!
//! # Invariants
//! - A connection has one load at most. It ends with the connection.
//! - A bound load ends with the transaction, also where that ends without its client.
//!
//! # Not here
//! Sorting and publishing: crate `catalog`. The requests that a load refuses: `commands/load_rules.rs`.

use std::fmt;
use std::sync::Arc;

use pando_catalog::{BulkLoad, Namespace};
use parking_lot::{MappedMutexGuard, Mutex, MutexGuard};

use crate::{CommandError, ErrorCode};

/// See the module's head. Clones are the same load.
#[derive(Clone)]
pub(crate) struct OpenLoad {
    namespace: Namespace,
    /// `None` when it has ended.
    cell: Arc<Mutex<Option<BulkLoad>>>,
}

impl OpenLoad {
    pub fn new(load: BulkLoad) -> OpenLoad {
        OpenLoad { namespace: load.namespace().clone(), cell: Arc::new(Mutex::new(Some(load))) }
    }

    /// The collection that it makes.
    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// Whether it has not ended.
    pub fn is_open(&self) -> bool {
        self.cell.lock().is_some()
    }

    /// The load, for inserts.
    ///
    /// # Errors
    /// It has ended.
    pub fn lock(&self) -> Result<MappedMutexGuard<'_, BulkLoad>, CommandError> {
        MutexGuard::try_map(self.cell.lock(), Option::as_mut).map_err(|_| self.ended())
    }

    /// Takes it out for its commit.
    ///
    /// # Errors
    /// It has ended.
    pub fn take(&self) -> Result<BulkLoad, CommandError> {
        self.cell.lock().take().ok_or_else(|| self.ended())
    }

    /// Gives it back.
    pub fn end(&self) {
        let ended = self.cell.lock().take();
        // Dropping its trees takes a moment, for which the lock is not needed.
        drop(ended);
    }

    fn ended(&self) -> CommandError {
        CommandError::failed(
            ErrorCode::OperationFailed,
            format!(
                "the load of {} has ended with a request that failed: send abortLoad and begin it again",
                self.namespace
            ),
        )
    }
}

impl fmt::Debug for OpenLoad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a load of {}", self.namespace)
    }
}
