//! Back-pressure: how commits are slowed down when buffers or log fill faster than they are emptied.
//!
//! Up to three quarters of the buffer budget a commit waits for nothing. From there on it owes a delay in proportion to its
//! bytes and to how far the budget is used: a client that writes little hardly notices, one that loads settles at the rate
//! of the merges. At the whole budget it merges a buffer itself, which is the last resort: it cannot deadlock, and it tells
//! the client when merging fails. The log's budget is guarded likewise: beyond it, a commit makes a checkpoint itself.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::core::Core;
use crate::error::BetreeError;
use crate::merging::Progress;

/// Delay per byte just before the budget is used up: a load then goes on at 10 MB/s.
const NANOS_PER_BYTE_MAX: u64 = 100;
/// Sleeping for less costs more than it brings: such delays are added up first.
const SLEEP_MIN: Duration = Duration::from_micros(200);
/// The longest sleep of one commit before buffers are full.
const SLEEP_MAX: Duration = Duration::from_millis(50);
/// How long a commit waits for others' merges before it looks again.
const ROOM_WAIT: Duration = Duration::from_millis(5);

impl Core {
    /// Returns when there is room for so many bytes of writes, or says why there will be none.
    pub(crate) fn make_room(&self, bytes: usize) -> Result<(), BetreeError> {
        let budget = self.options.buffer_budget();
        let free_until = budget / 4 * 3;
        let buffered = self.buffered_bytes();
        if buffered > free_until {
            self.wake_mergers();
            if buffered < budget {
                self.delay(delay_nanos(bytes, buffered - free_until, budget - free_until));
            } else {
                self.wait_for_room(budget)?;
            }
        }
        self.guard_log_budget()
    }

    /// Sleeps for the delays that commits owe, once they amount to something.
    fn delay(&self, nanos: u64) {
        let owed = self.owed_nanos.fetch_add(nanos, Ordering::Relaxed) + nanos;
        if owed < SLEEP_MIN.as_nanos() as u64 {
            return;
        }
        self.owed_nanos.fetch_sub(owed, Ordering::Relaxed);
        let sleep = Duration::from_nanos(owed).min(SLEEP_MAX);
        self.counters.delays.add(1);
        self.counters.delay_nanos.add(sleep.as_nanos() as u64);
        let mut lock = self.room_lock.lock();
        // A merge that ends meanwhile has made room: the rest of the delay is forgiven.
        let _timed_out = self.room.wait_for(&mut lock, sleep);
    }

    fn wait_for_room(&self, budget: usize) -> Result<(), BetreeError> {
        self.counters.stalls.add(1);
        while self.buffered_bytes() >= budget {
            match self.merge_one() {
                Ok(Progress::Merged) => {}
                Ok(Progress::Nothing) => {
                    self.fail_if_stalled()?;
                    let mut lock = self.room_lock.lock();
                    let _timed_out = self.room.wait_for(&mut lock, ROOM_WAIT);
                }
                Err(error) => return Err(BetreeError::Stalled(Box::new(error))),
            }
        }
        Ok(())
    }

    fn fail_if_stalled(&self) -> Result<(), BetreeError> {
        match self.merge_failure() {
            Some(error) => Err(BetreeError::Stalled(Box::new(error))),
            None => Ok(()),
        }
    }
}

/// What a commit owes: nothing where the slack begins, the full rate at its end, growing with the square in between.
fn delay_nanos(bytes: usize, used: usize, slack: usize) -> u64 {
    let share = used.min(slack) as u64 * 1024 / slack.max(1) as u64;
    (bytes as u64).saturating_mul(NANOS_PER_BYTE_MAX) * share / 1024 * share / 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delay_grows_smoothly_from_nothing_to_the_full_rate() {
        assert_eq!(delay_nanos(1_000, 0, 1_000), 0);
        assert_eq!(delay_nanos(1_000, 500, 1_000), 25_000);
        assert_eq!(delay_nanos(1_000, 1_000, 1_000), 100_000);
        let steps: Vec<u64> = (0..100).map(|used| delay_nanos(100_000, used, 100)).collect();
        assert!(steps.is_sorted());
    }
}
