//! The errors of this tool, each with advice where there is one.

use std::path::PathBuf;

/// Whatever a peer's library reports.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Why a measurement could not be made.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// A peer that does not exist or is not in this build.
    #[error(
        "`{name}` is not in this build, which has {built}: give another, or build with --features all-peers"
    )]
    UnknownPeer {
        /// What was asked for.
        name: String,
        /// What there is.
        built: String,
    },
    /// A phase that does not exist.
    #[error("there is no phase `{name}`: there are {known}")]
    UnknownPhase {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// An argument that cannot be.
    #[error("--{name} {value} is impossible: give {expected}")]
    Argument {
        /// The option.
        name: &'static str,
        /// What was given.
        value: String,
        /// What could be.
        expected: &'static str,
    },
    /// A peer's library failed.
    #[error("{peer} failed while {doing}")]
    Peer {
        /// Which.
        peer: &'static str,
        /// At what.
        doing: &'static str,
        /// What it says.
        source: Cause,
    },
    /// A peer gave a wrong answer: its figures are worth nothing.
    #[error("{peer} gave a wrong answer to {question}: {found}")]
    Wrong {
        /// Which.
        peer: &'static str,
        /// What was asked.
        question: String,
        /// What came, and what should have.
        found: String,
    },
    /// A file cannot be read or written.
    #[error("cannot {doing} {path}")]
    File {
        /// What was tried.
        doing: &'static str,
        /// With which file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A file of results is not what this version writes.
    #[error("{path} is no file of results of this version: measure again")]
    Results {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: serde_json::Error,
    },
    /// The kernel's counters cannot be read.
    #[error(transparent)]
    Counter(#[from] pando_measuring::counters::CounterError),
    /// The process that measured ended badly.
    #[error("the measuring process of {peer}, {phase}, {ended}")]
    Child {
        /// Which peer.
        peer: String,
        /// Which phase.
        phase: String,
        /// How it ended.
        ended: String,
    },
}

/// For `map_err`: a peer's own error, with what it was doing.
pub fn failed<E: Into<Cause>>(peer: &'static str, doing: &'static str) -> impl FnOnce(E) -> BenchError {
    move |source| BenchError::Peer { peer, doing, source: source.into() }
}

/// For `map_err`: an error of a file.
pub fn on_file(doing: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> BenchError {
    let path = path.into();
    move |source| BenchError::File { doing, path, source }
}
