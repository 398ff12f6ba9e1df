//! A finding of a check, with its place; and the errors that keep a check from running.

use std::fmt;
use std::path::PathBuf;

/// One thing to put right.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// The file, relative to the root of the workspace.
    pub path: String,
    /// Its line, from 1.
    pub line: usize,
    /// The rule's short name.
    pub rule: &'static str,
    /// The fault and the cure.
    pub message: String,
}

impl Finding {
    /// A finding at a line of a file.
    pub fn new(path: &str, line: usize, rule: &'static str, message: impl Into<String>) -> Finding {
        Finding { path: path.to_owned(), line, rule, message: message.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}: {}", self.path, self.line, self.rule, self.message)
    }
}

/// Why a check could not be made.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// A file that the check needs cannot be read.
    #[error("cannot read {path}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file that the check keeps cannot be written.
    #[error("cannot write {path}")]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The policy for packages of others is not understood.
    #[error("the policy {path} is not usable")]
    Policy {
        /// Its file.
        path: PathBuf,
        /// Its fault.
        source: Box<toml::de::Error>,
    },
    /// The list of arrows is missing or not understood.
    #[error("the list of allowed arrows in {path} is not usable")]
    Arrows {
        /// The page that should hold it.
        path: PathBuf,
        /// Its fault.
        source: crate::arrow_block::ArrowsError,
    },
    /// A source file cannot be cut into tokens.
    #[error("{path} is not Rust: {reason}")]
    NotRust {
        /// The file.
        path: String,
        /// Why.
        reason: String,
    },
    /// A crate that the workspace does not have.
    #[error("there is no crate `{name}` with modules (there are: {known})")]
    UnknownCrate {
        /// The name that was asked for.
        name: String,
        /// The names that there are.
        known: String,
    },
    /// `cargo metadata` did not answer.
    #[error("cargo metadata failed")]
    Metadata(#[from] cargo_metadata::Error),
    /// The list of the tree's files cannot be had.
    #[error("git ls-files failed: this check runs in a git checkout")]
    ListFiles(#[source] std::io::Error),
    /// A settings file is not understood.
    #[error("{path} is not usable")]
    Toml {
        /// The file.
        path: PathBuf,
        /// Where and why.
        source: toml::de::Error,
    },
}
