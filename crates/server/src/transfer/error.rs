//! Errors that end an import or export early. Faults of single documents are reported and counted instead.

use std::fmt;
use std::io;
use std::path::PathBuf;

use pando_encryption::EncryptionError;
use pando_wire::WireError;

use super::format::FormatError;

/// An error that ends an import or export early.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// The input cannot be read, or is cut off.
    #[error("cannot read {}{}", path.display(), cut_text(source))]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The output cannot be written.
    #[error("cannot write {}{}", path.display(), limit_text(source))]
    Write {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// There is nothing to export, and the output is there already, such as the export of another night.
    #[error(
        "there is no collection {namespace}, and {} has content: it stays as it is; correct the name, or remove the file first",
        path.display()
    )]
    KeptFile {
        /// The file.
        path: PathBuf,
        /// The name of the collection.
        namespace: String,
    },
    /// The cache of an engine is no size.
    #[error("--engine-option cache={text}: expected a size, such as 256MB")]
    Cache {
        /// The text.
        text: String,
    },
    /// The key of a folder is not that of its store.
    #[error(transparent)]
    Encryption(#[from] EncryptionError),
    /// The format of the input cannot be told.
    #[error("{} is {reason}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// The fault.
        reason: FormatError,
    },
    /// A BSON file cannot be read on: the next document cannot be found.
    #[error("{}: document {number}, at byte {offset}: {reason}", path.display())]
    BsonFile {
        /// The file.
        path: PathBuf,
        /// The number of the document, from 1.
        number: u64,
        /// The byte at which it begins.
        offset: u64,
        /// The fault.
        reason: &'static str,
    },
    /// The folder is no dump, or a file of it cannot be used.
    #[error("{}: {reason}", path.display())]
    Dump {
        /// The folder or the file.
        path: PathBuf,
        /// The fault.
        reason: String,
    },
    /// No collection is named, and none follows from the name of the file.
    #[error("name the collection with --collection")]
    NoCollection,
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
    #[error("{origin} must name the columns, each once: '{column}' {fault}")]
    CsvHeader {
        /// The place of the names.
        origin: ColumnNames,
        /// The name.
        column: String,
        /// The fault.
        fault: &'static str,
    },
    /// A flag of columns for an input of another format.
    #[error("{flag} is for CSV and TSV, and {} is {input}; leave {flag} out", path.display())]
    NoRows {
        /// The option.
        flag: &'static str,
        /// The file.
        path: PathBuf,
        /// The format of the input.
        input: &'static str,
    },
    /// The point at which an import is to go on is not one of this input.
    #[error("--resume: {reason}")]
    WrongPoint {
        /// The fault.
        reason: String,
    },
    /// Two columns of a CSV file are one value and a part of it.
    #[error(
        "the columns '{first}' and '{second}' do not fit into one document, since one names a part of the other: rename one \
         in {origin}{}", origin.other_way()
    )]
    CsvColumns {
        /// The place of the names.
        origin: ColumnNames,
        /// The one that comes first.
        first: String,
        /// The other.
        second: String,
    },
    /// The first line of a CSV file has a quote that is never closed.
    #[error("{}: {reason}", path.display())]
    CsvQuote {
        /// The file.
        path: PathBuf,
        /// The fault.
        reason: String,
    },
    /// A column is named that is not there.
    #[error("{flag} names the column {column}, and the columns are: {columns}")]
    NoColumn {
        /// The option that names it.
        flag: &'static str,
        /// The column.
        column: String,
        /// All columns.
        columns: String,
    },
    /// A column's name ends in no type.
    #[error("column '{column}': {reason}")]
    ColumnType {
        /// The column as named.
        column: String,
        /// The fault.
        reason: String,
    },
    /// A value is not of its column's type, and the user wants to stop then.
    #[error("a value of line {line} is not of its column's type")]
    TypeMismatch {
        /// The line.
        line: u64,
    },
    /// A document was refused or a line unreadable, and the user wants to stop then.
    #[error("the first error ends the import, because of --stop-on-error")]
    FirstError,
    /// A thread or a signal could not be set up.
    #[error("the system refuses a thread or a signal; look at the limits of this user (ulimit -a)")]
    System(#[source] io::Error),
    /// The server has not answered in time.
    #[error("{place} has not answered within {seconds} s")]
    NoAnswer {
        /// The server.
        place: String,
        /// The time that it had.
        seconds: u64,
    },
    /// A folder for this run cannot be made.
    #[error("cannot make a folder in {}", std::env::temp_dir().display())]
    Folder(#[source] io::Error),
    /// The engine of a named store is not in this build.
    #[error("{known}; a build with it: cargo build --release -p pando-server --features engine-tikv")]
    NoEngine {
        /// The engines that there are.
        known: String,
    },
    /// The import has ended, and its reader stops.
    #[error("stopped")]
    Stopped,
    /// A command could not be encoded.
    #[error("a command could not be encoded; report this defect")]
    Command,
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
    #[error("cannot reach a server at {place}; start it, or name another server or a data folder")]
    Connect {
        /// Address or path.
        place: String,
        /// The error of the system.
        source: io::Error,
    },
    /// TLS cannot be set up on this side.
    #[error(transparent)]
    Tls(#[from] pando_tls::TlsError),
    /// The server has not answered in TLS.
    #[error(
        "the server at {place} speaks no TLS, or none that this program knows; leave tls=true out, or start the server with \
         --tls-mode requireTLS and a certificate"
    )]
    NoTls {
        /// The address.
        place: String,
        /// The fault.
        source: io::Error,
    },
    /// The TLS handshake failed.
    #[error(
        "the TLS handshake with {place} failed; name the certificate of its issuer with tlsCAFile, and your own with \
         tlsCertificateKeyFile if it asks for one"
    )]
    Handshake {
        /// The address.
        place: String,
        /// The fault.
        source: io::Error,
    },
    /// The login was refused.
    #[error("the login by {mechanism} with authSource {source} failed: {cause}", source = source_database)]
    Login {
        /// The mechanism.
        mechanism: &'static str,
        /// The database that was asked for the user.
        source_database: String,
        /// The fault.
        cause: String,
    },
    /// The connection broke.
    #[error("the connection to the server broke; look at the server's log")]
    Connection(#[source] io::Error),
    /// The server closed the connection.
    #[error("the server closed the connection; its log says why")]
    Closed,
    /// The user asked to stop, and the server's reply did not come.
    #[error("the server has not answered the last request")]
    NoReply,
    /// The server's bytes are no reply.
    #[error("the server's answer is not a reply")]
    Reply(#[from] WireError),
    /// The server's document cannot be read.
    #[error("the server's answer cannot be read")]
    Bson(#[from] bson::error::Error),
    /// The command was refused.
    #[error("refused: {message} (code {code}){}", advice_for(*code, message))]
    Refused {
        /// MongoDB's code.
        code: i32,
        /// Its message.
        message: String,
    },
    /// An error of the store that is read, in a copy.
    #[error("the source, {place}")]
    Source {
        /// The store.
        place: String,
        /// The error.
        source: Box<TransferError>,
    },
    /// A database or collection that is not at the source of a copy.
    #[error("{missing}; {found}")]
    NotThere {
        /// The fault.
        missing: String,
        /// The names that are there.
        found: String,
    },
    /// Both ends of a copy are one store.
    #[error("--from and --to are the same store; name two")]
    SameStore,
    /// A copy would put documents into a collection of another kind.
    #[error(
        "{collections}: nothing was copied; --drop replaces such a collection at the target, and --db and --collection choose others"
    )]
    OtherKind {
        /// The collections, with their kinds.
        collections: String,
    },
    /// A copy would mix its documents with others.
    #[error(
        "the target has documents in {namespaces} already; {}--drop replaces such collections{}", begun.advice(), addable.advice()
    )]
    Filled {
        /// The collections.
        namespaces: String,
        /// Whether a copy can add to one of them.
        addable: Addable,
        /// Whether they are those of an interrupted copy.
        begun: Begun,
    },
    /// The data folder cannot be opened, or the engine has stopped.
    #[error(transparent)]
    Store(#[from] pandodb::Error),
}

