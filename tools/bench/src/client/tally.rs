//! What was counted in the measured window, by one worker or by all.

use super::{ThreadUsage, Verdict};
use crate::histogram::Latencies;
use std::time::Duration;

/// How many messages about failures are kept.
const FAILURES_KEPT: usize = 5;

/// The counts of one worker, or the sum of several.
#[derive(Clone, Debug)]
pub struct Tally {
    /// Latencies of the requests that were done.
    pub latencies: Latencies,
    /// Requests that were done, in each second of the window.
    pub per_second: Vec<u64>,
    /// Requests whose document was not there.
    pub missed: u64,
    /// Requests that were refused, or answered wrongly.
    pub failed: u64,
    /// The first failures' messages.
    pub failures: Vec<String>,
    /// What each worker's thread used; one entry for one worker.
    pub threads: Vec<ThreadUsage>,
}

impl Tally {
    /// Nothing yet.
    pub fn new() -> Tally {
        Tally {
            latencies: Latencies::new(),
            per_second: Vec::new(),
            missed: 0,
            failed: 0,
            failures: Vec::new(),
            threads: Vec::new(),
        }
    }

    /// Counts one request in this second of the window.
    pub fn record(&mut self, second: usize, latency: Duration, verdict: Verdict) {
        match verdict {
            Verdict::Done => {
                self.latencies.record(latency);
                if self.per_second.len() <= second {
                    self.per_second.resize(second + 1, 0);
                }
                self.per_second[second] += 1;
            }
            Verdict::Missed => self.missed += 1,
            Verdict::Failed(message) => self.fail(message),
        }
    }

    /// Counts a failure.
    pub fn fail(&mut self, message: String) {
        self.failed += 1;
        if self.failures.len() < FAILURES_KEPT {
            self.failures.push(message);
        }
    }

    /// Takes another worker's counts in.
    pub fn add(&mut self, other: Tally) {
        self.latencies.add(&other.latencies);
        self.per_second.resize(self.per_second.len().max(other.per_second.len()), 0);
        for (sum, count) in self.per_second.iter_mut().zip(&other.per_second) {
            *sum += count;
        }
        self.missed += other.missed;
        self.failed += other.failed;
        self.failures.extend(other.failures);
        self.failures.truncate(FAILURES_KEPT);
        self.threads.extend(other.threads);
    }

    /// Requests that were done.
    pub fn done(&self) -> u64 {
        self.latencies.count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misses_and_failures_are_counted_apart_from_work() {
        let mut tally = Tally::new();
        tally.record(1, Duration::from_micros(5), Verdict::Done);
        tally.record(1, Duration::from_micros(5), Verdict::Missed);
        tally.record(1, Duration::from_micros(5), Verdict::Failed("no".into()));
        assert_eq!((tally.done(), tally.missed, tally.failed), (1, 1, 1));
        assert_eq!(tally.per_second, [0, 1]);
    }

    #[test]
    fn workers_add_up_second_by_second() {
        let (mut a, mut b) = (Tally::new(), Tally::new());
        a.record(0, Duration::ZERO, Verdict::Done);
        b.record(0, Duration::ZERO, Verdict::Done);
        b.record(2, Duration::ZERO, Verdict::Done);
        (0..9).for_each(|_| b.fail("no".into()));
        a.add(b);
        assert_eq!(a.per_second, [2, 0, 1]);
        assert_eq!((a.failed, a.failures.len()), (9, FAILURES_KEPT));
    }
}
