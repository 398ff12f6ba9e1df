//! The cluster clock: the times that a replica set shows its clients, as `operationTime` and `$clusterTime`.
//!
//! In a store of one server it is a clock of its own beside the commit timestamps of the engine. A driver
//! sends the time of its last operation with the next read. One node has one order of commits, and each read
//! sees all that were answered before, so that the read has nothing to wait for.
//!
//! In a shared store with one clock for all servers ([`SharedTime`]) the times are those of that clock: the
//! newest that the server has seen. Seconds are seconds; the increment holds the milliseconds and the
//! counter.
//!
//! # Invariants
//! - The time of an answer is at or after the commits and the snapshots that the answer comes from. In a
//!   store of one server, a write has a greater time than all writes that were answered before it.
//! - The clock never goes back. In a shared store this holds over all servers: an answer of one has no
//!   smaller time than all answers that were given before its operation has begun a transaction.
//! - Over restarts of a store of one server, each start and a chore every few seconds store it
//!   (`clock_store.rs`), and the next start leaves out the time that may be missing there. It runs with the
//!   wall clock wherever that is ahead.
//!
//! A server of a shared store moves on to a later time that a client brings: the store had one server before,
//! whose wall clock was ahead.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use pando_catalog::{SharedEngine, SharedTime, SnapshotTimestamp};
use pando_document::{DocumentWriter, RawBinary, RawValue, Timestamp};

/// Seconds that a start leaves out: those between two runs of the chore, and a slow one.
const GAP_SECONDS: u32 = 10;
/// Seconds without a write after which a read moves the clock on, as the idle primary of a replica set does.
const IDLE_SECONDS: u64 = 10;

/// The furthest that the time of another server may lie ahead of the wall clock: a day.
const AHEAD_SECONDS_MAX: u64 = 24 * 3_600;

/// The clock.
pub(crate) struct ClusterClock {
    /// The last time that was given out: seconds in the upper half, a counter in the lower.
    last: AtomicU64,
    /// The last time that was stored.
    stored: AtomicU64,
    /// The engine of a shared store with a clock for all servers.
    shared: Option<SharedEngine>,
}

impl fmt::Debug for ClusterClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let last = Timestamp::from_u64(self.last.load(Ordering::Relaxed));
        f.debug_struct("ClusterClock").field("last", &last).finish_non_exhaustive()
    }
}

impl ClusterClock {
    /// A clock that has been stored at this time.
    pub fn new(stored: Option<Timestamp>, wall_ms: i64) -> ClusterClock {
        let after_gap = stored.map_or(0, |stored| {
            let time = stored.time.saturating_add(GAP_SECONDS);
            Timestamp { time, increment: 1 }.to_u64()
        });
        let begin = after_gap.max(at_second(wall_ms));
        ClusterClock { last: AtomicU64::new(begin), stored: AtomicU64::new(0), shared: None }
    }

    /// The clock of a server of a shared store. The time that was stored last is mostly one of the same
    /// clock.
    pub fn of_shared(stored: Option<Timestamp>, engine: SharedEngine) -> ClusterClock {
        let last = AtomicU64::new(stored.map_or(0, Timestamp::to_u64));
        ClusterClock { last, stored: AtomicU64::new(0), shared: Some(engine) }
    }

    /// The time of the shared clock; `None` in a store of one server.
    fn shared_now(&self) -> Option<u64> {
        let engine = self.shared.as_ref()?;
        Some(engine.shared_time().map_or(0, |moment| time_of(moment).to_u64()))
    }

    /// The time of a snapshot of the shared clock; `None` in a store of one server.
    pub fn time_of(&self, snapshot: SnapshotTimestamp) -> Option<Timestamp> {
        self.shared.as_ref().map(|_| time_of(SharedTime::of_snapshot(snapshot)))
    }

    /// The moment of the shared clock that a time stands for; `None` in a store of one server.
    pub fn moment_of(&self, time: Timestamp) -> Option<SharedTime> {
        self.shared.as_ref().map(|_| moment_of(time))
    }