/// The place of the names of columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnNames {
    /// The first line of the input.
    FirstLine,
    /// The command line.
    Flag,
}

impl fmt::Display for ColumnNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ColumnNames::FirstLine => "the first line of the file",
            ColumnNames::Flag => "--fields",
        })
    }
}

impl ColumnNames {
    fn other_way(self) -> &'static str {
        match self {
            ColumnNames::FirstLine => ", or name all columns with --fields",
            ColumnNames::Flag => "",
        }
    }
}

/// Whether documents of a copy can be added to those that are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addable {
    /// They can be.
    Yes,
    /// All are time series, whose documents no key tells apart.
    No,
}

impl Addable {
    fn advice(self) -> &'static str {
        match self {
            Addable::Yes => ", --mode upsert or merge adds to them (but not to a time series)",
            Addable::No => {
                "; nothing can be added to them, since a time series has no key that tells its documents apart"
            }
        }
    }
}

/// Whether the documents of the target look like the first ones of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begun {
    /// They do: an interrupted copy has left them.
    Yes,
    /// They do not, or it is not known.
    No,
}

impl Begun {
    fn advice(self) -> &'static str {
        match self {
            Begun::Yes => "--resume goes on with an interrupted copy, ",
            Begun::No => "",
        }
    }
}

/// Words for an output that has grown to the limit of the process.
fn limit_text(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::FileTooLarge => ": the file size limit of this process (ulimit -f) is reached",
        _ => "",
    }
}

/// Words for an input that ends too early.
fn cut_text(source: &io::Error) -> &'static str {
    if source.kind() == io::ErrorKind::UnexpectedEof { ": it is cut off" } else { "" }
}

impl TransferError {
    /// Whether a connection string is no usable one, at either end of a copy.
    pub fn is_wrong_uri(&self) -> bool {
        match self {
            TransferError::Uri { .. } => true,
            TransferError::Source { source, .. } => source.is_wrong_uri(),
            _ => false,
        }
    }

    /// Whether the last request may have been carried out or not.
    pub(super) fn leaves_doubt(&self) -> bool {
        matches!(
            self,
            TransferError::Connection(_)
                | TransferError::Closed
                | TransferError::NoReply
                | TransferError::Reply(_)
                | TransferError::Bson(_)
                | TransferError::Store(_)
        )
    }
}

/// MongoDB's code of a client that has not logged in, or has not the right.
pub(super) const UNAUTHORIZED: i32 = 13;
/// MongoDB's code of a command that there is not.
const COMMAND_NOT_FOUND: i32 = 59;

/// The help beside the refusal of a server.
fn advice_for(code: i32, message: &str) -> &'static str {
    match code {
        UNAUTHORIZED => {
            "; log in with --username and --password-file (at the source of a copy: --from-username and --from-password-file), as a user with this right"
        }
        // One of Pando's own, such as pandoVerify.
        COMMAND_NOT_FOUND if message.contains("'pando") => "; this server is not Pando",
        _ => "",
    }
}
