//! The gate of writers: `fsync` with `lock` closes it, and `fsyncUnlock` opens it.
//!
//! # Steps of closing
//! 1. The gate is *closing*: statements outside of open transactions wait in front of it.
//! 2. The writers inside come to their end. Those of open transactions still get in, because a writer inside
//!    may wait for such a transaction.
//! 3. With no writer inside it is *closed*, and lets in none.
//!
//! # Invariants
//! - A gate that is closed n times opens when it was opened n times.
//! - A writer that passes an open gate writes one word of memory on its way in and one on its way out.
//! - Of the writers that wait, most give up after seconds, because each holds a thread of the blocking pool.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use pando_catalog::{BlockingMode, Caller, Operation, OperationWait};
use pando_environment::{Clock, Monotonic};
use pando_query::QueryError;
use parking_lot::{Condvar, Mutex};

use crate::{CommandError, ErrorCode};

/// The bit of a gate that is closing or closed.
const CLOSING: u64 = 1 << 62;
/// The bit of a gate that is closed.
const CLOSED: u64 = 1 << 63;
/// The longest wait between two looks at the interruption.
const LOOK_WAIT: Duration = Duration::from_millis(20);
/// Writers that may wait for any time.
const LONG_WAITS_MAX: usize = 32;
/// The time after which the others give up.
const SHORT_WAIT: Duration = Duration::from_secs(5);

/// See the module's head.
#[derive(Default)]
pub(crate) struct WriteGate {
    /// The writers inside, and the two bits.
    state: AtomicU64,
    waiting: AtomicUsize,
    /// How many times it is closed.
    locks: Mutex<u64>,
    opened: Condvar,
}

/// The writers that ask for a way in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriterKind {
    /// A statement that is a unit of work of its own.
    Alone,
    /// A statement of an open transaction, or its commit.
    InTransaction,
}

/// A writer inside the gate; dropping it is the way out.
pub(crate) struct Pass<'g> {
    gate: &'g WriteGate,
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        self.gate.state.fetch_sub(1, Ordering::Release);
    }
}

impl WriteGate {
    /// Lets a writer in, as soon as the gate is open.
    ///
    /// # Errors
    /// The gate is closed, and the caller may not wait or has waited for too long.
    pub fn enter(
        &self,
        kind: WriterKind,
        caller: Caller<'_>,
        clock: &dyn Clock,
    ) -> Result<Pass<'_>, CommandError> {
        match (self.try_enter(kind), caller.blocking) {
            (Some(pass), _) => Ok(pass),
            (None, BlockingMode::CachedOnly) => Err(CommandError::WouldBlock(None)),
            (None, BlockingMode::MayBlock) => self.wait(kind, caller.operation, clock),
        }
    }

    fn try_enter(&self, kind: WriterKind) -> Option<Pass<'_>> {
        let before = self.state.fetch_add(1, Ordering::Acquire);
        let pass = Pass { gate: self };
        let barred = match kind {
            WriterKind::Alone => CLOSING | CLOSED,
            WriterKind::InTransaction => CLOSED,
        };
        (before & barred == 0).then_some(pass)
    }

    #[cold]
    fn wait(
        &self,
        kind: WriterKind,
        operation: &Operation,
        clock: &dyn Clock,
    ) -> Result<Pass<'_>, CommandError> {
        let waiting = WaitingWriter::begin(self, clock.monotonic());
        let entered = operation.wait_for(OperationWait::WriteLock, || {
            if let Some(pass) = self.try_enter(kind) {
                return Some(Some(pass));
            }
            if waiting.is_over(clock.monotonic()) {
                return Some(None);
            }
            self.opened.wait_for(&mut self.locks.lock(), LOOK_WAIT);
            None
        });
        entered.map_err(QueryError::from)?.ok_or_else(|| {
            CommandError::failed(
                ErrorCode::LockTimeout,
                "the server is locked against writes, and many of them wait: fsyncUnlock ends the lock",
            )
        })
    }

    /// Closes the gate once more, and waits for the writers inside. Gives how many times it is closed.
    ///
    /// # Errors
    /// The operation was interrupted. The gate is as before.
    pub fn close(&self, operation: &Operation) -> Result<u64, CommandError> {
        let locks = {
            let mut locks = self.locks.lock();
            *locks += 1;
            self.state.fetch_or(CLOSING, Ordering::SeqCst);
            *locks
        };
        let closed = operation.wait_for(OperationWait::WriteLock, || {
            let state = self.state.load(Ordering::Acquire);
            let is_empty = state & !(CLOSING | CLOSED) == 0;
            let closed = CLOSING | CLOSED;
            if is_empty
                && self.state.compare_exchange(state, closed, Ordering::SeqCst, Ordering::Acquire).is_ok()
            {
                return Some(());
            }
            std::thread::sleep(Duration::from_millis(1));
            None
        });
        match closed {
            Ok(()) => Ok(locks),
            Err(interruption) => {
                self.open();
                Err(QueryError::from(interruption).into())
            }
        }
    }

    /// Opens a gate that was closed once. Gives how many times it still is closed; `None` if it is open.
    pub fn open(&self) -> Option<u64> {
        let mut locks = self.locks.lock();
        let left = locks.checked_sub(1)?;
        *locks = left;
        if left == 0 {
            self.state.fetch_and(!(CLOSING | CLOSED), Ordering::SeqCst);
            self.opened.notify_all();
        }
        Some(left)
    }

    /// How many times it is closed.
    pub fn locks(&self) -> u64 {
        *self.locks.lock()
    }
}

