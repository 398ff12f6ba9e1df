//! The flush monitor: the rate of flushes, the last failure, and the signal for commits that wait for room.
//!
//! While a store is being opened, the monitor also knows the trees whose flush met a damaged block. They are
//! *set aside*: their buffers keep the replayed writes, and the other trees are flushed. An open store sets
//! no tree aside. A commit that waits for room fails there and names the damage.

use std::sync::Arc;
use std::time::Duration;

use pando_environment::sync::atomic::{AtomicU64, Ordering};
use pando_environment::sync::{Condvar, Mutex};
use pando_environment::{Clock, Monotonic};

use super::commit_pace::CommitPace;
use crate::error::BetreeError;
use crate::tree::tree_state::Tree;

/// The time that a commit waits for the work of other threads before it looks again.
const ROOM_WAIT: Duration = Duration::from_millis(5);
/// The time that flush tasks rest after a failure, since a full disk is still full a moment later.
pub(crate) const RETRY: Duration = Duration::from_millis(500);

/// See the module's head.
pub(crate) struct FlushMonitor {
    clock: Arc<dyn Clock>,
    /// How fast commits may go.
    pub(crate) pace: CommitPace,
    /// The time that the longest flush took.
    longest_nanos: AtomicU64,
    /// Why and when the last flush failed, if it did.
    failure: Mutex<Option<(BetreeError, Monotonic)>>,
    /// The trees that are set aside; `None` unless the store is being opened.
    set_aside: Mutex<Option<Vec<Arc<Tree>>>>,
    /// Signalled when a flush or a checkpoint has made room.
    room: Condvar,
    room_lock: Mutex<()>,
}

impl FlushMonitor {
    pub(crate) fn new(clock: &Arc<dyn Clock>) -> FlushMonitor {
        FlushMonitor {
            clock: Arc::clone(clock),
            pace: CommitPace::default(),
            longest_nanos: AtomicU64::new(0),
            failure: Mutex::default(),
            set_aside: Mutex::default(),
            room: Condvar::new(),
            room_lock: Mutex::new(()),
        }
    }

    /// Notes how a flush ended: the bytes that its buffer had, or the error.
    pub(crate) fn note_flush(&self, outcome: &Result<usize, BetreeError>, time: Duration) {
        if let Ok(bytes) = outcome {
            self.pace.note_flush(*bytes, time);
        }
        self.longest_nanos.fetch_max(time.as_nanos() as u64, Ordering::Relaxed);
        let failure = outcome.as_ref().err().map(|error| (error.clone(), self.clock.monotonic()));
        *self.failure.lock() = failure;
    }

    pub(crate) fn longest_nanos(&self) -> u64 {
        self.longest_nanos.load(Ordering::Relaxed)
    }

    /// Why the last flush failed, if it did.
    pub(crate) fn failure(&self) -> Option<BetreeError> {
        self.failure.lock().as_ref().map(|(error, _)| error.clone())
    }

    /// How long flush tasks still rest after a failure.
    pub(crate) fn rest(&self) -> Duration {
        let failed = self.failure.lock().as_ref().map(|(_, at)| *at);
        failed.map_or(Duration::ZERO, |at| RETRY.saturating_sub(self.clock.monotonic().since(at)))
    }

    /// From now on trees with a damaged block are set aside, until
    /// [`end_opening`](FlushMonitor::end_opening).
    pub(crate) fn begin_opening(&self) {
        *self.set_aside.lock() = Some(Vec::new());
    }

    pub(crate) fn end_opening(&self) {
        *self.set_aside.lock() = None;
    }

    /// Notes that a flush of this tree has met a damaged block.
    pub(crate) fn note_damage(&self, tree: &Arc<Tree>) {
        if let Some(trees) = self.set_aside.lock().as_mut()
            && !trees.iter().any(|other| Arc::ptr_eq(other, tree))
        {
            trees.push(Arc::clone(tree));
        }
    }

    pub(crate) fn is_set_aside(&self, tree: &Arc<Tree>) -> bool {
        let trees = self.set_aside.lock();
        trees.as_ref().is_some_and(|trees| trees.iter().any(|other| Arc::ptr_eq(other, tree)))
    }

    /// Bytes in the buffers of trees that are set aside.
    pub(crate) fn bytes_set_aside(&self) -> usize {
        let trees = self.set_aside.lock();
        trees.iter().flatten().map(|tree| tree.view().buffered_bytes()).sum()
    }

    /// Waits a little for a flush or a checkpoint of another thread.
    pub(crate) fn wait_for_room(&self) {
        let mut lock = self.room_lock.lock();
        let _timed_out = self.room.wait_for(&mut lock, ROOM_WAIT);
    }

    /// Wakes all threads that wait for room.
    pub(crate) fn announce_room(&self) {
        let _lock = self.room_lock.lock();
        self.room.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use pando_environment::MockClock;
    use pando_storage::{Lsn, TreeId};

    use super::*;
    use crate::options::tree_settings::TreeSettings;
    use crate::tree::view::TreeView;

    #[test]
    fn flush_tasks_rest_after_a_failure_and_a_success_ends_it() {
        let clock = Arc::new(MockClock::new());
        let monitor = FlushMonitor::new(&(Arc::clone(&clock) as Arc<dyn Clock>));
        assert_eq!(monitor.rest(), Duration::ZERO);
        monitor.note_flush(&Err(BetreeError::Closed), Duration::from_millis(7));
        assert!(matches!(monitor.failure(), Some(BetreeError::Closed)));
        clock.advance(Duration::from_millis(200));
        assert_eq!(monitor.rest(), Duration::from_millis(300));
        clock.advance(Duration::from_millis(400));
        assert_eq!(monitor.rest(), Duration::ZERO);
        monitor.note_flush(&Ok(100), Duration::from_millis(2));
        assert!(monitor.failure().is_none());
        assert_eq!(monitor.longest_nanos(), 7_000_000);
    }

    #[test]
    fn trees_with_damage_are_set_aside_only_while_the_store_is_being_opened() {
        let clock: Arc<dyn Clock> = Arc::new(MockClock::new());
        let monitor = FlushMonitor::new(&clock);
        let view = TreeView::empty(Lsn::ZERO);
        let settings = TreeSettings::default();
        let tree = Arc::new(Tree::new(TreeId::new(1), String::new(), Vec::new(), settings, view));
        monitor.note_damage(&tree);
        assert!(!monitor.is_set_aside(&tree));
        monitor.begin_opening();
        assert!(!monitor.is_set_aside(&tree));
        monitor.note_damage(&tree);
        assert!(monitor.is_set_aside(&tree));
        assert_eq!(monitor.bytes_set_aside(), tree.view().buffered_bytes());
        monitor.end_opening();
        assert!(!monitor.is_set_aside(&tree));
    }
}
