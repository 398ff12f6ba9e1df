//! Counters of an execution, as `explain` and the log of slow requests show them.

/// Counts since the executor was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Index entries stepped over, and lookups by primary key.
    pub keys_examined: u64,
    /// Documents looked at.
    pub documents_examined: u64,
    /// Rows given.
    pub returned: u64,
}

impl Counters {
    /// Adds those of another executor.
    pub fn add(&mut self, other: Counters) {
        self.keys_examined += other.keys_examined;
        self.documents_examined += other.documents_examined;
        self.returned += other.returned;
    }
}

/// The figures of an execution so far, as `explain` and the profiler show them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExecutionFigures {
    /// Entries and documents examined and returned.
    pub counters: Counters,
    /// Candidates that were passed over by the plan's skip.
    pub skipped: u64,
    /// Documents that were sorted.
    pub sorted: u64,
    /// Bytes of them.
    pub sorted_bytes: u64,
    /// Times that the query wrote its memory to the device.
    pub spills: u64,
    /// Bytes of that.
    pub spilled_bytes: u64,
}
