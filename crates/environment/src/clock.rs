//! Time: a monotonic clock for durations, a wall clock for people.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A moment of the monotonic clock: how long after the clock's own beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Monotonic(Duration);

impl Monotonic {
    /// The moment this long after the beginning.
    pub const fn new(since_start: Duration) -> Monotonic {
        Monotonic(since_start)
    }

    /// How long after the beginning.
    pub const fn since_start(self) -> Duration {
        self.0
    }

    /// How long since an earlier moment; zero if it is later.
    #[must_use]
    pub fn since(self, earlier: Monotonic) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    /// The moment this much later.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Monotonic {
        Monotonic(self.0.saturating_add(duration))
    }
}

/// A moment of the wall clock: milliseconds since 1970-01-01 UTC. It may jump, and is never used to order
/// events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct WallTime(u64);

impl WallTime {
    /// The moment this many milliseconds after 1970-01-01 UTC.
    pub const fn from_millis(millis: u64) -> WallTime {
        WallTime(millis)
    }

    /// Milliseconds since 1970-01-01 UTC.
    pub const fn millis(self) -> u64 {
        self.0
    }
}

/// The door to time.
pub trait Clock: Send + Sync {
    /// Now, for measuring durations.
    fn monotonic(&self) -> Monotonic;

    /// Now, for people.
    fn wall(&self) -> WallTime;
}

/// The system's clocks.
pub(crate) struct RealClock {
    start: Instant,
}

impl RealClock {
    pub(crate) fn new() -> RealClock {
        RealClock { start: Instant::now() }
    }
}

impl Clock for RealClock {
    fn monotonic(&self) -> Monotonic {
        Monotonic(self.start.elapsed())
    }

    fn wall(&self) -> WallTime {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        WallTime(u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX))
    }
}

/// A clock that stands still until a test moves it.
pub struct MockClock {
    nanos: AtomicU64,
}

/// 2026-01-01T00:00:00Z: where the wall clock of a simulation begins.
const MOCK_WALL_START_MILLIS: u64 = 1_767_225_600_000;

impl MockClock {
    /// A clock at its beginning.
    pub fn new() -> MockClock {
        MockClock { nanos: AtomicU64::new(0) }
    }

    /// Moves both clocks.
    pub fn advance(&self, duration: Duration) {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        self.nanos.fetch_add(nanos, Ordering::SeqCst);
    }
}

impl Default for MockClock {
    fn default() -> Self {
        MockClock::new()
    }
}

impl Clock for MockClock {
    fn monotonic(&self) -> Monotonic {
        Monotonic(Duration::from_nanos(self.nanos.load(Ordering::SeqCst)))
    }

    fn wall(&self) -> WallTime {
        WallTime(MOCK_WALL_START_MILLIS + self.nanos.load(Ordering::SeqCst) / 1_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mock_clock_moves_only_when_told() {
        let clock = MockClock::new();
        let before = clock.monotonic();
        assert_eq!(clock.monotonic(), before);
        clock.advance(Duration::from_millis(1_500));
        assert_eq!(clock.monotonic().since(before), Duration::from_millis(1_500));
        assert_eq!(clock.wall().millis(), MOCK_WALL_START_MILLIS + 1_500);
    }

    #[test]
    fn the_real_clock_never_goes_back() {
        let clock = RealClock::new();
        let first = clock.monotonic();
        assert!(clock.monotonic() >= first);
        assert!(clock.wall().millis() > MOCK_WALL_START_MILLIS - 10 * 365 * 86_400_000);
    }
}
