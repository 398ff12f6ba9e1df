//! The newest timestamp of the cluster that this server has seen, and how old it may be.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use pando_environment::Monotonic;

/// See the module's head.
pub(crate) struct Newest {
    timestamp: AtomicU64,
    /// When the placement driver was asked for a timestamp that is not after it, in nanoseconds of the
    /// server's clock. Whatever was committed before that moment has an earlier timestamp.
    asked_at: AtomicU64,
    /// A commit of this server may have got a later timestamp until this moment, without its knowledge.
    certain_from: AtomicU64,
}

impl Newest {
    /// Of a timestamp that was asked for at a moment.
    pub(crate) fn new(timestamp: u64, asked_at: Monotonic) -> Newest {
        Newest {
            timestamp: AtomicU64::new(timestamp),
            asked_at: AtomicU64::new(nanos(asked_at)),
            certain_from: AtomicU64::new(0),
        }
    }

    /// The newest timestamp.
    pub(crate) fn get(&self) -> u64 {
        self.timestamp.load(Ordering::Acquire)
    }

    /// Notes a timestamp, such as that of a commit.
    pub(crate) fn saw(&self, timestamp: u64) {
        self.timestamp.fetch_max(timestamp, Ordering::AcqRel);
    }

    /// Notes a timestamp that the placement driver was asked for at a moment.
    pub(crate) fn was_given(&self, timestamp: u64, asked_at: Monotonic) {
        // In this order: whoever sees the moment sees the timestamp as well.
        self.saw(timestamp);
        self.asked_at.fetch_max(nanos(asked_at), Ordering::AcqRel);
    }

    /// Notes that nobody knows whether a commit of this server has happened so far: timestamps that were
    /// asked for before this moment may lie before it.
    pub(crate) fn lost_track(&self, now: Monotonic) {
        self.certain_from.fetch_max(nanos(now), Ordering::AcqRel);
    }

    /// The newest timestamp, if nothing that was committed so long ago is after it.
    pub(crate) fn within(&self, age: Duration, now: Monotonic) -> Option<u64> {
        let asked_at = self.asked_at.load(Ordering::Acquire);
        let timestamp = self.get();
        let is_certain = asked_at >= self.certain_from.load(Ordering::Acquire);
        let asked_at = Monotonic::new(Duration::from_nanos(asked_at));
        (is_certain && now.since(asked_at) <= age).then_some(timestamp)
    }
}

fn nanos(moment: Monotonic) -> u64 {
    u64::try_from(moment.since_start().as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Monotonic {
        Monotonic::new(Duration::from_millis(millis))
    }

    #[test]
    fn the_newest_timestamp_is_as_old_as_the_last_question_and_not_as_a_commit() {
        let newest = Newest::new(10, at(1_000));
        newest.saw(12);
        newest.saw(11);
        let second = Duration::from_secs(1);
        assert_eq!(newest.within(second, at(2_000)), Some(12));
        assert_eq!(newest.within(second, at(2_001)), None);
        newest.was_given(20, at(1_500));
        assert_eq!(newest.within(second, at(2_500)), Some(20));
        // An answer that comes late neither makes it older nor takes it back.
        newest.was_given(15, at(1_200));
        assert_eq!(newest.within(second, at(2_500)), Some(20));
        assert_eq!(newest.within(second, at(2_501)), None);
    }

    #[test]
    fn a_timestamp_from_before_a_commit_with_an_unknown_outcome_is_asked_for_anew() {
        let (newest, second) = (Newest::new(10, at(1_000)), Duration::from_secs(1));
        newest.lost_track(at(1_100));
        assert_eq!(newest.within(second, at(1_200)), None);
        newest.was_given(20, at(1_050));
        assert_eq!(newest.within(second, at(1_200)), None, "it was asked for before");
        newest.was_given(30, at(1_150));
        assert_eq!(newest.within(second, at(1_200)), Some(30));
    }
}
