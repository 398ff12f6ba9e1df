//! Back-pressure: how commits are slowed down when buffers or log fill faster than they are emptied.
//!
//! Up to half of the buffer budget nothing waits: there merging begins. From there on a commit owes a delay: the time that
//! the merges lately needed for as many bytes as it adds, times how far the second half is used, times two. So a load
//! settles at three quarters of the budget and at the pace of the merges, a client that writes little hardly notices, and
//! the delay grows without a step. At the whole budget a commit merges a buffer itself, which is the last resort: it cannot
//! deadlock, and it tells the client when merging fails. The log's budget is guarded likewise: beyond it, a commit makes a
//! checkpoint itself.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::core::Core;
use crate::error::BetreeError;
use crate::merging::Progress;
use crate::tree::buffer::SLOT_BYTES;

/// Sleeping for less costs more than it brings: such delays are added up first.
const SLEEP_MIN: Duration = Duration::from_micros(200);
/// The longest sleep of one commit before buffers are full.
const SLEEP_MAX: Duration = Duration::from_millis(500);
/// What merges are taken to do before there has been one, in bytes per second.
const FIRST_RATE: u64 = 50 << 20;
/// How long a commit waits for others' merges before it looks again.
const ROOM_WAIT: Duration = Duration::from_millis(5);

impl Core {
    /// Returns when there is room for so many bytes in so many writes, or says why there will be none.
    pub(crate) fn make_room(&self, bytes: usize, writes: usize) -> Result<(), BetreeError> {
        let budget = self.buffer_budget();
        let free_until = self.merge_from();
        let buffered = self.buffered_bytes();
        if buffered > free_until {
            self.wake_mergers();
            if buffered < budget {
                let growth = (bytes + writes * SLOT_BYTES) as u64;
                let rate = self.merge_rate.load(Ordering::Relaxed);
                self.delay(delay_nanos(growth, rate, buffered - free_until, budget - free_until));
            } else {
                self.wait_for_room(budget)?;
            }
        }
        self.guard_log_budget()
    }

    /// Notes that a merge has emptied a buffer of so many bytes in this time.
    pub(crate) fn note_merge(&self, bytes: usize, time: Duration) {
        let threads = self.options.merge_threads() as u128;
        let rate = bytes as u128 * threads * 1_000_000_000 / time.as_nanos().max(1_000);
        let before = match self.merge_rate.load(Ordering::Relaxed) {
            0 => FIRST_RATE,
            rate => rate,
        };
        // Tiny merges say nothing of the rate at which great ones go.
        let weight = (bytes as u64 / 65_536).min(4);
        let rate = (before * (16 - weight) + (rate as u64).min(10 << 30) * weight) / 16;
        self.merge_rate.store(rate, Ordering::Relaxed);
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
                    self.wait_for_merge();
                }
                Err(error) => return Err(BetreeError::Stalled(Box::new(error))),
            }
        }
        Ok(())
    }

    /// Waits a little for a merge that others are at.
    pub(crate) fn wait_for_merge(&self) {
        let mut lock = self.room_lock.lock();
        let _timed_out = self.room.wait_for(&mut lock, ROOM_WAIT);
    }

    fn fail_if_stalled(&self) -> Result<(), BetreeError> {
        match self.merge_failure() {
            Some(error) => Err(BetreeError::Stalled(Box::new(error))),
            None => Ok(()),
        }
    }
}

/// What a commit owes for so many bytes, where merges empty `rate` bytes a second (0: not known yet).
fn delay_nanos(bytes: u64, rate: u64, used: usize, slack: usize) -> u64 {
    let rate = if rate == 0 { FIRST_RATE } else { rate };
    let share = used.min(slack) as u128 * 1024 / slack.max(1) as u128;
    let nanos = u128::from(bytes) * 1_000_000_000 / u128::from(rate);
    u64::try_from(nanos * 2 * share / 1024).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delay_grows_smoothly_from_nothing_to_twice_what_merges_need() {
        assert_eq!(delay_nanos(1_000, 1_000_000, 0, 1_024), 0);
        assert_eq!(delay_nanos(1_000, 1_000_000, 512, 1_024), 1_000_000);
        assert_eq!(delay_nanos(1_000, 1_000_000, 1_024, 1_024), 2_000_000);
        let steps: Vec<u64> = (0..100).map(|used| delay_nanos(100_000, 1_000_000, used, 100)).collect();
        assert!(steps.is_sorted());
    }
}
