//! The background thread of the log (`pando-log`): it syncs the log, serves wakers, and makes segments ready.
//!
//! Where many commits wait for the device, it lets more of them join a sync ([`Gathering`]).
//!
//! It writes the log to the device and flushes no tree. A tree is flushed by `background`.

use pando_environment::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use pando_environment::{Monotonic, Step};

use super::gathering::Gathering;
use super::{Log, LogError};

/// Starts the sync task. It ends with the log.
pub(super) fn start(log: &Arc<Log>) -> Result<(), LogError> {
    let weak = Arc::downgrade(log);
    let mut dirty_since = None;
    let mut gathering = Gathering::default();
    let step = Box::new(move || step(&weak, &mut dirty_since, &mut gathering));
    let task = log.environment().spawner().spawn("pando-log", step)?;
    log.set_sync_task(task);
    Ok(())
}

fn step(log: &Weak<Log>, dirty_since: &mut Option<Monotonic>, gathering: &mut Gathering) -> Step {
    let Some(log) = log.upgrade() else { return Step::Done };
    // If there is no room, the next append reports it to its caller.
    let _no_room = log.prepare_segment();
    let now = log.environment().clock().monotonic();
    // Before the look at the wakers: one that is added after that look wakes this task.
    log.wake_sync_task_from(1);
    if log.has_wakers() {
        return gather_or_sync(&log, dirty_since, gathering);
    }
    if !log.is_dirty.load(Ordering::SeqCst) {
        *dirty_since = None;
        return Step::Sleep;
    }
    let waited = now.since(*dirty_since.get_or_insert(now));
    if waited >= log.sync_interval() {
        return sync_and_serve(&log, dirty_since);
    }
    Step::Wait(log.sync_interval() - waited)
}

fn gather_or_sync(log: &Log, dirty_since: &mut Option<Monotonic>, gathering: &mut Gathering) -> Step {
    let clock = log.environment().clock();
    // Before the count: a waker that is added after it, and makes the number complete, wakes this task.
    log.wake_sync_task_from(gathering.wanted());
    let waiting = log.durable_waker_count();
    if waiting > 0
        && let Some(pause) = gathering.pause(waiting, clock.monotonic())
    {
        return Step::Wait(pause);
    }
    let start = clock.monotonic();
    let step = sync_and_serve(log, dirty_since);
    gathering.synced(waiting, log.durable_waker_count(), clock.monotonic().since(start));
    step
}

fn sync_and_serve(log: &Log, dirty_since: &mut Option<Monotonic>) -> Step {
    *dirty_since = None;
    // Before the sync: a record that is appended during it sets the flag again.
    log.is_dirty.store(false, Ordering::SeqCst);
    match log.sync(log.appended_lsn()) {
        // If all was durable already, the sync has served no waker. A thread that has just left a waker looks
        // by itself. Asking again until it does would be a busy wait.
        Ok(()) => {
            log.serve_wakers();
            Step::Again
        }
        // The log is poisoned and all wakers are called. The sync task has no more work.
        Err(_) => Step::Sleep,
    }
}
