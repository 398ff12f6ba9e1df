//! The sessions that have begun a transaction or a retryable write, each with its newest transaction number.
//!
//! # Terms
//! - *Progress*: the newest transaction number of a session, and what became of it.
//! - *Use*: the right of one request to work with a session ([`SessionUse`]). It holds the progress.
//! - *Record*: the progress that survives a restart ([`write_record`]).
//!
//! # Steps of a request with a transaction number
//! 1. It takes its session out of the table. Another request of the session waits. A session that is not in
//!    the table is read from its record; in a store of several servers each session without an open
//!    transaction is, because the client may have gone on at another server meanwhile.
//! 2. It begins a transaction or a retryable write, or finds the one that goes on ([`SessionUse::enter`]).
//! 3. Its command works in the transaction ([`OpenTransaction`]), or notes the statements that have run.
//! 4. It puts the session back. A failed statement has ended the transaction by then.
//!
//! # Ends of a transaction
//! Its commit or abort, a failed statement, a newer number of its session, the end of its session, and its
//! time limit. One that a request works with at that moment ends with the request.
//!
//! # Invariants
//! - A session serves one request with a transaction number at a time.
//! - An ended transaction has given back its snapshot and its intents.

pub(crate) mod labels;
pub(crate) mod open_transaction;
mod session_use;
mod transaction_figures;
pub(crate) mod write_record;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::time::Duration;

use pando_catalog::{
    Begin, BlockingMode, Caller, Catalog, Direction, Durability, KeyRange, OperationWait, Transaction,
};
use pando_document::{RawDocument, RawDocumentBuf, RawValue};
use pando_query::QueryError;
use parking_lot::{Condvar, Mutex};

pub(crate) use self::open_transaction::{Begun, OpenTransaction};
pub(crate) use self::session_use::{EndOfRequest, Entry, SessionUse, committed};
pub(crate) use self::transaction_figures::TransactionFigures;
use self::write_record::{Recorded, WriteRecord};
use crate::session_id::SessionId;
use crate::{CommandError, ErrorCode};

/// The longest wait for another request of a session between two looks at the interruption.
const TURN_WAIT: Duration = Duration::from_millis(20);
/// The time after which an open transaction is ended, where nobody says otherwise.
const LIFETIME_DEFAULT: Duration = Duration::from_secs(60);
/// The time in milliseconds that a statement of a transaction waits for a key, where nobody says otherwise.
const WAIT_MS_DEFAULT: i32 = 5;
/// Records that one run of the periodic work removes at most.
const RECORDS_PER_RUN: usize = 10_000;

/// The newest transaction number of a session, and what became of it.
#[derive(Debug)]
pub(crate) struct Progress {
    /// -1 before the first.
    pub number: i64,
    pub stage: Stage,
}

/// The fate of a transaction number.
#[derive(Debug)]
pub(crate) enum Stage {
    /// It was never used.
    Unused,
    /// A retryable write, whose statements may be repeated.
    Write(WriteRecord),
    /// A transaction that is open.
    Open(Arc<OpenTransaction>),
    /// A transaction that has committed.
    Committed,
    /// A transaction that has ended otherwise.
    Aborted,
}

impl Progress {
    const UNUSED: Progress = Progress { number: -1, stage: Stage::Unused };
}

/// A session, shared by its requests.
#[derive(Debug)]
struct Session {
    id: SessionId,
    state: Mutex<State>,
    /// Signalled when a request puts the session back.
    free: Condvar,
}

#[derive(Debug)]
struct State {
    /// `None` while a request works with it.
    progress: Option<Progress>,
    /// The open transaction, while a request works with it.
    used: Option<Arc<OpenTransaction>>,
    /// The transaction under way is to be ended when its request puts it back.
    is_end_wanted: bool,
    /// The number of a transaction whose first statement is to be handled again.
    begin_put_off: Option<i64>,
    /// The answer to a commit was lost: only the record of the session tells whether it has happened.
    is_in_doubt: bool,
    /// When a request has put it back last, in milliseconds since 1970.
    used_ms: i64,
}

