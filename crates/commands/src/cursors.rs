//! Open cursors: the rest of a result that did not fit the first batch, kept for `getMore`.
//!
//! A cursor is taken out of the table while a `getMore` works on it and put back afterwards, so that no lock
//! is held while it runs, and a second `getMore` on the same cursor meanwhile is told that the cursor is in
//! use.
//!
//! # Ends of a cursor
//! - Its source is exhausted, or a `getMore` fails.
//! - It is killed. A `getMore` under way is interrupted.
//! - Its collection is dropped. The next `getMore` is told so.
//! - It was not used for the time-out. One without a time-out ends with its session, unless the program that
//!   holds the store ends it itself.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use pando_catalog::{Interruption, QueryAccount, Reservation};
use pando_query::expression::EvaluationWatch;
use parking_lot::Mutex;

use crate::cursor_facts::{CursorFacts, Expiry};
use crate::cursor_source::CursorSource;
use crate::error::Failure;
use crate::operations::ConnectionRecord;
use crate::session_id::SessionId;
use crate::{CommandError, ErrorCode};

/// The time after which an unused cursor is closed: ten minutes by default, as in MongoDB.
#[derive(Clone, Copy, Debug)]
pub struct CursorTimeout(pub Duration);

impl Default for CursorTimeout {
    fn default() -> CursorTimeout {
        CursorTimeout(Duration::from_secs(600))
    }
}

/// An estimate of a waiting cursor's memory, without its undelivered documents: the plan, and one small batch
/// of entries that the engine does not count.
const WAITING_BYTES: usize = 32 << 10;

/// Parsed filters, plans and stages take so many times the bytes of their request, about.
const PARSED_FACTOR: usize = 6;

/// The rest of a cursor's documents, and the memory of its query.
pub(crate) struct Supply {
    pub source: Box<dyn CursorSource>,
    /// Documents that were fetched and not delivered.
    pub carry: Vec<Vec<u8>>,
    /// The memory of its query, from its first batch to its last.
    pub account: QueryAccount,
    /// The parts of that memory which are no stage's: the plan, and documents that wait.
    waiting: Reservation,
    /// An estimate of the parsed request.
    request_bytes: usize,
    pub batch_memory: BatchMemory,
    /// The watch of its expressions, which follows the operation that works on it.
    pub watch: Option<EvaluationWatch>,
}

impl Supply {
    /// A source, and the bytes of the request that it was parsed from: lists of values and stages count
    /// where they are much.
    pub fn new(source: Box<dyn CursorSource>, account: &QueryAccount, request_bytes: usize) -> Supply {
        let request_bytes = request_bytes * PARSED_FACTOR;
        let mut waiting = account.reserve();
        if request_bytes > WAITING_BYTES {
            waiting.hold(request_bytes);
        }
        let account = account.clone();
        let batch_memory = BatchMemory::Available;
        Supply { source, carry: Vec::new(), account, waiting, request_bytes, batch_memory, watch: None }
    }

    /// Counts its memory while it waits for a `getMore`.
    pub fn hold_memory(&mut self) {
        // The documents are held in any case, even beyond the limit.
        let carried: usize = self.carry.iter().map(Vec::capacity).sum();
        self.waiting.hold(WAITING_BYTES + self.request_bytes + carried);
    }
}

/// An open cursor.
pub(crate) struct OpenCursor {
    pub facts: Arc<CursorFacts>,
    pub supply: Supply,
    /// The rest of the time limit of the command that has opened the cursor.
    pub time_left: Option<Duration>,
}

impl OpenCursor {
    /// A cursor with its facts.
    pub fn new(facts: CursorFacts, supply: Supply) -> OpenCursor {
        OpenCursor { facts: Arc::new(facts), supply, time_left: None }
    }
}

/// How much of a batch is fetched where the memory of queries is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BatchMemory {
    /// The documents that fit: a `getMore` fetches the rest.
    Available,
    /// All of the batch: there is no `getMore`.
    Exceeded,
}

enum Slot {
    Free(OpenCursor),
    InUse {
        facts: Arc<CursorFacts>,
        user: Arc<ConnectionRecord>,
    },
    /// Killed while in use: not put back.
    Killed,
    /// Its collection was dropped; the sentence for the next `getMore`.
    Dropped {
        facts: Arc<CursorFacts>,
        sentence: String,
    },
}

