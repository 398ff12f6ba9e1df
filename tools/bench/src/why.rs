//! The reasons behind a figure: numbers that the server counts of itself, and a profile of its processors.
//!
//! - [`status`]: the numbers of serverStatus that changed.
//! - [`profile`]: a record by `perf`: top symbols and a flame graph.
//! - [`checkpoints`]: when it wrote its checkpoints, and what it had put off.
//! - [`sizes`]: how large data, indexes and log are.

pub mod checkpoints;
pub(crate) mod profile;
pub mod sizes;
pub mod status;

use profile::Profile;
use sizes::Sizes;
use std::collections::BTreeMap;

impl Why {
    /// The sizes that compare: of what is written, if that was asked for.
    pub fn comparable_sizes(&self) -> Option<Sizes> {
        self.sizes_written.or(self.sizes)
    }
}

/// The reasons behind the figures of one run.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Why {
    /// Numbers of serverStatus, by their path, and how much they changed.
    #[serde(default)]
    pub status: BTreeMap<String, f64>,
    /// The time in which they changed.
    #[serde(default)]
    pub status_span: StatusSpan,
    /// Where the server's processors were.
    #[serde(default)]
    pub profile: Option<Profile>,
    /// How large what the server keeps is, after the run.
    #[serde(default)]
    pub sizes: Option<Sizes>,
    /// The same after a checkpoint that was asked for.
    #[serde(default)]
    pub sizes_written: Option<Sizes>,
}

/// The span of time of changes in a status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StatusSpan {
    /// The whole run, warm-up included, as earlier tools wrote it.
    #[default]
    Run,
    /// The measured window.
    Window,
}
