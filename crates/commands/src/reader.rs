//! A reader: the snapshot that a statement or a cursor reads, its own or that of its session's transaction.

use std::sync::Arc;

use pando_catalog::{Catalog, CatalogError, Collection, SessionTransaction, SnapshotTimestamp, Transaction};
use parking_lot::MutexGuard;

use crate::CommandError;
use crate::held_snapshots::HeldSnapshot;
use crate::sessions::OpenTransaction;

/// See the module's head.
pub(crate) enum Reader {
    /// A snapshot of its own.
    Own(Box<dyn Transaction>),
    /// A past snapshot, with the collections of then.
    Past(PastReader),
    /// The snapshot of a session's transaction, with the writes of that transaction.
    Session(Arc<OpenTransaction>),
}

/// A reader of a past snapshot.
pub(crate) struct PastReader {
    pub held: Arc<HeldSnapshot>,
    pub transaction: Box<dyn Transaction>,
}

/// A reader that is held for one step. A session's transaction is locked meanwhile.
pub(crate) enum HeldReader<'r> {
    Own(&'r dyn Transaction),
    Past(&'r PastReader),
    Session(MutexGuard<'r, Option<SessionTransaction>>),
}

impl Reader {
    /// Holds it for one step.
    ///
    /// # Errors
    /// The session's transaction has ended.
    pub fn hold(&self) -> Result<HeldReader<'_>, CommandError> {
        match self {
            Reader::Own(transaction) => Ok(HeldReader::Own(&**transaction)),
            Reader::Past(past) => Ok(HeldReader::Past(past)),
            Reader::Session(open) => Ok(HeldReader::Session(open.lock()?)),
        }
    }

    /// The snapshot.
    pub fn snapshot(&self) -> Result<SnapshotTimestamp, CommandError> {
        Ok(self.hold()?.transaction().snapshot())
    }
}

impl HeldReader<'_> {
    /// The transaction.
    ///
    /// # Panics
    /// Never: a lock of a transaction that has ended is not given out.
    pub fn transaction(&self) -> &dyn Transaction {
        match self {
            HeldReader::Own(transaction) => *transaction,
            HeldReader::Past(past) => &*past.transaction,
            HeldReader::Session(held) => held.as_ref().expect("the transaction has not ended").reader(),
        }
    }

    /// The collection of this name as the reader sees it.
    pub fn collection(
        &self,
        catalog: &Catalog,
        database: &str,
        name: &str,
    ) -> Result<Option<Arc<Collection>>, CatalogError> {
        match self {
            HeldReader::Own(_) => Ok(collection_now(catalog, database, name)),
            HeldReader::Past(past) => Ok(past.held.names.collection(catalog, database, name)),
            HeldReader::Session(held) => match held.as_ref() {
                Some(transaction) => transaction.collection(catalog, database, name),
                None => Ok(None),
            },
        }
    }
}

/// The collection of this name outside of transactions, `config.transactions` included.
pub(crate) fn collection_now(catalog: &Catalog, database: &str, name: &str) -> Option<Arc<Collection>> {
    catalog.collection(database, name).or_else(|| {
        let is_of_sessions = database == "config" && name == "transactions";
        is_of_sessions.then(|| Arc::clone(catalog.session_records()))
    })
}