impl Slot {
    fn facts(&self) -> Option<&Arc<CursorFacts>> {
        match self {
            Slot::Free(cursor) => Some(&cursor.facts),
            Slot::InUse { facts, .. } | Slot::Dropped { facts, .. } => Some(facts),
            Slot::Killed => None,
        }
    }

    /// Ends the wait of a `getMore` for it.
    fn wake(&self) {
        if let Some(facts) = self.facts() {
            facts.wake();
        }
    }
}

/// All open cursors.
pub(crate) struct Cursors {
    slots: Mutex<HashMap<i64, Slot>>,
    next_id: AtomicI64,
    timeout_ms: AtomicI64,
    /// Cursors without a time-out, whose sessions are watched.
    watched: AtomicUsize,
    /// When the sessions of those cursors were used last.
    sessions: Mutex<HashMap<SessionId, i64>>,
    opened: AtomicU64,
    timed_out: AtomicU64,
    several_batches: AtomicU64,
}

/// The counts of cursors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CursorsFigures {
    /// Cursors that are open now.
    pub open: u64,
    /// Those of them that a `getMore` works on.
    pub in_use: u64,
    /// Those of them without a time-out.
    pub without_timeout: u64,
    /// Cursors since the start.
    pub opened: u64,
    /// Cursors that were closed because they were not used.
    pub timed_out: u64,
    /// Cursors that have delivered a second batch.
    pub several_batches: u64,
}

impl Cursors {
    pub fn new(timeout: CursorTimeout) -> Cursors {
        Cursors {
            slots: Mutex::default(),
            next_id: AtomicI64::new(1),
            timeout_ms: AtomicI64::new(i64::try_from(timeout.0.as_millis()).unwrap_or(i64::MAX)),
            watched: AtomicUsize::new(0),
            sessions: Mutex::default(),
            opened: AtomicU64::new(0),
            timed_out: AtomicU64::new(0),
            several_batches: AtomicU64::new(0),
        }
    }

    /// Keeps a cursor and gives it a number. Numbers are scattered, so that a stale one does not hit a later
    /// cursor.
    pub fn open(&self, cursor: OpenCursor, now_ms: i64) -> i64 {
        self.opened.fetch_add(1, Ordering::Relaxed);
        if let (Expiry::Never, Some(session)) = (cursor.facts.expiry, cursor.facts.session) {
            self.sessions.lock().insert(session, now_ms);
            self.watched.fetch_add(1, Ordering::Relaxed);
        }
        let mut slots = self.slots.lock();
        loop {
            let id = scatter(self.next_id.fetch_add(1, Ordering::Relaxed));
            if let Entry::Vacant(vacant) = slots.entry(id) {
                cursor.facts.set_id(id);
                cursor.facts.touch(now_ms);
                vacant.insert(Slot::Free(cursor));
                return id;
            }
        }
    }

    /// The documents of a cursor that were delivered; `None` where there is no such cursor.
    pub fn returned(&self, id: i64) -> Option<i64> {
        Some(self.slots.lock().get(&id)?.facts()?.figures().returned)
    }

    /// The facts of a cursor; `None` where there is no such cursor.
    pub fn facts(&self, id: i64) -> Option<Arc<CursorFacts>> {
        self.slots.lock().get(&id)?.facts().cloned()
    }

    /// Takes a cursor out for a `getMore` of this connection.
    pub fn take(&self, id: i64, user: &Arc<ConnectionRecord>) -> Result<OpenCursor, CommandError> {
        let mut slots = self.slots.lock();
        let Some(slot) = slots.get_mut(&id) else { return Err(not_found(id)) };
        let facts = match slot {
            Slot::Free(cursor) if cursor.facts.is_awaited_by_other(user.id()) => return Err(in_use(id)),
            Slot::Free(cursor) => Arc::clone(&cursor.facts),
            Slot::Killed => return Err(not_found(id)),
            Slot::InUse { .. } => return Err(in_use(id)),
            Slot::Dropped { sentence, .. } => {
                let failure = Failure::new(ErrorCode::QueryPlanKilled, std::mem::take(sentence));
                slots.remove(&id);
                return Err(failure.into());
            }
        };
        match std::mem::replace(slot, Slot::InUse { facts, user: Arc::clone(user) }) {
            Slot::Free(cursor) => Ok(cursor),
            Slot::InUse { .. } | Slot::Killed | Slot::Dropped { .. } => {
                unreachable!("the slot was seen to be free under the same lock")
            }
        }
    }

