//! The configuration of a server: one table of options, from which everything else follows.
//!
//! Each [`OptionEntry`] has one name. `max-connections` is the flag `--max-connections`, the environment
//! variable `PANDO_MAX_CONNECTIONS`, and the key `max-connections` of the configuration file. Help text and
//! docs/configuration.md are generated from the same entries.
//!
//! 1. [`Sources`] collects the values as text, each with its [`Origin`]: flag before environment before file
//!    before default.
//! 2. Each entry checks its text and puts the value into [`Configuration`].
//! 3. Switches of other servers ([`familiar_switches`]) do the same, each with a line for the log.
//!
//! # Invariants
//! - An unknown key in the file is refused, with the nearest known name.
//! - Every refusal names the source of the value, the fault, and the values that are right.

mod command_line;
mod encryption_options;
mod error;
mod familiar_switches;
mod file;
mod markdown;
mod monitoring_options;
mod options;
mod sources;
mod transport_options;

use std::path::PathBuf;
use std::time::Duration;

use pando_commands::{AccessControl, ByteSize, DefaultLayout, LegacyProtocol, PersonaOptions, TestCommands};
use pandodb::EngineName;

pub use command_line::serve_arguments;
pub use encryption_options::{EncryptionChoice, OptionsDisagree, key_id, key_timeout};
pub use error::{ConfigurationError, Origin, ValueError};
pub use familiar_switches::{FAMILIAR_SWITCHES, FamiliarSwitch};
pub use markdown::markdown_page;
pub use monitoring_options::Monitoring;
pub use options::{OptionEntry, Shape, seconds};
pub use sources::{Sources, misspelt_variables};
pub use transport_options::{Audit, CoreDumps, ProcessLogins, TlsMode, Transport};

/// Every option of `pando serve`, in the order in which help lists them.
pub fn all_options() -> impl Iterator<Item = &'static OptionEntry> + Clone {
    let options = options::OPTIONS.iter().chain(encryption_options::ENCRYPTION_OPTIONS);
    let options = options.chain(monitoring_options::MONITORING_OPTIONS);
    options.chain(transport_options::TRANSPORT_OPTIONS)
}

/// The place of the unix socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnixSocket {
    /// `pando.sock` in the data folder, if the path is short enough for a socket.
    InDataFolder,
    /// At this path.
    At(PathBuf),
    /// Nowhere.
    None,
}

/// The form of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object per line.
    Json,
}

/// Whether addresses that other machines can reach are allowed, although clients need no password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenToOthers {
    /// No: loopback only.
    Refused,
    /// Yes, the administrator has said so.
    Allowed,
}

/// All options of `pando serve`, checked.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// The data folder.
    pub data: PathBuf,
    /// Addresses as given, `host:port`; resolved when they are listened on.
    pub listen: Vec<String>,
    /// The unix socket.
    pub unix_socket: UnixSocket,
    /// The engine.
    pub engine: EngineName,
    /// Memory for the engine's cache of pages.
    pub cache: ByteSize,
    /// Memory of all queries together; `None` is a share of the cache.
    pub query_memory: Option<ByteSize>,
    /// Processors that one query may use; `None` is one for each core, up to a limit.
    pub query_threads: Option<usize>,
    /// Options of the engine by name; the engine checks them when it opens.
    pub engine_options: Vec<(String, String)>,
    /// The layout of a collection that is created without one.
    pub default_layout: DefaultLayout,
    /// What became of switches of other servers, a line each for the log.
    pub familiar_lines: Vec<String>,
    /// The options that flags, environment or file set, with their texts; `config` is the file.
    pub given: Vec<(&'static str, String)>,
    /// Whether clients have to log in.
    pub access_control: AccessControl,
    /// Whether addresses beyond loopback are allowed without access control.
    pub open_to_others: OpenToOthers,
    /// The deployment that clients take the server for.
    pub persona: PersonaOptions,
    /// Whether the older operations are answered.
    pub legacy_protocol: LegacyProtocol,
    /// Whether there are commands for tests.
    pub test_commands: TestCommands,
    /// Threads that run event loops; `None` is one per core.
    pub io_threads: Option<usize>,
    /// Threads for requests that wait.
    pub blocking_threads: usize,
    /// Reads that each I/O thread has under way by itself.
    pub queued_reads: usize,
    /// Connections at one time.
    pub max_connections: usize,
    /// How long requests under way may take once the server is told to stop.
    pub stop_grace: Duration,
    /// The filter of log lines: a level, or a filter of `tracing`.
    pub log_level: String,
    /// The form of log lines.
    pub log_format: LogFormat,
    /// Parameters, and the profiler.
    pub monitoring: Monitoring,
    /// The key of an encrypted store.
    pub encryption: EncryptionChoice,
    /// TLS, and the limits of clients.
    pub transport: Transport,
}

impl Configuration {
    /// Notes that an option was given; the last text stands.
    fn note_given(&mut self, name: &'static str, text: &str) {
        self.given.retain(|(other, _)| *other != name);
        self.given.push((name, text.to_owned()));
    }

    /// No option is set; the table's defaults are applied first.
    pub(crate) fn unset() -> Configuration {
        Configuration {
            data: PathBuf::new(),
            listen: Vec::new(),
            unix_socket: UnixSocket::None,
            engine: EngineName::Betree,
            cache: ByteSize::from_bytes(0),
            query_memory: None,
            query_threads: None,
            engine_options: Vec::new(),
            default_layout: DefaultLayout::Clustered,
            familiar_lines: Vec::new(),
            given: Vec::new(),
            access_control: AccessControl::Off,
            open_to_others: OpenToOthers::Refused,
            persona: PersonaOptions::default(),
            legacy_protocol: LegacyProtocol::Answered,
            test_commands: TestCommands::Off,
            io_threads: None,
            blocking_threads: 1,
            queued_reads: 0,
            max_connections: 1,
            stop_grace: Duration::ZERO,
            log_level: String::new(),
            log_format: LogFormat::Text,
            monitoring: Monitoring::default(),
            encryption: EncryptionChoice::default(),
            transport: Transport::default(),
        }
    }
}

#[cfg(test)]
mod tests;
