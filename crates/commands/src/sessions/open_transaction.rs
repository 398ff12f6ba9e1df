//! An open transaction of a session, shared by the requests and cursors that read it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use pando_catalog::{Catalog, SessionTransaction, TransactionId};
use pando_environment::Monotonic;
use parking_lot::{ArcMutexGuard, Mutex, MutexGuard, RawMutex};

use super::TransactionFigures;
use crate::error::Failure;
use crate::generic_arguments::ReadLevel;
use crate::held_snapshots::HeldSnapshot;
use crate::open_load::OpenLoad;
use crate::operations::{ConnectionRecord, ListedTransaction};
use crate::session_id::SessionId;
use crate::{CommandError, ErrorCode};

/// The begin of a transaction, as lists of operations show it.
pub(crate) struct Begun {
    pub at: Monotonic,
    /// Milliseconds since 1970.
    pub ms: i64,
    /// The level of its read concern.
    pub level: ReadLevel,
    /// The past snapshot that it reads.
    pub past: Option<Arc<HeldSnapshot>>,
    /// The connection that has begun it.
    pub connection: Arc<ConnectionRecord>,
}

/// See the module's head.
pub(crate) struct OpenTransaction {
    pub session: SessionId,
    pub number: i64,
    pub begun: Begun,
    /// Its number among the intents.
    pub id: Option<TransactionId>,
    /// `None` when it has ended. Locked for a statement that writes, and for each document that is read.
    cell: Arc<Mutex<Option<SessionTransaction>>>,
    /// The load whose collection its commit publishes.
    load: Mutex<Option<OpenLoad>>,
    has_cursors: AtomicBool,
    active_us: AtomicU64,
    figures: Arc<TransactionFigures>,
}

impl Begun {
    /// Begins the transaction that it describes.
    pub fn transaction(&self, catalog: &Catalog) -> Result<SessionTransaction, CommandError> {
        match (&self.past, self.level) {
            (Some(past), _) => past.begin_transaction(catalog),
            (None, ReadLevel::Serializable) => Ok(catalog.begin_serializable_transaction()?),
            (None, _) => Ok(catalog.begin_session_transaction()?),
        }
    }
}

impl OpenTransaction {
    pub fn new(
        session: SessionId,
        number: i64,
        begun: Begun,
        figures: Arc<TransactionFigures>,
        transaction: SessionTransaction,
    ) -> OpenTransaction {
        figures.count_opened();
        OpenTransaction {
            session,
            number,
            begun,
            id: transaction.reader().id(),
            cell: Arc::new(Mutex::new(Some(transaction))),
            load: Mutex::new(None),
            has_cursors: AtomicBool::new(false),
            active_us: AtomicU64::new(0),
            figures,
        }
    }

    /// The transaction, for a look at its snapshot.
    ///
    /// # Errors
    /// It has ended.
    pub fn lock(&self) -> Result<MutexGuard<'_, Option<SessionTransaction>>, CommandError> {
        let held = self.cell.lock();
        if held.is_some() { Ok(held) } else { Err(self.ended()) }
    }

    /// The transaction, for a statement that writes.
    ///
    /// # Errors
    /// It has ended.
    pub fn lock_for_statement(
        &self,
    ) -> Result<ArcMutexGuard<RawMutex, Option<SessionTransaction>>, CommandError> {
        let held = self.cell.lock_arc();
        if held.is_some() { Ok(held) } else { Err(self.ended()) }
    }

    /// Takes the transaction out for its commit.
    pub fn take(&self) -> Option<SessionTransaction> {
        let taken = self.cell.lock().take();
        if taken.is_some() {
            self.figures.count_closed();
        }
        if let Some(load) = self.load.lock().take() {
            load.end();
        }
        taken
    }

    /// Ends it without a commit.
    pub fn end(&self) {
        drop(self.take());
    }

    fn ended(&self) -> CommandError {
        aborted(self.number)
    }

    /// Moves it to the newest snapshot, unless it has written or a cursor reads it.
    pub fn renew(&self, catalog: &Catalog) -> Result<(), CommandError> {
        let mut held = self.lock()?;
        let is_settled = self.has_cursors() || held.as_ref().is_some_and(SessionTransaction::has_written);
        if !is_settled {
            *held = Some(catalog.begin_session_transaction()?);
        }
        Ok(())
    }

    /// The transaction as lists show it.
    pub fn listed(&self, lifetime: Duration) -> ListedTransaction {
        let Begun { at, ms, level, .. } = &self.begun;
        let (number, active) = (self.number, self.active());
        ListedTransaction { number, level: level.name(), began: *at, began_ms: *ms, active, lifetime }
    }

    /// Has a load end with it.
    pub fn hold_load(&self, load: OpenLoad) {
        *self.load.lock() = Some(load);
    }

    /// Notes that a cursor reads it.
    pub fn note_cursor(&self) {
        self.has_cursors.store(true, Ordering::Relaxed);
    }

    /// Whether a cursor has read it.
    pub fn has_cursors(&self) -> bool {
        self.has_cursors.load(Ordering::Relaxed)
    }

    /// Adds the time of a request that has worked with it.
    pub fn add_active(&self, time: Duration) {
        let time = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.active_us.fetch_add(time, Ordering::Relaxed);
    }

    /// The time that requests have worked with it.
    pub fn active(&self) -> Duration {
        Duration::from_micros(self.active_us.load(Ordering::Relaxed))
    }
}

impl std::fmt::Debug for OpenTransaction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "transaction {} of session {:?}", self.number, self.session)
    }
}

/// The error of a transaction that has ended without a commit.
pub(crate) fn aborted(number: i64) -> CommandError {
    Failure::new(
        ErrorCode::NoSuchTransaction,
        format!("Transaction with {{ txnNumber: {number} }} has been aborted."),
    )
    .into()
}
