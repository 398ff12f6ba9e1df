//! The table of options. A new option is one entry here and one field of [`Configuration`]. Those of the
//! transport stand in a table of their own, beside this one.

use std::path::PathBuf;
use std::time::Duration;

use pando_commands::{AccessControl, ByteSize, DefaultLayout, LegacyProtocol, Persona, TestCommands};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

use super::error::ValueError;
use super::{Configuration, LogFormat, OpenToOthers, UnixSocket};

/// The value that an option takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One value, called so in help texts.
    Value(&'static str),
    /// One or more values: the flag is repeated, or the values are separated by commas; in the file also a
    /// list.
    List(&'static str),
    /// No value, or `true` or `false`.
    Switch,
}

/// One option.
pub struct OptionEntry {
    /// Its name: the flag without dashes, and the key in the file.
    pub name: &'static str,
    /// The value that it takes.
    pub shape: Shape,
    /// The default, in the form in which a user would write it.
    pub default: &'static str,
    /// One or two sentences for help and documentation.
    pub help: &'static str,
    /// Checks a text and puts it into the configuration.
    pub apply: fn(&mut Configuration, &str) -> Result<(), ValueError>,
}

impl OptionEntry {
    /// Its environment variable.
    pub fn environment_variable(&self) -> String {
        format!("PANDO_{}", self.name.replace('-', "_").to_uppercase())
    }
}

/// As in the library.
pub(super) const CACHE_BYTES_MIN: ByteSize = ByteSize::from_bytes(pandodb::CACHE_BYTES_MIN);
/// The option of engines that is an option of its own here.
const CACHE: &str = "cache";
/// The smallest memory of queries that makes sense.
const QUERY_MEMORY_MIN: ByteSize = ByteSize::from_bytes(1 << 20);
const PERSONAS: [&str; 3] = [Persona::ALL[0].name(), Persona::ALL[1].name(), Persona::ALL[2].name()];
const LAYOUTS: [&str; 2] = [DefaultLayout::ALL[0].name(), DefaultLayout::ALL[1].name()];
const THREADS_MAX: usize = 1024;
const QUEUED_READS_MAX: usize = 4096;
const CONNECTIONS_MAX: usize = 1_000_000;
/// More threads than these for one query only wait for memory.
const QUERY_THREADS_MAX: usize = 64;

/// The options of a server, without those of its transport.
pub(super) const OPTIONS: &[OptionEntry] = &[
    OptionEntry {
        name: "data",
        shape: Shape::Value("DIR"),
        default: "data",
        help: "Folder of the data; created if it is missing. The memory engine needs none.",
        apply: |configuration, text| {
            configuration.data = path(text)?;
            Ok(())
        },
    },
    OptionEntry {
        name: "listen",
        shape: Shape::List("ADDR:PORT"),
        default: "127.0.0.1:27017",
        help: "Address and port to listen on; several are possible. Port 0 takes a free one.",
        apply: |configuration, text| {
            configuration.listen = text.split(',').map(address).collect::<Result<_, _>>()?;
            Ok(())
        },
    },
    OptionEntry {
        name: "unix-socket",
        shape: Shape::Value("PATH"),
        default: "auto",
        help: "Unix socket to listen on as well: a path, 'none', or 'auto' for pando.sock in the data folder.",
        apply: |configuration, text| {
            configuration.unix_socket = match text {
                "auto" => UnixSocket::InDataFolder,
                "none" => UnixSocket::None,
                _ => UnixSocket::At(path(text)?),
            };
            Ok(())
        },
    },
    OptionEntry {
        name: "engine",
        shape: Shape::Value("ENGINE"),
        default: "betree",
        help: "Storage engine: 'betree' keeps the data on disk, 'memory' loses it when the server stops; 'lmdb', 'rocksdb', 'wiredtiger' and 'tikv' in a build with them; docs/engines.md says how to make one.",
        apply: |configuration, text| {
            configuration.engine = text.parse().map_err(|_| ValueError::Engine)?;
            Ok(())
        },
    },
    OptionEntry {
        name: "cache",
        shape: Shape::Value("SIZE"),
        default: "256MB",
        help: "Memory limit of the storage engine: pages, write buffers, inner nodes, filters; such as 256MB or 4GB, at least 16MB.",
        apply: |configuration, text| {
            configuration.cache = size_of_at_least(CACHE_BYTES_MIN, text)?;
            Ok(())
        },
    },
    OptionEntry {
        name: "query-memory",
        shape: Shape::Value("SIZE"),
        default: "auto",
        help: "Memory of sorts, groups and the like of all queries together, which counts as part of the cache. Beyond it they use \
               temporary files in the data folder. A size from 1MB to the cache, or 'auto' for a quarter of the cache.",
        apply: |configuration, text| {
            configuration.query_memory = match text {
                "auto" => None,
                _ => Some(size_of_at_least(QUERY_MEMORY_MIN, text)?),
            };
            Ok(())
        },
    },
    OptionEntry {
        name: "query-threads",
        shape: Shape::Value("COUNT"),
        default: "auto",
        help: "Processors that one query may use: an aggregation that reads a large collection as a whole reads it in as many parts as \
               processors are free. 1 is one after the other; 'auto' is one for each core, at most 8.",
        apply: |configuration, text| {
            configuration.query_threads = match text {
                "auto" => None,
                _ => Some(count(text, 1, QUERY_THREADS_MAX)?),
            };
            Ok(())
        },
    },
    OptionEntry {
        name: "engine-option",
        shape: Shape::List("NAME=VALUE"),
        default: "",
        help: "An option of the storage engine, such as logBudget=2GB, checkpointPeriod=120, directIo=off or bufferPercent=4; several are possible. The error for an unknown name lists all names.",
        apply: |configuration, text| {
            let entries = split_outside_brackets(text).map(str::trim).filter(|entry| !entry.is_empty());
            let named: Vec<(String, String)> = entries.map(named_value).collect::<Result<_, _>>()?;
            // It would overrule `--cache`, by which the server measures its other memory.
            if let Some((_, size)) = named.iter().find(|(name, _)| name == CACHE) {
                return Err(ValueError::CacheOption { size: size.clone() });
            }
            configuration.engine_options = named;
            Ok(())
        },
    },
    OptionEntry {
        name: "default-layout",
        shape: Shape::Value("LAYOUT"),
        default: DefaultLayout::Clustered.name(),
        help: "How a new collection that says nothing itself keeps its documents: 'clustered' by _id, or 'heap' in the order of inserts. Collections that are there stay as they are.",
        apply: |configuration, text| {
            let named = DefaultLayout::ALL.into_iter().find(|layout| layout.name() == text);
            configuration.default_layout = named.ok_or(ValueError::Choice { choices: &LAYOUTS })?;
            Ok(())
        },
    },
    OptionEntry {
        name: "auth",
        shape: Shape::Switch,
        default: "false",
        help: "Access control: clients have to log in, and the roles of their user say what they may do. While there are no users, a client on this machine may create the first one; 'pando user add' does so without a server.",
        apply: |configuration, text| {
            configuration.access_control = if switch(text)? { AccessControl::On } else { AccessControl::Off };
            Ok(())
        },
    },
    OptionEntry {
        name: "allow-unauthenticated",
        shape: Shape::Switch,
        default: "false",
        help: "Allow addresses that other machines can reach although there is no access control (--auth): every client that reaches the port has full access.",
        apply: |configuration, text| {
            let allowed = switch(text)?;
            configuration.open_to_others =
                if allowed { OpenToOthers::Allowed } else { OpenToOthers::Refused };
            Ok(())
        },
    },
    OptionEntry {
        name: "persona",
        shape: Shape::Value("PERSONA"),
        default: Persona::OF_SERVERS.name(),
        help: "The deployment that drivers take the server for: 'replica-set' of one node, 'standalone', or 'mongos'. Drivers retry writes with a replica set and a mongos only.",
        apply: |configuration, text| {
            let named = Persona::ALL.into_iter().find(|persona| persona.name() == text);
            configuration.persona.persona = named.ok_or(ValueError::Choice { choices: &PERSONAS })?;
            Ok(())
        },
    },
    OptionEntry {
        name: "replica-set",
        shape: Shape::Value("NAME"),
        default: "rs0",
        help: "Name of the replica set, for drivers whose connection string has replicaSet=NAME.",
        apply: |configuration, text| {
            if text.is_empty() {
                return Err(ValueError::Empty);
            }
            text.clone_into(&mut configuration.persona.set_name);
            Ok(())
        },
    },
    OptionEntry {
        name: "advertise",
        shape: Shape::Value("HOST:PORT"),
        default: "auto",
        help: "Address by which the drivers of a replica set reach the server; 'auto' is the one that each of them came in by. Name it where addresses are translated on the way, as between containers.",
        apply: |configuration, text| {
            configuration.persona.advertised = match text {
                "auto" => None,
                _ => Some(address(text)?),
            };
            Ok(())
        },
    },
    OptionEntry {
        name: "legacy-protocol",
        shape: Shape::Value("on|off"),
        default: "on",
        help: "Answer clients from before OP_MSG (drivers older than 2017): their operations, every command by OP_QUERY, and getLastError. With 'off' such clients are refused.",
        apply: |configuration, text| {
            configuration.legacy_protocol = match text {
                "on" => LegacyProtocol::Answered,
                "off" => LegacyProtocol::Refused,
                _ => return Err(ValueError::Choice { choices: &["on", "off"] }),
            };
            Ok(())
        },
    },
    OptionEntry {
        name: "test-commands",
        shape: Shape::Value("on|off"),
        default: "off",
        help: "Answer configureFailPoint, by which tests of drivers and applications make requests fail. Every client can use it then.",
        apply: |configuration, text| {
            configuration.test_commands = match text {
                "on" => TestCommands::On,
                "off" => TestCommands::Off,
                _ => return Err(ValueError::Choice { choices: &["on", "off"] }),
            };
            Ok(())
        },
    },
    OptionEntry {
        name: "max-connections",
        shape: Shape::Value("COUNT"),
        default: "20000",
        help: "Connections at the same time, at most the limit of open files less 256; the server closes further ones at \
               once. 8 more are kept for the unix socket.",
        apply: |configuration, text| {
            configuration.max_connections = count(text, 1, CONNECTIONS_MAX)?;
            Ok(())
        },
    },
    OptionEntry {
        name: "io-threads",
        shape: Shape::Value("COUNT"),
        default: "auto",
        help: "Threads that serve connections; 'auto' is one for each core, pinned to it.",
        apply: |configuration, text| {
            configuration.io_threads = match text {
                "auto" => None,
                _ => Some(count(text, 1, THREADS_MAX)?),
            };
            Ok(())
        },
    },
    OptionEntry {
        name: "blocking-threads",
        shape: Shape::Value("COUNT"),
        default: "64",
        help: "Requests that may wait for the disk at the same time, one thread each, started when needed. Logins and the commands of an operator have four more.",
        apply: |configuration, text| {
            configuration.blocking_threads = count(text, 1, THREADS_MAX)?;
            Ok(())
        },
    },
    OptionEntry {
        name: "queued-reads",
        shape: Shape::Value("COUNT"),
        default: "128",
        help: "Disk reads that each I/O thread has under way through io_uring, where the kernel allows it; with 0 blocking threads make all reads.",
        apply: |configuration, text| {
            configuration.queued_reads = count(text, 0, QUEUED_READS_MAX)?;
            Ok(())
        },
    },
    OptionEntry {
        name: "stop-grace",
        shape: Shape::Value("SECONDS"),
        default: "10s",
        help: "How long requests under way may take once the server is told to stop.",
        apply: |configuration, text| {
            configuration.stop_grace = seconds(text)?;
            Ok(())
        },
    },
    OptionEntry {
        name: "log-level",
        shape: Shape::Value("LEVEL"),
        default: "info",
        help: "Level of the log: error, warn, info, debug, trace, or a filter such as 'info,pando_server=debug'.",
        apply: |configuration, text| {
            check_log_filter(text)?;
            configuration.log_level = text.to_owned();
            Ok(())
        },
    },
    OptionEntry {
        name: "log-format",
        shape: Shape::Value("FORMAT"),
        default: "text",
        help: "Form of the log lines on standard error: 'text', or 'json' with one object per line.",
        apply: |configuration, text| {
            configuration.log_format = match text {
                "text" => LogFormat::Text,
                "json" => LogFormat::Json,
                _ => return Err(ValueError::Choice { choices: &["text", "json"] }),
            };
            Ok(())
        },
    },
];

/// A size from a least one on.
fn size_of_at_least(min: ByteSize, text: &str) -> Result<ByteSize, ValueError> {
    let size: ByteSize = text.parse()?;
    match text.trim().parse() {
        _ if size >= min => Ok(size),
        Ok(bytes) => Err(ValueError::Bytes { min, bytes }),
        Err(_) => Err(ValueError::TooSmall { min }),
    }
}

/// Checks a filter of log lines. `EnvFilter` takes any word for the name of a module, a mistyped level
/// included, so that a word by itself has to be a level here.
fn check_log_filter(text: &str) -> Result<(), ValueError> {
    let is_level = |word: &str| !word.trim().is_empty() && word.trim().parse::<LevelFilter>().is_ok();
    let words = || text.split(',').map(|part| part.rsplit_once('=').map_or(part, |(_, level)| level));
    if !words().all(is_level) || EnvFilter::try_new(text).is_err() {
        return Err(ValueError::LogLevel);
    }
    Ok(())
}

pub(super) fn path(text: &str) -> Result<PathBuf, ValueError> {
    match text {
        "" => Err(ValueError::Empty),
        // A shell expands it; here it would be the name of a folder.
        text if text == "~" || text.starts_with("~/") => Err(ValueError::Tilde),
        text => Ok(PathBuf::from(text)),
    }
}

/// The parts between commas that stand in no bracket, as those of `configString=direct_io=[data,log]` do.
pub(super) fn split_outside_brackets(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_i32;
    text.split(move |letter: char| {
        match letter {
            '[' | '(' | '{' => depth += 1,
            ']' | ')' | '}' => depth -= 1,
            _ => {}
        }
        letter == ',' && depth <= 0
    })
}

pub(super) fn named_value(text: &str) -> Result<(String, String), ValueError> {
    let named = text.split_once('=').map(|(name, value)| (name.trim(), value.trim()));
    match named {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => {
            Ok((name.to_owned(), value.to_owned()))
        }
        _ => Err(ValueError::NamedValue),
    }
}

fn address(text: &str) -> Result<String, ValueError> {
    let text = text.trim();
    let (host, port) = text.rsplit_once(':').ok_or(ValueError::Address)?;
    // Without its brackets an IPv6 address ends in something that looks like a port.
    let ambiguous = host.contains(':') && !(host.starts_with('[') && host.ends_with(']'));
    if host.is_empty() || ambiguous || port.parse::<u16>().is_err() {
        return Err(ValueError::Address);
    }
    Ok(text.to_owned())
}

pub(super) fn switch(text: &str) -> Result<bool, ValueError> {
    match text {
        "true" | "1" | "yes" | "on" => Ok(true),
        "false" | "0" | "no" | "off" => Ok(false),
        _ => Err(ValueError::Choice { choices: &["true", "false"] }),
    }
}

pub(super) fn count(text: &str, min: usize, max: usize) -> Result<usize, ValueError> {
    match text.parse() {
        Ok(number) if (min..=max).contains(&number) => Ok(number),
        _ => Err(ValueError::Count { min, max }),
    }
}

/// A time of at most an hour, in whole seconds.
///
/// # Errors
/// [`ValueError::Seconds`].
pub fn seconds(text: &str) -> Result<Duration, ValueError> {
    match text.strip_suffix('s').unwrap_or(text).trim_end().parse() {
        Ok(seconds) if seconds <= 3600 => Ok(Duration::from_secs(seconds)),
        _ => Err(ValueError::Seconds),
    }
}
