//! Back-pressure: slows commits down when buffers or the log fill faster than background work empties them.
//!
//! | buffers hold | what a commit does |
//! |---|---|
//! | up to half of the budget (three quarters where a hot set is overwritten) | nothing |
//! | more | keeps the [pace](super::commit_pace) of the flushes: it sleeps longer, the more of the rest is used |
//! | 1.25 times the budget | waits for room; statistics count it as a stall |
//!
//! The log has two such steps: commits keep the pace from three quarters of its budget on, and wait at the
//! whole. The pace makes stalls rare. From the whole budget on each commit sleeps 25 ms. So commits do not
//! stall when a flush task lacks a processor for a while.
//!
//! A commit flushes or makes a checkpoint itself in two cases only: in a simulation, whose tasks run when
//! told, and where no flush has ended for [`WAIT_MAX`]. So it cannot deadlock. Where flushes or checkpoints
//! fail, a commit that would have to wait fails and says why.

use std::sync::Arc;
use std::time::Duration;

use pando_environment::{Clock, Monotonic};
use pando_storage::{DeviceAccount, OperationWait};

use super::backlog::Backlog;
use super::buffer_flush::Progress;
use super::checkpointer::Checkpointer;
use super::flush_monitor::FlushMonitor;
use super::flush_scheduler::FlushScheduler;
use super::write_buffers::WriteBuffers;
use crate::background::commit_pace::Debt;
use crate::commit_order::CommitGate;
use crate::counters::Counters;
use crate::error::BetreeError;
use crate::options::live_options::LiveOptions;
use crate::tree::buffer::SLOT_BYTES;

/// The shortest sleep. A shorter one costs more than it brings; the next commit finds the slot taken instead.
const SLEEP_MIN: Duration = Duration::from_micros(100);
/// The time that a commit waits for any progress before it does the work itself.
const WAIT_MAX: Duration = Duration::from_secs(2);

/// See the module's head.
pub(crate) struct BackPressure {
    pub(crate) clock: Arc<dyn Clock>,
    /// Whether background tasks have threads of their own.
    pub(crate) runs_by_itself: bool,
    pub(crate) options: Arc<LiveOptions>,
    pub(crate) gate: Arc<CommitGate>,
    pub(crate) buffers: Arc<WriteBuffers>,
    pub(crate) backlog: Arc<Backlog>,
    pub(crate) monitor: Arc<FlushMonitor>,
    pub(crate) scheduler: Arc<FlushScheduler>,
    pub(crate) checkpointer: Arc<Checkpointer>,
    pub(crate) counters: Arc<Counters>,
}

impl BackPressure {
    /// Returns when there is room for these bytes in this number of writes, or the reason why there will be
    /// none.
    pub(crate) fn make_room(&self, bytes: usize, writes: usize) -> Result<(), BetreeError> {
        let debt = self.debt();
        if debt.is_some() {
            self.backlog.wake_flushers();
            if self.buffers.bytes() >= self.buffer_limit() {
                self.wait_for_buffers()?;
            } else if self.runs_by_itself {
                self.keep_pace((bytes + writes * SLOT_BYTES) as u64, debt);
            }
        }
        if self.checkpointer.log_bytes_since_checkpoint() >= self.checkpointer.checkpoint_log_bytes() {
            self.backlog.wake_checkpointer();
        }
        if self.checkpointer.is_log_full() {
            self.wait_for_checkpoint()?;
        }
        Ok(())
    }

    /// Bytes in buffers from which on commits wait for room.
    fn buffer_limit(&self) -> usize {
        let budget = self.buffers.budget();
        // Without such threads a commit that goes on buffering gains nothing.
        if self.runs_by_itself { budget + budget / 4 } else { budget }
    }

