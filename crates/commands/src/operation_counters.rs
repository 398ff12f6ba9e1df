//! The operations of each kind since the start, as `serverStatus` shows them under `opcounters`.
//!
//! Queries, `getMore`s and other commands are counted once a request; inserts, updates and deletes are
//! counted by the documents or statements that were tried.

use std::sync::atomic::{AtomicU64, Ordering};

/// The counter of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OperationKind {
    Insert,
    Query,
    Update,
    Delete,
    GetMore,
    Command,
}

/// The kinds with their names, in the order in which they are shown.
const KINDS: [(OperationKind, &str); 6] = [
    (OperationKind::Insert, "insert"),
    (OperationKind::Query, "query"),
    (OperationKind::Update, "update"),
    (OperationKind::Delete, "delete"),
    (OperationKind::GetMore, "getmore"),
    (OperationKind::Command, "command"),
];

/// One count for each kind.
#[derive(Debug, Default)]
pub(crate) struct OperationCounters {
    counts: [AtomicU64; KINDS.len()],
}

impl OperationCounters {
    /// Adds operations of a kind.
    pub fn add(&self, kind: OperationKind, operations: usize) {
        self.counts[kind as usize].fetch_add(operations as u64, Ordering::Relaxed);
    }

    /// The counts by name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        KINDS.iter().map(|(kind, name)| (*name, self.counts[*kind as usize].load(Ordering::Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_count_and_a_name_of_its_own() {
        let counters = OperationCounters::default();
        for (operations, (kind, _)) in KINDS.iter().enumerate() {
            counters.add(*kind, operations);
        }
        let shown: Vec<_> = counters.iter().collect();
        let wanted =
            [("insert", 0), ("query", 1), ("update", 2), ("delete", 3), ("getmore", 4), ("command", 5)];
        assert_eq!(shown, wanted);
    }
}
