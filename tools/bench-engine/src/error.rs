//! The errors of this tool, each with advice where there is one.

use std::path::PathBuf;

pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Why a measurement could not be made.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    #[error(
        "`{name}` is not in this build, which has {built}: give another, or build with --features all-peers"
    )]
    UnknownPeer { name: String, built: String },
    #[error("there is no phase `{name}`: there are {known}")]
    UnknownPhase { name: String, known: String },
    #[error("--{name} {value} is impossible: give {expected}")]
    Argument { name: &'static str, value: String, expected: &'static str },
    #[error("{peer} failed while {doing}")]
    Peer { peer: &'static str, doing: &'static str, source: Cause },
    #[error("{peer} gave a wrong answer to {question}: {found}")]
    Wrong { peer: &'static str, question: String, found: String },
    #[error("cannot {doing} {path}")]
    File { doing: &'static str, path: PathBuf, source: std::io::Error },
    #[error("{path} is no file of results of this version: measure again")]
    Results { path: PathBuf, source: serde_json::Error },
    #[error(transparent)]
    Counter(#[from] pando_measuring::counters::CounterError),
    #[error("the measuring process of {peer}, {phase}, {ended}")]
    Child { peer: String, phase: String, ended: String },
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
