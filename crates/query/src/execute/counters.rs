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