/// See the module's head.
pub(crate) struct Sessions {
    table: Mutex<HashMap<SessionId, Arc<Session>>>,
    lifetime_s: AtomicU64,
    wait_ms: AtomicI32,
    pub figures: Arc<TransactionFigures>,
}

impl Default for Sessions {
    fn default() -> Sessions {
        Sessions {
            table: Mutex::default(),
            lifetime_s: AtomicU64::new(LIFETIME_DEFAULT.as_secs()),
            wait_ms: AtomicI32::new(WAIT_MS_DEFAULT),
            figures: Arc::default(),
        }
    }
}

impl Sessions {
    /// Takes a session out for a request. Waits for another request of the session, if the caller may.
    pub fn take(
        &self,
        id: SessionId,
        catalog: &Catalog,
        caller: Caller<'_>,
    ) -> Result<SessionUse, CommandError> {
        if catalog.is_shared() && caller.blocking == BlockingMode::CachedOnly {
            return Err(CommandError::WouldBlock(None));
        }
        let session = self.session(id, catalog, caller.blocking)?;
        let mut state = session.state.lock();
        if state.is_in_doubt && caller.blocking == BlockingMode::CachedOnly {
            return Err(CommandError::WouldBlock(None));
        }
        let progress = match (state.progress.take(), caller.blocking) {
            (Some(progress), _) => progress,
            (None, BlockingMode::CachedOnly) => return Err(CommandError::WouldBlock(None)),
            (None, BlockingMode::MayBlock) => {
                let turn = caller.operation.wait_for(OperationWait::Session, || {
                    session.free.wait_for(&mut state, TURN_WAIT);
                    state.progress.take()
                });
                turn.map_err(QueryError::from)?
            }
        };
        state.used = match &progress.stage {
            Stage::Open(open) => Some(Arc::clone(open)),
            _ => None,
        };
        let is_in_doubt = state.is_in_doubt;
        drop(state);
        let mut taken = SessionUse::new(Arc::clone(&session), Arc::clone(&self.figures), progress);
        if (catalog.is_shared() || is_in_doubt) && taken.open().is_none() {
            let early = catalog.begin_early()?;
            taken.take_over(record_at(&*early, id, catalog, caller.blocking)?, early);
            session.state.lock().is_in_doubt = false;
        }
        Ok(taken)
    }

    /// Begins the transaction of a new session, which has no record.
    pub fn begin_unrecorded(
        &self,
        id: SessionId,
        number: i64,
        catalog: &Catalog,
        begun: Begun,
    ) -> Result<(), CommandError> {
        let (used_ms, transaction) = (begun.ms, begun.transaction(catalog)?);
        let open = OpenTransaction::new(id, number, begun, Arc::clone(&self.figures), transaction);
        self.figures.count_start();
        let progress = Some(Progress { number, stage: Stage::Open(Arc::new(open)) });
        let state = State {
            progress,
            used: None,
            is_end_wanted: false,
            begin_put_off: None,
            is_in_doubt: false,
            used_ms,
        };
        let session = Session { id, state: Mutex::new(state), free: Condvar::new() };
        self.table.lock().insert(id, Arc::new(session));
        Ok(())
    }

    /// Ends the transaction of a session that no request works with, and forgets the session.
    pub fn remove(&self, id: SessionId) {
        let Some(session) = self.table.lock().remove(&id) else { return };
        let mut state = session.state.lock();
        let Some(progress) = &mut state.progress else { return };
        if let Stage::Open(open) = std::mem::replace(&mut progress.stage, Stage::Aborted) {
            open.end();
            self.figures.count_abort();
        }
    }

