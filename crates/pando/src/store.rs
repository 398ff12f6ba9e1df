//! An open store.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use bson::Document;
use pando_commands::{
    BlockingMode, Commands, CommandsOptions, ConnectionState, CursorLife, DefaultDurability,
    DocumentSequence, ErrorKind, Handled, Request, StorageError,
};
use pando_document::RawDocument;
use pando_environment::{Environment, Monotonic};
use parking_lot::RwLock;

use crate::action::{Action, Backup, BulkWrite};
use crate::call::Call;
use crate::reply::INTERRUPTED_AT_SHUTDOWN;
use crate::session_pool::SessionPool;
use crate::{
    ClientSession, Database, DurabilityChoice, Error, Options, RawSession, WriteModel, inspect_folder,
    open_commands,
};

/// An open store. Clones are cheap and are all the same store, which stays open until [`Pando::close`] or
/// until the last clone is dropped. Each [`Database`], [`Collection`](crate::Collection),
/// [`Cursor`](crate::Cursor) and [`ClientSession`] holds a clone, too.
#[derive(Clone)]
pub struct Pando {
    shared: Arc<Shared>,
}

struct Shared {
    /// `None` once the store is closed. Calls hold it shared while they run.
    commands: RwLock<Option<Commands>>,
    durability: DurabilityChoice,
    environment: Environment,
    /// Ids of ended sessions.
    sessions: SessionPool,
}

impl fmt::Debug for Pando {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pando").finish_non_exhaustive()
    }
}

impl Pando {
    /// Opens the store in a folder with the default options. Makes one in a folder that is missing or empty.
    /// A relative path counts from the working folder of this moment; a later change of that is no matter.
    /// [`Pando::open_in_memory`] needs no folder.
    ///
    /// # Errors
    /// [`Error::InUse`] where the store is open already. A folder that cannot be written, or whose files are
    /// damaged or not Pando's.
    pub fn open(folder: impl AsRef<Path>) -> Result<Pando, Error> {
        Pando::open_with(folder, &Options::default())
    }

    /// Opens the store in a folder.
    ///
    /// # Errors
    /// As [`Pando::open`]; and options that the engine does not have, or that are too small.
    pub fn open_with(folder: impl AsRef<Path>, options: &Options) -> Result<Pando, Error> {
        let folder = folder.as_ref();
        refuse_name_of_sqlite(folder)?;
        options.engine_options.check()?;
        inspect_folder(options.engine, folder, options.missing_store)
            .map_err(|error| Error::Open(error.into()))?;
        let environment = Environment::real();
        let commands = open_commands(
            options.engine,
            folder,
            &options.engine_options,
            environment.clone(),
            CommandsOptions::default(),
            options.query_memory_bytes,
        )
        .map_err(Error::of_opening)?;
        let (commands, durability) = (RwLock::new(Some(commands)), options.durability);
        let sessions = SessionPool::default();
        Ok(Pando { shared: Arc::new(Shared { commands, durability, environment, sessions }) })
    }

    /// A store in memory, gone with the last clone.
    ///
    /// # Errors
    /// None is known.
    pub fn open_in_memory() -> Result<Pando, Error> {
        let options = Options { engine: crate::EngineName::Memory, ..Options::default() };
        Pando::open_with("", &options)
    }

    /// A database. It comes into being with its first collection.
    pub fn database(&self, name: &str) -> Database {
        Database::new(self.clone(), name.to_owned())
    }