/// A writer in front of the gate.
struct WaitingWriter<'g> {
    gate: &'g WriteGate,
    began: Monotonic,
    time_max: Option<Duration>,
}

impl<'g> WaitingWriter<'g> {
    fn begin(gate: &'g WriteGate, began: Monotonic) -> WaitingWriter<'g> {
        let others = gate.waiting.fetch_add(1, Ordering::Relaxed);
        WaitingWriter { gate, began, time_max: (others >= LONG_WAITS_MAX).then_some(SHORT_WAIT) }
    }

    fn is_over(&self, now: Monotonic) -> bool {
        self.time_max.is_some_and(|time_max| now.since(self.began) >= time_max)
    }
}

impl Drop for WaitingWriter<'_> {
    fn drop(&mut self) {
        self.gate.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use pando_catalog::Interruption;
    use pando_environment::Environment;

    use super::*;

    fn at_once(operation: &Operation) -> Caller<'_> {
        Caller { blocking: BlockingMode::CachedOnly, operation }
    }

    #[test]
    fn a_gate_opens_as_often_as_it_was_closed() {
        let (gate, operation, environment) =
            (WriteGate::default(), Operation::default(), Environment::real());
        let clock = &**environment.clock();
        assert_eq!(gate.open(), None);
        assert_eq!((gate.close(&operation).unwrap(), gate.close(&operation).unwrap()), (1, 2));
        for kind in [WriterKind::Alone, WriterKind::InTransaction] {
            assert!(gate.enter(kind, at_once(&operation), clock).is_err());
        }
        assert_eq!(gate.open(), Some(1));
        assert!(gate.enter(WriterKind::Alone, at_once(&operation), clock).is_err());
        assert_eq!(gate.open(), Some(0));
        assert!(gate.enter(WriterKind::Alone, at_once(&operation), clock).is_ok());
        assert_eq!((gate.open(), gate.locks()), (None, 0));
    }

    #[test]
    fn a_lock_waits_for_the_writers_inside_and_lets_open_transactions_end() {
        let (gate, environment) = (WriteGate::default(), Environment::real());
        let clock = &**environment.clock();
        let (writer, locker) = (Operation::default(), Operation::default());
        let inside = gate.enter(WriterKind::Alone, at_once(&writer), clock).unwrap();
        std::thread::scope(|scope| {
            let closing = scope.spawn(|| gate.close(&locker).unwrap());
            while gate.locks() == 0 {
                std::thread::yield_now();
            }
            assert!(gate.enter(WriterKind::Alone, at_once(&writer), clock).is_err());
            drop(gate.enter(WriterKind::InTransaction, at_once(&writer), clock).unwrap());
            assert!(!closing.is_finished());
            drop(inside);
            assert_eq!(closing.join().unwrap(), 1);
        });
        assert!(gate.enter(WriterKind::InTransaction, at_once(&writer), clock).is_err());
    }

    #[test]
    fn an_interrupted_lock_leaves_the_gate_open() {
        let (gate, environment) = (WriteGate::default(), Environment::real());
        let clock = &**environment.clock();
        let (writer, locker) = (Operation::default(), Operation::default());
        let inside = gate.enter(WriterKind::Alone, at_once(&writer), clock).unwrap();
        locker.begin();
        locker.interrupt(Interruption::Killed);
        assert!(gate.close(&locker).is_err());
        assert!(gate.enter(WriterKind::Alone, at_once(&writer), clock).is_ok());
        drop(inside);
        assert_eq!(gate.locks(), 0);
    }
}
