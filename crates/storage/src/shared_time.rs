//! The time of a shared store: one clock, from which the transactions of all its servers have their
//! timestamps.

use crate::identifiers::SnapshotTimestamp;

/// A moment of that clock: milliseconds since 1970, and a counter that tells moments of one millisecond
/// apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SharedTime(u64);

/// The bits of the counter.
const COUNTER_BITS: u32 = 18;

impl SharedTime {
    /// Moments of one millisecond.
    pub const COUNTERS: u32 = 1 << COUNTER_BITS;

    /// The moment of a number: the milliseconds above the counter's 18 bits.
    pub const fn new(number: u64) -> SharedTime {
        SharedTime(number)
    }

    /// The moment of a snapshot in such a store.
    pub const fn of_snapshot(snapshot: SnapshotTimestamp) -> SharedTime {
        SharedTime(snapshot.get())
    }

    /// The snapshot that sees all commits up to this moment.
    pub const fn snapshot(self) -> SnapshotTimestamp {
        SnapshotTimestamp::new(self.0)
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The moment of these parts. A counter that is too large is that of the last moment.
    pub fn of_parts(millis: u64, counter: u32) -> SharedTime {
        let millis = millis.min(u64::MAX >> COUNTER_BITS);
        SharedTime(millis << COUNTER_BITS | u64::from(counter.min(SharedTime::COUNTERS - 1)))
    }

    /// Milliseconds since 1970.
    pub const fn millis(self) -> u64 {
        self.0 >> COUNTER_BITS
    }

    /// Below [`COUNTERS`](SharedTime::COUNTERS).
    pub const fn counter(self) -> u32 {
        (self.0 as u32) & (SharedTime::COUNTERS - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_reads_back_and_moments_are_in_the_order_of_their_parts() {
        let moments = [(0, 0), (0, 1), (7, SharedTime::COUNTERS - 1), (8, 0), (1_764_000_000_000, 5)];
        let made = moments.map(|(millis, counter)| SharedTime::of_parts(millis, counter));
        assert!(made.is_sorted());
        assert_eq!(made.map(|moment| (moment.millis(), moment.counter())), moments);
        assert_eq!(SharedTime::of_parts(u64::MAX, u32::MAX).get(), u64::MAX);
    }
}
