//! The counters of conflicts, and of waits for claimed keys, since the start, as `serverStatus` shows them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// See the module's head.
#[derive(Debug, Default)]
pub(crate) struct WaitFigures {
    begun: AtomicU64,
    ended: AtomicU64,
    timed_out: AtomicU64,
    micros: AtomicU64,
    conflicts: AtomicU64,
    retries: AtomicU64,
}

impl WaitFigures {
    /// Counts a wait that begins.
    pub fn begin(&self) {
        self.begun.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a wait that has ended after this time.
    pub fn end(&self, time: Duration) {
        self.ended.fetch_add(1, Ordering::Relaxed);
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.micros.fetch_add(micros, Ordering::Relaxed);
    }

    /// Counts a statement that has given up.
    pub fn count_time_out(&self) {
        self.timed_out.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a lost claim.
    pub fn count_conflict(&self) {
        self.conflicts.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a statement that runs again after a conflict.
    pub fn count_retry(&self) {
        self.retries.fetch_add(1, Ordering::Relaxed);
    }

    /// All counters, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (begun, ended) = (get(&self.begun), get(&self.ended));
        [
            ("conflicts", get(&self.conflicts)),
            ("retries", get(&self.retries)),
            ("waits", begun),
            ("waiting", begun.saturating_sub(ended)),
            ("timedOut", get(&self.timed_out)),
            ("waitMicros", get(&self.micros)),
        ]
        .into_iter()
    }
}
