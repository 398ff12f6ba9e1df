//! The errors of the lab, each with advice where there is one.

use pando_document::DocumentError;
use pando_measuring::counters::CounterError;
use pando_wire::WireError;
use std::path::PathBuf;

/// Why a run could not be made or finished.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The address of the server is not usable.
    #[error(
        "`{uri}` is not usable: {cause}; give mongodb://[USER:PASSWORD@]HOST:PORT[/?authSource=DB&authMechanism=NAME]"
    )]
    Uri {
        /// What was given.
        uri: String,
        /// What is wrong with it.
        cause: &'static str,
    },
    /// The name of the server's machine is unknown.
    #[error("cannot find the address of `{host}`")]
    Resolve {
        /// The name.
        host: String,
        /// Why; nothing if there was simply no address.
        source: Option<std::io::Error>,
    },
    /// Nobody answers.
    #[error("cannot connect to {address}: is the server running?")]
    Connect {
        /// The server's address.
        address: String,
        /// Why.
        source: std::io::Error,
    },
    /// Somebody accepts connections and says nothing.
    #[error(
        "{address} accepts connections, but did not answer hello within {seconds} s: is it overloaded, or another kind of server?"
    )]
    Silent {
        /// The server's address.
        address: String,
        /// How long it had.
        seconds: u64,
    },
    /// The server does not let this user in.
    #[error(
        "the server refused the login by {mechanism} in the database `{source_database}`: {cause}; check user and password \
         (percent-encoded in the URI), authSource and authMechanism"
    )]
    Login {
        /// The mechanism.
        mechanism: &'static str,
        /// The database that is to know the user.
        source_database: String,
        /// What the server says, or what is wrong with it.
        cause: String,
    },
    /// A server of another protocol does not let this user in.
    #[error(
        "{address} refused the login: {message} (code {code}); check user and password (percent-encoded) in the URI"
    )]
    LoginRefused {
        /// The server's address.
        address: String,
        /// The server's code.
        code: u16,
        /// The server's message.
        message: String,
    },
    /// An engine in this process refused to open, or has stopped.
    #[error("the embedded engine: {0}")]
    Embedded(#[from] pandodb::Error),
    /// A connection broke.
    #[error("a connection to the server broke")]
    Connection(#[source] std::io::Error),
    /// The server closed a connection.
    #[error("the server closed a connection: see its log")]
    Closed,
    /// The server sent something that is not a message.
    #[error("the server sent something that is not a message")]
    Wire(#[from] WireError),
    /// The server sent something that is not a document, or not the document that was expected.
    #[error("the server sent a damaged document")]
    Document(#[from] DocumentError),
    /// The server sent a reply to something else.
    #[error("expected the reply to request {expected}, got one to {found}")]
    ReplyTo {
        /// The request's id.
        expected: i32,
        /// What the reply says.
        found: i32,
    },
    /// The server sent a message of a kind that does not answer an OP_MSG.
    #[error("the server answered with op code {op_code}, not with OP_MSG")]
    ReplyKind {
        /// The op code.
        op_code: i32,
    },
    /// The server refused a command.
    #[error("the server refused `{command}`: {message} (code {code})")]
    Refused {
        /// The command's name.
        command: String,
        /// The server's code.
        code: i64,
        /// The server's message.
        message: String,
    },
    /// The template of a request cannot be made.
    #[error("the request cannot be made into a template")]
    Template(#[from] pando_wire::TemplateError),
    /// The data is not what the run was asked to use.
    #[error(
        "{namespace} holds {found} documents, the run needs {expected}: run with --load yes to load it anew"
    )]
    DataSet {
        /// The collection.
        namespace: String,
        /// Its documents.
        found: u64,
        /// What the run was told.
        expected: u64,
    },
    /// A load did not load everything.
    #[error("the load failed, {failed} batches are not in: {message}")]
    Load {
        /// How many requests failed.
        failed: u64,
        /// Why the first did.
        message: String,
    },
    /// An option cannot be what it is, in view of the others.
    #[error("--{option}: {cause}")]
    Option {
        /// Its name.
        option: &'static str,
        /// What is wrong.
        cause: String,
    },
    /// A file that was given cannot be read.
    #[error("cannot read {path}")]
    ReadFile {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file that was given is not what it must be.
    #[error("{path}, line {line}: {cause}")]
    FileForm {
        /// The file.
        path: PathBuf,
        /// Which line, from 1; 0 if the file as a whole is wrong.
        line: usize,
        /// What is wrong with it.
        cause: String,
    },
    /// A server of another protocol refused something, or the connection to it broke.
    #[error("the server refused a statement, or the connection to it broke")]
    Driver {
        /// What the driver says.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The server's counters cannot be read.
    #[error(transparent)]
    Counter(#[from] CounterError),
    /// A file of the report cannot be written.
    #[error("cannot write {path}")]
    WriteReport {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// This machine refuses threads or sockets.
    #[error("this machine refused {what}")]
    Resource {
        /// What was asked for.
        what: &'static str,
        /// Why.
        source: std::io::Error,
    },
    /// Somebody asked for the end.
    #[error("interrupted: runs that were finished are kept")]
    Interrupted,
    /// A server that this tool started has ended by itself.
    #[error("the server ended by itself ({status}): `{command}`; the end of its log:{log}")]
    ServerDied {
        /// What started it.
        command: String,
        /// How it ended.
        status: String,
        /// The end of its log, line by line.
        log: String,
    },
    /// A server that this tool started does not answer.
    #[error("the server did not answer within {seconds} s ({last}): `{command}`; the end of its log:{log}")]
    ServerSlow {
        /// What started it.
        command: String,
        /// How long it had.
        seconds: u64,
        /// What the last attempt said.
        last: String,
        /// The end of its log, line by line.
        log: String,
    },
    /// A control group with caps cannot be made.
    #[error(
        "this user may not make a control group here ({path}); cap the server by `{advice}`, and measure it by --uri"
    )]
    Cap {
        /// What could not be written.
        path: PathBuf,
        /// What to run instead.
        advice: String,
        /// Why.
        source: std::io::Error,
    },
    /// A setting of the kernel cannot be changed.
    #[error("cannot write {path}; as root: {advice}")]
    KernelSetting {
        /// The file.
        path: PathBuf,
        /// What to run instead.
        advice: String,
        /// Why.
        source: std::io::Error,
    },
    /// Some runs of a suite failed; what was measured is kept.
    #[error(
        "{failed} of {all} runs of the suite failed: they are named above, and made again by the next call"
    )]
    Suite {
        /// How many failed.
        failed: usize,
        /// Of how many.
        all: usize,
    },
    /// Another program that this tool needs cannot be run.
    #[error("`{program}` failed: {cause}")]
    Program {
        /// Its name.
        program: &'static str,
        /// Why, and what to do.
        cause: String,
    },
    /// A thread of the tool panicked: a bug.
    #[error("a thread of this tool ended unexpectedly: please report it")]
    ThreadPanicked,
}

impl BenchError {
    /// Whether the server is there and does not let this user in: waiting will not help.
    pub fn is_refused_login(&self) -> bool {
        matches!(self, BenchError::Login { .. } | BenchError::LoginRefused { .. })
    }
}
