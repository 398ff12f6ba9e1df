//! Visibility: the commits that snapshots see, the live snapshots, and the oldest of them.
//!
//! The *oldest snapshot* is kept as of the last look, so that commits and flushes need not walk the list of
//! transactions for each key. The kept value is never too new: a version that it does not protect is
//! invisible to every present and future transaction.

use pando_environment::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use pando_storage::{CommitTimestamp, Intents, ReadClaims, SnapshotTimestamp};

use super::publisher::Publisher;
use super::snapshots::Snapshots;
use crate::tree::version_retention::Retained;

/// See the module's head.
pub(crate) struct Visibility {
    pub(crate) publisher: Publisher,
    pub(crate) snapshots: Snapshots,
    pub(crate) intents: Intents,
    pub(crate) read_claims: ReadClaims,
    /// The oldest snapshot as of the last look.
    oldest: AtomicU64,
    /// Superseded versions that commits left in the buffers since that look. Later commits drop them.
    superseded: AtomicUsize,
}

impl Default for Visibility {
    fn default() -> Visibility {
        Visibility {
            publisher: Publisher::default(),
            snapshots: Snapshots::default(),
            intents: Intents::new(),
            read_claims: ReadClaims::default(),
            oldest: AtomicU64::new(0),
            superseded: AtomicUsize::new(0),
        }
    }
}

impl Visibility {
    /// Makes a commit, or a record without writes, visible in its turn.
    pub(crate) fn publish(&self, timestamp: CommitTimestamp) {
        self.publisher.publish(timestamp);
    }

    /// The oldest snapshot that any transaction, present or future, can have, as of the last look.
    pub(crate) fn oldest_known(&self) -> SnapshotTimestamp {
        SnapshotTimestamp::new(self.oldest.load(Ordering::Acquire))
    }

    /// The same as of now.
    pub(crate) fn oldest_now(&self) -> SnapshotTimestamp {
        self.snapshots.oldest(&self.publisher)
    }

    /// The snapshots that a flush has to respect.
    pub(crate) fn retained(&self) -> Retained {
        self.snapshots.retained(&self.publisher)
    }

    /// Looks for the oldest snapshot, so that buffers and intents can forget what is older.
    pub(crate) fn refresh(&self) {
        self.superseded.store(0, Ordering::Relaxed);
        let oldest = self.oldest_now();
        self.oldest.fetch_max(oldest.get(), Ordering::AcqRel);
        self.intents.set_oldest_snapshot(oldest);
    }

    /// Superseded versions that commits left since the last look.
    pub(crate) fn superseded(&self) -> usize {
        self.superseded.load(Ordering::Relaxed)
    }

    pub(crate) fn note_superseded(&self, versions: usize) {
        self.superseded.fetch_add(versions, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use pando_environment::Monotonic;

    use super::*;

    #[test]
    fn the_oldest_known_snapshot_follows_the_oldest_transaction_and_never_goes_back() {
        let visibility = Visibility::default();
        visibility.publisher.start_at(CommitTimestamp::new(4));
        let live = visibility.snapshots.begin(&visibility.publisher, Monotonic::default());
        visibility.publish(CommitTimestamp::new(5));
        visibility.note_superseded(3);
        visibility.refresh();
        assert_eq!((visibility.oldest_known(), visibility.superseded()), (SnapshotTimestamp::new(4), 0));
        visibility.snapshots.end(&live);
        assert_eq!(visibility.oldest_known(), SnapshotTimestamp::new(4), "until the next look");
        visibility.refresh();
        assert_eq!(visibility.oldest_known(), SnapshotTimestamp::new(5));
    }
}
