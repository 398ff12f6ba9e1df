//! Figures of a running engine: estimates, counters, waits and live transactions.

use std::time::Duration;

use crate::identifiers::SnapshotTimestamp;

/// How much lies in a range, roughly: enough to choose between two plans.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Estimate {
    /// Entries in the range.
    pub entries: u64,
    /// Bytes of keys and values in the range, before compression.
    pub bytes: u64,
}

/// A transaction that has neither committed nor rolled back.
#[derive(Clone, Debug)]
pub struct LiveTransaction {
    /// The engine's number for it.
    pub number: u64,
    /// Since it began.
    pub age: Duration,
    /// Keys in its write set.
    pub writes: u64,
    /// The snapshot that it keeps from being forgotten.
    pub snapshot: SnapshotTimestamp,
}

impl LiveTransaction {
    /// In the order of [`Engine::live_transactions`](crate::Engine::live_transactions): oldest first. The
    /// order of numbers is another one where two threads begin at once, since each takes the time first.
    pub fn oldest_first(live: impl Iterator<Item = LiveTransaction>) -> Vec<LiveTransaction> {
        let mut live: Vec<LiveTransaction> = live.collect();
        live.sort_by_key(|transaction| std::cmp::Reverse(transaction.age));
        live
    }
}

/// Something that callers or background work had to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The event, in the engine's words.
    pub name: &'static str,
    /// How often since the store was opened.
    pub count: u64,
    /// For how long all together, in microseconds.
    pub micros: u64,
}

/// Counters and gauges by dotted name (`cache.bytes`, `log.syncs`), in the engine's own words, sorted by
/// name.
#[derive(Clone, Debug, Default)]
pub struct Statistics {
    entries: Vec<(&'static str, u64)>,
}

impl Statistics {
    /// No figures yet.
    pub fn new() -> Statistics {
        Statistics::default()
    }

    /// Adds one figure; a name given twice keeps the later value.
    pub fn set(&mut self, name: &'static str, value: u64) {
        match self.entries.binary_search_by(|(have, _)| have.cmp(&name)) {
            Ok(at) => self.entries[at].1 = value,
            Err(at) => self.entries.insert(at, (name, value)),
        }
    }

    /// The figure of this name.
    pub fn get(&self, name: &str) -> Option<u64> {
        let at = self.entries.binary_search_by(|(have, _)| (*have).cmp(name)).ok()?;
        Some(self.entries[at].1)
    }

    /// All figures, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        self.entries.iter().copied()
    }
}