    /// Counts a cursor that gives a second batch.
    pub fn count_second_batch(&self) {
        self.several_batches.fetch_add(1, Ordering::Relaxed);
    }

    /// Puts a cursor back after a `getMore`, unless it was killed meanwhile.
    pub fn put_back(&self, id: i64, mut cursor: OpenCursor, now_ms: i64) {
        cursor.supply.source.rest();
        let mut slots = self.slots.lock();
        match slots.get_mut(&id) {
            Some(slot @ Slot::InUse { .. }) => {
                cursor.facts.touch(now_ms);
                *slot = Slot::Free(cursor);
            }
            // The next getMore is told of the drop.
            Some(Slot::Dropped { .. }) => cursor.facts.wake(),
            _ => {
                slots.remove(&id);
                cursor.facts.wake();
            }
        }
    }

    /// Closes a cursor that is exhausted.
    pub fn close(&self, id: i64) {
        self.slots.lock().remove(&id);
    }

    /// Kills a cursor, and interrupts a `getMore` that works on it; false where there is none.
    pub fn kill(&self, id: i64) -> bool {
        let mut slots = self.slots.lock();
        match slots.get_mut(&id) {
            None | Some(Slot::Killed) => false,
            Some(slot @ Slot::InUse { .. }) => {
                kill_in_use(slot, id);
                true
            }
            Some(slot @ (Slot::Free(_) | Slot::Dropped { .. })) => {
                slot.wake();
                slots.remove(&id).is_some()
            }
        }
    }

    /// Kills the cursors of the sessions that are wanted.
    pub fn kill_sessions(&self, is_wanted: impl Fn(SessionId) -> bool) {
        self.slots.lock().retain(|id, slot| {
            let session = slot.facts().and_then(|facts| facts.session);
            if !session.is_some_and(&is_wanted) {
                return true;
            }
            match slot {
                Slot::InUse { .. } => {
                    kill_in_use(slot, *id);
                    true
                }
                Slot::Free(_) | Slot::Killed | Slot::Dropped { .. } => {
                    slot.wake();
                    false
                }
            }
        });
    }

    /// Closes the cursors that read a transaction which has ended.
    pub fn end_transaction(&self, session: SessionId, number: i64) {
        self.slots.lock().retain(|_, slot| {
            let is_of_transaction = slot
                .facts()
                .is_some_and(|facts| facts.session == Some(session) && facts.transaction == Some(number));
            !is_of_transaction || matches!(slot, Slot::InUse { .. })
        });
    }

    /// Ends the cursors over a collection that was dropped. The sentence tells their clients. A `getMore`
    /// that has not ended by now gives its batch; the next one is told.
    pub fn end_users_of(&self, namespace: &str, sentence: &str) {
        for slot in self.slots.lock().values_mut() {
            let facts = match slot {
                Slot::Free(OpenCursor { facts, .. }) | Slot::InUse { facts, .. } => Arc::clone(facts),
                Slot::Killed | Slot::Dropped { .. } => continue,
            };
            if facts.namespace == namespace {
                facts.wake();
                *slot = Slot::Dropped { facts, sentence: sentence.to_owned() };
            }
        }
    }

    /// Whether a cursor was killed while it is in use. The interruption may have come before its user was
    /// listed with it.
    pub fn is_killed(&self, id: i64) -> bool {
        matches!(self.slots.lock().get(&id), Some(Slot::Killed))
    }

    /// Whether a cursor that is in use was killed, or its collection dropped.
    pub fn is_lost(&self, id: i64) -> bool {
        !matches!(self.slots.lock().get(&id), Some(Slot::InUse { .. }))
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.slots.lock().len()
    }

    /// The counts of cursors.
    pub fn figures(&self) -> CursorsFigures {
        let slots = self.slots.lock();
        let count =
            |is_wanted: fn(&Slot) -> bool| slots.values().filter(|slot| is_wanted(slot)).count() as u64;
        CursorsFigures {
            open: slots.len() as u64,
            in_use: count(|slot| matches!(slot, Slot::InUse { .. } | Slot::Killed)),
            without_timeout: count(|slot| slot.facts().is_some_and(|facts| facts.expiry != Expiry::TimesOut)),
            opened: self.opened.load(Ordering::Relaxed),
            timed_out: self.timed_out.load(Ordering::Relaxed),
            several_batches: self.several_batches.load(Ordering::Relaxed),
        }
    }

