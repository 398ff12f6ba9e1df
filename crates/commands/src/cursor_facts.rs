//! The facts of an open cursor that lists of cursors and operations show.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use pando_access::{Action, Authority, Target, UserName};
use pando_catalog::{SnapshotTimestamp, WaitSignal};
use pando_document::{Document, RawDocumentBuf, Timestamp};
use pando_query::explain::PlanSummary;
use parking_lot::Mutex;

use crate::session_id::SessionId;

/// Whether an unused cursor is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expiry {
    /// After the time-out.
    TimesOut,
    /// Never (`noCursorTimeout`), but with its session.
    Never,
    /// Never: the program that holds the store ends it.
    Kept,
}

/// The opening of a cursor under access control.
#[derive(Debug)]
pub(crate) struct CursorOpening {
    pub user: UserName,
    /// The generation of users and roles at that moment.
    pub generation: u64,
    /// The whole command, whose rights the user needs as long as the cursor is open.
    pub command: RawDocumentBuf,
}

/// The facts of a cursor. Only its figures change.
#[derive(Debug)]
pub(crate) struct CursorFacts {
    /// `database.collection`.
    pub namespace: String,
    pub session: Option<SessionId>,
    /// The number of the transaction that it reads.
    pub transaction: Option<i64>,
    /// The `atClusterTime` of its replies.
    pub read_time: Option<Timestamp>,
    /// The snapshot that it reads.
    pub snapshot: Option<SnapshotTimestamp>,
    /// The user that has opened it, where there is access control.
    pub opening: Option<CursorOpening>,
    /// The address of the client that has opened it.
    pub client: String,
    /// A copy of the command that has opened the cursor.
    pub command: RawDocumentBuf,
    pub plan: PlanSummary,
    /// The stages of its plan, where it was opened on a database that is profiled.
    pub stages: Option<Arc<Document>>,
    pub expiry: Expiry,
    /// Milliseconds since 1970.
    pub created_ms: i64,
    id: AtomicI64,
    used_ms: AtomicI64,
    returned: AtomicI64,
    batches: AtomicI64,
    /// The wait of a `getMore` at the end of its collection.
    waiting: Mutex<Option<CursorWait>>,
}

/// The wait of a `getMore`.
#[derive(Debug)]
struct CursorWait {
    signal: Arc<WaitSignal>,
    /// The number of its connection.
    connection: i64,
}

/// The figures of a cursor at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CursorFigures {
    /// Its number; 0 before it is kept.
    pub id: i64,
    /// When it was used last, in milliseconds since 1970.
    pub used_ms: i64,
    /// Documents that were delivered.
    pub returned: i64,
    /// Batches that were delivered.
    pub batches: i64,
}

impl CursorFacts {
    /// The facts of a cursor of this collection that is opened now.
    pub fn new(namespace: String, expiry: Expiry, created_ms: i64) -> CursorFacts {
        CursorFacts {
            namespace,
            session: None,
            transaction: None,
            read_time: None,
            snapshot: None,
            opening: None,
            client: String::new(),
            command: RawDocumentBuf::new(),
            plan: PlanSummary::None,
            stages: None,
            expiry,
            created_ms,
            id: AtomicI64::new(0),
            used_ms: AtomicI64::new(created_ms),
            returned: AtomicI64::new(0),
            batches: AtomicI64::new(0),
            waiting: Mutex::default(),
        }
    }

    /// Notes that a `getMore` of this connection waits until the signal is fired.
    pub fn begin_wait(&self, signal: &Arc<WaitSignal>, connection: i64) {
        *self.waiting.lock() = Some(CursorWait { signal: Arc::clone(signal), connection });
    }

    /// The wait is over.
    pub fn end_wait(&self) {
        self.waiting.lock().take();
    }

    /// Whether a `getMore` of another connection waits.
    pub fn is_awaited_by_other(&self, connection: i64) -> bool {
        self.waiting.lock().as_ref().is_some_and(|waiting| waiting.connection != connection)
    }

    /// Ends the wait: the cursor is not what it was.
    pub fn wake(&self) {
        // Not under the lock: the end of a wait takes it.
        let waiting = self.waiting.lock().as_ref().map(|waiting| Arc::clone(&waiting.signal));
        if let Some(signal) = waiting {
            signal.fire();
        }
    }

    /// Whether a user has opened it.
    pub fn is_of(&self, user: &UserName) -> bool {
        self.opening.as_ref().is_some_and(|opening| opening.user == *user)
    }

    /// Whether a user may kill it.
    pub fn is_killable_by(&self, user: &UserName, authority: &Authority) -> bool {
        let (database, collection) = self.namespace.split_once('.').unwrap_or((&self.namespace, ""));
        let target = Target::Collection { database, collection };
        self.is_of(user)
            || authority.allows(Action::KillAnyCursor, Target::Cluster)
            || authority.allows(Action::KillAnyCursor, target)
    }

    pub fn figures(&self) -> CursorFigures {
        CursorFigures {
            id: self.id.load(Ordering::Relaxed),
            used_ms: self.used_ms.load(Ordering::Relaxed),
            returned: self.returned.load(Ordering::Relaxed),
            batches: self.batches.load(Ordering::Relaxed),
        }
    }

    pub fn set_id(&self, id: i64) {
        self.id.store(id, Ordering::Relaxed);
    }

    /// Notes that the cursor was used.
    pub fn touch(&self, now_ms: i64) {
        self.used_ms.store(now_ms, Ordering::Relaxed);
    }

    /// Notes a batch of this many documents.
    pub fn add_batch(&self, documents: usize) {
        self.returned.fetch_add(i64::try_from(documents).unwrap_or(i64::MAX), Ordering::Relaxed);
        self.batches.fetch_add(1, Ordering::Relaxed);
    }
}
