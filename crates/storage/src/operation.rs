//! An operation: the work for one request, which may be interrupted and whose use of the store is counted.
//!
//! # Terms
//! - *Interruption*: the reason why an operation ends before it is done ([`Interruption`]).
//! - *Usage*: counters of what the operation has done so far ([`Usage`]).
//! - *Wait*: what the operation waits for at the moment ([`OperationWait`]).
//! - *Step*: the part of a long operation that is under way ([`ProgressStep`]).
//! - *Device account*: its reads of the device ([`DeviceAccount`]).
//! - *Caller*: an operation and its blocking mode, as they go down together through the layers.
//!
//! # Steps
//! 1. The layer that takes requests keeps one [`Operation`] for each connection and calls
//!    [`begin`](Operation::begin) for each request.
//! 2. Each loop that may take long calls [`check`](Operation::check) once a turn. That is one load; the clock
//!    is read every [`CHECKS_A_CLOCK`] calls.
//! 3. Another thread [interrupts](Operation::interrupt) it, or its time is over. The next check fails, and
//!    the error goes up like any other.
//!
//! # Invariants
//! - The first interruption stays until the next request begins.
//! - An operation without a time limit never reads the clock.
//!
//! # Not here
//! Numbers, clients and texts of operations: the layer that takes requests lists them. The budget of memory:
//! `query_memory`.

mod device_account;
mod interruption;
mod progress;
mod usage;
mod wait;

use std::sync::Arc;
use std::time::Duration;

use pando_environment::sync::LeafMutex;
use pando_environment::{Clock, Monotonic};
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

use crate::access::BlockingMode;
use crate::wait_signal::WaitSignal;
pub use device_account::{DeviceAccount, DeviceReads, DeviceWait, ThreadCharge};
pub use interruption::Interruption;
use progress::ShownStep;
pub use progress::{ProgressFigures, ProgressStep};
use usage::add;
pub use usage::{Usage, UsageFigures};
pub use wait::{OperationWait, Waiting};

/// Checks between two looks at the clock.
pub const CHECKS_A_CLOCK: u32 = 32;

/// The deadline of an operation without a time limit.
const NEVER: u64 = u64::MAX;

/// See the module's head. It is shared: one thread works on it, any thread may interrupt it.
#[derive(Default)]
pub struct Operation {
    /// `None`: it has no time limit, as in tools and tests.
    clock: Option<Arc<dyn Clock>>,
    /// 0: none. Otherwise the interruption's code.
    interruption: AtomicU8,
    /// Nanoseconds of the monotonic clock; 0 while none was set, or [`NEVER`].
    deadline: AtomicU64,
    /// The same for an operation whose client is gone.
    client_deadline: AtomicU64,
    /// Checks since the last look at the clock. Only the working thread changes it.
    checks: AtomicU32,
    usage: Usage,
    device: Arc<DeviceAccount>,
    /// The signal of a wait that ends with the operation.
    signal: LeafMutex<Option<Arc<WaitSignal>>>,
    /// The step under way, of a long operation that shows it.
    step: ShownStep,
}

impl Operation {
    /// An operation that measures its time limit with this clock.
    pub fn new(clock: &Arc<dyn Clock>) -> Operation {
        Operation { clock: Some(Arc::clone(clock)), ..Operation::default() }
    }

    /// Begins a request: no interruption, no time limit, no usage.
    pub fn begin(&self) {
        self.interruption.store(0, Ordering::Relaxed);
        self.deadline.store(NEVER, Ordering::Relaxed);
        self.client_deadline.store(NEVER, Ordering::Relaxed);
        self.checks.store(0, Ordering::Relaxed);
        self.usage.clear();
        self.device.clear();
    }

    /// Ends the operation this long after a moment.
    pub fn limit_time(&self, began: Monotonic, limit: Duration) {
        let deadline = began.plus(limit).since_start().as_nanos();
        self.deadline.store(u64::try_from(deadline).unwrap_or(NEVER), Ordering::SeqCst);
        self.show_end();
    }

    /// Has waits of the thread for other machines end with the operation.
    fn show_end(&self) {
        let mut shown = self.ends_at();
        loop {
            self.device.set_end(shown);
            // Another thread may have changed it in between, and shown it before.
            match self.ends_at() {
                now if now == shown => return,
                now => shown = now,
            }
        }
    }

    /// When it has to end, in nanoseconds of the monotonic clock; 0 where it was interrupted.
    fn ends_at(&self) -> u64 {
        if self.interruption.load(Ordering::SeqCst) != 0 {
            return 0;
        }
        let deadlines = [&self.deadline, &self.client_deadline].map(|at| at.load(Ordering::SeqCst));
        deadlines.into_iter().filter(|at| *at != 0).min().unwrap_or(NEVER)
    }

