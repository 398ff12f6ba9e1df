//! Open cursors: the rest of a result that did not fit the first batch, kept for `getMore`.
//!
//! A cursor is taken out of the table while a `getMore` works on it and put back afterwards, so that no lock
//! is held while it runs, and a second `getMore` on the same cursor meanwhile is told that the cursor is in
//! use.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use pando_catalog::{Caller, HeldMemory, SharedEngine};
use parking_lot::Mutex;

use crate::error::Failure;
use crate::{CommandError, ErrorCode};

/// The time after which an unused cursor is closed: ten minutes by default, as in MongoDB.
#[derive(Clone, Copy, Debug)]
pub struct CursorTimeout(pub Duration);

impl Default for CursorTimeout {
    fn default() -> CursorTimeout {
        CursorTimeout(Duration::from_secs(600))
    }
}

/// Whether an unused cursor is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expiry {
    /// After the time-out.
    TimesOut,
    /// Never (`noCursorTimeout`).
    Never,
}

/// An estimate of a waiting cursor's memory, without its undelivered documents: the plan, and one small batch
/// of entries that the engine does not count.
const WAITING_BYTES: usize = 32 << 10;

/// An open cursor.
pub(crate) struct OpenCursor {
    /// `database.collection`.
    pub namespace: String,
    /// The source of the rest.
    pub source: Box<dyn CursorSource>,
    /// Documents a batch, where `getMore` does not say.
    pub batch_size: Option<u64>,
    pub expiry: Expiry,
    /// Documents that were fetched and not delivered.
    pub carry: Vec<Vec<u8>>,
    /// Its memory while it waits, counted against the engine's limit.
    pub memory: Option<HeldMemory>,
}

impl OpenCursor {
    /// A cursor that times out, before its first batch.
    pub fn new(namespace: String, source: Box<dyn CursorSource>) -> OpenCursor {
        OpenCursor {
            namespace,
            source,
            batch_size: None,
            expiry: Expiry::TimesOut,
            carry: Vec::new(),
            memory: None,
        }
    }

    /// Counts its memory while it waits for a `getMore`.
    pub fn hold_memory(&mut self, engine: &SharedEngine) {
        let memory = self.memory.get_or_insert_with(|| engine.lend_memory(WAITING_BYTES));
        // The documents are held in any case, even beyond the limit.
        memory.set(WAITING_BYTES + self.carry.iter().map(Vec::capacity).sum::<usize>());
    }
}

/// Which of a cursor's batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BatchPlace {
    /// The one that its command answers.
    First,
    /// One that a `getMore` answers.
    Later,
}

/// The source of a cursor's documents.
pub(crate) trait CursorSource: Send {
    /// The next document, copied into `document` (emptied first); false at the end. After `WouldBlock` it may
    /// be called again with `MayBlock` and goes on where it stood.
    fn next(&mut self, caller: Caller<'_>, document: &mut Vec<u8>) -> Result<bool, CommandError>;

    /// Whether the source is known to be exhausted, without asking it for another document, when this batch
    /// is full.
    fn is_exhausted(&self, _batch: BatchPlace) -> bool {
        false
    }
}

enum Slot {
    Free {
        cursor: OpenCursor,
        used_ms: i64,
    },
    InUse,
    /// Killed while in use: not put back.
    Killed,
}

/// All open cursors.
pub(crate) struct Cursors {
    slots: Mutex<HashMap<i64, Slot>>,
    next_id: AtomicI64,
    timeout: CursorTimeout,
}

impl Cursors {
    pub fn new(timeout: CursorTimeout) -> Cursors {
        Cursors { slots: Mutex::new(HashMap::new()), next_id: AtomicI64::new(1), timeout }
    }

    /// Keeps a cursor and gives it a number. Numbers are scattered, so that a stale one does not hit a later
    /// cursor.
    pub fn open(&self, cursor: OpenCursor, now_ms: i64) -> i64 {
        let mut slots = self.slots.lock();
        loop {
            let id = scatter(self.next_id.fetch_add(1, Ordering::Relaxed));
            if let Entry::Vacant(vacant) = slots.entry(id) {
                vacant.insert(Slot::Free { cursor, used_ms: now_ms });
                return id;
            }
        }
    }

