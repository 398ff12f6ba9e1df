//! The supervision of ranges under way: one thread that waits, and looks at the caller's operation now and
//! then.
//!
//! 1. It ends the ranges with the caller's operation, and those behind one that has failed.
//! 2. It shows the caller's operation what the ranges have done so far, and whether one waits for the device.

use std::sync::Arc;
use std::time::Duration;

use pando_catalog::{DeviceAccount, DeviceReads, Interruption, Operation, OperationWait};
use parking_lot::{Condvar, Mutex};

/// The time between two looks at the caller's operation.
const A_LOOK: Duration = Duration::from_millis(2);

/// See the module's head.
#[derive(Default)]
pub(in crate::crud) struct Supervision {
    progress: Mutex<Progress>,
    changed: Condvar,
}

#[derive(Default)]
struct Progress {
    ended: usize,
    /// The place of the first range that has failed.
    first_failure: Option<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::crud) enum PartOutcome {
    Read,
    Failed,
}

/// Tells of the end of a range when it is dropped.
pub(in crate::crud) struct EndedPart<'s> {
    pub supervision: &'s Supervision,
    /// The place of the range.
    pub place: usize,
    pub outcome: PartOutcome,
}

impl Drop for EndedPart<'_> {
    fn drop(&mut self) {
        let mut progress = self.supervision.progress.lock();
        progress.ended += 1;
        if self.outcome == PartOutcome::Failed {
            let first = progress.first_failure.map_or(self.place, |first| first.min(self.place));
            progress.first_failure = Some(first);
        }
        self.supervision.changed.notify_all();
    }
}

impl Supervision {
    /// Returns when all ranges have ended.
    pub fn watch(&self, whole: &Operation, parts: &[Arc<Operation>]) {
        let _charge = whole.device().charge_thread();
        let mut shown = Shown::default();
        let mut progress = self.progress.lock();
        while progress.ended < parts.len() {
            let is_waiting = parts.iter().any(|part| part.wait() == Some(OperationWait::Device));
            let _wait = is_waiting.then(|| DeviceAccount::waiting(OperationWait::Device));
            shown.bring_up(whole, parts);
            // The look at the clock is what finds a time limit.
            if let Err(interruption) = whole.check_now() {
                parts.iter().for_each(|part| part.interrupt(interruption));
            }
            // Nobody is told the error of a range behind one that has failed.
            let behind = progress.first_failure.map_or(parts.len(), |first| first + 1);
            parts[behind..].iter().for_each(|part| part.interrupt(Interruption::Killed));
            self.changed.wait_for(&mut progress, A_LOOK);
        }
        shown.bring_up(whole, parts);
    }
}

/// The work of the ranges that the caller's operation shows. While they are read, nobody else adds to it.
#[derive(Default)]
struct Shown {
    keys: u64,
    documents: u64,
    pages: u64,
    bytes: u64,
    time: Duration,
}

impl Shown {
    /// Adds what the ranges have done since the last time.
    fn bring_up(&mut self, whole: &Operation, parts: &[Arc<Operation>]) {
        let mut now = Shown::default();
        for part in parts {
            let (usage, reads) = (part.usage().figures(), part.device().reads());
            now.keys += usage.keys_examined;
            now.documents += usage.documents_examined;
            now.pages += reads.pages;
            now.bytes += reads.bytes;
            now.time += reads.time;
        }
        whole.usage().add_examined(now.keys - self.keys, now.documents - self.documents);
        whole.device().add(DeviceReads {
            pages: now.pages - self.pages,
            bytes: now.bytes - self.bytes,
            time: now.time.saturating_sub(self.time),
        });
        *self = now;
    }
}