    /// The facts of the cursors that wait for a `getMore`.
    pub fn idle(&self) -> Vec<Arc<CursorFacts>> {
        let slots = self.slots.lock();
        let idle = slots.values().filter_map(|slot| match slot {
            Slot::Free(cursor) => Some(Arc::clone(&cursor.facts)),
            Slot::InUse { .. } | Slot::Killed | Slot::Dropped { .. } => None,
        });
        idle.collect()
    }

    /// Notes that a session was used: cursors without a time-out end with their session.
    pub fn touch_session(&self, session: SessionId, now_ms: impl FnOnce() -> i64) {
        if self.watched.load(Ordering::Relaxed) > 0
            && let Some(used_ms) = self.sessions.lock().get_mut(&session)
        {
            *used_ms = now_ms();
        }
    }

    /// The time in milliseconds after which an unused cursor is closed.
    pub fn timeout_ms(&self) -> i64 {
        self.timeout_ms.load(Ordering::Relaxed)
    }

    /// Changes that time, also for the cursors that are open. One of 0 or less closes any unused cursor.
    pub fn set_timeout_ms(&self, milliseconds: i64) {
        self.timeout_ms.store(milliseconds, Ordering::Relaxed);
    }

    /// Closes the cursors that were not used for the time-out.
    pub fn expire(&self, now_ms: i64) {
        let limit = self.timeout_ms();
        let mut slots = self.slots.lock();
        let before = slots.len();
        slots.retain(|_, slot| match slot {
            Slot::Free(OpenCursor { facts, .. }) | Slot::Dropped { facts, .. } => {
                facts.expiry != Expiry::TimesOut || now_ms.saturating_sub(facts.figures().used_ms) < limit
            }
            Slot::InUse { .. } | Slot::Killed => true,
        });
        self.timed_out.fetch_add((before - slots.len()) as u64, Ordering::Relaxed);
    }

    /// Closes the cursors without a time-out whose session was not used for this time.
    pub fn expire_sessions(&self, now_ms: i64, limit: Duration) {
        let limit = i64::try_from(limit.as_millis()).unwrap_or(i64::MAX);
        let mut slots = self.slots.lock();
        let mut sessions = self.sessions.lock();
        let is_over = |session: &SessionId| {
            sessions.get(session).is_none_or(|used_ms| now_ms.saturating_sub(*used_ms) >= limit)
        };
        slots.retain(|_, slot| match slot {
            Slot::Free(OpenCursor { facts, .. }) | Slot::Dropped { facts, .. } => {
                facts.expiry != Expiry::Never || !facts.session.as_ref().is_some_and(is_over)
            }
            Slot::InUse { .. } | Slot::Killed => true,
        });
        let watched: Vec<SessionId> = slots
            .values()
            .filter_map(|slot| slot.facts().filter(|facts| facts.expiry == Expiry::Never)?.session)
            .collect();
        sessions.retain(|session, _| watched.contains(session));
        self.watched.store(watched.len(), Ordering::Relaxed);
    }

    /// Closes every cursor.
    pub fn clear(&self) {
        let slots = std::mem::take(&mut *self.slots.lock());
        slots.values().for_each(Slot::wake);
    }
}

/// Interrupts the `getMore` that works on this cursor, and has the cursor not put back.
fn kill_in_use(slot: &mut Slot, id: i64) {
    if let Slot::InUse { user, .. } = slot {
        user.interrupt_if(Interruption::CursorKilled, |request| {
            request.cursor.as_ref().is_some_and(|cursor| cursor.figures().id == id)
        });
        *slot = Slot::Killed;
    }
}

fn in_use(id: i64) -> CommandError {
    CommandError::failed(ErrorCode::CursorInUse, format!("cursor id {id} is already in use"))
}

