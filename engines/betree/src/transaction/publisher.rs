//! Makes commits visible in their order, without holes.
//!
//! Commits are applied at the same time and end in any order; a snapshot must not see one and miss an earlier. So each waits
//! here until all before it are visible. That takes as long as the slowest of those under way: microseconds.
//!
//! Timestamps are the LSNs of the log: every record counts, also the creation of a tree.

use pando_environment::sync::atomic::{AtomicU64, Ordering};
use std::collections::BTreeSet;

use pando_environment::sync::{Condvar, Mutex};
use pando_storage::{CommitTimestamp, SnapshotTimestamp};

/// See the module's head.
#[derive(Debug, Default)]
pub(crate) struct Publisher {
    visible: AtomicU64,
    waiting: Mutex<Waiting>,
    moved: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    /// Applied, but after one that is not.
    applied: BTreeSet<u64>,
}

impl Publisher {
    /// What a transaction that begins now sees.
    pub(crate) fn newest(&self) -> SnapshotTimestamp {
        SnapshotTimestamp::new(self.visible.load(Ordering::SeqCst))
    }

    /// Sets the beginning, before there are commits.
    pub(crate) fn start_at(&self, timestamp: CommitTimestamp) {
        self.visible.store(timestamp.get(), Ordering::SeqCst);
    }

    /// Returns when this commit, which has been applied, and all before it are visible.
    pub(crate) fn publish(&self, timestamp: CommitTimestamp) {
        let timestamp = timestamp.get();
        let mut waiting = self.waiting.lock();
        let visible = self.visible.load(Ordering::Relaxed);
        assert!(timestamp > visible, "commit {timestamp} is published twice: {visible} is visible");
        if timestamp > visible + 1 {
            waiting.applied.insert(timestamp);
            while self.visible.load(Ordering::Relaxed) < timestamp {
                self.moved.wait(&mut waiting);
            }
            return;
        }
        let mut last = timestamp;
        while waiting.applied.remove(&(last + 1)) {
            last += 1;
        }
        self.visible.store(last, Ordering::SeqCst);
        if last > timestamp {
            self.moved.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn commits_become_visible_in_order_whatever_order_they_end_in() {
        let publisher = Arc::new(Publisher::default());
        publisher.start_at(CommitTimestamp::new(10));
        let late: Vec<_> = [13, 12]
            .into_iter()
            .map(|timestamp| {
                let publisher = Arc::clone(&publisher);
                std::thread::spawn(move || {
                    publisher.publish(CommitTimestamp::new(timestamp));
                    assert!(publisher.newest() >= SnapshotTimestamp::new(timestamp));
                })
            })
            .collect();
        while publisher.waiting.lock().applied.len() < 2 {
            std::thread::yield_now();
        }
        assert_eq!(publisher.newest(), SnapshotTimestamp::new(10));
        publisher.publish(CommitTimestamp::new(11));
        assert_eq!(publisher.newest(), SnapshotTimestamp::new(13));
        for thread in late {
            thread.join().unwrap();
        }
    }
}
