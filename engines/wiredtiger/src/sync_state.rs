//! The sync task's state: the log reaches the device within 100 ms of a commit, or as soon as a client waits
//! for one.
//!
//! 1. The first commit after a sync notes the time and wakes the task.
//! 2. The task sleeps until that commit is [`SYNC_AFTER`] old, or until a client waits.
//! 3. All clients that wait when a sync begins are told when it ends. Many share one sync.
//!
//! Invariant: a waker is called once: by the sync that covers its transaction, by the failure that ends all
//! syncing, or by the close.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use pando_environment::{Monotonic, TaskWaker};
use pando_storage::{DurabilityWaker, Lsn, StorageError};
use parking_lot::Mutex;

/// How long a commit stays in memory and in the kernel alone: leaves the device half of the 100 ms that the
/// contract gives.
pub(crate) const SYNC_AFTER: Duration = Duration::from_millis(50);

/// The last commit on the device, and the waiters for it.
#[derive(Default)]
pub(crate) struct SyncState {
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
    pub(crate) fn set_task(&self, task: TaskWaker) {
        self.task.get_or_init(|| task);
    }

    /// The end of what is on the device.
    pub(crate) fn synced(&self) -> Lsn {
        Lsn::new(self.synced.load(Ordering::Acquire))
    }

    /// The failure that ended all syncing.
    pub(crate) fn check_healthy(&self) -> Result<(), StorageError> {
        self.failure.get().map_or(Ok(()), |failure| Err(failure.clone()))
    }

    /// Notes a commit.
    pub(crate) fn committed(&self, now: Monotonic) {
        let mut since = self.unsynced_since.lock();
        if since.is_none() {
            *since = Some(now);
            drop(since);
            self.wake();
        }
    }

    /// Forgets the commits so far: a sync that covers them begins.
    pub(crate) fn begin(&self) {
        *self.unsynced_since.lock() = None;
    }

    /// When the next sync is due: at once if someone waits, never if there is nothing to sync.
    pub(crate) fn due_in(&self, now: Monotonic) -> Option<Duration> {
        if !self.waiting.lock().is_empty() {
            return Some(Duration::ZERO);
        }
        let since = (*self.unsynced_since.lock())?;
        Some(SYNC_AFTER.saturating_sub(now.since(since)))
    }

    /// Calls the waker when this is on the device: at once if it is.
    pub(crate) fn when_synced(&self, lsn: Lsn, waker: DurabilityWaker) {
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
    pub(crate) fn finish(&self, lsn: Lsn) {
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
    pub(crate) fn fail(&self, failure: StorageError) {
        let failure = self.failure.get_or_init(|| failure).clone();
        let told = std::mem::take(&mut *self.waiting.lock());
        told.into_iter().for_each(|(_, waker)| waker(Err(failure.clone())));
    }

    fn wake(&self) {
        if let Some(task) = self.task.get() {
            task.wake();
        }
    }
}
