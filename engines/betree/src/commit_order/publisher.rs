//! The publisher: makes commits visible in their order, without holes.
//!
//! Commits are applied at the same time and end in any order. A snapshot must not see one and miss an earlier
//! one. So each commit waits here until all before it are visible. That takes as long as the slowest of them:
//! microseconds.
//!
//! Timestamps are the LSNs of the log. Every record counts, also the creation of a tree. Where the log has a
//! gap, so have the timestamps.

use pando_environment::sync::atomic::{AtomicU64, Ordering};
use std::collections::{BTreeMap, BTreeSet};

use pando_environment::sync::{Condvar, Mutex, MutexGuard};
use pando_storage::{CommitTimestamp, Lsn, SnapshotTimestamp};

/// See the module's head.
#[derive(Debug, Default)]
pub(crate) struct Publisher {
    visible: AtomicU64,
    waiting: Mutex<Waiting>,
    moved: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    /// Commits that are applied, but come after one that is not.
    applied: BTreeSet<u64>,
    /// Gaps whose commit is applied: from the timestamp before the gap to the commit's.
    gaps: BTreeMap<u64, u64>,
}

impl Waiting {
    /// The last commit that can be seen once all up to `last` can.
    fn follow(&mut self, mut last: u64) -> u64 {
        loop {
            if self.applied.remove(&(last + 1)) {
                last += 1;
            } else if let Some(to) = self.gaps.remove(&last) {
                last = to;
            } else {
                return last;
            }
        }
    }
}

impl Publisher {
    /// The snapshot of a transaction that begins now.
    pub(crate) fn newest(&self) -> SnapshotTimestamp {
        SnapshotTimestamp::new(self.visible.load(Ordering::SeqCst))
    }

    /// Sets the first visible timestamp, before there are commits.
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
            return self.wait_for(waiting, timestamp);
        }
        self.show(waiting.follow(timestamp), timestamp);
    }

    /// As [`publish`](Publisher::publish), for a commit whose timestamp does not follow the one `before` it
    /// without a gap.
    pub(crate) fn publish_after_gap(&self, before: Lsn, timestamp: CommitTimestamp) {
        let (before, timestamp) = (before.get(), timestamp.get());
        let mut waiting = self.waiting.lock();
        assert!(timestamp > before, "a gap leads forward only");
        if self.visible.load(Ordering::Relaxed) < before {
            waiting.gaps.insert(before, timestamp);
            return self.wait_for(waiting, timestamp);
        }
        self.show(waiting.follow(timestamp), timestamp);
    }

    fn wait_for(&self, mut waiting: MutexGuard<'_, Waiting>, timestamp: u64) {
        while self.visible.load(Ordering::Relaxed) < timestamp {
            self.moved.wait(&mut waiting);
        }
    }

    /// Shows everything up to `last`. Wakes the waiting commits, if that is more than the caller's own. The
    /// caller holds the lock.
    fn show(&self, last: u64, own: u64) {
        self.visible.store(last, Ordering::SeqCst);
        if last > own {
            self.moved.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::commit_order::publisher::*;

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

    #[test]
    fn an_lsn_gap_waits_for_commits_before_it_and_commits_behind_it_wait_for_the_gap() {
        let publisher = Arc::new(Publisher::default());
        publisher.start_at(CommitTimestamp::new(10));
        let publish = |timestamp: u64, before: Option<u64>| {
            let publisher = Arc::clone(&publisher);
            std::thread::spawn(move || {
                let timestamp = CommitTimestamp::new(timestamp);
                match before {
                    Some(before) => publisher.publish_after_gap(Lsn::new(before), timestamp),
                    None => publisher.publish(timestamp),
                }
                assert!(publisher.newest().sees(timestamp));
            })
        };
        let late = [publish(101, None), publish(100, Some(11))];
        while publisher.waiting.lock().applied.is_empty() || publisher.waiting.lock().gaps.is_empty() {
            std::thread::yield_now();
        }
        assert_eq!(publisher.newest(), SnapshotTimestamp::new(10));
        publisher.publish(CommitTimestamp::new(11));
        assert_eq!(publisher.newest(), SnapshotTimestamp::new(101));
        for thread in late {
            thread.join().unwrap();
        }
    }
}
