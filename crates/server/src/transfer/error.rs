//! Errors that end an import or export early. Faults of single documents are reported and counted instead.

use std::io;
use std::path::PathBuf;

use pando_wire::WireError;

/// An error that ends an import or export early.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// The file cannot be read or written.
    #[error("cannot read or write {}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A JSON array cannot be read on: after a syntax error its next element cannot be found.
    #[error("line {line}, column {column}: the JSON array cannot be read on from here")]
    Array {
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// The fault.
        source: serde_json::Error,
    },
    /// A CSV file without a usable header.
    #[error(
        "the first line of a CSV file must name its columns, each once: '{column}' is there twice or empty"
    )]
    CsvHeader {
        /// The name.
        column: String,
    },
    /// The connection string is not understood.
    #[error(
        "'{uri}' is no usable connection string: expected mongodb://HOST:PORT, or mongodb://%2Fpath%2Fto%2Fsocket; {reason}"
    )]
    Uri {
        /// As given.
        uri: String,
        /// The fault.
        reason: &'static str,
    },
    /// No server answers.
    #[error("cannot reach the server at {place}: is it running?")]
    Connect {
        /// Address or path.
        place: String,
        /// The error of the system.
        source: io::Error,
    },
    /// The connection broke.
    #[error("the connection to the server broke; look at the server's log")]
    Connection(#[source] io::Error),
    /// The server closed the connection.
    #[error("the server closed the connection; its log says why")]
    Closed,
    /// The server's bytes are no reply.
    #[error("the server's answer is not a reply")]
    Reply(#[from] WireError),
    /// The server's document cannot be read.
    #[error("the server's answer cannot be read")]
    Bson(#[from] bson::error::Error),
    /// The command was refused.
    #[error("the server refused: {message} (code {code})")]
    Refused {
        /// MongoDB's code.
        code: i32,
        /// Its message.
        message: String,
    },
    /// The data folder cannot be opened, or the engine has stopped.
    #[error(transparent)]
    Store(#[from] pandodb::Error),
}
