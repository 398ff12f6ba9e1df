//! The snapshots of live transactions: the versions that no flush may drop.
//!
//! The begin of a transaction takes the lock of one shard of sixteen, the thread's own. As a rule no two
//! threads meet there.
//!
//! # Why no snapshot is missed
//! A flush reads the newest visible time *before* it looks at the shards. A transaction reads it while it
//! holds the lock of its shard. So a transaction that the flush did not find in the shard begins after the
//! flush's look at it. Therefore its snapshot is at least as new as the newest that the flush assumes.

use pando_environment::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use pando_environment::Monotonic;
use pando_environment::sync::Mutex;
use pando_storage::{SnapshotTimestamp, TransactionId};

use crate::base::stripe;
use crate::commit_order::Publisher;
use crate::tree::version_retention::Retained;

const SHARDS: usize = 16;

/// A live transaction, as seen from outside.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) id: TransactionId,
    pub(crate) snapshot: SnapshotTimestamp,
    pub(crate) began: Monotonic,
    pub(crate) writes: AtomicU64,
    shard: usize,
    slot: usize,
}

#[derive(Default)]
#[repr(align(64))]
struct Shard {
    slots: Mutex<Slots>,
}

#[derive(Default)]
struct Slots {
    live: Vec<Option<Arc<Live>>>,
    free: Vec<usize>,
    numbers: u64,
}

/// See the module's head.
#[derive(Default)]
pub(crate) struct Snapshots {
    shards: [Shard; SHARDS],
    /// Held while a transaction begins at a past snapshot, and while the list is made, so that no snapshot is
    /// forgotten in between.
    past: Mutex<()>,
}

impl Snapshots {
    /// Begins at the newest snapshot.
    pub(crate) fn begin(&self, publisher: &Publisher, began: Monotonic) -> Arc<Live> {
        let shard = stripe(SHARDS);
        let mut slots = self.shards[shard].slots.lock();
        let snapshot = publisher.newest();
        slots.add(shard, snapshot, began)
    }

    /// Begins at a past snapshot, which some live transaction must hold, or at the newest; `None` if nobody
    /// holds it.
    pub(crate) fn begin_at(
        &self,
        publisher: &Publisher,
        began: Monotonic,
        snapshot: SnapshotTimestamp,
    ) -> Option<Arc<Live>> {
        let _past = self.past.lock();
        if snapshot != publisher.newest() && !self.all().iter().any(|live| live.snapshot == snapshot) {
            return None;
        }
        let shard = stripe(SHARDS);
        Some(self.shards[shard].slots.lock().add(shard, snapshot, began))
    }

    pub(crate) fn end(&self, live: &Live) {
        let mut slots = self.shards[live.shard].slots.lock();
        slots.live[live.slot] = None;
        slots.free.push(live.slot);
    }

    /// The snapshots that a flush has to respect.
    pub(crate) fn retained(&self, publisher: &Publisher) -> Retained {
        let _past = self.past.lock();
        let newest = publisher.newest();
        let live =
            self.all().iter().map(|live| live.snapshot).filter(|snapshot| *snapshot <= newest).collect();
        Retained::new(live, newest)
    }

    /// The oldest of them: that of a live transaction, or of one that begins now.
    pub(crate) fn oldest(&self, publisher: &Publisher) -> SnapshotTimestamp {
        let _past = self.past.lock();
        let newest = publisher.newest();
        let oldest_of = |shard: &Shard| {
            let slots = shard.slots.lock();
            slots.live.iter().flatten().map(|live| live.snapshot).min()
        };
        self.shards.iter().filter_map(oldest_of).fold(newest, SnapshotTimestamp::min)
    }

    /// All live transactions, in no order.
    pub(crate) fn all(&self) -> Vec<Arc<Live>> {
        let mut all = Vec::new();
        for shard in &self.shards {
            all.extend(shard.slots.lock().live.iter().flatten().map(Arc::clone));
        }
        all
    }
}

impl Slots {
    fn add(&mut self, shard: usize, snapshot: SnapshotTimestamp, began: Monotonic) -> Arc<Live> {
        self.numbers += 1;
        let number = self.numbers * SHARDS as u64 + shard as u64;
        let slot = self.free.pop().unwrap_or(self.live.len());
        let live = Arc::new(Live {
            id: TransactionId::new(number),
            snapshot,
            began,
            writes: AtomicU64::new(0),
            shard,
            slot,
        });
        if slot == self.live.len() {
            self.live.push(None);
        }
        self.live[slot] = Some(Arc::clone(&live));
        live
    }
}

impl Live {
    pub(crate) fn set_writes(&self, writes: usize) {
        self.writes.store(writes as u64, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use pando_storage::CommitTimestamp;

    use crate::commit_order::snapshots::*;

    #[test]
    fn a_past_snapshot_can_be_begun_at_while_somebody_holds_it() {
        let (snapshots, publisher) = (Snapshots::default(), Publisher::default());
        publisher.start_at(CommitTimestamp::new(4));
        let first = snapshots.begin(&publisher, Monotonic::default());
        publisher.publish(CommitTimestamp::new(5));
        let past = SnapshotTimestamp::new(4);
        let second = snapshots.begin_at(&publisher, Monotonic::default(), past).expect("it is held");
        snapshots.end(&first);
        assert_eq!(snapshots.retained(&publisher).oldest(), past);
        assert_eq!(snapshots.oldest(&publisher), past);
        snapshots.end(&second);
        assert_eq!(snapshots.retained(&publisher).oldest(), SnapshotTimestamp::new(5));
        assert_eq!(snapshots.oldest(&publisher), SnapshotTimestamp::new(5));
        assert!(snapshots.begin_at(&publisher, Monotonic::default(), past).is_none());
    }

    #[test]
    fn no_two_live_transactions_have_one_number() {
        let (snapshots, publisher) = (Snapshots::default(), Publisher::default());
        let live: Vec<_> = (0..100).map(|_| snapshots.begin(&publisher, Monotonic::default())).collect();
        let numbers: std::collections::HashSet<_> = live.iter().map(|live| live.id).collect();
        assert_eq!(numbers.len(), 100);
    }
}
