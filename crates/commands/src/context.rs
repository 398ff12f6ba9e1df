//! The surroundings of one request: the state of the store, the connection, and whether the caller may block.

use std::sync::Arc;

use pando_catalog::{
    Begin, BlockingMode, Caller, Catalog, CommitReceipt, Durability, Lease, Namespace, Operation,
    StorageError, Transaction, WriteTransaction,
};

use pando_query::QueryError;

use crate::cursors::Cursors;
use crate::generic_arguments::WriteConcern;
use crate::shared_state::SharedState;
use crate::{CommandError, ConnectionState, Request};

/// The surroundings of one request.
pub(crate) struct Context<'c> {
    pub shared: &'c Arc<SharedState>,
    pub connection: &'c mut ConnectionState,
    pub blocking: BlockingMode,
    /// The operation that the request is.
    pub operation: &'c Operation,
    pub database: &'c str,
    pub concern: WriteConcern,
    /// The last commit of this request.
    pending: Option<PendingCommit>,
}

/// A commit, and the durability that it must reach before the client is answered.
#[derive(Clone, Copy)]
pub(crate) struct PendingCommit {
    pub receipt: CommitReceipt,
    pub durability: Durability,
}

impl<'c> Context<'c> {
    pub fn new(
        shared: &'c Arc<SharedState>,
        connection: &'c mut ConnectionState,
        caller: Caller<'c>,
        database: &'c str,
        concern: WriteConcern,
    ) -> Context<'c> {
        let Caller { blocking, operation } = caller;
        Context { shared, connection, blocking, operation, database, concern, pending: None }
    }

    /// The operation with its blocking mode.
    pub fn caller(&self) -> Caller<'c> {
        Caller { blocking: self.blocking, operation: self.operation }
    }

    /// Fails if the operation has to end: for loops over statements and documents.
    pub fn check(&self) -> Result<(), CommandError> {
        Ok(self.operation.check().map_err(QueryError::from)?)
    }

    pub fn catalog(&self) -> &'c Catalog {
        &self.shared.catalog
    }

    pub fn cursors(&self) -> &'c Cursors {
        &self.shared.cursors
    }

    /// Answers `WouldBlock` where the caller must not block: for commands that may take long even if
    /// everything is cached.
    pub fn require_may_block(&self) -> Result<(), CommandError> {
        match self.blocking {
            BlockingMode::MayBlock => Ok(()),
            BlockingMode::CachedOnly => Err(CommandError::WouldBlock(None)),
        }
    }

    /// The namespace of a collection of this request's database, which may or may not be there.
    pub fn namespace(&self, collection: &str) -> Result<Namespace, CommandError> {
        Ok(Namespace::new(self.database, collection)?)
    }

    /// The namespace of a collection that is to be read.
    pub fn readable(&self, collection: &str) -> Result<Namespace, CommandError> {
        let namespace = self.namespace(collection)?;
        namespace.check_readable()?;
        Ok(namespace)
    }

    /// The namespace of a collection that is to be written to.
    pub fn writable(&self, collection: &str) -> Result<Namespace, CommandError> {
        let namespace = self.namespace(collection)?;
        namespace.check_writable()?;
        Ok(namespace)
    }

    /// Begins a reader of the newest snapshot.
    pub fn begin_read(&self) -> Result<Box<dyn Transaction>, StorageError> {
        self.catalog().begin(Begin::READ)
    }

    /// The collection for a statement that writes; created if there is none.
    pub fn lease_or_create(&self, namespace: &Namespace) -> Result<Lease, CommandError> {
        loop {
            let found = self.catalog().lease(namespace.database(), namespace.collection(), self.blocking)?;
            if let Some(lease) = found {
                return Ok(lease);
            }
            // Creating waits for the device.
            self.require_may_block()?;
            let options = pando_document::RawDocumentBuf::new();
            match self.catalog().create_collection(namespace, options, self.shared.new_uuid()) {
                Ok(_) | Err(pando_catalog::CatalogError::CollectionExists { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Commits as durably as the client wants it. The reply waits for the last of these commits.
    pub fn commit(&mut self, transaction: WriteTransaction) -> Result<(), CommandError> {
        let durability = self.concern.durability;
        let receipt = transaction.commit(durability)?;
        // A transaction without writes, after one with writes, has nothing to wait for.
        if self.pending.is_none_or(|have| have.receipt.lsn <= receipt.lsn) {
            self.pending = Some(PendingCommit { receipt, durability });
        }
        Ok(())
    }

    /// The commit that the reply waits for.
    pub fn take_pending_commit(&mut self) -> Option<PendingCommit> {
        self.pending.take()
    }
}

/// The function of a command. It reads the request and writes its fields into the reply.
pub(crate) type Run =
    fn(&mut Context<'_>, &Request<'_>, &mut pando_document::DocumentWriter<'_>) -> Result<(), CommandError>;
