//! The commit gate: orders commits against freezes and checkpoints, and knows the end of the log.
//!
//! A commit holds the read side of the gate from the moment it gets its LSN until its writes are in the
//! buffers. So the holder of the write side knows: every record up to the last LSN is applied, and no other.
//! Freezing a buffer, choosing the position of a checkpoint, and choosing the moment of a backup take the
//! write side for microseconds.
//!
//! # Order of locks
//! A tree's flush lock, a tree's `installed`, the gate, a buffer, the publisher. Under the gate no thread
//! waits for a device, except where the log's own memory is full.

use std::sync::Arc;

use pando_environment::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use pando_environment::sync::{OnceLock, RwLock, RwLockReadGuard, RwLockWriteGuard};
use pando_storage::Lsn;

use crate::base::{LockWaits, WaitFor};
use crate::error::BetreeError;
use crate::log::Log;
use crate::range_deletes::encoding::DeletedRange;

/// A side of the gate.
#[allow(dead_code, reason = "the guards are held, not looked at")]
pub(crate) enum GatePass<'g> {
    Read(RwLockReadGuard<'g, ()>),
    Write(RwLockWriteGuard<'g, ()>),
}

/// See the module's head.
pub(crate) struct CommitGate {
    gate: RwLock<()>,
    /// Absent while the log is replayed.
    log: OnceLock<Arc<Log>>,
    /// The last record replayed: the end of the log while there is no log.
    replayed: AtomicU64,
    is_closed: AtomicBool,
    waits: Arc<LockWaits>,
}

impl CommitGate {
    pub(crate) fn new(waits: Arc<LockWaits>) -> CommitGate {
        CommitGate {
            gate: RwLock::new(()),
            log: OnceLock::new(),
            replayed: AtomicU64::new(0),
            is_closed: AtomicBool::new(false),
            waits,
        }
    }

    /// Enters the read side, for a commit.
    pub(crate) fn enter(&self) -> RwLockReadGuard<'_, ()> {
        self.waits.read(WaitFor::Gate, &self.gate)
    }

    /// Closes the gate to commits until the guard is dropped.
    pub(crate) fn close(&self) -> RwLockWriteGuard<'_, ()> {
        self.gate.write()
    }

    /// Passes the gate for a commit. One that deletes ranges is alone behind it, so that lists of range
    /// deletes grow in the order of the log.
    pub(crate) fn pass(&self, ranges: &[DeletedRange]) -> GatePass<'_> {
        if ranges.is_empty() { GatePass::Read(self.enter()) } else { GatePass::Write(self.close()) }
    }

    /// The log, once it has been replayed.
    pub(crate) fn log(&self) -> &Arc<Log> {
        self.log.get().expect("the log is there before any caller has the engine")
    }

    pub(crate) fn set_log(&self, log: Arc<Log>) {
        assert!(self.log.set(log).is_ok(), "a store has one log");
    }

    /// Whether the log is still being replayed.
    pub(crate) fn is_replaying(&self) -> bool {
        self.log.get().is_none()
    }

    /// The last record that has been given out. Exact while the gate is closed.
    pub(crate) fn last_lsn(&self) -> Lsn {
        match self.log.get() {
            Some(log) => log.appended_lsn(),
            None => Lsn::new(self.replayed.load(Ordering::SeqCst)),
        }
    }

    pub(crate) fn set_replayed(&self, lsn: Lsn) {
        self.replayed.store(lsn.get(), Ordering::SeqCst);
    }

    /// Refuses calls after the engine was closed.
    ///
    /// # Errors
    /// The engine is closed.
    pub(crate) fn check_open(&self) -> Result<(), BetreeError> {
        if self.is_closed.load(Ordering::Acquire) { Err(BetreeError::Closed) } else { Ok(()) }
    }

    /// Closes the engine to callers; false if it was closed already.
    pub(crate) fn set_closed(&self) -> bool {
        !self.is_closed.swap(true, Ordering::AcqRel)
    }
}

#[cfg(test)]
mod tests {
    use pando_environment::{Clock, MockClock};

    use super::*;

    #[test]
    fn a_gate_is_closed_to_callers_once_and_ends_where_replay_is() {
        let clock: Arc<dyn Clock> = Arc::new(MockClock::new());
        let gate = CommitGate::new(Arc::new(LockWaits::new(&clock)));
        assert!(gate.is_replaying());
        gate.set_replayed(Lsn::new(9));
        assert_eq!(gate.last_lsn(), Lsn::new(9));
        assert!(gate.check_open().is_ok());
        assert!(gate.set_closed());
        assert!(!gate.set_closed());
        assert!(matches!(gate.check_open(), Err(BetreeError::Closed)));
    }

    #[test]
    fn commits_share_the_gate_and_one_that_deletes_ranges_has_it_alone() {
        let clock: Arc<dyn Clock> = Arc::new(MockClock::new());
        let gate = CommitGate::new(Arc::new(LockWaits::new(&clock)));
        let (first, second) = (gate.pass(&[]), gate.pass(&[]));
        assert!(gate.gate.try_write().is_none());
        drop((first, second));
        let span = crate::base::KeySpan { start: bytes::Bytes::new(), end: None };
        let alone = gate.pass(&[DeletedRange { tree: pando_storage::TreeId::new(1), span }]);
        assert!(gate.gate.try_read().is_none());
        drop(alone);
    }
}
