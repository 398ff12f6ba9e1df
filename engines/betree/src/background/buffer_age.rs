//! Aged buffers: has old buffered writes flushed, so that no tree pins the log.
//!
//! The log is kept from the oldest record that some buffer still holds. A tree that is seldom written would
//! keep it for ever. So writes are flushed after the log has grown by a quarter of its budget, or after ten
//! minutes. Flush tasks do it, one partition a step, when they have nothing more urgent. Most partitions are
//! flushed long before. A small set of keys that is overwritten all the time is flushed once in that time.
//!
//! Ages are known by samples: the last record at some time, and how much had been logged.

use pando_environment::sync::atomic::{AtomicU64, Ordering};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use pando_environment::sync::Mutex;
use pando_environment::{Clock, Monotonic};
use pando_storage::Lsn;

use super::backlog::Backlog;
use super::buffer_flush::{BufferFlusher, Progress};
use crate::commit_order::CommitGate;
use crate::counters::Counters;
use crate::error::BetreeError;
use crate::options::live_options::LiveOptions;
use crate::tree::registry::TreeRegistry;
use crate::tree::tree_state::Tree;
use crate::tree::view::Partition;

/// The age from which on buffered writes are flushed, even if little was logged since.
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

/// Samples of the log's end, and the record up to which buffered writes have grown old.
#[derive(Default)]
pub(crate) struct Ages {
    /// Oldest first.
    samples: Mutex<VecDeque<Sample>>,
    /// Buffered writes of records up to this one are to be flushed.
    aged: AtomicU64,
}

/// See the module's head.
pub(crate) struct AgedBuffers {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) options: Arc<LiveOptions>,
    pub(crate) trees: Arc<TreeRegistry>,
    pub(crate) gate: Arc<CommitGate>,
    pub(crate) backlog: Arc<Backlog>,
    pub(crate) flusher: Arc<BufferFlusher>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) ages: Ages,
}

impl AgedBuffers {
    /// Takes a sample, and puts trees with old buffers on the backlog. Called once a second.
    pub(crate) fn look_for_old(&self) {
        let now = Sample {
            lsn: self.gate.last_lsn(),
            logged: self.gate.log().appended_bytes(),
            at: self.clock.monotonic(),
        };
        let Some(aged) = self.ages.add(now, self.options.log_budget_bytes) else { return };
        let is_old =
            |partition: &Arc<Partition>| partition.first_unflushed().is_some_and(|first| first <= aged);
        let trees = self.trees.all();
        let old = trees.values().filter(|tree| tree.view().partitions.iter().any(is_old));
        let old: Vec<Arc<Tree>> = old.cloned().collect();
        if !old.is_empty() {
            self.backlog.aged.replace(old);
            self.backlog.wake_flushers();
        }
    }

    /// Has the flush tasks flush the writes of records up to `target`, beside the caller, who does the same.
    pub(crate) fn share_flushes_up_to(&self, target: Lsn) {
        self.ages.aged.fetch_max(target.get(), Ordering::Relaxed);
        self.backlog.aged.replace(self.trees.in_order());
        self.backlog.wake_flushers();
    }

    /// Flushes an old partition, if there is one.
    pub(crate) fn flush_one(&self) -> Result<Progress, BetreeError> {
        let aged = Lsn::new(self.ages.aged.load(Ordering::Relaxed));
        let is_old =
            |partition: &Arc<Partition>| partition.first_unflushed().is_some_and(|first| first <= aged);
        let mut busy = Vec::new();
        let mut outcome = Ok(Progress::Nothing);
        while let Some(tree) = self.backlog.aged.take() {
            let Some(flushing) = tree.try_lock_flush() else {
                busy.push(tree);
                continue;
            };
            let view = tree.view_owned();
            let Some(at) = view.partitions.iter().position(is_old) else { continue };
            let flushed = self.flusher.flush_partition(&tree, &flushing, &view, at);
            drop(flushing);
            // A tree that failed comes last from now on: others may succeed.
            if flushed.is_err() {
                self.backlog.aged.add(&tree)
            } else {
                self.backlog.aged.put_first(tree)
            }
            outcome = flushed.map(|()| Progress::Made);
            break;
        }
        busy.into_iter().for_each(|tree| self.backlog.aged.add(&tree));
        if matches!(outcome, Ok(Progress::Made)) {
            self.counters.aged_flushes.add(1);
        }
        outcome
    }
}

impl Ages {
    /// Adds a sample. Returns the record up to which everything is too old now, if it is newer than before.
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
