//! The live transactions: the timestamp of each, and when it began.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pando_environment::Monotonic;
use pando_storage::{LiveTransaction, SnapshotTimestamp};

struct Entry {
    /// Below or at the timestamp of a transaction that has not got it yet.
    snapshot: u64,
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
    held: BTreeMap<u64, usize>,
}

impl LiveTransactions {
    /// Enters a transaction whose snapshot is this one, or will be a later one.
    pub(crate) fn enter(&mut self, snapshot: u64, now: Monotonic) -> Entered {
        self.begun += 1;
        let writes_shown = Arc::new(AtomicU64::new(0));
        *self.held.entry(snapshot).or_default() += 1;
        self.entries.insert(self.begun, Entry { snapshot, begun: now, writes: Arc::clone(&writes_shown) });
        Entered { number: self.begun, writes_shown }
    }

    /// Moves a transaction to its snapshot.
    pub(crate) fn settle(&mut self, number: u64, snapshot: u64) {
        if let Some(entry) = self.entries.get_mut(&number) {
            let before = std::mem::replace(&mut entry.snapshot, snapshot);
            *self.held.entry(snapshot).or_default() += 1;
            self.let_go(before);
        }
    }

    /// Takes a transaction out.
    pub(crate) fn leave(&mut self, number: u64) {
        if let Some(entry) = self.entries.remove(&number) {
            self.let_go(entry.snapshot);
        }
    }

    fn let_go(&mut self, snapshot: u64) {
        if let Some(count) = self.held.get_mut(&snapshot) {
            *count -= 1;
            if *count == 0 {
                self.held.remove(&snapshot);
            }
        }
    }

    /// Whether a live transaction holds a snapshot.
    pub(crate) fn is_held(&self, snapshot: u64) -> bool {
        self.held.contains_key(&snapshot)
    }

    /// The oldest snapshot that is held.
    pub(crate) fn oldest_snapshot(&self) -> Option<u64> {
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
            snapshot: SnapshotTimestamp::new(entry.snapshot),
        };
        LiveTransaction::oldest_first(self.entries.iter().map(describe))
    }
}
