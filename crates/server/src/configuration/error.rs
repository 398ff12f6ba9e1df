//! Errors of a configuration, each with the source of the wrong value.

use std::fmt;
use std::io;
use std::path::PathBuf;

use pandodb::EngineName;

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The command line.
    Flag(&'static str),
    /// The environment.
    Environment(String),
    /// The configuration file.
    File(PathBuf, &'static str),
    /// The table of options itself.
    Default(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Flag(name) => write!(f, "--{name}"),
            Origin::Environment(variable) => write!(f, "environment variable {variable}"),
            Origin::File(path, name) => write!(f, "{name} in {}", path.display()),
            Origin::Default(name) => write!(f, "the default of {name}"),
        }
    }
}

/// Why a text is not a value for its option.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    /// Not one of the words.
    #[error("expected one of: {}", choices.join(", "))]
    Choice {
        /// The words.
        choices: &'static [&'static str],
    },
    /// Not an engine of this build.
    #[error("expected an engine of this build: {}; `make engines` builds a server with more", EngineName::ALL.iter().map(|engine| engine.as_str()).collect::<Vec<_>>().join(", "))]
    Engine,
    /// The engine that MongoDB no longer has.
    #[error(
        "mmapv1 is not there; an engine with a heap comes nearest, as --engine lmdb --default-layout heap"
    )]
    Mmapv1,
    /// Not a number of GiB.
    #[error("expected a number of GiB, such as 4 or 0.5")]
    Gibibytes,
    /// Not a whole number.
    #[error("expected a whole number that is not negative")]
    Whole,
    /// Not a number within bounds.
    #[error("expected a whole number from {min} to {max}")]
    Count {
        /// The least.
        min: usize,
        /// The most.
        max: usize,
    },
    /// Not a size.
    #[error(transparent)]
    ByteSize(#[from] pando_commands::ByteSizeError),
    /// A size below the least that works.
    #[error("expected at least {min}")]
    TooSmall {
        /// The least.
        min: pando_commands::ByteSize,
    },
    /// A size below the least, without a unit: most likely another one was meant.
    #[error("{bytes} is a number of bytes: write a unit, such as {bytes}MB; expected at least {min}")]
    Bytes {
        /// The least.
        min: pando_commands::ByteSize,
        /// The number.
        bytes: u64,
    },
    /// A part of the cache that is larger than the cache.
    #[error("expected at most {cache}, the size of the cache (--cache)")]
    AboveCache {
        /// The cache.
        cache: pando_commands::ByteSize,
    },
    /// Not a length of time.
    #[error("expected a number of seconds, such as 10s, from 0 to 3600")]
    Seconds,
    /// Not `host:port`.
    #[error("expected an address and a port, such as 127.0.0.1:27017 or [::1]:27017")]
    Address,
    /// Not `NAME=VALUE`.
    #[error("expected a name and a value, such as logBudget=2GB")]
    NamedValue,
    /// The engine's option of the cache.
    #[error("the cache has an option of its own; use --cache {size}")]
    CacheOption {
        /// The size.
        size: String,
    },
    /// Not `NAME=VALUE` of a parameter.
    #[error("expected a name and a value, such as ttlMonitorSleepSecs=10")]
    NamedParameter,
    /// Not a number of milliseconds, or -1.
    #[error("expected a whole number, -1 or more")]
    WholeOrMinusOne,
    /// Not a share.
    #[error("expected a number from 0 to 1, such as 0.1")]
    Share,
    /// No text.
    #[error("expected a value, found none")]
    Empty,
    /// A path that only a shell understands.
    #[error("expected a path without '~', which only a shell replaces: write the home folder out")]
    Tilde,
    /// Not a level or filter.
    #[error("expected error, warn, info, debug, trace, or a filter such as info,pando_server=debug")]
    LogLevel,
}

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigurationError {
    /// A value is not what its option takes.
    #[error("{origin}: '{text}' is no valid value: {reason}")]
    Value {
        /// Where it came from.
        origin: Origin,
        /// The text.
        text: String,
        /// The expected value.
        reason: ValueError,
    },
    /// A key of the file is not known.
    #[error("{}: there is no option '{key}'{}", file.display(), nearest.map_or(String::new(), |name| format!("; did you mean '{name}'?")))]
    UnknownKey {
        /// The file.
        file: PathBuf,
        /// The key.
        key: String,
        /// The known name that is most like it.
        nearest: Option<&'static str>,
    },
    /// There is no parameter of this name.
    #[error(
        "--set-parameter {name}: the engine {engine} has no parameter of this name that can be set; db.adminCommand({{getParameter: '*'}}) lists them"
    )]
    UnknownParameter {
        /// The name.
        name: String,
        /// The engine.
        engine: &'static str,
    },
    /// The file has a section.
    #[error("{}: there is no section '[{key}]': write each option by itself, such as listen = \"127.0.0.1:27017\"; docs/configuration.md lists them", file.display())]
    Section {
        /// The file.
        file: PathBuf,
        /// Its name.
        key: String,
    },
    /// A key of the file has a list, and its option takes one value.
    #[error("{}: '{key}' takes one value, and not a list", file.display())]
    ListForValue {
        /// The file.
        file: PathBuf,
        /// The key.
        key: String,
    },
    /// A key of the file has a value of a kind that no option takes.
    #[error("{}: '{key}' must be text, a number, true or false, or a list of texts", file.display())]
    ValueKind {
        /// The file.
        file: PathBuf,
        /// The key.
        key: String,
    },
    /// The file cannot be read.
    #[error("cannot read the configuration file {}", file.display())]
    ReadFile {
        /// The file.
        file: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The file is one of mongod.
    #[error(
        "{} is a configuration file of mongod, in YAML; Pando reads TOML with a line for each option, such as \
         listen = \"127.0.0.1:27017\" for net.port and net.bindIp, or data = \"/var/lib/pando\" for storage.dbPath: \
         'pando serve --help' lists the options",
        file.display()
    )]
    FileOfMongod {
        /// The file.
        file: PathBuf,
    },
    /// The file is not TOML.
    #[error("{} is not a valid TOML file", file.display())]
    Syntax {
        /// The file.
        file: PathBuf,
        /// Where and why.
        source: Box<toml::de::Error>,
    },
    /// An environment variable is not text.
    #[error("environment variable {variable} is not valid UTF-8")]
    EnvironmentNotUtf8 {
        /// Its name.
        variable: String,
    },
}
