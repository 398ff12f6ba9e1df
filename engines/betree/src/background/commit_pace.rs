//! The commit pace: how fast commits may go. Pure arithmetic over the rate of flushes and how far they are
//! behind.
//!
//! # Terms
//! - *Slack*: the bytes that may be buffered or logged beyond the point where background work begins.
//! - *Debt*: the used part of the slack, from 0 to 1. Not the flush debt of a tree
//!   ([`crate::tree::flush_debt`]).
//! - *Slot* of a commit: the time that it may take up. A commit that finds itself within the slot before
//!   sleeps until that slot ends. So all threads together are limited, and the time of the commit itself
//!   counts.
//!
//! # The law
//! The length of a slot is the time that flushes need for as many bytes, times debt / (1 - debt). It is at
//! most [`SLOT_MAX`] or the time of the flush. So a load settles at the rate of the flushes, with half of the
//! slack used or less. A slower load hardly notices. Slots never reach further ahead than [`AHEAD_MAX`].

use pando_environment::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use pando_environment::sync::Mutex;

/// The rate assumed before there was a flush, in bytes per second.
const FIRST_RATE: f64 = (50 << 20) as f64;
/// The flush time after which older measurements count a third.
const MEMORY: Duration = Duration::from_secs(1);
/// A flush counts for at most this multiple of the usual time, plus [`OUTLIER_NANOS`].
const OUTLIER: f64 = 4.0;
const OUTLIER_NANOS: f64 = 5e6;
/// The longest slot, unless flushes need longer for the bytes: a lone commit pauses no longer.
const SLOT_MAX: Duration = Duration::from_millis(25);
/// The farthest that slots reach ahead.
const AHEAD_MAX: Duration = Duration::from_millis(500);

/// The part of the slack that is used, in 1/1024; 1023 at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Debt(u16);

impl Debt {
    const WHOLE: u128 = 1024;

    /// The debt where `used` of a slack is used.
    pub(crate) fn of(used: u64, slack: u64) -> Debt {
        let parts = u128::from(used) * Debt::WHOLE / u128::from(slack.max(1));
        Debt(parts.min(Debt::WHOLE - 1) as u16)
    }

    /// Whether there is any.
    pub(crate) fn is_some(self) -> bool {
        self.0 > 0
    }

    pub(crate) fn permille(self) -> u64 {
        u64::from(self.0) * 1000 / Debt::WHOLE as u64
    }
}

/// The work of recent flushes: bytes, and the nanoseconds that they took.
#[derive(Debug)]
struct Achieved {
    bytes: f64,
    nanos: f64,
}

/// See the module's head.
#[derive(Debug)]
pub(crate) struct CommitPace {
    achieved: Mutex<Achieved>,
    /// Bytes that one flush task empties per second.
    rate: AtomicU64,
    /// When the last slot ends, in nanoseconds of the monotonic clock.
    taken_until: AtomicU64,
}

impl Default for CommitPace {
    fn default() -> CommitPace {
        // The assumption counts as much as a tenth of a second of flushing.
        let achieved = Achieved { bytes: FIRST_RATE / 10.0, nanos: 1e8 };
        CommitPace {
            achieved: Mutex::new(achieved),
            rate: AtomicU64::new(FIRST_RATE as u64),
            taken_until: AtomicU64::new(0),
        }
    }
}

impl CommitPace {
    /// Notes that a flush has emptied a buffer of these bytes in this time.
    pub(crate) fn note_flush(&self, bytes: usize, time: Duration) {
        let mut achieved = self.achieved.lock();
        // A machine that stood still for seconds has not become slow, so one flush changes the rate by a
        // bounded amount.
        let usual = bytes as f64 * achieved.nanos / achieved.bytes.max(1.0);
        let nanos = (time.as_nanos() as f64).min(OUTLIER * usual + OUTLIER_NANOS);
        let kept = (-nanos / MEMORY.as_nanos() as f64).exp();
        achieved.bytes = achieved.bytes * kept + bytes as f64;
        achieved.nanos = achieved.nanos * kept + nanos;
        let rate = achieved.bytes * 1e9 / achieved.nanos.max(1.0);
        self.rate.store(rate.clamp(1.0, (10_u64 << 30) as f64) as u64, Ordering::Relaxed);
    }

    /// Bytes that one flush task empties per second.
    pub(crate) fn flush_rate(&self) -> u64 {
        self.rate.load(Ordering::Relaxed)
    }

