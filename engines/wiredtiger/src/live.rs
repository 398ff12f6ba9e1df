//! The live transactions: the snapshot of each, and when it began.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::Weak;
use std::sync::atomic::{AtomicU64, Ordering};

use pando_environment::Monotonic;
use pando_storage::{LiveTransaction, SnapshotTimestamp};

use crate::snapshot::HeldSnapshot;

struct Entry {
    snapshot: SnapshotTimestamp,
    begun: Monotonic,
    writes: Arc<AtomicU64>,
    /// Not there yet while the snapshot is being taken.
    held: Weak<HeldSnapshot>,
}

/// Live transactions by number.
#[derive(Default)]
pub(crate) struct LiveTransactions {
    begun: u64,
    entries: BTreeMap<u64, Entry>,
    /// How many transactions have each snapshot: the first one is the oldest.
    snapshots: BTreeMap<SnapshotTimestamp, usize>,
}

impl LiveTransactions {
    /// Enters a transaction whose snapshot is at least this one: its number, and where it is to count its
    /// writes.
    pub(crate) fn enter(&mut self, snapshot: SnapshotTimestamp, now: Monotonic) -> (u64, Arc<AtomicU64>) {
        self.begun += 1;
        let writes = Arc::new(AtomicU64::new(0));
        let entry = Entry { snapshot, begun: now, writes: Arc::clone(&writes), held: Weak::new() };
        self.entries.insert(self.begun, entry);
        *self.snapshots.entry(snapshot).or_default() += 1;
        (self.begun, writes)
    }

    /// Gives a transaction a later snapshot than it entered with.
    pub(crate) fn move_to(&mut self, number: u64, snapshot: SnapshotTimestamp) {
        let Some(entry) = self.entries.get_mut(&number) else { return };
        let before = std::mem::replace(&mut entry.snapshot, snapshot);
        *self.snapshots.entry(snapshot).or_default() += 1;
        self.forget(before);
    }

    /// Gives a transaction the snapshot that was taken for it.
    pub(crate) fn hold(&mut self, number: u64, held: &Arc<HeldSnapshot>) {
        if let Some(entry) = self.entries.get_mut(&number) {
            entry.held = Arc::downgrade(held);
        }
    }

    /// Takes a transaction out.
    pub(crate) fn leave(&mut self, number: u64) {
        if let Some(entry) = self.entries.remove(&number) {
            self.forget(entry.snapshot);
        }
    }

    fn forget(&mut self, snapshot: SnapshotTimestamp) {
        if let Some(count) = self.snapshots.get_mut(&snapshot) {
            *count -= 1;
            if *count == 0 {
                self.snapshots.remove(&snapshot);
            }
        }
    }

    /// The oldest snapshot of all.
    pub(crate) fn oldest_snapshot(&self) -> Option<SnapshotTimestamp> {
        self.snapshots.keys().next().copied()
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

    /// A snapshot that some live transaction holds.
    pub(crate) fn held(&self, snapshot: SnapshotTimestamp) -> Option<Arc<HeldSnapshot>> {
        self.entries
            .values()
            .filter(|entry| entry.snapshot == snapshot)
            .find_map(|entry| entry.held.upgrade())
    }

    /// All snapshots that are held.
    pub(crate) fn all_held(&self) -> Vec<Arc<HeldSnapshot>> {
        self.entries.values().filter_map(|entry| entry.held.upgrade()).collect()
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

#[cfg(test)]
mod tests {
    use pando_environment::{Clock, MockClock};

    use super::*;

    #[test]
    fn the_oldest_snapshot_follows_begins_moves_and_ends() {
        let now = MockClock::new().monotonic();
        let at = SnapshotTimestamp::new;
        let mut live = LiveTransactions::default();
        assert_eq!(live.oldest_snapshot(), None);
        let (first, _) = live.enter(at(5), now);
        let (second, _) = live.enter(at(5), now);
        live.move_to(second, at(7));
        assert_eq!(live.oldest_snapshot(), Some(at(5)));
        live.leave(first);
        assert_eq!((live.oldest_snapshot(), live.oldest(), live.begun()), (Some(at(7)), Some(second), 2));
        live.leave(second);
        assert_eq!((live.oldest_snapshot(), live.len()), (None, 0));
    }
}