    /// A new time, greater than all that this server has given out.
    pub fn tick(&self, wall_ms: i64) -> Timestamp {
        let base = self.shared_now().unwrap_or_else(|| at_second(wall_ms));
        let next = |last: u64| (last + 1).max(base);
        let before = self.last.fetch_update(Ordering::AcqRel, Ordering::Acquire, |last| Some(next(last)));
        Timestamp::from_u64(before.map_or(0, next))
    }

    /// Moves the clock after a command that writes. Commits have moved a shared one.
    pub fn note_write(&self, wall_ms: i64) {
        if self.shared.is_none() {
            self.tick(wall_ms);
        }
    }

    /// Moves the clock to a time that another server has given out, unless it lies too far ahead.
    pub fn catch_up(&self, time: Timestamp, wall_ms: i64) {
        if u64::from(time.time) <= (at_second(wall_ms) >> 32) + AHEAD_SECONDS_MAX {
            self.last.fetch_max(time.to_u64(), Ordering::AcqRel);
        }
    }

    /// The last time, to be stored; `None` where it is stored already.
    pub fn unstored(&self) -> Option<Timestamp> {
        let last = self.last.load(Ordering::Acquire).max(self.shared_now().unwrap_or(0));
        (last != self.stored.load(Ordering::Relaxed)).then(|| Timestamp::from_u64(last))
    }

    /// Notes that a time is stored.
    pub fn note_stored(&self, time: Timestamp) {
        self.stored.store(time.to_u64(), Ordering::Relaxed);
    }

    /// The time of the last write; in a shared store that of the newest commit or snapshot that this server
    /// has seen.
    pub fn now(&self, wall_ms: i64) -> Timestamp {
        if let Some(shared) = self.shared_now() {
            return Timestamp::from_u64(self.last.fetch_max(shared, Ordering::AcqRel).max(shared));
        }
        let last = self.last.load(Ordering::Acquire);
        let is_idle = at_second(wall_ms) >> 32 > (last >> 32) + IDLE_SECONDS;
        if is_idle { self.tick(wall_ms) } else { Timestamp::from_u64(last) }
    }
}

fn at_second(wall_ms: i64) -> u64 {
    let seconds = u32::try_from(wall_ms / 1000).unwrap_or(0);
    Timestamp { time: seconds, increment: 1 }.to_u64()
}

/// A moment of the shared clock as a time of the cluster. The increment begins at 1.
fn time_of(moment: SharedTime) -> Timestamp {
    let time = u32::try_from(moment.millis() / 1_000).unwrap_or(u32::MAX);
    let millis = u32::try_from(moment.millis() % 1_000).unwrap_or(0);
    Timestamp { time, increment: millis * SharedTime::COUNTERS + moment.counter() + 1 }
}

/// The moment of the shared clock that a time of the cluster stands for; a later one for a time that is none
/// of that clock.
pub(crate) fn moment_of(time: Timestamp) -> SharedTime {
    let counters = time.increment.saturating_sub(1);
    let (millis, counter) = (counters / SharedTime::COUNTERS, counters % SharedTime::COUNTERS);
    let second = u64::from(time.time) * 1_000;
    match millis {
        0..1_000 => SharedTime::of_parts(second + u64::from(millis), counter),
        _ => SharedTime::of_parts(second + 1_000, 0),
    }
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
    fn moments_of_a_shared_clock_keep_their_order_and_read_back() {
        let last = SharedTime::COUNTERS - 1;
        let moments = [(5_000, 0), (5_000, 1), (5_000, last), (5_001, 0), (5_999, last), (6_000, 0)];
        let moments = moments.map(|(millis, counter)| SharedTime::of_parts(millis, counter));
        let times = moments.map(time_of);
        assert_eq!(times[0], Timestamp { time: 5, increment: 1 });
        assert!(times.map(Timestamp::to_u64).is_sorted_by(|one, next| one < next));
        assert_eq!(times.map(moment_of), moments);
        // Times of another clock.
        assert_eq!(moment_of(Timestamp { time: 5, increment: 0 }), moments[0]);
        assert_eq!(moment_of(Timestamp { time: 5, increment: u32::MAX }), moments[5]);
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
