//! The cluster clock: the times that a replica set shows its clients, as `operationTime` and `$clusterTime`.
//!
//! It is a clock of its own beside the commit timestamps of the engine, and no such time selects a snapshot
//! yet. A driver sends the time of its last operation with the next read. One node has one order of commits,
//! and each read sees all that were answered before, so that the read has nothing to wait for.
//!
//! # Invariants
//! - A write has a greater time than all writes that were answered before it.
//! - The clock never goes back, also not over restarts: each start and a chore every few seconds store it
//!   (`clock_store.rs`), and the next start leaves out the time that may be missing there. It runs with the
//!   wall clock wherever that is ahead.
//!
//! Each server of a shared store has its own clock. It catches up with the times that clients bring from
//! others.

use std::sync::atomic::{AtomicU64, Ordering};

use pando_document::{DocumentWriter, RawBinary, RawValue, Timestamp};

/// Seconds that a start leaves out: those between two runs of the chore, and a slow one.
const GAP_SECONDS: u32 = 10;
/// Seconds without a write after which a read moves the clock on, as the idle primary of a replica set does.
const IDLE_SECONDS: u64 = 10;

/// The furthest that the time of another server may lie ahead of the wall clock: a day.
const AHEAD_SECONDS_MAX: u64 = 24 * 3_600;

/// The clock.
#[derive(Debug)]
pub(crate) struct ClusterClock {
    /// The last time that was given out: seconds in the upper half, a counter in the lower.
    last: AtomicU64,
    /// The last time that was stored.
    stored: AtomicU64,
}

impl ClusterClock {
    /// A clock that has been stored at this time.
    pub fn new(stored: Option<Timestamp>, wall_ms: i64) -> ClusterClock {
        let after_gap = stored.map_or(0, |stored| {
            let time = stored.time.saturating_add(GAP_SECONDS);
            Timestamp { time, increment: 1 }.to_u64()
        });
        let begin = after_gap.max(at_second(wall_ms));
        ClusterClock { last: AtomicU64::new(begin), stored: AtomicU64::new(0) }
    }

    /// The time of a write that has just been committed.
    pub fn tick(&self, wall_ms: i64) -> Timestamp {
        let next = |last: u64| (last + 1).max(at_second(wall_ms));
        let before = self.last.fetch_update(Ordering::AcqRel, Ordering::Acquire, |last| Some(next(last)));
        Timestamp::from_u64(before.map_or(0, next))
    }

    /// Moves the clock to a time that another server has given out, unless it lies too far ahead.
    pub fn catch_up(&self, time: Timestamp, wall_ms: i64) {
        if u64::from(time.time) <= (at_second(wall_ms) >> 32) + AHEAD_SECONDS_MAX {
            self.last.fetch_max(time.to_u64(), Ordering::AcqRel);
        }
    }

    /// The last time, to be stored; `None` where it is stored already.
    pub fn unstored(&self) -> Option<Timestamp> {
        let last = self.last.load(Ordering::Acquire);
        (last != self.stored.load(Ordering::Relaxed)).then(|| Timestamp::from_u64(last))
    }

    /// Notes that a time is stored.
    pub fn note_stored(&self, time: Timestamp) {
        self.stored.store(time.to_u64(), Ordering::Relaxed);
    }

    /// The time of the last write.
    pub fn now(&self, wall_ms: i64) -> Timestamp {
        let last = self.last.load(Ordering::Acquire);
        let is_idle = at_second(wall_ms) >> 32 > (last >> 32) + IDLE_SECONDS;
        if is_idle { self.tick(wall_ms) } else { Timestamp::from_u64(last) }
    }
}

fn at_second(wall_ms: i64) -> u64 {
    let seconds = u32::try_from(wall_ms / 1000).unwrap_or(0);
    Timestamp { time: seconds, increment: 1 }.to_u64()
}

/// Appends `$clusterTime` and `operationTime`. There are no keys, so the signature is that of a server
/// without them.
pub(crate) fn write_times(now: Timestamp, reply: &mut DocumentWriter<'_>) {
    let mut cluster = reply.document("$clusterTime");
    cluster.append("clusterTime", RawValue::Timestamp(now));
    let mut signature = cluster.document("signature");
    signature.append("hash", RawValue::Binary(RawBinary { subtype: 0, bytes: &[0; 20] }));
    signature.append_i64("keyId", 0);
    signature.finish();
    cluster.finish();
    reply.append("operationTime", RawValue::Timestamp(now));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_moves_with_each_write_and_follows_the_wall_clock() {
        let clock = ClusterClock::new(None, 5_000);
        let first = clock.tick(5_000);
        assert_eq!(first, Timestamp { time: 5, increment: 2 });
        assert_eq!(clock.now(5_900), first);
        assert_eq!(clock.tick(7_000), Timestamp { time: 7, increment: 1 });
        assert_eq!(clock.tick(1_000), Timestamp { time: 7, increment: 2 }, "the wall clock was set back");
    }

    #[test]
    fn it_catches_up_with_another_server_but_not_with_a_time_far_ahead() {
        let clock = ClusterClock::new(None, 5_000);
        let other = Timestamp { time: 9, increment: 3 };
        clock.catch_up(other, 5_000);
        assert_eq!(clock.now(5_000), other);
        clock.catch_up(Timestamp { time: 1_000_000, increment: 1 }, 5_000);
        assert_eq!(clock.now(5_000), other);
    }

    #[test]
    fn a_read_moves_it_on_after_an_idle_time() {
        let clock = ClusterClock::new(None, 5_000);
        assert_eq!(clock.now(15_000).time, 5);
        assert_eq!(clock.now(16_000), Timestamp { time: 16, increment: 1 });
    }

    #[test]
    fn a_restart_leaves_out_the_time_that_may_not_be_stored() {
        let stored = Timestamp { time: 100, increment: 7 };
        assert_eq!(
            ClusterClock::new(Some(stored), 50_000).now(50_000),
            Timestamp { time: 110, increment: 1 }
        );
        assert_eq!(ClusterClock::new(Some(stored), 500_000).now(500_000).time, 500);
    }
}