fn not_found(id: i64) -> CommandError {
    CommandError::failed(ErrorCode::CursorNotFound, format!("cursor id {id} not found"))
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
    use pando_catalog::{Caller, Operation};

    use super::*;

    struct Empty;

    impl CursorSource for Empty {
        fn next(&mut self, _caller: Caller<'_>, _out: &mut Vec<u8>) -> Result<bool, CommandError> {
            Ok(false)
        }
    }

    fn cursor(expiry: Expiry) -> OpenCursor {
        let supply = Supply::new(Box::new(Empty), &QueryAccount::unlimited(), 0);
        OpenCursor::new(CursorFacts::new("a.b".to_owned(), expiry, 0), supply)
    }

    fn user() -> Arc<ConnectionRecord> {
        Arc::new(ConnectionRecord::new(1, "test", Arc::new(Operation::default())))
    }

    #[test]
    fn a_cursor_in_use_cannot_be_taken_twice_and_is_gone_when_killed_meanwhile() {
        let cursors = Cursors::new(CursorTimeout::default());
        let id = cursors.open(cursor(Expiry::TimesOut), 0);
        let taken = cursors.take(id, &user()).unwrap();
        assert!(cursors.take(id, &user()).is_err());
        assert!(cursors.kill(id));
        cursors.put_back(id, taken, 0);
        assert!(cursors.take(id, &user()).is_err());
        assert_eq!(cursors.len(), 0);
    }

    #[test]
    fn unused_cursors_expire_and_those_without_timeout_do_not() {
        let cursors = Cursors::new(CursorTimeout(Duration::from_millis(10)));
        let short = cursors.open(cursor(Expiry::TimesOut), 0);
        let long = cursors.open(cursor(Expiry::Never), 0);
        cursors.expire(5);
        assert_eq!(cursors.len(), 2);
        cursors.set_timeout_ms(20);
        cursors.expire(10);
        assert_eq!(cursors.len(), 2);
        cursors.set_timeout_ms(10);
        cursors.expire(10);
        assert!(cursors.take(short, &user()).is_err());
        assert!(cursors.take(long, &user()).is_ok());
    }

    #[test]
    fn the_next_get_more_is_told_of_a_dropped_collection_once() {
        let cursors = Cursors::new(CursorTimeout::default());
        let id = cursors.open(cursor(Expiry::TimesOut), 0);
        cursors.end_users_of("a.other", "gone");
        cursors.end_users_of("a.b", "gone");
        let code = |outcome: Result<OpenCursor, CommandError>| match outcome {
            Err(CommandError::Failed(failure)) => failure.code.code(),
            _ => 0,
        };
        assert_eq!(code(cursors.take(id, &user())), 175);
        assert_eq!(code(cursors.take(id, &user())), 43);
        // The same where a `getMore` has the cursor when the collection is dropped.
        let id = cursors.open(cursor(Expiry::TimesOut), 0);
        let taken = cursors.take(id, &user()).unwrap();
        cursors.end_users_of("a.b", "gone");
        cursors.put_back(id, taken, 0);
        assert_eq!(code(cursors.take(id, &user())), 175);
        assert_eq!(cursors.len(), 0);
    }

    #[test]
    fn a_kill_before_its_user_is_listed_is_seen_afterwards() {
        let cursors = Cursors::new(CursorTimeout::default());
        let id = cursors.open(cursor(Expiry::TimesOut), 0);
        let _taken = cursors.take(id, &user()).unwrap();
        assert!(!cursors.is_killed(id));
        assert!(cursors.kill(id));
        assert!(cursors.is_killed(id));
        cursors.close(id);
        assert!(!cursors.is_killed(id));
    }

    #[test]
    fn a_cursor_without_a_timeout_ends_with_its_session() {
        let session = |byte: u8| SessionId::from_bytes([byte; 16]);
        let cursors = Cursors::new(CursorTimeout::default());
        let mut ids = Vec::new();
        for byte in [1, 2] {
            let mut facts = CursorFacts::new("a.b".to_owned(), Expiry::Never, 0);
            facts.session = Some(session(byte));
            ids.push(cursors.open(
                OpenCursor::new(facts, Supply::new(Box::new(Empty), &QueryAccount::unlimited(), 0)),
                0,
            ));
        }
        cursors.touch_session(session(2), || 20);
        cursors.expire_sessions(30, Duration::from_millis(30));
        assert!(cursors.take(ids[0], &user()).is_err());
        assert!(cursors.take(ids[1], &user()).is_ok());
    }

    #[test]
    fn a_cursor_that_its_program_keeps_outlives_every_time_out() {
        let cursors = Cursors::new(CursorTimeout(Duration::from_millis(10)));
        let mut facts = CursorFacts::new("a.b".to_owned(), Expiry::Kept, 0);
        facts.session = Some(SessionId::from_bytes([1; 16]));
        let supply = Supply::new(Box::new(Empty), &QueryAccount::unlimited(), 0);
        let id = cursors.open(OpenCursor::new(facts, supply), 0);
        cursors.expire(1_000);
        cursors.expire_sessions(1_000, Duration::from_millis(10));
        assert_eq!(cursors.figures().without_timeout, 1);
        assert!(cursors.take(id, &user()).is_ok());
    }
}
