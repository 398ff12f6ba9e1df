//! The background task of the log: serves wakers, syncs what has waited for the flush interval, makes segments ready.

use pando_environment::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use pando_environment::{Monotonic, Step};

use super::{Log, LogError};

/// Starts the flusher. It ends with the log.
pub(super) fn start(log: &Arc<Log>) -> Result<(), LogError> {
    let weak = Arc::downgrade(log);
    let mut dirty_since = None;
    let step = Box::new(move || step(&weak, &mut dirty_since));
    let task = log.environment().spawner().spawn("pando-log", step)?;
    log.set_flusher(task);
    Ok(())
}

fn step(log: &Weak<Log>, dirty_since: &mut Option<Monotonic>) -> Step {
    let Some(log) = log.upgrade() else { return Step::Done };
    // Without room the next append reports it to the one who wants to write.
    let _no_room = log.prepare_segment();
    let now = log.environment().clock().monotonic();
    if log.has_wakers() {
        return flush(&log, dirty_since);
    }
    if !log.is_dirty.load(Ordering::SeqCst) {
        *dirty_since = None;
        return Step::Sleep;
    }
    let waited = now.since(*dirty_since.get_or_insert(now));
    if waited >= log.flush_interval() {
        return flush(&log, dirty_since);
    }
    Step::Wait(log.flush_interval() - waited)
}

fn flush(log: &Log, dirty_since: &mut Option<Monotonic>) -> Step {
    *dirty_since = None;
    // Before the sync: what is appended during it is dirty again.
    log.is_dirty.store(false, Ordering::SeqCst);
    match log.sync(log.appended_lsn()) {
        // Where all was durable already the sync has served nobody: whoever left a waker meanwhile may be about to look himself, but
        // to ask again and again until he does would be to wait for him by turning in circles.
        Ok(()) => {
            log.serve_wakers();
            Step::Again
        }
        // The log is poisoned, and all wakers have been told; there is nothing left to do.
        Err(_) => Step::Sleep,
    }
}
