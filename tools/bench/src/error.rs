//! The errors of the lab, each with advice where there is one.

use pando_document::DocumentError;
use pando_measuring::counters::{CounterError, ProcessId};
use pando_wire::WireError;
use std::path::{Path, PathBuf};

/// Why a run could not be made or finished.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "each message says what its variant and its fields are")]
pub enum BenchError {
    #[error(
        "`{uri}` is not usable: {cause}; give mongodb://[USER:PASSWORD@]HOST:PORT[/?authSource=DB&authMechanism=NAME]"
    )]
    Uri { uri: String, cause: &'static str },
    #[error("cannot find the address of `{host}`")]
    Resolve {
        host: String,
        /// Why; nothing if there was simply no address.
        source: Option<std::io::Error>,
    },
    #[error("cannot connect to {address}: is the server running?")]
    Connect { address: String, source: std::io::Error },
    #[error(
        "{address} accepts connections, but did not answer hello within {seconds} s: is it overloaded, or another kind of server?"
    )]
    Silent { address: String, seconds: u64 },
    #[error(
        "the server refused the login by {mechanism} in the database `{source_database}`: {cause}; check user and password \
         (percent-encoded in the URI), authSource and authMechanism"
    )]
    Login { mechanism: &'static str, source_database: String, cause: String },
    #[error(
        "{address} refused the login: {message} (code {code}); check user and password (percent-encoded) in the URI"
    )]
    LoginRefused { address: String, code: u16, message: String },
    #[error(transparent)]
    Tls(#[from] pando_tls::TlsError),
    #[error("the embedded engine: {0}")]
    Embedded(#[from] pandodb::Error),
    #[error("a connection to the server broke")]
    Connection(#[source] std::io::Error),
    #[error("the server closed a connection: see its log")]
    Closed,
    #[error("the server sent something that is not a message")]
    Wire(#[from] WireError),
    #[error("the server sent a damaged document")]
    Document(#[from] DocumentError),
    #[error("expected the reply to request {expected}, got one to {found}")]
    ReplyTo { expected: i32, found: i32 },
    #[error("the server answered with op code {op_code}, not with OP_MSG")]
    ReplyKind { op_code: i32 },
    #[error("the server refused `{command}`: {message} (code {code})")]
    Refused { command: String, code: i64, message: String },
    #[error("the request cannot be made into a template")]
    Template(#[from] pando_wire::TemplateError),
    #[error(
        "{namespace} holds {found} documents, the run needs {expected}: run with --load yes to load it anew"
    )]
    DataSet { namespace: String, found: u64, expected: u64 },
    #[error(
        "{namespace} {} index on k, the run is to have {}: run with --load yes to load it anew, or with --secondary-index {}",
        if *found { "has an" } else { "has no" },
        if *found { "none" } else { "one" },
        if *found { "on" } else { "off" }
    )]
    DataSetIndex { namespace: String, found: bool },
    #[error(
        "{database} holds a graph of about {found} nodes, the run is to have {nodes}: run with the --nodes that it was loaded with, \
         or with --load yes to load it anew"
    )]
    DataSetGraph { database: String, found: u64, nodes: u64 },
    #[error("the load failed, {failed} batches are not in: {message}")]
    Load { failed: u64, message: String },
    #[error("{}{option}: {cause}", dashes(option))]
    Option { option: &'static str, cause: String },
    #[error("cannot read {path}")]
    ReadFile { path: PathBuf, source: std::io::Error },
    #[error("{path}{}: {cause}", in_line(*line))]
    FileForm {
        path: PathBuf,
        /// Which line, from 1; 0 if the file as a whole is wrong.
        line: usize,
        cause: String,
    },
    #[error("{entry}: {cause}")]
    SuiteEntry { entry: String, cause: String },
    #[error("the suite cannot start; repair this, or name the other servers by --servers NAME,NAME:{lacks}")]
    SuiteServers { lacks: String },
    #[error("the server refused a statement, or the connection to it broke")]
    Driver { source: Box<dyn std::error::Error + Send + Sync> },
    #[error(transparent)]
    Counter(#[from] CounterError),
    #[error("cannot write {path}")]
    WriteReport { path: PathBuf, source: std::io::Error },
    #[error("this machine refused {what}")]
    Resource { what: &'static str, source: std::io::Error },
    #[error("interrupted: runs that were finished are kept")]
    Interrupted,
    #[error("the server ended by itself ({status}): `{command}`; the end of its log:{log}")]
    ServerDied { command: String, status: String, log: String },
    #[error("the server (pid {process}) ended {seconds:.0} s after the clients began: see its log")]
    ServerEnded { process: ProcessId, seconds: f64 },
    #[error(
        "the server hangs: after the window {units} units got no reply, and it did not answer a new connection; see its log"
    )]
    ServerHangs { units: u64, source: Box<BenchError> },
    #[error("the server did not answer within {seconds} s ({last}): `{command}`; the end of its log:{log}")]
    ServerSlow { command: String, seconds: u64, last: String, log: String },
    #[error(
        "this user may not make a control group here ({path}); cap the server by `{advice}`, and measure it by --uri"
    )]
    Cap { path: PathBuf, advice: String, source: std::io::Error },
    #[error("cannot write {path}; as root: {advice}")]
    KernelSetting { path: PathBuf, advice: String, source: std::io::Error },
    #[error(
        "{failed} of {all} runs of the suite failed: they are named above, and made again by the next call"
    )]
    Suite { failed: usize, all: usize },
    #[error("`{program}` failed: {cause}")]
    Program { program: &'static str, cause: String },
    #[error("a thread of this tool ended unexpectedly: please report it")]
    ThreadPanicked,
}

impl BenchError {
    /// An option that cannot be what it is, in view of the others.
    pub fn option(option: &'static str, cause: impl Into<String>) -> BenchError {
        BenchError::Option { option, cause: cause.into() }
    }

    /// Whether the server is there and does not let this user in: waiting will not help.
    pub fn is_refused_login(&self) -> bool {
        matches!(self, BenchError::Login { .. } | BenchError::LoginRefused { .. })
    }
}

/// An option of one letter has one dash.
fn dashes(option: &str) -> &'static str {
    if option.len() == 1 { "-" } else { "--" }
}

fn in_line(line: usize) -> String {
    if line == 0 { String::new() } else { format!(", line {line}") }
}

/// For `map_err`: this file or folder cannot be read.
pub(crate) fn unreadable(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> BenchError {
    let path = path.into();
    |source| BenchError::ReadFile { path, source }
}

/// For `map_err`: this file or folder cannot be written.
pub(crate) fn unwritable(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> BenchError {
    let path = path.into();
    |source| BenchError::WriteReport { path, source }
}

/// For `map_err`: this machine refuses something.
pub(crate) fn no_resource<E: Into<std::io::Error>>(what: &'static str) -> impl Fn(E) -> BenchError + Copy {
    move |source| BenchError::Resource { what, source: source.into() }
}

pub(crate) fn read_text(path: &Path) -> Result<String, BenchError> {
    std::fs::read_to_string(path).map_err(unreadable(path))
}

/// Makes a folder, with those above it.
pub(crate) fn make_folder(path: &Path) -> Result<(), BenchError> {
    std::fs::create_dir_all(path).map_err(unwritable(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_of_one_letter_is_named_with_one_dash() {
        assert_eq!(BenchError::option("D", "addnode is 5").to_string(), "-D: addnode is 5");
        assert_eq!(BenchError::option("docs", "too many").to_string(), "--docs: too many");
    }
}