    /// The debt of the buffers or of the log, whichever is larger.
    pub(crate) fn debt(&self) -> Debt {
        let free_until = self.buffers.flush_from();
        let buffered = self.buffers.bytes().saturating_sub(free_until);
        let of_buffers = Debt::of(buffered as u64, self.buffers.budget().saturating_sub(free_until) as u64);
        if !self.checkpointer.is_log_long() {
            return of_buffers;
        }
        let budget = self.checkpointer.log_budget();
        let over = self.gate.log().live_bytes().saturating_sub(budget / 4 * 3);
        of_buffers.max(Debt::of(over, budget / 4))
    }

    /// Sleeps until the commit's slot begins.
    fn keep_pace(&self, bytes: u64, debt: Debt) {
        let now = self.clock.monotonic().since(Monotonic::default());
        let sleep = self.monitor.pace.take_slot(now, bytes, self.options.merge_threads(), debt);
        if sleep < SLEEP_MIN {
            return;
        }
        self.counters.delays.add(1);
        self.counters.delay_nanos.add(sleep.as_nanos() as u64);
        let _waiting = DeviceAccount::waiting(OperationWait::Backlog);
        pando_environment::sync::thread::sleep(sleep);
    }

    fn wait_for_buffers(&self) -> Result<(), BetreeError> {
        self.counters.stalls.add(1);
        let _waits = DeviceAccount::waiting(OperationWait::Backlog);
        let mut waiting = Waiting::begin(self, self.counters.flushes.get());
        while self.buffers.bytes() >= self.buffer_limit() {
            self.gate.check_open()?;
            if !waiting.is_over(self, self.counters.flushes.get()) {
                self.fail_if_stalled()?;
                self.backlog.wake_flushers();
                self.monitor.wait_for_room();
                continue;
            }
            match self.scheduler.flush_one() {
                Ok(Progress::Made) => {}
                Ok(Progress::Nothing) => {
                    self.fail_if_stalled()?;
                    self.monitor.wait_for_room();
                }
                Err(error) => return Err(BetreeError::Stalled(Box::new(error))),
            }
        }
        Ok(())
    }

    /// Waits until a checkpoint has brought the log back into its budget.
    fn wait_for_checkpoint(&self) -> Result<(), BetreeError> {
        self.counters.stalls.add(1);
        let _waits = DeviceAccount::waiting(OperationWait::Backlog);
        let mut waiting = Waiting::begin(self, self.counters.checkpoints.get());
        while self.checkpointer.is_log_full() {
            self.gate.check_open()?;
            // A long checkpoint is no reason for a second one: all waiting commits would make theirs in turn.
            if waiting.is_over(self, self.counters.checkpoints.get())
                && !self.checkpointer.state.is_under_way()
            {
                let made = self.checkpointer.checkpoint_of_full_log();
                return made.map_err(|error| BetreeError::Stalled(Box::new(error)));
            }
            if let Some(error) = self.checkpointer.state.failure() {
                return Err(BetreeError::Stalled(Box::new(error)));
            }
            self.backlog.wake_checkpointer();
            self.monitor.wait_for_room();
        }
        Ok(())
    }

    fn fail_if_stalled(&self) -> Result<(), BetreeError> {
        match self.monitor.failure() {
            Some(error) => Err(BetreeError::Stalled(Box::new(error))),
            None => Ok(()),
        }
    }
}

/// A wait for the progress of other threads, which some counter shows.
struct Waiting {
    count: u64,
    since: Monotonic,
    is_over: bool,
}

impl Waiting {
    fn begin(pressure: &BackPressure, count: u64) -> Waiting {
        Waiting { count, since: pressure.clock.monotonic(), is_over: !pressure.runs_by_itself }
    }

    /// Whether no other thread makes progress. Then the caller does the work itself, until there is room.
    fn is_over(&mut self, pressure: &BackPressure, count: u64) -> bool {
        if !self.is_over && count != self.count {
            *self = Waiting::begin(pressure, count);
        }
        self.is_over |= pressure.clock.monotonic().since(self.since) > WAIT_MAX;
        self.is_over
    }
}
