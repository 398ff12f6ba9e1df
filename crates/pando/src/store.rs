//! An open store.

use std::path::Path;
use std::sync::Arc;

use bson::{Bson, Document};
use pando_commands::{BlockingMode, Commands, CommandsOptions, ConnectionState, Handled, Request};
use pando_document::RawDocument;
use pando_environment::Environment;
use parking_lot::Mutex;

use crate::{Database, DurabilityChoice, Error, Options, RawSession, inspect_folder, open_commands};

/// An open store. Clones are cheap and are all the same store, which stays open until [`Pando::close`] or
/// until the last clone is dropped.
#[derive(Clone)]
pub struct Pando {
    shared: Arc<Shared>,
}

struct Shared {
    commands: Commands,
    connection: Mutex<ConnectionState>,
    durability: DurabilityChoice,
}

impl Pando {
    /// Opens the store in a folder with the default options. Makes one in a folder that is missing or empty.
    pub fn open(folder: impl AsRef<Path>) -> Result<Pando, Error> {
        Pando::open_with(folder, &Options::default())
    }

    /// Opens the store in a folder.
    pub fn open_with(folder: impl AsRef<Path>, options: &Options) -> Result<Pando, Error> {
        let folder = folder.as_ref();
        inspect_folder(options.engine, folder, options.missing_store)
            .map_err(|error| Error::Open(error.into()))?;
        let commands = open_commands(
            options.engine,
            folder,
            &options.engine_options,
            Environment::real(),
            CommandsOptions::default(),
            options.query_memory_bytes,
        )
        .map_err(Error::Open)?;
        let connection = Mutex::new(ConnectionState::new(1, "embedded"));
        Ok(Pando { shared: Arc::new(Shared { commands, connection, durability: options.durability }) })
    }

    /// A database. It comes into being with its first collection.
    pub fn database(&self, name: &str) -> Database {
        Database::new(self.clone(), name.to_owned())
    }

    /// The names of all databases.
    pub fn list_database_names(&self) -> Result<Vec<String>, Error> {
        let reply = self.run("admin", bson::doc! { "listDatabases": 1, "nameOnly": true })?;
        let databases = reply.get_array("databases").map(Vec::as_slice).unwrap_or_default();
        Ok(databases
            .iter()
            .filter_map(|database| database.as_document()?.get_str("name").ok().map(str::to_owned))
            .collect())
    }

    /// A connection that takes commands as bytes.
    pub fn raw_session(&self) -> RawSession {
        // The state of a connection is its number and name, which no command of this process changes.
        let connection = self.shared.connection.lock().clone();
        RawSession::new(self.clone(), connection)
    }

    /// Closes the store cleanly. Its other handles answer with an error from then on. The folder is free for
    /// another process once the last handle is dropped. A store that is dropped without a close loses no
    /// write either: the next opening replays its log.
    pub fn close(self) -> Result<(), Error> {
        self.shared.commands.close().map_err(|error| Error::Stopped(Box::new(error)))
    }

    /// Runs a command against a database, and waits for the device where the command asks for that.
    pub(crate) fn run(&self, database: &str, mut command: Document) -> Result<Document, Error> {
        command.insert("$db", database);
        let mut bytes = Vec::new();
        command.to_writer(&mut bytes)?;
        let body = RawDocument::from_bytes(&bytes).map_err(|error| Error::Open(Box::new(error)))?;
        let mut reply = Vec::new();
        // The state of a connection is its number and name, which no command of this process changes.
        let mut connection = self.shared.connection.lock().clone();
        let handled = self.shared.commands.handle(
            &mut connection,
            &Request::of(body),
            BlockingMode::MayBlock,
            &mut reply,
        );
        if let Handled::ReplyLater(wait) = handled {
            wait.wait().map_err(|error| Error::Stopped(Box::new(error)))?;
        }
        let reply = Document::from_reader(reply.as_slice())?;
        match reply.get("ok") {
            Some(Bson::Double(1.0) | Bson::Int32(1) | Bson::Int64(1)) => Ok(reply),
            _ => Err(Error::Command {
                code: reply.get_i32("code").unwrap_or(0),
                code_name: reply.get_str("codeName").unwrap_or_default().to_owned(),
                message: reply.get_str("errmsg").unwrap_or_default().to_owned(),
                reply: Box::new(reply),
            }),
        }
    }

    pub(crate) fn commands(&self) -> &Commands {
        &self.shared.commands
    }

    /// The write concern that the options mean.
    pub(crate) fn write_concern(&self) -> Document {
        match self.shared.durability {
            DurabilityChoice::Synced => bson::doc! { "w": 1, "j": true },
            DurabilityChoice::Logged => bson::doc! { "w": 1 },
        }
    }
}
