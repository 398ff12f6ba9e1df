//! The state of an engine's sync task: commits reach the device within 100 ms, or as soon as a client waits
//! for one. For engines over a library whose sync covers all commits before it; betree's log has its own.
//!
//! 1. The first commit after a sync notes the time and wakes the task.
//! 2. The task sleeps until that commit is [`SYNC_AFTER`] old, or until a client waits.
//! 3. All clients that wait when a sync begins are told when it ends. Many share one sync.
//!
//! Invariant: a waker is called once: by the sync that covers its transaction, by the failure that ends all
//! syncing, or by the close.

use std::sync::OnceLock;
use std::time::Duration;

use pando_environment::sync::Mutex;
use pando_environment::sync::atomic::{AtomicU64, Ordering};
use pando_environment::{Monotonic, TaskWaker};

use crate::durability::DurabilityWaker;
use crate::error::StorageError;
use crate::identifiers::Lsn;

/// How long a commit stays off the device at most: half of the 100 ms that the contract gives are left to it.
const SYNC_AFTER: Duration = Duration::from_millis(50);

/// The last commit on the device, and the waiters for it.
#[derive(Default)]
pub struct SyncState {
    synced: AtomicU64,
    waiting: Mutex<Vec<(Lsn, DurabilityWaker)>>,
    /// When the oldest commit that no sync covers was made.
    unsynced_since: Mutex<Option<Monotonic>>,
    task: OnceLock<TaskWaker>,
    /// Why nothing will be synced any more.
    failure: OnceLock<StorageError>,
}

impl SyncState {
    /// Gives the task that syncs.
    pub fn set_task(&self, task: TaskWaker) {
        self.task.get_or_init(|| task);
    }

    /// The end of what is on the device.
    pub fn synced(&self) -> Lsn {
        Lsn::new(self.synced.load(Ordering::Acquire))
    }

    /// The failure that ended all syncing.
    pub fn check_healthy(&self) -> Result<(), StorageError> {
        self.failure.get().map_or(Ok(()), |failure| Err(failure.clone()))
    }

    /// Notes a commit.
    pub fn committed(&self, now: Monotonic) {
        let mut since = self.unsynced_since.lock();
        if since.is_none() {
            *since = Some(now);
            drop(since);
            self.wake();
        }
    }

    /// Forgets the commits so far: a sync that covers them begins.
    pub fn begin(&self) {
        *self.unsynced_since.lock() = None;
    }

    /// When the next sync is due: at once if someone waits, never if there is nothing to sync.
    pub fn due_in(&self, now: Monotonic) -> Option<Duration> {
        if !self.waiting.lock().is_empty() {
            return Some(Duration::ZERO);
        }
        let since = (*self.unsynced_since.lock())?;
        Some(SYNC_AFTER.saturating_sub(now.since(since)))
    }

    /// Calls the waker when this is on the device: at once if it is.
    pub fn when_synced(&self, lsn: Lsn, waker: DurabilityWaker) {
        let mut waiting = self.waiting.lock();
        if lsn <= self.synced() {
            drop(waiting);
            return waker(Ok(()));
        }
        // Looked at under the lock: `fail` fills it in before it takes the wakers out.
        if let Some(failure) = self.failure.get() {
            let failure = failure.clone();
            drop(waiting);
            return waker(Err(failure));
        }
        waiting.push((lsn, waker));
        drop(waiting);
        self.wake();
    }

    /// Tells everyone that this much is on the device.
    pub fn finish(&self, lsn: Lsn) {
        let told = {
            let mut waiting = self.waiting.lock();
            self.synced.fetch_max(lsn.get(), Ordering::AcqRel);
            let (told, left) =
                std::mem::take(&mut *waiting).into_iter().partition(|(wanted, _)| *wanted <= lsn);
            *waiting = left;
            told
        };
        let told: Vec<(Lsn, DurabilityWaker)> = told;
        told.into_iter().for_each(|(_, waker)| waker(Ok(())));
    }

    /// Ends all syncing, and tells everyone why. The first failure counts.
    pub fn fail(&self, failure: StorageError) {
        let failure = self.failure.get_or_init(|| failure).clone();
        let told = std::mem::take(&mut *self.waiting.lock());
        told.into_iter().for_each(|(_, waker)| waker(Err(failure.clone())));
    }

    /// Has the task look for work.
    pub fn wake(&self) {
        if let Some(task) = self.task.get() {
            task.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::error::ErrorKind;

    type Outcomes = Arc<Mutex<Vec<(u64, bool)>>>;

    fn wait(state: &SyncState, lsn: u64, outcomes: &Outcomes) {
        let outcomes = Arc::clone(outcomes);
        state.when_synced(Lsn::new(lsn), Box::new(move |told| outcomes.lock().push((lsn, told.is_ok()))));
    }

    fn at(millis: u64) -> Monotonic {
        Monotonic::new(Duration::from_millis(millis))
    }

    #[test]
    fn a_sync_is_due_by_the_age_of_the_oldest_commit_or_at_once_for_a_waiter() {
        let (state, outcomes) = (SyncState::default(), Outcomes::default());
        assert_eq!(state.due_in(at(0)), None);
        state.committed(at(10));
        state.committed(at(40));
        assert_eq!(state.due_in(at(40)), Some(Duration::from_millis(20)));
        wait(&state, 1, &outcomes);
        assert_eq!(state.due_in(at(40)), Some(Duration::ZERO));
        state.begin();
        state.finish(Lsn::new(2));
        assert_eq!((state.due_in(at(90)), state.synced()), (None, Lsn::new(2)));
    }

    #[test]
    fn each_waker_is_called_once_by_its_sync_or_by_the_failure() {
        let (state, outcomes) = (SyncState::default(), Outcomes::default());
        for lsn in 1..=3 {
            wait(&state, lsn, &outcomes);
        }
        state.finish(Lsn::new(2));
        assert_eq!(*outcomes.lock(), [(1, true), (2, true)]);
        wait(&state, 2, &outcomes);
        state.fail(StorageError::new(ErrorKind::Io, "the device is gone"));
        wait(&state, 4, &outcomes);
        assert_eq!(*outcomes.lock(), [(1, true), (2, true), (2, true), (3, false), (4, false)]);
        assert!(state.check_healthy().is_err());
    }
}
