//! Measured figures by name, timelines, notes; one [`Outcome`] for each measuring process, and all of a run
//! together.

use std::collections::BTreeMap;
use std::path::Path;

use crate::error::{BenchError, on_file};
use crate::peer::PeerKind;
use crate::setup::{Phase, Setup};

/// Figures by dotted name, in the units that the name says; see `report::measures`.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Figures(BTreeMap<String, f64>);

impl<const N: usize> From<[(&str, f64); N]> for Figures {
    fn from(figures: [(&str, f64); N]) -> Figures {
        let mut all = Figures::default();
        figures.into_iter().for_each(|(name, value)| all.set(name, value));
        all
    }
}

impl Figures {
    /// Sets a figure. What is no number (a rate of nothing) is left out.
    pub fn set(&mut self, name: impl Into<String>, value: f64) {
        if value.is_finite() {
            self.0.insert(name.into(), value);
        }
    }

    pub fn get(&self, name: &str) -> Option<f64> {
        self.0.get(name).copied()
    }

    /// Takes over all of others, each under `prefix`.
    pub fn add(&mut self, prefix: &str, others: &Figures) {
        for (name, value) in &others.0 {
            self.set(format!("{prefix}.{name}"), *value);
        }
    }

    /// All, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, f64)> {
        self.0.iter().map(|(name, value)| (name.as_str(), *value))
    }
}

/// A second of a load, or a little more: seconds end with the batch that goes over.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct Second {
    /// Seconds since the beginning, at its end.
    pub at: f64,
    pub documents: u64,
    /// The longest batch that ended in it, in milliseconds.
    pub longest_ms: f64,
    /// The library's own counters up to its end, where the run was asked for them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counters: BTreeMap<String, u64>,
}

/// The measurements of one process.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct Outcome {
    pub peer: PeerKind,
    pub phase: Phase,
    pub figures: Figures,
    /// The load, second by second.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timeline: Vec<Second>,
    /// Why the phase ended before its end: then the figures are those of what came before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Remarks for the reader of the figures.
    #[serde(default)]
    pub notes: Vec<String>,
    /// The library's own counters, at the end.
    #[serde(default)]
    pub counters: BTreeMap<String, u64>,
}

impl Outcome {
    /// Of a phase that has not begun.
    pub fn new(peer: PeerKind, phase: Phase) -> Outcome {
        Outcome {
            peer,
            phase,
            figures: Figures::default(),
            timeline: Vec::new(),
            failure: None,
            notes: Vec::new(),
            counters: BTreeMap::new(),
        }
    }
}

/// All that a run measured, as its file has it.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct Results {
    /// How it was measured.
    pub setup: Setup,
    /// Where: processor, cores, kernel, load of the machine at the beginning.
    pub machine: BTreeMap<String, String>,
    /// Seconds that all took.
    pub seconds: f64,
    /// Each process's outcome.
    pub outcomes: Vec<Outcome>,
    /// Phases that gave none, and why.
    pub failures: Vec<String>,
    /// The versions of the libraries that write theirs into their stores, by the peer's name.
    #[serde(default)]
    pub versions: BTreeMap<String, String>,
}

impl Results {
    pub fn figure(&self, peer: PeerKind, name: &str) -> Option<f64> {
        self.outcomes.iter().filter(|outcome| outcome.peer == peer).find_map(|o| o.figures.get(name))
    }

    pub fn peers(&self) -> Vec<PeerKind> {
        let mut peers: Vec<PeerKind> = self.outcomes.iter().map(|outcome| outcome.peer).collect();
        peers.sort();
        peers.dedup();
        peers
    }
}

/// Writes something as a file of JSON.
pub fn write_json<T: serde::Serialize>(path: &Path, value: &T) -> Result<(), BenchError> {
    let json = serde_json::to_string_pretty(value)
        .map_err(|source| BenchError::Results { path: path.to_owned(), source })?;
    std::fs::write(path, json + "\n").map_err(on_file("write", path))
}

pub fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, BenchError> {
    let json = std::fs::read_to_string(path).map_err(on_file("read", path))?;
    serde_json::from_str(&json).map_err(|source| BenchError::Results { path: path.to_owned(), source })
}