    /// Takes a slot for a commit of `bytes` at the time `now`, where `flushers` work. Returns how long the
    /// commit has to sleep first.
    pub(crate) fn take_slot(&self, now: Duration, bytes: u64, flushers: usize, debt: Debt) -> Duration {
        let now = now.as_nanos() as u64;
        let slot = self.slot_nanos(bytes, flushers, debt);
        let limit = now + AHEAD_MAX.as_nanos() as u64;
        let mut before = self.taken_until.load(Ordering::Relaxed);
        loop {
            let after = (before.max(now) + slot).min(limit.max(before));
            let swap =
                self.taken_until.compare_exchange_weak(before, after, Ordering::Relaxed, Ordering::Relaxed);
            match swap {
                Ok(_) => return Duration::from_nanos(before.saturating_sub(now)),
                Err(other) => before = other,
            }
        }
    }

    fn slot_nanos(&self, bytes: u64, flushers: usize, debt: Debt) -> u64 {
        let rate = u128::from(self.flush_rate()) * flushers.max(1) as u128;
        let flushing = u128::from(bytes) * 1_000_000_000 / rate;
        let slot = flushing * u128::from(debt.0) / (Debt::WHOLE - u128::from(debt.0));
        let longest = flushing.max(SLOT_MAX.as_nanos());
        slot.min(longest).min(AHEAD_MAX.as_nanos()) as u64
    }
}

#[cfg(test)]
mod tests {
    use crate::background::commit_pace::*;

    const MB: u64 = 1 << 20;

    #[test]
    fn slots_grow_without_a_step_from_nothing_and_last_as_long_as_flushing_at_half_the_slack() {
        let pace = CommitPace::default();
        (0..200).for_each(|_| pace.note_flush(1 << 20, Duration::from_millis(200)));
        let slot = |used| pace.slot_nanos(10_000, 1, Debt::of(used, 1024));
        assert_eq!(slot(0), 0);
        let flushing = 10_000 * 1_000_000_000 / pace.flush_rate();
        assert!(slot(512).abs_diff(flushing) <= 1, "{} and {flushing}", slot(512));
        let slots: Vec<u64> = (0..2000).map(slot).collect();
        assert!(slots.is_sorted());
        assert!(slot(1000) > 10 * flushing);
        assert!(slots.iter().all(|slot| *slot <= SLOT_MAX.as_nanos() as u64));
    }

    #[test]
    fn the_rate_is_that_of_the_last_second_of_flushing_whatever_the_size_of_flushes() {
        let pace = CommitPace::default();
        (0..100).for_each(|_| pace.note_flush((4 * MB) as usize, Duration::from_millis(100)));
        assert!((39 * MB..41 * MB).contains(&pace.flush_rate()), "{}", pace.flush_rate());
        for _ in 0..7_000 {
            pace.note_flush((MB / 100) as usize, Duration::from_millis(1));
        }
        assert!((9 * MB..11 * MB).contains(&pace.flush_rate()), "{}", pace.flush_rate());
    }

    #[test]
    fn a_merge_during_which_the_machine_stood_still_does_not_count_for_its_time() {
        let pace = CommitPace::default();
        (0..100).for_each(|_| pace.note_flush((4 * MB) as usize, Duration::from_millis(100)));
        pace.note_flush((4 * MB) as usize, Duration::from_secs(100));
        assert!(pace.flush_rate() > 20 * MB, "{}", pace.flush_rate());
        (0..100).for_each(|_| pace.note_flush((4 * MB) as usize, Duration::from_secs(4)));
        assert!(pace.flush_rate() < 2 * MB, "but many such merges do: {}", pace.flush_rate());
    }

    #[test]
    fn many_threads_together_get_what_one_gets() {
        let debt = Debt::of(1, 2);
        let admitted = |threads: u64| {
            let pace = CommitPace::default();
            let mut free_at = vec![0_u64; threads as usize];
            let mut bytes = 0_u64;
            // Each thread commits again as soon as it has slept, for a second.
            loop {
                let (at, now) = free_at.iter().copied().enumerate().min_by_key(|(_, free)| *free).unwrap();
                if now > 1_000_000_000 {
                    return bytes;
                }
                bytes += 50_000;
                let sleep = pace.take_slot(Duration::from_nanos(now), 50_000, 1, debt);
                free_at[at] = now + sleep.as_nanos() as u64 + 1_000;
            }
        };
        let (one, many) = (admitted(1), admitted(64));
        assert!(many.abs_diff(one) < one / 10, "{one} bytes by one thread, {many} by 64");
    }

    #[test]
    fn a_commit_that_comes_after_its_slot_does_not_sleep() {
        let pace = CommitPace::default();
        let debt = Debt::of(1, 2);
        assert_eq!(pace.take_slot(Duration::from_secs(1), 50_000, 1, debt), Duration::ZERO);
        assert!(pace.take_slot(Duration::from_secs(1), 50_000, 1, debt) > Duration::ZERO);
        assert_eq!(pace.take_slot(Duration::from_secs(2), 50_000, 1, debt), Duration::ZERO);
    }
}