    /// Ends the operation after this time, because its client is gone. A short one is done before. A second
    /// call changes nothing.
    pub fn end_without_client(&self, patience: Duration) {
        let Some(clock) = &self.clock else { return self.interrupt(Interruption::ClientGone) };
        let deadline = clock.monotonic().plus(patience).since_start().as_nanos();
        let deadline = u64::try_from(deadline).unwrap_or(NEVER);
        let is_new = |earlier| (earlier == NEVER || earlier == 0).then_some(deadline);
        if self.client_deadline.fetch_update(Ordering::SeqCst, Ordering::Relaxed, is_new).is_ok() {
            // A wait has less time from now on.
            self.show_end();
            self.fire_signal();
        }
    }

    /// The rest of its time: `None` without a limit, zero when it is over.
    pub fn time_left(&self) -> Option<Duration> {
        self.left_until(&self.deadline)
    }

    fn left_until(&self, deadline: &AtomicU64) -> Option<Duration> {
        let deadline = deadline.load(Ordering::Relaxed);
        let clock = self.clock.as_ref().filter(|_| deadline != NEVER && deadline != 0)?;
        Some(Duration::from_nanos(deadline).saturating_sub(clock.monotonic().since_start()))
    }

    /// Has its next check fail. A second interruption changes nothing.
    pub fn interrupt(&self, interruption: Interruption) {
        let _first_stays =
            self.interruption.compare_exchange(0, interruption.code(), Ordering::SeqCst, Ordering::SeqCst);
        self.show_end();
        self.fire_signal();
    }

    /// Has an interruption end a wait, until [`end_signal`](Operation::end_signal). One that came before ends
    /// it at once.
    pub fn signal_by(&self, signal: &Arc<WaitSignal>) {
        *self.signal.lock() = Some(Arc::clone(signal));
        if self.interruption().is_some() {
            signal.fire();
        }
    }

    /// The wait is over.
    pub fn end_signal(&self) {
        *self.signal.lock() = None;
    }

    fn fire_signal(&self) {
        let signal = self.signal.lock().clone();
        if let Some(signal) = signal {
            signal.fire();
        }
    }

    /// The time after which it ends by itself or because its client is gone, whichever is first.
    pub fn time_to_end(&self) -> Option<Duration> {
        let (own, client) = (self.left_until(&self.deadline), self.left_until(&self.client_deadline));
        own.into_iter().chain(client).min()
    }

    /// The interruption, if there is one.
    pub fn interruption(&self) -> Option<Interruption> {
        Interruption::of_code(self.interruption.load(Ordering::Relaxed))
    }

    /// Fails if the operation has to end.
    ///
    /// # Errors
    /// The reason.
    #[inline]
    pub fn check(&self) -> Result<(), Interruption> {
        if self.interruption.load(Ordering::Relaxed) != 0 {
            return self.fail();
        }
        let checks = self.checks.load(Ordering::Relaxed) + 1;
        if checks < CHECKS_A_CLOCK {
            self.checks.store(checks, Ordering::Relaxed);
            return Ok(());
        }
        self.check_now()
    }

    /// As [`check`](Operation::check), with a look at the clock: for turns that take a millisecond or more.
    ///
    /// # Errors
    /// The reason.
    #[cold]
    pub fn check_now(&self) -> Result<(), Interruption> {
        self.checks.store(0, Ordering::Relaxed);
        if self.time_left().is_some_and(|left| left.is_zero()) {
            self.interrupt(Interruption::TimeLimit);
        }
        if self.left_until(&self.client_deadline).is_some_and(|left| left.is_zero()) {
            self.interrupt(Interruption::ClientGone);
        }
        self.fail()
    }

    fn fail(&self) -> Result<(), Interruption> {
        self.interruption().map_or(Ok(()), Err)
    }

    /// Its account with the device.
    pub fn device(&self) -> &Arc<DeviceAccount> {
        &self.device
    }

    /// Sets the counters of its work to zero, because it is done once more from the beginning. Conflicts
    /// stay, and so do reads of the device: the pages are in the cache then.
    pub fn forget_work(&self) {
        self.usage.clear_work();
    }

    /// Its counters.
    pub fn usage(&self) -> &Usage {
        &self.usage
    }
}

impl std::fmt::Debug for Operation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Operation({:?}, {:?})", self.interruption(), self.usage.figures())
    }
}

