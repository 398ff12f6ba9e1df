//! The live transactions: the snapshot of each, and when it began.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pando_environment::Monotonic;
use pando_storage::{LiveTransaction, SnapshotTimestamp};

use crate::library::Snapshot;

struct Entry {
    snapshot: Arc<Snapshot>,
    begun: Monotonic,
    writes: Arc<AtomicU64>,
}

/// A transaction in the list.
pub(crate) struct Entered {
    pub(crate) number: u64,
    /// Where it shows how many keys it has written.
    pub(crate) writes_shown: Arc<AtomicU64>,
}

/// Live transactions by number, with the snapshots that they hold.
#[derive(Default)]
pub(crate) struct LiveTransactions {
    begun: u64,
    entries: BTreeMap<u64, Entry>,
    /// How many transactions hold each snapshot.
    held: BTreeMap<SnapshotTimestamp, usize>,
}

impl LiveTransactions {
    /// Enters a transaction.
    pub(crate) fn enter(&mut self, snapshot: &Arc<Snapshot>, now: Monotonic) -> Entered {
        self.begun += 1;
        let writes_shown = Arc::new(AtomicU64::new(0));
        let (snapshot, writes) = (Arc::clone(snapshot), Arc::clone(&writes_shown));
        *self.held.entry(snapshot.timestamp()).or_default() += 1;
        self.entries.insert(self.begun, Entry { snapshot, begun: now, writes });
        Entered { number: self.begun, writes_shown }
    }

    /// Takes a transaction out. Its snapshot is to be let go without the lock of this list.
    pub(crate) fn leave(&mut self, number: u64) -> Option<Arc<Snapshot>> {
        let snapshot = self.entries.remove(&number)?.snapshot;
        if let Some(count) = self.held.get_mut(&snapshot.timestamp()) {
            *count -= 1;
            if *count == 0 {
                self.held.remove(&snapshot.timestamp());
            }
        }
        Some(snapshot)
    }

    /// A snapshot that a live transaction holds.
    pub(crate) fn held(&self, at: SnapshotTimestamp) -> Option<Arc<Snapshot>> {
        self.held.get(&at)?;
        let mut snapshots = self.entries.values().map(|entry| &entry.snapshot);
        snapshots.find(|snapshot| snapshot.timestamp() == at).cloned()
    }

    /// The oldest snapshot that is held.
    pub(crate) fn oldest_snapshot(&self) -> Option<SnapshotTimestamp> {
        self.held.keys().next().copied()
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
            snapshot: entry.snapshot.timestamp(),
        };
        LiveTransaction::oldest_first(self.entries.iter().map(describe))
    }
}
