//! The pause before a sync, in which further commits join it.
//!
//! Without it, a sync covers what was appended while the one before it ran. On a quick device that is little:
//! 5 commits of 64 clients. A pause adds to the wait of some commits. It saves processor time and writes of
//! the device for all.
//!
//! # Terms
//! - *Waiting*: commits that have left a waker for the device.
//! - *Active*: the waiting of the last sync and those that had come by its end. Clients that wait for their
//!   answers write again soon after they get them, so about as many are to be expected.
//!
//! # Algorithm
//! 1. Five of six of the active, and [`WANTED_MAX`] at most, are wanted. The others prepare their next
//!    commits meanwhile, so device and processors both have work.
//! 2. A sync begins as soon as so many wait.
//! 3. It begins in any case when the pause has taken [`PAUSE_SYNCS_MAX`] times as long as the last sync. Then
//!    fewer are active than were, and the next pause wants fewer.
//!
//! A lone writer is never held up: one is wanted, and one waits.

use std::time::Duration;

use pando_environment::Monotonic;

/// The most commits that a pause waits for.
const WANTED_MAX: usize = 24;
/// The longest pause, in the time of the last sync.
const PAUSE_SYNCS_MAX: u32 = 3;

/// Decides about pauses; the sync task carries them out.
#[derive(Debug, Default)]
pub(super) struct Gathering {
    active: usize,
    pause_max: Duration,
    begun: Option<Monotonic>,
}

impl Gathering {
    /// The number of waiting commits with which a sync begins at once; at least 1.
    pub(super) fn wanted(&self) -> usize {
        (self.active * 5 / 6).clamp(1, WANTED_MAX)
    }

    /// For how long to wait for more than these `waiting`; `None`: the sync begins now.
    pub(super) fn pause(&mut self, waiting: usize, now: Monotonic) -> Option<Duration> {
        let paused = now.since(*self.begun.get_or_insert(now));
        (waiting < self.wanted() && paused < self.pause_max).then(|| self.pause_max - paused)
    }

    /// A sync that served `served` has taken `duration`, and `came` have come meanwhile.
    pub(super) fn synced(&mut self, served: usize, came: usize, duration: Duration) {
        *self = Gathering { active: served + came, pause_max: duration * PAUSE_SYNCS_MAX, begun: None };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Monotonic {
        Monotonic::new(Duration::from_micros(micros))
    }

    #[test]
    fn a_lone_writer_is_never_held_up() {
        let mut gathering = Gathering::default();
        for turn in 0..3 {
            assert_eq!(gathering.pause(1, at(turn * 1_000)), None);
            gathering.synced(1, 0, Duration::from_micros(300));
        }
    }

    #[test]
    fn a_pause_ends_with_the_wanted_or_after_the_time_of_three_syncs() {
        let mut gathering = Gathering::default();
        gathering.synced(10, 10, Duration::from_micros(100));
        assert_eq!(gathering.wanted(), 16);
        assert_eq!(gathering.pause(10, at(1_000)), Some(Duration::from_micros(300)));
        assert_eq!(gathering.pause(12, at(1_100)), Some(Duration::from_micros(200)));
        assert_eq!(gathering.pause(16, at(1_150)), None, "as many as wanted");
        assert_eq!(gathering.pause(15, at(1_300)), None, "the time is over");
    }

    #[test]
    fn the_wanted_follow_the_active_up_to_the_bound() {
        let mut gathering = Gathering::default();
        for (served, came, wanted) in [(1, 1, 1), (3, 1, 3), (12, 4, 13), (20, 20, WANTED_MAX), (2, 0, 1)] {
            gathering.synced(served, came, Duration::from_micros(300));
            assert_eq!(gathering.wanted(), wanted);
        }
    }
}
