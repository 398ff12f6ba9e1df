//! What a command works with: the server's state, the connection, and whether the caller may block.

use std::sync::Arc;

use pando_catalog::{Begin, BlockingMode, Catalog, CommitReceipt, Durability, Lease, Namespace, Transaction};

use crate::commands::Shared;
use crate::cursors::Cursors;
use crate::write_concern::WriteConcern;
use crate::{CommandError, ConnectionState, Request, StorageError};

/// The surroundings of one request.
pub(crate) struct Context<'c> {
    pub shared: &'c Arc<Shared>,
    pub connection: &'c mut ConnectionState,
    pub blocking: BlockingMode,
    pub database: &'c str,
    /// What the client wants to have happened before it is answered.
    pub concern: WriteConcern,
    /// The last commit of this request, and how far it must have got before the client is answered.
    wait: Option<(CommitReceipt, Durability)>,
}

impl<'c> Context<'c> {
    pub fn new(
        shared: &'c Arc<Shared>,
        connection: &'c mut ConnectionState,
        blocking: BlockingMode,
        database: &'c str,
        concern: WriteConcern,
    ) -> Context<'c> {
        Context { shared, connection, blocking, database, concern, wait: None }
    }

    pub fn catalog(&self) -> &'c Catalog {
        &self.shared.catalog
    }

    pub fn cursors(&self) -> &'c Cursors {
        &self.shared.cursors
    }

    /// Answers `WouldBlock` where the caller must not block: for commands that may take long whatever is cached.
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

    /// Commits as durably as the client wants it, and remembers that it wants to wait for this.
    pub fn commit(&mut self, transaction: Box<dyn Transaction>) -> Result<(), CommandError> {
        let durability = self.concern.durability;
        let receipt = transaction.commit(durability)?;
        // A transaction without writes, after one with writes, has nothing to wait for.
        if self.wait.is_none_or(|(have, _)| have.lsn <= receipt.lsn) {
            self.wait = Some((receipt, durability));
        }
        Ok(())
    }

    /// What is to be waited for before the reply is sent.
    pub fn take_wait(&mut self) -> Option<(CommitReceipt, Durability)> {
        self.wait.take()
    }
}

/// A command's function: reads the request, writes its fields into the reply.
pub(crate) type Run =
    fn(&mut Context<'_>, &Request<'_>, &mut pando_document::DocumentWriter<'_>) -> Result<(), CommandError>;