    /// Takes a cursor out for a `getMore`.
    pub fn take(&self, id: i64) -> Result<OpenCursor, CommandError> {
        let mut slots = self.slots.lock();
        match slots.get_mut(&id) {
            None | Some(Slot::Killed) => {
                Err(Failure::new(ErrorCode::CursorNotFound, format!("cursor id {id} not found")).into())
            }
            Some(Slot::InUse) => {
                Err(Failure::new(ErrorCode::Location(12051), format!("cursor id {id} is already in use"))
                    .into())
            }
            Some(slot @ Slot::Free { .. }) => match std::mem::replace(slot, Slot::InUse) {
                Slot::Free { cursor, .. } => Ok(cursor),
                Slot::InUse | Slot::Killed => {
                    unreachable!("the slot was seen to be free under the same lock")
                }
            },
        }
    }

    /// Puts a cursor back after a `getMore`, unless it was killed meanwhile.
    pub fn put_back(&self, id: i64, cursor: OpenCursor, now_ms: i64) {
        let mut slots = self.slots.lock();
        match slots.get_mut(&id) {
            Some(slot @ Slot::InUse) => *slot = Slot::Free { cursor, used_ms: now_ms },
            _ => {
                slots.remove(&id);
            }
        }
    }

    /// Closes a cursor that is exhausted.
    pub fn close(&self, id: i64) {
        self.slots.lock().remove(&id);
    }

    /// Kills a cursor; false where there is none.
    pub fn kill(&self, id: i64) -> bool {
        let mut slots = self.slots.lock();
        match slots.get_mut(&id) {
            None | Some(Slot::Killed) => false,
            Some(slot @ Slot::InUse) => {
                *slot = Slot::Killed;
                true
            }
            Some(Slot::Free { .. }) => slots.remove(&id).is_some(),
        }
    }

    /// Cursors that are open.
    pub fn len(&self) -> usize {
        self.slots.lock().len()
    }

    /// Closes the cursors that were not used for the time-out.
    pub fn expire(&self, now_ms: i64) {
        let limit = i64::try_from(self.timeout.0.as_millis()).unwrap_or(i64::MAX);
        self.slots.lock().retain(|_, slot| match slot {
            Slot::Free { cursor, used_ms } => {
                cursor.expiry == Expiry::Never || now_ms.saturating_sub(*used_ms) < limit
            }
            Slot::InUse | Slot::Killed => true,
        });
    }

    /// Closes every cursor.
    pub fn clear(&self) {
        self.slots.lock().clear();
    }
}

/// Scatters consecutive numbers over the positive 63 bits.
fn scatter(sequence: i64) -> i64 {
    let mut x = sequence.cast_unsigned().wrapping_mul(0x9E37_79B9_7F4A_7C15);
    x ^= x >> 32;
    x = x.wrapping_mul(0xD6E8_FEB8_6659_FD93);
    x ^= x >> 32;
    (x >> 1).max(1).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Empty;

    impl CursorSource for Empty {
        fn next(&mut self, _caller: Caller<'_>, _document: &mut Vec<u8>) -> Result<bool, CommandError> {
            Ok(false)
        }
    }

    fn cursor(expiry: Expiry) -> OpenCursor {
        OpenCursor { expiry, ..OpenCursor::new("a.b".to_owned(), Box::new(Empty)) }
    }

    #[test]
    fn a_cursor_in_use_cannot_be_taken_twice_and_is_gone_when_killed_meanwhile() {
        let cursors = Cursors::new(CursorTimeout::default());
        let id = cursors.open(cursor(Expiry::TimesOut), 0);
        let taken = cursors.take(id).unwrap();
        assert!(cursors.take(id).is_err());
        assert!(cursors.kill(id));
        cursors.put_back(id, taken, 0);
        assert!(cursors.take(id).is_err());
        assert_eq!(cursors.len(), 0);
    }

    #[test]
    fn unused_cursors_expire_and_those_without_timeout_do_not() {
        let cursors = Cursors::new(CursorTimeout(Duration::from_millis(10)));
        let short = cursors.open(cursor(Expiry::TimesOut), 0);
        let long = cursors.open(cursor(Expiry::Never), 0);
        cursors.expire(5);
        assert_eq!(cursors.len(), 2);
        cursors.expire(10);
        assert!(cursors.take(short).is_err());
        assert!(cursors.take(long).is_ok());
    }
}
