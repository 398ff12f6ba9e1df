//! The live transactions: the snapshot of each, and when it began.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pando_environment::Monotonic;
use pando_storage::{LiveTransaction, SnapshotTimestamp};

struct Entry {
    snapshot: SnapshotTimestamp,
    begun: Monotonic,
    writes: Arc<AtomicU64>,
}

/// Live transactions by number. Snapshots rise with the numbers, as every transaction begins at the newest
/// one.
#[derive(Default)]
pub(crate) struct LiveTransactions {
    begun: u64,
    entries: BTreeMap<u64, Entry>,
}

impl LiveTransactions {
    /// Enters a transaction: its number, and where it is to count its writes.
    pub(crate) fn enter(&mut self, snapshot: SnapshotTimestamp, now: Monotonic) -> (u64, Arc<AtomicU64>) {
        self.begun += 1;
        let writes = Arc::new(AtomicU64::new(0));
        self.entries.insert(self.begun, Entry { snapshot, begun: now, writes: Arc::clone(&writes) });
        (self.begun, writes)
    }

    /// Takes a transaction out.
    pub(crate) fn leave(&mut self, number: u64) {
        self.entries.remove(&number);
    }

    /// The snapshot of the oldest live transaction.
    pub(crate) fn oldest_snapshot(&self) -> Option<SnapshotTimestamp> {
        self.entries.values().next().map(|entry| entry.snapshot)
    }

    /// The number of the oldest live transaction.
    pub(crate) fn oldest(&self) -> Option<u64> {
        self.entries.keys().next().copied()
    }

    /// Transactions begun so far; the number of the youngest.
    pub(crate) fn begun(&self) -> u64 {
        self.begun
    }

    /// Live transactions.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// For people, oldest first.
    pub(crate) fn describe(&self, now: Monotonic) -> Vec<LiveTransaction> {
        let describe = |(number, entry): (&u64, &Entry)| LiveTransaction {
            number: *number,
            age: now.since(entry.begun),
            writes: entry.writes.load(Ordering::Relaxed),
            snapshot: entry.snapshot,
        };
        LiveTransaction::oldest_first(self.entries.iter().map(describe))
    }
}
