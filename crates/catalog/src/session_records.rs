//! The records of sessions: the newest transaction or retryable write of each, kept for its repetition.
//!
//! A record is a BSON document of the layers above, whose `_id` names the session. It is written in the
//! commit of the writes that it tells of, so that both are there after a crash or neither is. The records
//! have a tree of their own. To readers it is a collection, `config.transactions`, that no statement writes
//! to: it is not among the names, so there is no lease of it.

use std::sync::Arc;

use pando_document::{RawDocument, RawValue};
use pando_storage::{BlockingMode, Bytes, StorageError};

use crate::collection::{Collection, Parts};
use crate::error::{CatalogError, WriteError};
use crate::namespace::Namespace;
use crate::primary_key::PrimaryKey;
use crate::store::{NamedTree, Store, TreeNumber};
use crate::write_transaction::WriteTransaction;

/// The name of the tree.
pub(crate) const SESSIONS_TREE: &str = "sessions";

/// A number that no tree of a collection reaches: the records have no counters.
const UNCOUNTED: TreeNumber = TreeNumber::new(u64::MAX);

/// The collection by which the records are read.
pub(crate) fn collection_of(store: &Arc<Store>) -> Result<Arc<Collection>, CatalogError> {
    let primary = NamedTree { id: store.sessions, name: SESSIONS_TREE.to_owned(), number: UNCOUNTED };
    let parts = Parts::of_tree(Namespace::new("config", "transactions")?, primary);
    Ok(Arc::new(Collection::new(parts, Arc::clone(store))))
}

impl WriteTransaction {
    /// Writes the record of a session in this transaction.
    ///
    /// # Errors
    /// A conflict, as for any document.
    pub fn put_session_record(&mut self, record: &RawDocument) -> Result<(), WriteError> {
        let id = record.get("_id")?.ok_or(WriteError::NoId)?;
        let tree = self.sessions_tree();
        Ok(self.engine().put(tree, PrimaryKey::of(id).as_bytes(), record.as_bytes())?)
    }

    /// The record of the session with this `_id`, as this transaction sees it. Blocks.
    pub fn session_record(&self, id: RawValue<'_>) -> Result<Option<Bytes>, StorageError> {
        (**self).get(self.sessions_tree(), PrimaryKey::of(id).as_bytes(), BlockingMode::MayBlock)
    }

    /// Removes the record of the session with this `_id`, whether there is one or not.
    ///
    /// # Errors
    /// A conflict, as for any document.
    pub fn delete_session_record(&mut self, id: RawValue<'_>) -> Result<(), StorageError> {
        let tree = self.sessions_tree();
        self.engine().delete(tree, PrimaryKey::of(id).as_bytes())
    }
}
