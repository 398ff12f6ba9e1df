//! Statistics of contended locks: how often and for how long threads wait for each of them.
//!
//! A thread first tries the lock. It reads the clock only if the lock is taken, so an uncontended lock costs
//! no more than without statistics.

use pando_environment::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use pando_environment::Clock;
use pando_environment::sync::{Mutex, MutexGuard, RwLock, RwLockReadGuard};
use pando_storage::Wait;

/// A lock, or a call, that threads wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitFor {
    /// The end of the log in memory, where records are appended.
    LogAppend,
    /// A write of the log to the kernel by another thread.
    LogWrite,
    /// A sync of the log.
    LogSync,
    /// The next log segment: the creation of its file where none is ready, and the sync of the one before. It
    /// may be part of a wait for a sync.
    LogSegment,
    /// The commit gate, which a freeze or a checkpoint closes for an instant.
    Gate,
    /// The allocator of the data file.
    Allocator,
    /// A checkpoint that is being made durable.
    SpaceMap,
    /// A checkpoint from its beginning to its end.
    Checkpoint,
    /// The creation or the end of another tree.
    TreeNames,
}

impl WaitFor {
    const ALL: [WaitFor; 9] = [
        WaitFor::LogAppend,
        WaitFor::LogWrite,
        WaitFor::LogSync,
        WaitFor::LogSegment,
        WaitFor::Gate,
        WaitFor::Allocator,
        WaitFor::SpaceMap,
        WaitFor::Checkpoint,
        WaitFor::TreeNames,
    ];

    const fn name(self) -> &'static str {
        match self {
            WaitFor::LogAppend => "log.append",
            WaitFor::LogWrite => "log.write",
            WaitFor::LogSync => "log.sync",
            WaitFor::LogSegment => "log.segment",
            WaitFor::Gate => "commit.gate",
            WaitFor::Allocator => "space.allocator",
            WaitFor::SpaceMap => "space.map",
            WaitFor::Checkpoint => "checkpoint",
            WaitFor::TreeNames => "trees.naming",
        }
    }
}

#[derive(Debug, Default)]
struct Waited {
    count: AtomicU64,
    nanos: AtomicU64,
}

/// The waits of one part of the engine.
pub(crate) struct LockWaits {
    clock: Arc<dyn Clock>,
    waited: [Waited; WaitFor::ALL.len()],
}

impl LockWaits {
    pub(crate) fn new(clock: &Arc<dyn Clock>) -> LockWaits {
        LockWaits { clock: Arc::clone(clock), waited: Default::default() }
    }

    /// Takes a mutex.
    pub(crate) fn lock<'m, T>(&self, wait: WaitFor, mutex: &'m Mutex<T>) -> MutexGuard<'m, T> {
        mutex.try_lock().unwrap_or_else(|| self.timed(wait, || mutex.lock()))
    }

    /// Takes the read side of a lock.
    pub(crate) fn read<'m, T>(&self, wait: WaitFor, lock: &'m RwLock<T>) -> RwLockReadGuard<'m, T> {
        lock.try_read().unwrap_or_else(|| self.timed(wait, || lock.read()))
    }

    /// Runs a call that is known to wait, and counts it.
    pub(crate) fn timed<R>(&self, wait: WaitFor, run: impl FnOnce() -> R) -> R {
        let began = self.clock.monotonic();
        let result = run();
        let nanos = self.clock.monotonic().since(began).as_nanos();
        let waited = &self.waited[wait as usize];
        waited.count.fetch_add(1, Ordering::Relaxed);
        waited.nanos.fetch_add(u64::try_from(nanos).unwrap_or(u64::MAX), Ordering::Relaxed);
        result
    }

    /// All waits since the store was opened.
    pub(crate) fn all(&self) -> impl Iterator<Item = Wait> + '_ {
        WaitFor::ALL.iter().zip(&self.waited).filter_map(|(wait, waited)| {
            let count = waited.count.load(Ordering::Relaxed);
            let micros = waited.nanos.load(Ordering::Relaxed) / 1_000;
            (count > 0).then(|| Wait { name: wait.name(), count, micros })
        })
    }
}

#[cfg(test)]
mod tests {
    use pando_environment::MockClock;

    use crate::base::lock_waits::*;

    #[test]
    fn only_who_finds_a_lock_taken_has_waited() {
        let clock = Arc::new(MockClock::new());
        let waits = LockWaits::new(&(Arc::clone(&clock) as Arc<dyn Clock>));
        let (mutex, lock) = (Mutex::new(1), RwLock::new(2));
        assert_eq!((*waits.lock(WaitFor::Allocator, &mutex), *waits.read(WaitFor::Gate, &lock)), (1, 2));
        assert_eq!(waits.all().count(), 0);
        waits.timed(WaitFor::LogSync, || clock.advance(std::time::Duration::from_millis(3)));
        let sync = waits.all().find(|wait| wait.name == "log.sync").unwrap();
        assert_eq!((sync.count, sync.micros), (1, 3_000));
    }
}