    /// Lists the names of all databases.
    pub fn list_database_names(&self) -> Action<'_, Vec<String>> {
        Action::new(move || {
            let reply = self.run("admin", bson::doc! { "listDatabases": 1, "nameOnly": true })?;
            let databases = reply.get_array("databases").map(Vec::as_slice).unwrap_or_default();
            Ok(databases
                .iter()
                .filter_map(|database| database.as_document()?.get_str("name").ok().map(str::to_owned))
                .collect())
        })
    }

    /// Many writes of several kinds, to one or several collections, in the order of the list.
    pub fn bulk_write(&self, models: impl IntoIterator<Item = impl Into<WriteModel>>) -> BulkWrite<'_> {
        BulkWrite::new(self, models.into_iter().map(Into::into).collect())
    }

    /// Starts a session, which transactions of several calls need.
    pub fn start_session(&self) -> Action<'_, ClientSession> {
        Action::new(|| ClientSession::begin(self))
    }

    /// Makes a backup of the whole store in a folder that is missing or empty, while other calls go on.
    /// [`restore_store`](crate::restore_store) makes a store of it.
    ///
    /// ```
    /// # use pandodb::{EngineName, EngineOptions, Pando, bson::Document, doc, restore_store};
    /// # fn main() -> Result<(), pandodb::Error> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let (data, monday, restored) =
    /// #     (folder.path().join("data"), folder.path().join("monday"), folder.path().join("restored"));
    /// let store = Pando::open(&data)?;
    /// let cities = store.database("atlas").collection::<Document>("cities");
    /// cities.insert_one(doc! { "_id": "Utrecht" }).run()?;
    /// store.backup(&monday).run()?;
    /// restore_store(EngineName::Betree, &[monday], &restored, &EngineOptions::default())?;
    /// let cities = Pando::open(&restored)?.database("atlas").collection::<Document>("cities");
    /// assert_eq!(cities.count_documents(doc! {}).run()?, 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn backup(&self, to: impl AsRef<Path>) -> Backup<'_> {
        Backup::new(self, to.as_ref().to_owned())
    }

    /// A connection that takes commands as bytes, for the programs of this project.
    #[doc(hidden)]
    pub fn raw_session(&self) -> RawSession {
        RawSession::new(self.clone(), embedded_connection().with_cursors(CursorLife::Kept))
    }

    /// Closes the store cleanly. Calls under way end early with [`Error::Closed`], or as writes that were not
    /// carried out (code 11600), and every later call by another handle fails with [`Error::Closed`]. The
    /// folder is free for another process then. A store that is dropped without a close loses no write
    /// either: the next opening replays its log.
    ///
    /// # Errors
    /// [`Error::NotClosed`] on a full device, where no write is lost; [`Error::Stopped`] where the last ones
    /// may not be on the device.
    pub fn close(self) -> Result<(), Error> {
        if let Some(commands) = &*self.shared.commands.read() {
            commands.interrupt_all();
        }
        let Some(commands) = self.shared.commands.write().take() else { return Ok(()) };
        commands.close().map_err(not_closed)
    }

    /// # Errors
    /// [`Error::Closed`].
    pub(crate) fn check_open(&self) -> Result<(), Error> {
        if self.shared.commands.read().is_some() { Ok(()) } else { Err(Error::Closed) }
    }

    /// Whether both are handles of one open store.
    pub(crate) fn is_same(&self, other: &Pando) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    pub(crate) fn now(&self) -> Monotonic {
        self.shared.environment.clock().monotonic()
    }

    /// The ids of ended sessions.
    pub(crate) fn ended_sessions(&self) -> &SessionPool {
        &self.shared.sessions
    }

    /// Runs a command against a database, and waits for the device where the command or the options ask for
    /// that.
    pub(crate) fn run(&self, database: &str, command: Document) -> Result<Document, Error> {
        Ok(Document::from_reader(self.run_for_bytes(database, Call::of(command))?.as_slice())?)
    }

    /// The same with the reply as bytes.
    ///
    /// # Errors
    /// A refusal as [`Error::Command`].
    pub(crate) fn run_for_bytes(&self, database: &str, call: Call<'_>) -> Result<Vec<u8>, Error> {
        let Call { mut command, documents, cursor_life } = call;
        command.insert("$db", database);
        let bytes = bson::serialize_to_vec(&command)?;
        let body = RawDocument::from_bytes(&bytes)
            .map_err(|error| Error::InvalidArgument(format!("the command is not valid BSON: {error}")))?;
        let sequence = documents.map(|documents| DocumentSequence { identifier: "documents", documents });
        let mut reply = Vec::new();
        let durability = match self.shared.durability {
            DurabilityChoice::Synced => DefaultDurability::Synced,
            DurabilityChoice::Logged => DefaultDurability::OfStore,
        };
        let mut connection = embedded_connection().writing(durability).with_cursors(cursor_life);
        self.handle(&mut connection, &Request { body, sequences: sequence.as_slice() }, &mut reply)?;
        match bson::RawDocument::from_bytes(&reply)?.get("ok")? {
            Some(bson::RawBsonRef::Double(1.0)) => Ok(reply),
            _ => Err(refusal(Document::from_reader(reply.as_slice())?)),
        }
    }

    /// Handles a request and waits until its writes are as durable as it asks for.
    pub(crate) fn handle(
        &self,
        connection: &mut ConnectionState,
        request: &Request<'_>,
        reply: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let commands = self.shared.commands.read();
        let commands = commands.as_ref().ok_or(Error::Closed)?;
        loop {
            let (wait, is_last) = match commands.handle(connection, request, BlockingMode::MayBlock, reply) {
                Handled::Reply | Handled::WouldBlock(_) => return Ok(()),
                Handled::ReplyLater(wait) => (wait, true),
                Handled::Again(wait) => (wait, false),
            };
            wait.wait().map_err(|error| Error::Stopped(Box::new(error)))?;
            if is_last {
                return Ok(());
            }
        }
    }

    /// The write concern that the options mean.
    pub(crate) fn write_concern(&self) -> Document {
        match self.shared.durability {
            DurabilityChoice::Synced => bson::doc! { "w": 1, "j": true },
            DurabilityChoice::Logged => bson::doc! { "w": 1 },
        }
    }
}