    /// The session of this identity, read from its record where it is not in the table.
    fn session(
        &self,
        id: SessionId,
        catalog: &Catalog,
        blocking: BlockingMode,
    ) -> Result<Arc<Session>, CommandError> {
        if let Some(session) = self.table.lock().get(&id) {
            return Ok(Arc::clone(session));
        }
        // In a shared store each request reads the record.
        let recorded = match catalog.is_shared() {
            true => Progress::UNUSED,
            false => {
                let reader = catalog.begin(Begin::READ)?;
                let recorded = record_at(&*reader, id, catalog, blocking);
                reader.rollback();
                recorded?
            }
        };
        let mut table = self.table.lock();
        let session = table.entry(id).or_insert_with(|| {
            let state = State {
                progress: Some(recorded),
                used: None,
                is_end_wanted: false,
                begin_put_off: None,
                is_in_doubt: false,
                used_ms: 0,
            };
            Arc::new(Session { id, state: Mutex::new(state), free: Condvar::new() })
        });
        Ok(Arc::clone(session))
    }

    /// The time after which an open transaction is ended.
    pub fn lifetime(&self) -> Duration {
        Duration::from_secs(self.lifetime_s.load(Ordering::Relaxed))
    }

    /// Changes that time.
    pub fn set_lifetime_seconds(&self, seconds: u64) {
        self.lifetime_s.store(seconds, Ordering::Relaxed);
    }

    /// The time in milliseconds that a statement of a transaction waits for a key. Below 0 only the lifetime
    /// of the transaction limits it.
    pub fn wait_ms(&self) -> i32 {
        self.wait_ms.load(Ordering::Relaxed)
    }

    /// Changes that time.
    pub fn set_wait_ms(&self, milliseconds: i32) {
        self.wait_ms.store(milliseconds, Ordering::Relaxed);
    }

    /// The same as a limit.
    pub fn wait_limit(&self) -> Option<Duration> {
        let milliseconds = self.wait_ms();
        (milliseconds >= 0).then(|| Duration::from_millis(u64::from(milliseconds.unsigned_abs())))
    }

    /// Ends the open transactions that are wanted. Of those that a request works with, gives the sessions:
    /// the request is to be interrupted.
    pub fn end_transactions(
        &self,
        is_wanted: impl Fn(SessionId, &OpenTransaction) -> bool,
    ) -> (Vec<Arc<OpenTransaction>>, Vec<SessionId>) {
        let (mut ended, mut busy) = (Vec::new(), Vec::new());
        if self.figures.open() == 0 {
            return (ended, busy);
        }
        for session in self.all() {
            let mut state = session.state.lock();
            if let Some(used) = &state.used {
                if is_wanted(session.id, used) {
                    busy.push(session.id);
                    state.is_end_wanted = true;
                }
                continue;
            }
            let Some(progress) = &mut state.progress else { continue };
            let Stage::Open(open) = &progress.stage else { continue };
            if is_wanted(session.id, open) {
                open.end();
                self.figures.count_abort();
                ended.push(Arc::clone(open));
                progress.stage = Stage::Aborted;
            }
        }
        (ended, busy)
    }

    /// All open transactions.
    pub fn open(&self) -> Vec<Arc<OpenTransaction>> {
        let open = self.all().into_iter().filter_map(|session| {
            let state = session.state.lock();
            match state.progress.as_ref().map(|progress| &progress.stage) {
                Some(Stage::Open(open)) => Some(Arc::clone(open)),
                _ => state.used.clone(),
            }
        });
        open.collect()
    }

    /// The open transactions that no request works with.
    pub fn idle(&self) -> Vec<Arc<OpenTransaction>> {
        let open = self.all().into_iter().filter_map(|session| {
            match session.state.lock().progress.as_ref()?.stage {
                Stage::Open(ref open) => Some(Arc::clone(open)),
                _ => None,
            }
        });
        open.collect()
    }

    /// The sessions in memory, each with the moment of its last use in milliseconds since 1970.
    pub fn last_uses(&self) -> Vec<(SessionId, i64)> {
        self.all().into_iter().map(|session| (session.id, session.state.lock().used_ms)).collect()
    }

