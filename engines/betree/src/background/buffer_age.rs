//! How old what is buffered may become: no tree pins the log.
//!
//! The log is kept from the oldest record on that is in some buffer only. A tree that is written seldom would keep it for ever. So
//! what has been buffered while the log grew by a quarter of its budget, or for ten minutes, is merged: by the mergers, one partition
//! a step, when they have nothing more urgent to do. Most partitions are merged long before, and a small set of keys that is
//! overwritten all the time is written once in that time, however often it was overwritten.
//!
//! Ages are known by samples: which record was the last at some time, and how much had been logged.

use pando_environment::sync::atomic::{AtomicU64, Ordering};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use pando_environment::Monotonic;
use pando_environment::sync::Mutex;
use pando_storage::Lsn;

use crate::background::flush::Progress;
use crate::core::Core;
use crate::error::BetreeError;
use crate::tree::tree_state::Tree;
use crate::tree::view::Partition;

/// What was buffered so long ago is merged, however little was logged since.
const AGE_MAX: Duration = Duration::from_secs(600);
/// The time between two samples where little is logged.
const SAMPLE_TIME: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug)]
struct Sample {
    /// The last record at that time.
    lsn: Lsn,
    /// Bytes that had been logged.
    logged: u64,
    at: Monotonic,
}

/// See the module's head.
#[derive(Default)]
pub(crate) struct Ages {
    /// Oldest first.
    samples: Mutex<VecDeque<Sample>>,
    /// What is buffered of records up to this one is to be merged.
    aged: AtomicU64,
    /// Trees that may have some of it; the last is the next.
    trees: Mutex<VecDeque<Arc<Tree>>>,
}

impl Core {
    /// Takes a sample, and has what has grown old merged. Called now and then.
    pub(crate) fn look_for_aged(&self) {
        let now = Sample {
            lsn: self.last_lsn(),
            logged: self.log().appended_bytes(),
            at: self.environment.clock().monotonic(),
        };
        let Some(aged) = self.ages.add(now, self.options.log_budget_bytes) else { return };
        let is_old =
            |partition: &Arc<Partition>| partition.first_unmerged().is_some_and(|first| first <= aged);
        let trees = self.trees();
        let old = trees.values().filter(|tree| tree.view().partitions.iter().any(is_old));
        let old: VecDeque<Arc<Tree>> = old.cloned().collect();
        if !old.is_empty() {
            *self.ages.trees.lock() = old;
            self.wake_mergers();
        }
    }

    /// Has the mergers merge what is buffered of records up to `target`, beside the caller, who does the same.
    pub(crate) fn share_merges_up_to(&self, target: Lsn) {
        self.ages.aged.fetch_max(target.get(), Ordering::Relaxed);
        *self.ages.trees.lock() = self.trees_in_order().into();
        self.wake_mergers();
    }

    /// Merges a partition that has grown old, if there is one.
    pub(crate) fn merge_one_aged(&self) -> Result<Progress, BetreeError> {
        let aged = Lsn::new(self.ages.aged.load(Ordering::Relaxed));
        let is_old =
            |partition: &Arc<Partition>| partition.first_unmerged().is_some_and(|first| first <= aged);
        let mut busy = Vec::new();
        let mut outcome = Ok(Progress::Nothing);
        while let Some(tree) = self.ages.take() {
            let Some(merging) = tree.try_lock_merging() else {
                busy.push(tree);
                continue;
            };
            let view = tree.view_to_keep();
            let Some(at) = view.partitions.iter().position(is_old) else { continue };
            let merged = self.merge_partition(&tree, &merging, &view, at);
            drop(merging);
            // One that failed comes last from now on; another may be able to.
            if merged.is_err() {
                self.ages.put_last(tree)
            } else {
                self.ages.put_back(tree)
            }
            outcome = merged.map(|()| Progress::Merged);
            break;
        }
        busy.into_iter().for_each(|tree| self.ages.put_last(tree));
        if matches!(outcome, Ok(Progress::Merged)) {
            self.counters.aged_merges.add(1);
        }
        outcome
    }
}

impl Ages {
    fn take(&self) -> Option<Arc<Tree>> {
        self.trees.lock().pop_back()
    }

    /// The next that is taken is this one.
    fn put_back(&self, tree: Arc<Tree>) {
        self.trees.lock().push_back(tree);
    }

    /// All others are taken before this one.
    fn put_last(&self, tree: Arc<Tree>) {
        self.trees.lock().push_front(tree);
    }

    /// Adds a sample; the record up to which everything is too old now, if that is a newer one than before.
    fn add(&self, now: Sample, log_budget: u64) -> Option<Lsn> {
        let mut samples = self.samples.lock();
        let is_apart = |last: &Sample| {
            now.logged >= last.logged + log_budget / 64 || now.at.since(last.at) >= SAMPLE_TIME
        };
        if samples.back().is_none_or(is_apart) {
            samples.push_back(now);
        }
        let is_old = |sample: &Sample| {
            now.logged >= sample.logged + log_budget / 4 || now.at.since(sample.at) >= AGE_MAX
        };
        let mut aged = None;
        while samples.front().is_some_and(is_old) {
            aged = samples.pop_front().map(|sample| sample.lsn);
        }
        let before = self.aged.fetch_max(aged?.get(), Ordering::Relaxed);
        aged.filter(|aged| aged.get() > before)
    }
}

#[cfg(test)]
mod tests {
    use crate::background::buffer_age::*;

    fn sample(lsn: u64, logged: u64, seconds: u64) -> Sample {
        Sample { lsn: Lsn::new(lsn), logged, at: Monotonic::default().plus(Duration::from_secs(seconds)) }
    }

    #[test]
    fn a_record_is_old_once_a_quarter_of_the_budget_was_logged_after_it() {
        let ages = Ages::default();
        assert_eq!(ages.add(sample(10, 0, 0), 6400), None);
        assert_eq!(ages.add(sample(20, 99, 1), 6400), None);
        assert_eq!(ages.add(sample(30, 800, 2), 6400), None);
        assert_eq!(ages.add(sample(40, 1599, 3), 6400), None);
        assert_eq!(ages.add(sample(50, 1600, 4), 6400), Some(Lsn::new(10)));
        assert_eq!(
            ages.add(sample(60, 2450, 5), 6400),
            Some(Lsn::new(30)),
            "20 was too near to 10 for a sample"
        );
    }

    #[test]
    fn a_record_is_old_after_ten_minutes() {
        let ages = Ages::default();
        assert_eq!(ages.add(sample(10, 0, 0), 6400), None);
        assert_eq!(ages.add(sample(10, 0, 599), 6400), None);
        assert_eq!(ages.add(sample(10, 0, 600), 6400), Some(Lsn::new(10)));
        assert_eq!(ages.add(sample(10, 0, 1300), 6400), None, "known already");
    }
}
