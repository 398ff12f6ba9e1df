//! Schedules of commits that become visible, and of snapshots beside merges.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pando_environment::Monotonic;
use pando_environment::sync::{explore, thread};
use pando_storage::{CommitTimestamp, SnapshotTimestamp};

use crate::commit_order::{Publisher, Snapshots};

#[test]
fn commits_become_visible_in_order_and_without_holes() {
    explore(10_000, || {
        let publisher = Arc::new(Publisher::default());
        // One bit for each commit that has been applied. It is no place to switch threads, so it is exact at
        // each moment.
        let applied = Arc::new(AtomicU64::new(1));
        let committers: Vec<_> = [[1, 4], [2, 6], [3, 5]]
            .into_iter()
            .map(|timestamps| {
                let (publisher, applied) = (Arc::clone(&publisher), Arc::clone(&applied));
                thread::spawn(move || {
                    for timestamp in timestamps {
                        applied.fetch_or(1 << timestamp, Ordering::SeqCst);
                        publisher.publish(CommitTimestamp::new(timestamp));
                        assert!(publisher.newest() >= SnapshotTimestamp::new(timestamp));
                    }
                })
            })
            .collect();
        let mut last = SnapshotTimestamp::ZERO;
        while last < SnapshotTimestamp::new(6) {
            let newest = publisher.newest();
            assert!(newest >= last, "{newest:?} after {last:?}");
            let all = (1 << (newest.get() + 1)) - 1;
            assert_eq!(applied.load(Ordering::SeqCst) & all, all, "{newest:?} is visible");
            last = newest;
            thread::yield_now();
        }
        committers.into_iter().for_each(|committer| committer.join().expect("it does not panic"));
    });
}

#[test]
fn no_merge_misses_a_snapshot() {
    explore(6_000, || {
        let (publisher, snapshots) = (Arc::new(Publisher::default()), Arc::new(Snapshots::default()));
        let begun = {
            let (publisher, snapshots) = (Arc::clone(&publisher), Arc::clone(&snapshots));
            thread::spawn(move || {
                let first = snapshots.begin(&publisher, Monotonic::default());
                let second = snapshots.begin_at(&publisher, Monotonic::default(), first.snapshot);
                snapshots.end(&first);
                second.expect("the first one held it").snapshot
            })
        };
        let publishing = {
            let publisher = Arc::clone(&publisher);
            thread::spawn(move || (1..=3).for_each(|at| publisher.publish(CommitTimestamp::new(at))))
        };
        let retained = snapshots.retained(&publisher);
        let begun = begun.join().expect("it does not panic");
        publishing.join().expect("it does not panic");
        // Versions newer than the oldest are kept: a snapshot that the flush missed would have to be at
        // least as new.
        assert!(retained.oldest() <= begun, "{begun:?} is missed by a merge that keeps {retained:?}");
    });
}
