//! A transaction that begins before its statement has leased a collection.
//!
//! A statement leases its collection first and begins its transaction then, so that the description by which
//! it writes holds at its snapshot. Over a network each begin is a round trip. A request that has read
//! something already, such as the record of its session, may give the transaction of that read to its first
//! statement. That is as good where no description has changed between the begin and the lease.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use pando_storage::{StorageError, Transaction};

use crate::Catalog;
use crate::catalog::Names;
use crate::write_transaction::WriteTransaction;

/// See the module's head. Dropping it rolls it back.
pub struct EarlyWrite {
    transaction: WriteTransaction,
    /// The descriptions at its begin. Held, so that no later ones lie at the same place in memory.
    names: Arc<Names>,
}

impl Deref for EarlyWrite {
    type Target = dyn Transaction;

    fn deref(&self) -> &(dyn Transaction + 'static) {
        &*self.transaction
    }
}

impl fmt::Debug for EarlyWrite {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("EarlyWrite").field("snapshot", &self.snapshot()).finish_non_exhaustive()
    }
}

impl Catalog {
    /// Begins a transaction for a statement that has no lease yet.
    pub fn begin_early(&self) -> Result<EarlyWrite, StorageError> {
        let names = self.names();
        Ok(EarlyWrite { transaction: self.begin_write()?, names })
    }

    /// The transaction, for a statement that has its lease now; `None` where any description has changed
    /// since the begin.
    pub fn write_of(&self, early: EarlyWrite) -> Option<WriteTransaction> {
        Arc::ptr_eq(&early.names, &self.names()).then_some(early.transaction)
    }
}
