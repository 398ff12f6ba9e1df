//! Back-pressure: how commits are slowed down when buffers or log fill faster than they are emptied.
//!
//! 1. Up to half of the buffer budget, and to three quarters of the log's, nothing waits: there background work begins.
//! 2. From there on commits keep to the [pace](crate::background::commit_pace) of the merges: the more of the slack is used, the more closely.
//! 3. At a quarter more than the budget a commit waits for room. That is the last resort, and counted as a stall. The pace makes it
//!    rare: from the whole budget on each commit takes 25 ms, so that a merger that gets no processor for a while stops nobody.
//!
//! No commit merges or makes a checkpoint itself, but where nobody else does: in a simulation, whose tasks run only when told,
//! and where the mergers have not ended a merge for [`WAIT_MAX`]. So it cannot deadlock. Where merging or checkpoints fail, the
//! commit that would have to wait fails and says why.

use std::time::Duration;

use pando_environment::Monotonic;

use crate::background::commit_pace::Debt;
use crate::background::flush::Progress;
use crate::core::Core;
use crate::error::BetreeError;
use crate::tree::buffer::SLOT_BYTES;

/// Sleeping for less costs more than it brings: the next commit finds the slot taken instead.
const SLEEP_MIN: Duration = Duration::from_micros(100);
/// How long a commit waits for others' work before it looks again.
const ROOM_WAIT: Duration = Duration::from_millis(5);
/// How long it waits for any progress before it does the work itself.
const WAIT_MAX: Duration = Duration::from_secs(2);

impl Core {
    /// Returns when there is room for so many bytes in so many writes, or says why there will be none.
    pub(crate) fn make_room(&self, bytes: usize, writes: usize) -> Result<(), BetreeError> {
        let debt = self.debt();
        if debt.is_some() {
            self.wake_mergers();
            if self.buffered_bytes() >= self.buffer_limit() {
                self.wait_for_buffers()?;
            } else if self.runs_by_itself {
                self.keep_pace((bytes + writes * SLOT_BYTES) as u64, debt);
            }
        }
        if self.log_bytes_since_checkpoint() >= self.checkpoint_log_bytes() {
            self.wake_checkpointer();
        }
        if self.is_log_full() {
            self.wait_for_checkpoint()?;
        }
        Ok(())
    }

    /// Bytes in buffers from which on commits wait for room.
    fn buffer_limit(&self) -> usize {
        let budget = self.buffer_budget();
        // Where tasks do not run by themselves nothing is gained by going on.
        if self.runs_by_itself { budget + budget / 4 } else { budget }
    }

    /// How far buffers and log are behind, whichever is farther.
    pub(crate) fn debt(&self) -> Debt {
        let free_until = self.merge_from();
        let buffered = self.buffered_bytes().saturating_sub(free_until);
        let of_buffers = Debt::of(buffered as u64, self.buffer_budget().saturating_sub(free_until) as u64);
        if !self.is_log_long() {
            return of_buffers;
        }
        let budget = self.log_budget();
        let over = self.log().live_bytes().saturating_sub(budget / 4 * 3);
        of_buffers.max(Debt::of(over, budget / 4))
    }

    /// Whether the log may be near its budget: cheap, since it is asked by every commit.
    fn is_log_long(&self) -> bool {
        self.log_bytes_since_checkpoint() >= self.options.log_budget_bytes / 2
    }

    /// Whether commits have to wait for a checkpoint.
    pub(crate) fn is_log_full(&self) -> bool {
        self.is_log_long() && self.log().live_bytes() >= self.log_budget()
    }

    /// Bytes that the log may have. What it holds of large commits comes on top: no checkpoint could let go of it.
    fn log_budget(&self) -> u64 {
        self.options.log_budget_bytes + self.large.log_bytes()
    }

    /// Sleeps until the commit's slot begins.
    fn keep_pace(&self, bytes: u64, debt: Debt) {
        let now = self.environment.clock().monotonic().since(Monotonic::default());
        let sleep = self.pace.take_slot(now, bytes, self.options.merge_threads(), debt);
        if sleep < SLEEP_MIN {
            return;
        }
        self.counters.delays.add(1);
        self.counters.delay_nanos.add(sleep.as_nanos() as u64);
        pando_environment::sync::thread::sleep(sleep);
    }

    fn wait_for_buffers(&self) -> Result<(), BetreeError> {
        self.counters.stalls.add(1);
        let mut waiting = Waiting::begin(self, self.counters.merges.get());
        while self.buffered_bytes() >= self.buffer_limit() {
            self.check_open()?;
            if !waiting.is_over(self, self.counters.merges.get()) {
                self.fail_if_stalled()?;
                self.wake_mergers();
                self.wait_for_merge();
                continue;
            }
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

    /// LockWaits until a checkpoint has brought the log back into its budget.
    fn wait_for_checkpoint(&self) -> Result<(), BetreeError> {
        self.counters.stalls.add(1);
        let mut waiting = Waiting::begin(self, self.counters.checkpoints.get());
        while self.is_log_full() {
            self.check_open()?;
            // One that takes long is no reason for a second: all who wait would make theirs, one after the other.
            if waiting.is_over(self, self.counters.checkpoints.get()) && !self.checkpoint.is_under_way() {
                let made = self.checkpoint_of_full_log();
                return made.map_err(|error| BetreeError::Stalled(Box::new(error)));
            }
            if let Some(error) = self.checkpoint.failure() {
                return Err(BetreeError::Stalled(Box::new(error)));
            }
            self.wake_checkpointer();
            self.wait_for_merge();
        }
        Ok(())
    }

    /// LockWaits a little for a merge or a checkpoint that others are at.
    pub(crate) fn wait_for_merge(&self) {
        let mut lock = self.room_lock.lock();
        let _timed_out = self.room.wait_for(&mut lock, ROOM_WAIT);
    }

    /// Tells all that wait for room that there may be some.
    pub(crate) fn announce_room(&self) {
        let _lock = self.room_lock.lock();
        self.room.notify_all();
    }

    fn fail_if_stalled(&self) -> Result<(), BetreeError> {
        match self.merge_failure() {
            Some(error) => Err(BetreeError::Stalled(Box::new(error))),
            None => Ok(()),
        }
    }
}

/// A wait for others' progress, which is counted somewhere.
struct Waiting {
    count: u64,
    since: Monotonic,
    is_over: bool,
}

impl Waiting {
    fn begin(core: &Core, count: u64) -> Waiting {
        Waiting { count, since: core.environment.clock().monotonic(), is_over: !core.runs_by_itself }
    }

    /// Whether nobody else will do it: then it is the caller's turn, until there is room.
    fn is_over(&mut self, core: &Core, count: u64) -> bool {
        if !self.is_over && count != self.count {
            *self = Waiting::begin(core, count);
        }
        self.is_over |= core.environment.clock().monotonic().since(self.since) > WAIT_MAX;
        self.is_over
    }
}
