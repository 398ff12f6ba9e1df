//! A database: a named group of collections.

use std::sync::Arc;

use bson::{Document, doc};

use crate::action::{Action, CreateCollection};
use crate::client_session::SessionState;
use crate::{Collection, Error, Pando, reply};

/// A database of a store.
#[derive(Clone)]
pub struct Database {
    store: Pando,
    name: String,
    /// The session that its calls belong to.
    session: Option<Arc<SessionState>>,
}

impl Database {
    pub(crate) fn new(store: Pando, name: String) -> Database {
        Database { store, name, session: None }
    }

    pub(crate) fn in_session(self, session: Arc<SessionState>) -> Database {
        Database { session: Some(session), ..self }
    }

    /// Whether calls belong to a transaction.
    pub(crate) fn has_transaction(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.has_transaction())
    }

    /// Sends a command, as one of the session if there is one.
    fn send(&self, command: Document, documents: Option<&[u8]>) -> Result<Vec<u8>, Error> {
        match &self.session {
            Some(session) => session.send(self, command, documents),
            None => self.store.run_for_bytes(&self.name, command, documents),
        }
    }

    pub(crate) fn store(&self) -> &Pando {
        &self.store
    }

    /// A command that writes, as durable as the options say. In a transaction that is said of the commit.
    fn durable(&self, mut command: Document) -> Document {
        if !self.has_transaction() {
            command.insert("writeConcern", self.store.write_concern());
        }
        command
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A collection whose documents are `T`s: any serde type, or [`bson::Document`]. It comes into being with
    /// its first document.
    pub fn collection<T>(&self, name: &str) -> Collection<T> {
        Collection::new(self.clone(), name.to_owned())
    }

    /// Makes a collection without documents.
    pub fn create_collection(&self, name: impl AsRef<str>) -> CreateCollection<'_> {
        CreateCollection::new(self, name.as_ref())
    }

    /// Lists the names of its collections.
    pub fn list_collection_names(&self) -> Action<'_, Vec<String>> {
        let command = doc! { "listCollections": 1, "nameOnly": true };
        Action::new(move || {
            let mut command = command;
            command.insert("cursor", doc! { "batchSize": i32::MAX });
            Ok(reply::names_of(&self.command(command)?))
        })
    }

    /// Drops it with all its collections.
    pub fn drop(&self) -> Action<'_, ()> {
        Action::new(move || self.command(doc! { "dropDatabase": 1 }).map(|_| ()))
    }

    /// Runs any command that a MongoDB client may send, and gives the reply document. A refusal is an error;
    /// single writes that failed stand in the reply, in `writeErrors`.
    ///
    /// The writes of a command are as durable as its `writeConcern` says, and without one as the options of
    /// the store say.
    pub fn run_command(&self, command: Document) -> Action<'_, Document> {
        Action::new(move || self.command(command))
    }

    pub(crate) fn command(&self, command: Document) -> Result<Document, Error> {
        Ok(Document::from_reader(self.send(command, None)?.as_slice())?)
    }

    pub(crate) fn command_for_bytes(&self, command: Document) -> Result<Vec<u8>, Error> {
        self.send(command, None)
    }

    /// Runs a command that writes, as durably as the options of the store say.
    pub(crate) fn write(&self, command: Document) -> Result<Document, Error> {
        Ok(Document::from_reader(self.write_for_bytes(command)?.as_slice())?)
    }

    pub(crate) fn write_for_bytes(&self, command: Document) -> Result<Vec<u8>, Error> {
        self.send(self.durable(command), None)
    }

    /// Runs an insert of documents that stand back to back.
    pub(crate) fn insert(&self, command: Document, documents: &[u8]) -> Result<Document, Error> {
        let reply = self.send(self.durable(command), Some(documents))?;
        Ok(Document::from_reader(reply.as_slice())?)
    }
}
