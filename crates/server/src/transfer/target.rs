//! The store that documents go to or come from: one trait for a server and a data folder.

use bson::{Bson, Document, RawDocumentBuf};
use pando_encryption::{EncryptionError, KEY_TABLE_FILE, Vault};
use pando_environment::Environment;
use pandodb::{EngineName, MissingStore, SOCKET_NAME};

use super::address::without_password;
use super::cluster_store::ClusterStore;
use super::connection_string::ConnectionString;
use super::data_folder::DataFolder;
use super::embedded_target::EmbeddedTarget;
use super::error::TransferError;
use super::interrupt::Interrupt;
use super::remote_target::RemoteTarget;

/// The arguments that name the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetChoice {
    /// A running server.
    Uri(String),
    /// A data folder that no server has open.
    Data(DataFolder),
    /// A store in a TiKV cluster.
    Cluster(ClusterStore),
}

impl TargetChoice {
    /// The name for people.
    pub(super) fn place(&self) -> String {
        match self {
            TargetChoice::Uri(uri) => without_password(uri),
            TargetChoice::Data(folder) => folder.display().to_string(),
            TargetChoice::Cluster(cluster) => cluster.to_string(),
        }
    }

    /// Connects to it, or opens it.
    pub(super) fn open(
        &self,
        missing_store: MissingStore,
        interrupt: &Interrupt,
    ) -> Result<Box<dyn Target>, TransferError> {
        match self {
            TargetChoice::Uri(uri) => {
                let server = ConnectionString::parse(uri)?;
                Ok(Box::new(RemoteTarget::open(&server, interrupt.clone())?))
            }
            TargetChoice::Data(folder) => {
                Ok(Box::new(EmbeddedTarget::open(folder, missing_store, None, &[])?))
            }
            TargetChoice::Cluster(cluster) => Ok(Box::new(EmbeddedTarget::open_in_cluster(cluster, &[])?)),
        }
    }

    /// Connects to it, or opens the store of an engine with options by name; makes it where the folder is
    /// missing or empty.
    pub(super) fn open_for_engine(
        &self,
        engine: Option<EngineName>,
        named: &[(String, String)],
        interrupt: &Interrupt,
    ) -> Result<Box<dyn Target>, TransferError> {
        match self {
            TargetChoice::Uri(_) => self.open(MissingStore::Create, interrupt),
            TargetChoice::Data(folder) => {
                Ok(Box::new(EmbeddedTarget::open(folder, MissingStore::Create, engine, named)?))
            }
            TargetChoice::Cluster(cluster) => Ok(Box::new(EmbeddedTarget::open_in_cluster(cluster, named)?)),
        }
    }

    /// Connects to it, or opens it, to be read only. A folder that a server has open is read through the
    /// server's socket in the folder.
    pub(super) fn open_to_read(&self, interrupt: &Interrupt) -> Result<Box<dyn Target>, TransferError> {
        if let TargetChoice::Data(folder) = self {
            let socket = folder.join(SOCKET_NAME);
            // A socket that nobody listens on is left over from a server that was killed.
            if let Ok(server) = RemoteTarget::through_socket(&socket, interrupt.clone()) {
                check_key(folder)?;
                return Ok(Box::new(server));
            }
        }
        self.open(MissingStore::Refuse, interrupt)
    }
}

/// Refuses a key that is not the one of the store. The server has its own, so that this one opens nothing.
fn check_key(folder: &DataFolder) -> Result<(), TransferError> {
    let Some(encryption) = &folder.encryption else { return Ok(()) };
    if !folder.join(KEY_TABLE_FILE).exists() {
        return Err(EncryptionError::StoreIsPlain { folder: folder.to_path_buf() }.into());
    }
    Vault::open(&Environment::real(), folder, encryption)?;
    Ok(())
}

/// Documents that go beside a command.
#[derive(Clone, Copy, Debug)]
pub(super) struct Beside<'d> {
    /// The field that they belong to.
    pub(super) identifier: &'static str,
    pub(super) documents: &'d [RawDocumentBuf],
}

/// A store that takes commands.
pub(super) trait Target: Send {
    /// Runs a command and gives the reply as it came, which may be a refusal.
    fn run_raw(
        &mut self,
        database: &str,
        command: Document,
        beside: Option<Beside<'_>>,
    ) -> Result<RawDocumentBuf, TransferError>;

    /// Runs a command; a refused one is [`TransferError::Refused`].
    fn run(
        &mut self,
        database: &str,
        command: Document,
        beside: Option<Beside<'_>>,
    ) -> Result<Document, TransferError> {
        checked(Document::try_from(&self.run_raw(database, command, beside)?)?)
    }

    /// Ends cleanly.
    fn close(self: Box<Self>) -> Result<(), TransferError>;
}

/// `reply`, or the error that it says.
pub(super) fn checked(reply: Document) -> Result<Document, TransferError> {
    match reply.get("ok") {
        Some(Bson::Double(1.0) | Bson::Int32(1) | Bson::Int64(1)) => Ok(reply),
        _ => Err(TransferError::Refused {
            code: reply.get_i32("code").unwrap_or(0),
            message: reply.get_str("errmsg").unwrap_or("no reason given").to_owned(),
        }),
    }
}