/// A close without a checkpoint. An error of the device alone, such as a full one, loses no acknowledged
/// commit.
pub(crate) fn not_closed(error: StorageError) -> Error {
    match error.kind() {
        ErrorKind::Io => Error::NotClosed(Box::new(error)),
        _ => Error::Stopped(Box::new(error)),
    }
}

/// Refuses what SQLite takes for something else than a path: it would become the name of a folder.
fn refuse_name_of_sqlite(folder: &Path) -> Result<(), Error> {
    let advice = match folder.to_str() {
        Some(":memory:") => "Pando::open_in_memory opens a store without a folder",
        Some(name) if name.starts_with("file:") => "name the folder itself",
        _ => return Ok(()),
    };
    Err(Error::InvalidArgument(format!("'{}' is no path of a folder: {advice}", folder.display())))
}

/// The label of a transaction that has ended without effect and may be run again.
const TRANSIENT: &str = "TransientTransactionError";

/// The state of a connection of this process: a number and a name, which no command changes.
fn embedded_connection() -> ConnectionState {
    ConnectionState::new(1, "embedded")
}

/// The reply of a refused command as an error.
fn refusal(reply: Document) -> Error {
    if matches!(reply.get_i32("code"), Ok(INTERRUPTED_AT_SHUTDOWN)) {
        return Error::Closed;
    }
    let labels = reply.get_array("errorLabels").map(Vec::as_slice).unwrap_or_default();
    if labels.iter().any(|label| label.as_str() == Some(TRANSIENT)) {
        let message = reply.get_str("errmsg").unwrap_or_default().to_owned();
        return Error::Conflict { message, reply: Box::new(reply) };
    }
    Error::Command {
        code: reply.get_i32("code").unwrap_or(0),
        code_name: reply.get_str("codeName").unwrap_or_default().to_owned(),
        message: reply.get_str("errmsg").unwrap_or_default().to_owned(),
        reply: Box::new(reply),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_close_that_the_device_refuses_loses_no_write_and_other_ones_may() {
        let of = |kind| not_closed(StorageError::new(kind, "no room"));
        assert!(matches!(of(ErrorKind::Io), Error::NotClosed(_)));
        assert!(matches!(of(ErrorKind::Closed), Error::Stopped(_)));
    }
}
