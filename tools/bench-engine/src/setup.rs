//! The settings of a run: sizes, times, and the phases.

use crate::data::DOCUMENT_BYTES;
use crate::error::BenchError;

/// The settings that all peers of a run share.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct Setup {
    /// The size of a peer's own caches and write buffers, in bytes.
    pub cache_bytes: u64,
    /// The further memory of capped processes, the kernel's page cache included, in bytes.
    pub headroom_bytes: u64,
    /// Bytes of documents, in multiples of the cache.
    pub scale: f64,
    /// How long reads are measured, in seconds.
    pub seconds: f64,
    /// How long a load may take before it is cut short, in seconds.
    pub limit_seconds: f64,
    /// How long inserts go on at least, in seconds; 0: until all documents are in.
    pub insert_seconds: f64,
    pub batch: u64,
    pub update_batch: u64,
    pub trees: u32,
    /// Bytes of log that recovery is measured with.
    pub log_bytes: u64,
    /// The seed of draws.
    pub seed: u64,
    /// Options of the trees of `betree` and `btree`, by name.
    #[serde(default)]
    pub layout: Vec<(String, String)>,
    /// Whether the seconds of a load have what the library counts of itself.
    #[serde(default)]
    pub counters: bool,
}

impl Setup {
    pub fn documents(&self) -> u64 {
        ((self.cache_bytes as f64 * self.scale) as u64 / DOCUMENT_BYTES).max(self.batch)
    }
}

/// The part of a run that one process measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Inserts, point reads and scans with all in the cache.
    Cached,
    /// The same at a multiple of the cache, in a memory cap.
    Capped,
    /// Point reads with more and more cache, on the store of [`Phase::Capped`].
    Growing,
    /// Updates of a hot set, on the store of [`Phase::Capped`].
    Updates,
    /// Its size when compacted, on the store of [`Phase::Capped`].
    Compacted,
    /// Many small trees: their making.
    Trees,
    /// Many small trees: opening them again.
    TreesAgain,
    Crash,
    Recovery,
}

impl Phase {
    /// All, in the order in which they run.
    pub const ALL: [Phase; 9] = [
        Phase::Cached,
        Phase::Capped,
        Phase::Growing,
        Phase::Updates,
        Phase::Compacted,
        Phase::Trees,
        Phase::TreesAgain,
        Phase::Crash,
        Phase::Recovery,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Phase::Cached => "cached",
            Phase::Capped => "capped",
            Phase::Growing => "growing",
            Phase::Updates => "updates",
            Phase::Compacted => "compacted",
            Phase::Trees => "trees",
            Phase::TreesAgain => "trees-again",
            Phase::Crash => "crash",
            Phase::Recovery => "recovery",
        }
    }

    pub fn parse(name: &str) -> Result<Phase, BenchError> {
        Phase::ALL.into_iter().find(|phase| phase.name() == name).ok_or_else(|| BenchError::UnknownPhase {
            name: name.to_owned(),
            known: Phase::ALL.map(Phase::name).join(", "),
        })
    }

    pub fn is_capped(self) -> bool {
        matches!(self, Phase::Capped | Phase::Growing | Phase::Updates | Phase::Compacted)
    }

    /// Where its store lies, below the scratch folder of a peer: some phases go on with another's.
    pub fn store(self) -> &'static str {
        match self {
            Phase::Cached => "cached",
            Phase::Capped | Phase::Growing | Phase::Updates | Phase::Compacted => "capped",
            Phase::Trees | Phase::TreesAgain => "trees",
            Phase::Crash | Phase::Recovery => "crash",
        }
    }
}

/// Reads a size such as `64MB`, in powers of 1024.
pub fn parse_size(name: &'static str, text: &str) -> Result<u64, BenchError> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match text[digits.len()..].to_ascii_uppercase().as_str() {
        "" | "B" => 0,
        "K" | "KB" => 10,
        "M" | "MB" => 20,
        "G" | "GB" => 30,
        _ => u32::MAX,
    };
    let bytes = digits.parse::<u64>().ok().filter(|_| shift < 64).and_then(|n| n.checked_mul(1 << shift));
    bytes.filter(|bytes| *bytes >= 1 << 20).ok_or_else(|| BenchError::Argument {
        name,
        value: text.to_owned(),
        expected: "a size of at least 1MB, such as 64MB",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_impossible_ones_refused() {
        assert_eq!(parse_size("cache", "64MB").expect("possible"), 64 << 20);
        assert_eq!(parse_size("cache", "2g").expect("possible"), 2 << 30);
        for wrong in ["", "MB", "12", "64XB", "99999999999GB", "-1MB"] {
            assert!(parse_size("cache", wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn every_phase_is_known_by_its_name() {
        for phase in Phase::ALL {
            assert_eq!(Phase::parse(phase.name()).expect("known"), phase);
        }
        assert!(Phase::parse("lukewarm").expect_err("unknown").to_string().contains("capped"));
    }
}