    /// Forgets the sessions that were not used since this moment, in milliseconds since 1970. Their records
    /// stay. Gives whether a session is still in use.
    pub fn forget_before(&self, since_ms: i64) -> impl Fn(SessionId) -> bool {
        let mut table = self.table.lock();
        table.retain(|_, session| {
            let state = session.state.lock();
            let is_idle = match &state.progress {
                None => false,
                Some(progress) => !matches!(progress.stage, Stage::Open(_)),
            };
            !is_idle || state.used_ms >= since_ms || Arc::strong_count(session) > 1
        });
        let used: std::collections::HashSet<SessionId> = table.keys().copied().collect();
        move |session| used.contains(&session)
    }

    /// Ends all transactions: the store is about to be closed.
    pub fn clear(&self) {
        self.end_transactions(|_, _| true);
        self.table.lock().clear();
    }

    fn all(&self) -> Vec<Arc<Session>> {
        self.table.lock().values().cloned().collect()
    }
}

/// The progress of a session by its record.
fn record_at(
    reader: &dyn Transaction,
    id: SessionId,
    catalog: &Catalog,
    blocking: BlockingMode,
) -> Result<Progress, CommandError> {
    let records = catalog.session_records();
    let named = id_document(id);
    let Some(id @ RawValue::Document(_)) = named.get("_id")? else { return Ok(Progress::UNUSED) };
    let found = records.fetch_by_id(reader, &records.id_key(id), blocking)?;
    found.map_or(Ok(Progress::UNUSED), |found| progress_of(&found))
}

/// A document whose `_id` is that of the record of a session.
fn id_document(id: SessionId) -> RawDocumentBuf {
    let mut named = Vec::new();
    let mut out = pando_document::DocumentWriter::begin(&mut named);
    id.write("_id", &mut out);
    out.finish();
    RawDocumentBuf::from_vec(named).unwrap_or_default()
}

/// The progress that a record tells of.
fn progress_of(record: &[u8]) -> Result<Progress, CommandError> {
    let Some((number, recorded)) = write_record::decode(RawDocument::from_bytes(record)?) else {
        return Err(CommandError::failed(
            ErrorCode::IncompleteTransactionHistory,
            "the record of this session in config.transactions cannot be read: use a new session",
        ));
    };
    let stage = match recorded {
        Recorded::Committed => Stage::Committed,
        Recorded::Aborted => Stage::Aborted,
        Recorded::Write(write) => Stage::Write(write),
    };
    Ok(Progress { number, stage })
}

/// Removes the records that are older than this moment, in milliseconds since 1970, and whose sessions are
/// not in use.
pub(crate) fn remove_records(
    catalog: &Catalog,
    since_ms: i64,
    is_used: &dyn Fn(SessionId) -> bool,
) -> Result<(), CommandError> {
    let mut old = Vec::new();
    let reader = catalog.begin(Begin::READ)?;
    let mut scan = catalog.session_records().scan_documents(KeyRange::all(), Direction::Forward);
    while let Some((_, record)) = scan.next(&*reader, BlockingMode::MayBlock)? {
        let record = RawDocument::from_bytes(record)?;
        let is_old = matches!(record.get("lastWriteDate")?, Some(RawValue::DateTime(at)) if at < since_ms);
        let Some(id) = record.get("_id")?.and_then(|id| id.as_document()) else { continue };
        if is_old && !SessionId::recorded(id).is_some_and(is_used) {
            old.push(id.to_owned());
        }
        if old.len() == RECORDS_PER_RUN {
            break;
        }
    }
    reader.rollback();
    if old.is_empty() {
        return Ok(());
    }
    let mut transaction = catalog.begin_write()?;
    for id in &old {
        transaction.delete_session_record(RawValue::Document(id))?;
    }
    transaction.commit(Durability::None)?;
    Ok(())
}

#[cfg(test)]
mod tests;
