//! A database: a named group of collections.

use std::fmt;
use std::sync::Arc;

use bson::{Document, doc};

use crate::action::{Action, Aggregate, CreateCollection};
use crate::call::Call;
use crate::client_session::SessionState;
use crate::{Collection, Error, Pando, reply};

/// Commands that change the connection which they come from, and the call that does the same here.
const OF_CONNECTION: [(&str, &str); 10] = [
    ("beginTransaction", OF_TRANSACTION),
    ("rollbackTransaction", OF_TRANSACTION),
    ("beginLoad", OF_LOAD),
    ("commitLoad", OF_LOAD),
    ("abortLoad", OF_LOAD),
    ("setClientLockTimeout", "the option max_time of a call limits its waits"),
    ("getLastError", OF_LAST_WRITE),
    ("getlasterror", OF_LAST_WRITE),
    ("resetError", OF_LAST_WRITE),
    ("reseterror", OF_LAST_WRITE),
];
const OF_TRANSACTION: &str = "Pando::start_session begins a session, which has transactions of several calls";
const OF_LOAD: &str = "Collection::insert_many inserts many documents";
const OF_LAST_WRITE: &str = "each write gives its own result";

/// A database of a store.
#[derive(Clone)]
pub struct Database {
    store: Pando,
    name: String,
    /// The session that its calls belong to.
    session: Option<Arc<SessionState>>,
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Database").field("name", &self.name).finish_non_exhaustive()
    }
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
        self.transaction().is_some()
    }

    /// The number of the transaction that a call belongs to.
    pub(crate) fn transaction(&self) -> Option<i64> {
        self.session.as_ref()?.transaction()
    }

    /// Refuses the next batch of a cursor that does not fit the transaction of the session. `opened_in` is
    /// the transaction that the cursor was opened in.
    pub(crate) fn check_cursor(&self, opened_in: Option<i64>) -> Result<(), Error> {
        self.session.as_ref().map_or(Ok(()), |session| session.check_cursor(opened_in))
    }

    /// Sends a command, as one of the session if there is one.
    fn send(&self, call: Call<'_>) -> Result<Vec<u8>, Error> {
        match &self.session {
            Some(session) => session.send(self, call),
            None => self.store.run_for_bytes(&self.name, call),
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

    /// Runs a pipeline whose first stage makes documents itself: `doc! { "$documents": [{ "n": 1 }] }`.
    pub fn aggregate(&self, pipeline: impl IntoIterator<Item = Document>) -> Aggregate<'_> {
        Aggregate::of_database(self, pipeline)
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
    ///
    /// A cursor that a command opens ends when `getMore` has read it to its end, with `killCursors`, or after
    /// ten minutes without use. Each call has a connection of its own, so that commands which change their
    /// connection, such as `beginTransaction` and `beginLoad`, are refused.
    pub fn run_command(&self, command: Document) -> Action<'_, Document> {
        Action::new(move || {
            refuse_of_connection(&command)?;
            self.command(command)
        })
    }

    pub(crate) fn command(&self, command: Document) -> Result<Document, Error> {
        Ok(Document::from_reader(self.command_for_bytes(command)?.as_slice())?)
    }

    pub(crate) fn command_for_bytes(&self, command: Document) -> Result<Vec<u8>, Error> {
        self.send(Call::of(command))
    }

    /// Runs a command that opens a cursor, which the caller ends.
    pub(crate) fn open_cursor(&self, command: Document) -> Result<Vec<u8>, Error> {
        self.send(Call::with_cursor(command))
    }

    /// Runs a command that writes, as durably as the options of the store say.
    pub(crate) fn write(&self, command: Document) -> Result<Document, Error> {
        Ok(Document::from_reader(self.write_for_bytes(command)?.as_slice())?)
    }

    pub(crate) fn write_for_bytes(&self, command: Document) -> Result<Vec<u8>, Error> {
        self.send(Call::of(self.durable(command)))
    }

    /// Runs an insert of documents that stand back to back.
    pub(crate) fn insert(&self, command: Document, documents: &[u8]) -> Result<Document, Error> {
        let reply = self.send(Call::with_documents(self.durable(command), documents))?;
        Ok(Document::from_reader(reply.as_slice())?)
    }
}

/// Refuses a command whose effect would end with the call.
fn refuse_of_connection(command: &Document) -> Result<(), Error> {
    let given = command.keys().next().map(String::as_str);
    let Some((name, cure)) = OF_CONNECTION.iter().find(|(name, _)| given == Some(*name)) else {
        return Ok(());
    };
    Err(Error::InvalidArgument(format!(
        "the command {name} changes its connection, and each call of run_command has its own one: {cure}"
    )))
}
