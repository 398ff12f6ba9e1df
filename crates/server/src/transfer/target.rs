//! The store that documents go to or come from: one trait for a server and a data folder.

use std::path::PathBuf;

use bson::{Bson, Document, doc};

use super::address::ServerAddress;
use super::embedded_target::EmbeddedTarget;
use super::error::TransferError;
use super::remote_target::RemoteTarget;

/// The arguments that name the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetChoice {
    /// A running server.
    Uri(String),
    /// A data folder that no server has open.
    Data(PathBuf),
}

impl TargetChoice {
    /// Connects to it, or opens it.
    pub(super) fn open(&self) -> Result<Box<dyn Target>, TransferError> {
        match self {
            TargetChoice::Uri(uri) => Ok(Box::new(RemoteTarget::connect(&ServerAddress::parse(uri)?)?)),
            TargetChoice::Data(folder) => Ok(Box::new(EmbeddedTarget::open(folder)?)),
        }
    }
}

/// A store that takes commands.
pub(super) trait Target {
    /// Runs a command; a refused one is [`TransferError::Refused`].
    fn run(&mut self, database: &str, command: Document) -> Result<Document, TransferError>;

    /// Inserts the documents that can be inserted. Gives `(index, message)` of the refused ones.
    fn insert(
        &mut self,
        database: &str,
        collection: &str,
        documents: Vec<Document>,
    ) -> Result<Vec<(usize, String)>, TransferError>;

    /// Ends cleanly.
    fn close(self: Box<Self>) -> Result<(), TransferError>;
}

/// The head of an insert, without its documents.
pub(super) fn insert_command(collection: &str) -> Document {
    doc! { "insert": collection, "ordered": false, "writeConcern": { "w": 1 } }
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

/// The refused documents of an insert's reply.
pub(super) fn write_errors(reply: &Document) -> Vec<(usize, String)> {
    let errors = reply.get_array("writeErrors").map(Vec::as_slice).unwrap_or_default();
    let one = |error: &Bson| {
        let error = error.as_document()?;
        let index = usize::try_from(error.get_i32("index").ok()?).ok()?;
        Some((index, error.get_str("errmsg").unwrap_or("refused").to_owned()))
    };
    errors.iter().filter_map(one).collect()
}
