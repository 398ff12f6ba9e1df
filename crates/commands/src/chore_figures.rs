//! The figures of periodic work, as `serverStatus` shows them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use pando_environment::Monotonic;

/// The figures of one chore. Only the task of the chores changes them.
#[derive(Debug)]
pub(crate) struct ChoreFigures {
    pub name: &'static str,
    runs: AtomicU64,
    failures: AtomicU64,
    last_microseconds: AtomicU64,
    /// Nanoseconds of the monotonic clock.
    next: AtomicU64,
}

/// The figures of all chores.
#[derive(Debug)]
pub(crate) struct HousekeepingFigures {
    chores: Vec<ChoreFigures>,
}

impl HousekeepingFigures {
    pub fn new(names: impl Iterator<Item = &'static str>) -> HousekeepingFigures {
        let figures = |name| ChoreFigures {
            name,
            runs: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            last_microseconds: AtomicU64::new(0),
            next: AtomicU64::new(0),
        };
        HousekeepingFigures { chores: names.map(figures).collect() }
    }

    pub fn iter(&self) -> impl Iterator<Item = &ChoreFigures> {
        self.chores.iter()
    }
}

impl ChoreFigures {
    /// How often it has run.
    pub fn runs(&self) -> u64 {
        self.runs.load(Ordering::Relaxed)
    }

    /// How often it has panicked.
    pub fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// How long it took the last time.
    pub fn last(&self) -> Duration {
        Duration::from_micros(self.last_microseconds.load(Ordering::Relaxed))
    }

    /// When it is due.
    pub fn next(&self) -> Monotonic {
        Monotonic::new(Duration::from_nanos(self.next.load(Ordering::Relaxed)))
    }

    pub fn set_next(&self, next: Monotonic) {
        let nanoseconds = u64::try_from(next.since_start().as_nanos()).unwrap_or(u64::MAX);
        self.next.store(nanoseconds, Ordering::Relaxed);
    }

    pub fn add_run(&self, took: Duration, next: Monotonic) {
        self.runs.fetch_add(1, Ordering::Relaxed);
        let microseconds = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.last_microseconds.store(microseconds, Ordering::Relaxed);
        self.set_next(next);
    }

    pub fn add_failure(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }
}
