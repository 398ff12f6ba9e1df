//! A capped collection: its limits, the turn of its writers, and the cursors that wait for its next document.
//!
//! # Terms
//! - *Limits*: the most bytes and the most documents. An insert beyond them removes the oldest documents in
//!   the same commit (`documents::capping`).
//! - *Turn*: a mutex that a statement which writes holds from before its snapshot until after its commit.
//! - *Tail*: the end of the collection. A cursor that has read it waits for the next commit.
//!
//! # Why writers take turns
//! - Record ids then grow in the order of commits. A cursor at the tail never misses a document that a later
//!   commit puts before its position.
//! - The counters are exact for the writer, and two inserts never remove the same oldest document. So inserts
//!   meet no conflict.
//!
//! A turn lasts as long as a commit without its sync: clients wait for the device together, behind it.
//!
//! # Invariants
//! - The first record is at or before the oldest document of every later snapshot.
//! - A wait that begins with a version which is no longer the newest is over at once, so no commit is missed.

use std::sync::Arc;

use pando_document::{RawDocument, RawValue};
use pando_storage::{SnapshotTimestamp, WaitSignal};
use parking_lot::{ArcMutexGuard, Mutex, RawMutex};

/// The sizes of capped collections are multiples of this, in bytes.
const SIZE_STEP: u64 = 256;

/// The size that a capped collection gets where a user asks for so many bytes.
pub fn capped_size(wanted: u64) -> u64 {
    wanted.max(1).div_ceil(SIZE_STEP) * SIZE_STEP
}

/// The limits of a capped collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CappedLimits {
    /// The most bytes of documents, unless it is one document.
    pub bytes: u64,
    /// The most documents, where there is such a limit.
    pub documents: Option<u64>,
}

impl CappedLimits {
    /// The limits in the options of a collection; `None` of one that is not capped.
    pub fn of_options(options: &RawDocument) -> Option<CappedLimits> {
        let Ok(Some(RawValue::Boolean(true))) = options.get("capped") else { return None };
        let number = |name| options.get(name).ok().flatten().and_then(|value| value.as_i64_exact());
        let bytes = number("size").and_then(|size| u64::try_from(size).ok())?;
        let documents = number("max").and_then(|max| u64::try_from(max).ok()).filter(|max| *max > 0);
        Some(CappedLimits { bytes, documents })
    }

    /// Whether so much is within the limits.
    pub(crate) fn admit(&self, documents: i64, bytes: i64) -> bool {
        let within = |have: i64, most: u64| u64::try_from(have).unwrap_or(0) <= most;
        within(bytes, self.bytes) && self.documents.is_none_or(|most| within(documents, most))
    }
}

/// The state of a capped collection in memory; shared by all of its descriptions.
#[derive(Debug, Default)]
pub(crate) struct CappedState {
    turn: Arc<Mutex<()>>,
    first: Mutex<FirstRecord>,
    tail: Mutex<Tail>,
}

/// A record id that no document comes before.
#[derive(Clone, Copy, Debug, Default)]
struct FirstRecord {
    record: u64,
    /// The snapshot that has shown it.
    seen_at: Option<SnapshotTimestamp>,
}

#[derive(Debug, Default)]
struct Tail {
    version: TailVersion,
    waits: Vec<Arc<WaitSignal>>,
}

/// A number that grows with each turn of a writer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TailVersion(u64);

impl CappedState {
    /// See the module's head.
    pub(crate) fn turn_lock(&self) -> &Arc<Mutex<()>> {
        &self.turn
    }

    /// The record from which on the oldest document is looked for.
    pub(crate) fn first_record(&self) -> u64 {
        self.first.lock().record
    }

    /// Notes the oldest record that a snapshot has, before its own transaction has removed any. Only the
    /// first look of a snapshot counts: a transaction that was rolled back may have had the same one.
    pub(crate) fn note_first(&self, snapshot: SnapshotTimestamp, record: u64) {
        let mut first = self.first.lock();
        if first.seen_at != Some(snapshot) {
            *first = FirstRecord { record, seen_at: Some(snapshot) };
        }
    }

    /// The version before a snapshot is taken.
    pub(crate) fn tail_version(&self) -> TailVersion {
        self.tail.lock().version
    }

    /// Fires the signal after the next commit, or at once where the version is not the newest.
    pub(crate) fn when_changed(&self, seen: TailVersion, signal: &Arc<WaitSignal>) {
        let mut tail = self.tail.lock();
        if tail.version == seen {
            // Waits that have ended otherwise are forgotten here, so that they are no more than the others.
            if tail.waits.len() == tail.waits.capacity() {
                tail.waits.retain(|wait| !wait.is_fired());
            }
            tail.waits.push(Arc::clone(signal));
            return;
        }
        drop(tail);
        signal.fire();
    }

    /// Ends all waits.
    pub(crate) fn wake_tail(&self) {
        let mut tail = self.tail.lock();
        tail.version.0 += 1;
        let waits = std::mem::take(&mut tail.waits);
        drop(tail);
        waits.iter().for_each(|wait| wait.fire());
    }
}

/// A turn of a writer. Its end wakes the cursors at the tail.
pub(crate) struct CappedTurn {
    guard: Option<ArcMutexGuard<RawMutex, ()>>,
    state: Arc<CappedState>,
}

impl CappedTurn {
    pub(crate) fn new(guard: ArcMutexGuard<RawMutex, ()>, state: &Arc<CappedState>) -> CappedTurn {
        CappedTurn { guard: Some(guard), state: Arc::clone(state) }
    }
}

impl Drop for CappedTurn {
    fn drop(&mut self) {
        // First the turn: a cursor that wakes may belong to a client that writes next.
        drop(self.guard.take());
        self.state.wake_tail();
    }
}

#[cfg(test)]
mod tests {
    use pando_document::doc;

    use super::*;

    #[test]
    fn limits_come_from_the_options() {
        let limits = |options: pando_document::Document| CappedLimits::of_options(&options.to_raw());
        assert_eq!(limits(doc! {}), None);
        assert_eq!(limits(doc! { "capped": false, "size": 4096 }), None);
        let both = limits(doc! { "capped": true, "size": 4096, "max": 5 }).unwrap();
        assert_eq!(both, CappedLimits { bytes: 4096, documents: Some(5) });
        assert!(both.admit(5, 4096) && !both.admit(6, 1) && !both.admit(1, 4097));
        assert_eq!([1, 256, 257].map(capped_size), [256, 256, 512]);
    }

    #[test]
    fn a_wait_at_the_tail_ends_with_the_next_turn_or_at_once() {
        let state = Arc::new(CappedState::default());
        let seen = state.tail_version();
        let signal = Arc::new(WaitSignal::default());
        state.when_changed(seen, &signal);
        assert!(!signal.is_fired());
        drop(CappedTurn::new(state.turn_lock().lock_arc(), &state));
        assert!(signal.is_fired() && state.turn_lock().try_lock().is_some());
        let late = Arc::new(WaitSignal::default());
        state.when_changed(seen, &late);
        assert!(late.is_fired());
    }

    #[test]
    fn waits_that_have_ended_do_not_pile_up() {
        let state = CappedState::default();
        let seen = state.tail_version();
        for _ in 0..10_000 {
            let signal = Arc::new(WaitSignal::default());
            state.when_changed(seen, &signal);
            signal.fire();
        }
        assert!(state.tail.lock().waits.len() < 100);
    }
}
