//! The versions that this server may read: those that the cluster keeps for it.
//!
//! # Steps
//! 1. The server tells the stores of the cluster its oldest snapshot, every [`TOLD_EVERY`] (`versions`).
//! 2. One that has told nothing for [`FORGOTTEN_AFTER`] holds no versions back any more.
//! 3. So a server that could not tell for [`TRUSTED_FOR`] reads nothing. When it has told again, transactions
//!    of before fail.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use pando_environment::{Clock, Monotonic};
use pando_storage::{ErrorKind, StorageError};
use parking_lot::Mutex;

/// How often a server tells its oldest snapshot.
pub(crate) const TOLD_EVERY: Duration = Duration::from_secs(30);
/// How long a server is silent until it is forgotten.
pub(crate) const FORGOTTEN_AFTER: Duration = Duration::from_secs(600);
/// How long a server reads after it has told.
pub(crate) const TRUSTED_FOR: Duration = Duration::from_secs(480);
/// The age at which a transaction ends where nobody holds versions for it.
pub(crate) const UNHELD_FOR: Duration = Duration::from_secs(540);

/// The versions that this server's transactions may still read, as far as it knows.
pub(crate) struct Kept {
    told_at: Mutex<Monotonic>,
    /// Versions below may be gone.
    from: AtomicU64,
}

impl Kept {
    /// Those of a server that has just been opened.
    pub(crate) fn new(now: Monotonic) -> Kept {
        Kept { told_at: Mutex::new(now), from: AtomicU64::new(0) }
    }

    /// Refuses to read at a snapshot whose versions may be gone.
    pub(crate) fn check(&self, snapshot: u64, clock: &dyn Clock) -> Result<(), StorageError> {
        let since = clock.monotonic().since(*self.told_at.lock());
        if since <= TRUSTED_FOR && snapshot >= self.from.load(Ordering::Acquire) {
            return Ok(());
        }
        let message = "the TiKV cluster may have removed the versions that this transaction or query reads, because the \
                       snapshot is too old, or this server could not reach the cluster for minutes: begin it again";
        Err(StorageError::new(ErrorKind::Unavailable, message))
    }

    /// The server has told at a moment that it needs nothing before its oldest snapshot. Others have not
    /// known that since the last time.
    pub(crate) fn told(&self, asked_at: Monotonic, now: u64) {
        let mut told_at = self.told_at.lock();
        if asked_at.since(*told_at) > TRUSTED_FOR {
            self.lost_before(now);
        }
        *told_at = asked_at;
    }

    /// Versions below a timestamp may be gone.
    pub(crate) fn lost_before(&self, timestamp: u64) {
        self.from.fetch_max(timestamp, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use pando_environment::MockClock;

    use super::*;

    #[test]
    fn a_server_stops_to_read_before_it_is_forgotten() {
        assert!(TOLD_EVERY * 10 < TRUSTED_FOR && TRUSTED_FOR + TOLD_EVERY < FORGOTTEN_AFTER);
    }

    #[test]
    fn a_snapshot_from_before_a_long_silence_is_refused_and_later_ones_are_read() {
        let clock = MockClock::new();
        let kept = Kept::new(clock.monotonic());
        clock.advance(TRUSTED_FOR);
        assert!(kept.check(50, &clock).is_ok());
        kept.told(clock.monotonic(), 100);
        assert!(kept.check(50, &clock).is_ok(), "it was told in time");
        clock.advance(TRUSTED_FOR + Duration::from_millis(1));
        assert_eq!(kept.check(50, &clock).map_err(|error| error.kind()), Err(ErrorKind::Unavailable));
        kept.told(clock.monotonic(), 200);
        assert!(kept.check(199, &clock).is_err() && kept.check(200, &clock).is_ok());
    }
}