/// An operation and its blocking mode.
#[derive(Clone, Copy, Debug)]
pub struct Caller<'o> {
    /// Whether the call may wait for the device.
    pub blocking: BlockingMode,
    /// The operation that the call works for.
    pub operation: &'o Operation,
}

impl<'o> Caller<'o> {
    /// A caller that may wait.
    pub fn may_block(operation: &'o Operation) -> Caller<'o> {
        Caller { blocking: BlockingMode::MayBlock, operation }
    }

    /// A caller that must not wait.
    pub fn cached_only(operation: &'o Operation) -> Caller<'o> {
        Caller { blocking: BlockingMode::CachedOnly, operation }
    }
}

#[cfg(test)]
mod tests {
    use pando_environment::Environment;

    use super::*;

    #[test]
    fn the_first_interruption_fails_every_check_until_the_next_request_begins() {
        let operation = Operation::default();
        operation.begin();
        assert_eq!(operation.check(), Ok(()));
        operation.interrupt(Interruption::Killed);
        operation.interrupt(Interruption::Shutdown);
        assert_eq!(operation.check(), Err(Interruption::Killed));
        assert_eq!(operation.check_now(), Err(Interruption::Killed));
        operation.begin();
        assert_eq!(operation.check_now(), Ok(()));
    }

    #[test]
    fn a_time_limit_is_seen_within_a_few_checks() {
        let simulation = Environment::simulated(1);
        let clock = simulation.environment.clock();
        let operation = Operation::new(clock);
        operation.begin();
        assert_eq!(operation.time_left(), None);
        operation.limit_time(clock.monotonic(), Duration::from_millis(50));
        assert!((0..1000).all(|_| operation.check().is_ok()));
        simulation.clock.advance(Duration::from_millis(49));
        assert_eq!(operation.time_left(), Some(Duration::from_millis(1)));
        assert!((0..1000).all(|_| operation.check().is_ok()));
        simulation.clock.advance(Duration::from_millis(1));
        let checks = (1..).find(|_| operation.check().is_err()).expect("the limit is over");
        assert!(checks <= CHECKS_A_CLOCK, "{checks} checks");
        assert_eq!(operation.interruption(), Some(Interruption::TimeLimit));
    }

    #[test]
    fn an_operation_without_its_client_ends_after_a_while() {
        let simulation = Environment::simulated(1);
        let operation = Operation::new(simulation.environment.clock());
        operation.begin();
        operation.end_without_client(Duration::from_millis(30));
        simulation.clock.advance(Duration::from_millis(29));
        assert_eq!(operation.check_now(), Ok(()));
        simulation.clock.advance(Duration::from_millis(1));
        assert_eq!(operation.check_now(), Err(Interruption::ClientGone));
        operation.begin();
        assert_eq!(operation.check_now(), Ok(()), "the next request has its own time");
    }

    #[test]
    fn the_thread_of_an_operation_knows_when_its_waits_have_to_end() {
        let simulation = Environment::simulated(1);
        let clock = simulation.environment.clock();
        let left = || DeviceAccount::time_left_of_thread(|| clock.monotonic());
        let operation = Operation::new(clock);
        operation.begin();
        assert_eq!(left(), None, "the thread has no operation");
        let _charge = operation.device().charge_thread();
        assert_eq!(left(), None);
        operation.limit_time(clock.monotonic(), Duration::from_millis(50));
        simulation.clock.advance(Duration::from_millis(20));
        assert_eq!(left(), Some(Duration::from_millis(30)));
        operation.end_without_client(Duration::from_millis(10));
        assert_eq!(left(), Some(Duration::from_millis(10)));
        operation.interrupt(Interruption::Killed);
        assert_eq!(left(), Some(Duration::ZERO));
        operation.begin();
        assert_eq!(left(), None, "the next request has its own time");
    }

    #[test]
    fn usage_begins_at_zero_with_each_request() {
        let operation = Operation::default();
        operation.begin();
        operation.usage().add_examined(3, 2);
        operation.usage().add_conflict();
        operation.usage().add_spilled(1, 10);
        let figures = operation.usage().figures();
        assert_eq!((figures.keys_examined, figures.documents_examined), (3, 2));
        assert_eq!((figures.conflicts, figures.spills, figures.spilled_bytes), (1, 1, 10));
        operation.forget_work();
        assert_eq!(operation.usage().figures(), UsageFigures { conflicts: 1, ..UsageFigures::default() });
        operation.begin();
        assert_eq!(operation.usage().figures(), UsageFigures::default());
    }
}
