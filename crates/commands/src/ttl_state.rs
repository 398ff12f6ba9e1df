//! The settings and the figures of the expiry of documents: shared by the monitor, the commands that set its
//! parameters, and `serverStatus`.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// The pause between two passes, unless a parameter says otherwise.
const SLEEP_SECONDS: u64 = 60;

/// See the module's head.
#[derive(Debug)]
pub(crate) struct TtlState {
    sleep_seconds: AtomicU64,
    is_enabled: AtomicBool,
    /// Whether a collection has a schedule of partitions that their keeper may not have seen.
    has_new_schedule: AtomicBool,
    passes: AtomicU64,
    removed: AtomicU64,
}

impl Default for TtlState {
    fn default() -> TtlState {
        TtlState {
            sleep_seconds: AtomicU64::new(SLEEP_SECONDS),
            is_enabled: AtomicBool::new(true),
            has_new_schedule: AtomicBool::new(false),
            passes: AtomicU64::new(0),
            removed: AtomicU64::new(0),
        }
    }
}

impl TtlState {
    /// The pause between two passes.
    pub fn sleep(&self) -> Duration {
        Duration::from_secs(self.sleep_seconds.load(Ordering::Relaxed))
    }

    /// Changes the pause, also that under way.
    pub fn set_sleep_seconds(&self, seconds: u64) {
        self.sleep_seconds.store(seconds, Ordering::Relaxed);
    }

    /// Whether expired documents are removed.
    pub fn is_enabled(&self) -> bool {
        self.is_enabled.load(Ordering::Relaxed)
    }

    /// Has expired documents be removed.
    pub fn enable(&self) {
        self.is_enabled.store(true, Ordering::Relaxed);
    }

    /// Has expired documents stay.
    pub fn disable(&self) {
        self.is_enabled.store(false, Ordering::Relaxed);
    }

    /// Tells the keeper of partitions of a schedule that it may have to look at sooner than it had planned.
    pub fn tell_new_schedule(&self) {
        self.has_new_schedule.store(true, Ordering::Release);
    }

    /// Whether there is a new schedule since the last call.
    pub fn take_new_schedule(&self) -> bool {
        self.has_new_schedule.swap(false, Ordering::AcqRel)
    }

    /// Counts a pass over all indexes.
    pub fn count_pass(&self) {
        self.passes.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts removed documents.
    pub fn count_removed(&self, documents: u64) {
        self.removed.fetch_add(documents, Ordering::Relaxed);
    }

    /// Passes since the start.
    pub fn passes(&self) -> u64 {
        self.passes.load(Ordering::Relaxed)
    }

    /// Documents removed since the start.
    pub fn removed(&self) -> u64 {
        self.removed.load(Ordering::Relaxed)
    }
}
