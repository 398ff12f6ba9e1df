//! The waits of an operation: what it waits for, and pauses that an interruption ends.

use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use super::{Interruption, Operation};

/// The longest sleep between two looks at the interruption.
const SLICE_MAX: Duration = Duration::from_millis(5);

/// The cause of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OperationWait {
    /// The end of a transaction that has changed the same document, between two tries.
    Conflict,
    /// The end of a transaction that has changed the same document, in the queue of the key.
    Intent,
    /// The latch of a collection, which another statement holds.
    Collection,
    /// The end of another index build of the collection.
    IndexBuild,
    /// The end of another request of the same session.
    Session,
    /// The end of the lock against all writes, or of the writers before it.
    WriteLock,
    /// The time that a fail point names.
    FailPoint,
    /// A read of the device.
    Device,
    /// Writes and reads of scratch files, for lack of memory.
    Spill,
    /// Memory: the engine makes room for a query.
    QueryMemory,
    /// The engine's background work, which is behind.
    Backlog,
    /// The sync of the log that makes its commit durable.
    GroupCommit,
    /// The next commit to a capped collection, whose end its cursor has read.
    Tail,
    /// The answers of the other servers of the store.
    Servers,
}

/// All waits; the code of each is its place, from 1.
const ALL: [OperationWait; 14] = [
    OperationWait::Conflict,
    OperationWait::Intent,
    OperationWait::Collection,
    OperationWait::IndexBuild,
    OperationWait::Session,
    OperationWait::WriteLock,
    OperationWait::FailPoint,
    OperationWait::Device,
    OperationWait::Spill,
    OperationWait::QueryMemory,
    OperationWait::Backlog,
    OperationWait::GroupCommit,
    OperationWait::Tail,
    OperationWait::Servers,
];

impl OperationWait {
    /// Its name, as lists of operations show it.
    pub fn name(self) -> &'static str {
        match self {
            OperationWait::Conflict => "conflict",
            OperationWait::Intent => "intent",
            OperationWait::Collection => "collection",
            OperationWait::IndexBuild => "indexBuild",
            OperationWait::Session => "session",
            OperationWait::WriteLock => "writeLock",
            OperationWait::FailPoint => "failPoint",
            OperationWait::Device => "device",
            OperationWait::Spill => "spill",
            OperationWait::QueryMemory => "queryMemory",
            OperationWait::Backlog => "backlog",
            OperationWait::GroupCommit => "groupCommit",
            OperationWait::Tail => "tail",
            OperationWait::Servers => "servers",
        }
    }

    /// Whether it waits for another operation.
    pub fn is_for_another(self) -> bool {
        match self {
            OperationWait::Conflict
            | OperationWait::Intent
            | OperationWait::Collection
            | OperationWait::IndexBuild
            | OperationWait::Session
            | OperationWait::WriteLock => true,
            OperationWait::FailPoint
            | OperationWait::Device
            | OperationWait::Spill
            | OperationWait::QueryMemory
            | OperationWait::Backlog
            | OperationWait::GroupCommit
            | OperationWait::Tail
            | OperationWait::Servers => false,
        }
    }
}

/// The wait of an operation at the moment; written by its thread, read by any.
#[derive(Debug, Default)]
pub(super) struct CurrentWait {
    code: AtomicU8,
}

impl CurrentWait {
    pub(super) fn get(&self) -> Option<OperationWait> {
        let code = self.code.load(Ordering::Relaxed);
        ALL.get(usize::from(code.checked_sub(1)?)).copied()
    }

    pub(super) fn set(&self, wait: Option<OperationWait>) {
        self.code.store(wait.map_or(0, |wait| wait as u8 + 1), Ordering::Relaxed);
    }
}

/// A wait under way; it is over when this is dropped.
#[derive(Debug)]
pub struct Waiting<'o> {
    current: &'o CurrentWait,
    before: Option<OperationWait>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.current.set(self.before);
    }
}

impl Operation {
    /// The cause of its wait at the moment.
    pub fn wait(&self) -> Option<OperationWait> {
        self.device.wait.get()
    }

    /// Notes that it waits, for as long as the answer lives.
    pub fn waiting(&self, wait: OperationWait) -> Waiting<'_> {
        let current = &self.device.wait;
        let before = current.get();
        current.set(Some(wait));
        Waiting { current, before }
    }

    /// Notes that it waits, until [`end_wait`](Operation::end_wait): for a wait without a thread.
    pub fn begin_wait(&self, wait: OperationWait) {
        self.device.wait.set(Some(wait));
    }

    /// Ends such a wait, if it still waits for that.
    pub fn end_wait(&self, wait: OperationWait) {
        if self.wait() == Some(wait) {
            self.device.wait.set(None);
        }
    }

    /// Sleeps. An interruption ends the sleep within a few milliseconds.
    ///
    /// # Errors
    /// The interruption.
    pub fn pause(&self, wait: OperationWait, time: Duration) -> Result<(), Interruption> {
        let _waiting = self.waiting(wait);
        let mut left = time;
        while !left.is_zero() {
            self.check_now()?;
            let slice = left.min(SLICE_MAX);
            std::thread::sleep(slice);
            left -= slice;
        }
        self.check_now()
    }

    /// Calls `attempt` until it gives something; it waits for a few milliseconds at most each time. An
    /// interruption ends the wait.
    ///
    /// # Errors
    /// The interruption.
    pub fn wait_for<T>(
        &self,
        wait: OperationWait,
        mut attempt: impl FnMut() -> Option<T>,
    ) -> Result<T, Interruption> {
        let _waiting = self.waiting(wait);
        loop {
            if let Some(got) = attempt() {
                return Ok(got);
            }
            self.check_now()?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_shown_while_it_lasts_and_the_outer_one_afterwards() {
        let operation = Operation::default();
        assert_eq!(operation.wait(), None);
        let outer = operation.waiting(OperationWait::IndexBuild);
        {
            let _inner = operation.waiting(OperationWait::Collection);
            assert_eq!(operation.wait(), Some(OperationWait::Collection));
        }
        assert_eq!(operation.wait(), Some(OperationWait::IndexBuild));
        drop(outer);
        assert_eq!(operation.wait(), None);
        operation.begin_wait(OperationWait::GroupCommit);
        operation.end_wait(OperationWait::Device);
        assert_eq!(operation.wait(), Some(OperationWait::GroupCommit));
        operation.end_wait(OperationWait::GroupCommit);
        assert_eq!(operation.wait(), None);
        let names: std::collections::HashSet<_> = ALL.iter().map(|wait| wait.name()).collect();
        assert_eq!(names.len(), ALL.len());
    }

    #[test]
    fn an_interruption_ends_pauses_and_waits() {
        let operation = Operation::default();
        operation.begin();
        assert_eq!(operation.pause(OperationWait::Conflict, Duration::from_millis(1)), Ok(()));
        operation.interrupt(Interruption::Killed);
        let long = Duration::from_secs(3600);
        assert_eq!(operation.pause(OperationWait::Conflict, long), Err(Interruption::Killed));
        let waited = operation.wait_for(OperationWait::Collection, || None::<()>);
        assert_eq!(waited, Err(Interruption::Killed));
        assert_eq!(operation.wait_for(OperationWait::Collection, || Some(7)), Ok(7));
    }
}
