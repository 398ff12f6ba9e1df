//! A unit of work: the transaction that takes the writes of a statement or of a batch.
//!
//! It is one of two:
//! - *Its own* transaction. It commits at the end. After a conflict it is rolled back and run again on a
//!   newer snapshot, so none of its changes was visible.
//! - *The session's* transaction. Its end is that of the session. A conflict or any other failure ends the
//!   whole transaction, and the client runs it again.
//!
//! # Steps
//! 1. [`run`] calls the statement. The statement takes its lease and begins its unit of work
//!    ([`Context::begin_work`]).
//! 2. It writes ([`UnitOfWork::writer`]) and commits ([`Context::commit_work`]), which leaves the writes in
//!    the session's transaction, if there is one.
//! 3. After a conflict of its own transaction, [`run`] calls it again: at once where the other one may be
//!    done in a moment, otherwise after a wait in the queue of the key ([`intent_wait`](crate::intent_wait)).
//! 4. The first statement of a session's transaction does the same, because its client knows of no snapshot
//!    yet. A later statement goes on with its snapshot, so it wins only if the other transaction aborts.
//! 5. A statement that answers `WouldBlock` has left the session's transaction as it found it.
//!
//! # The end of a wait
//! A statement outside of transactions waits until it gets the key, or its operation ends. A statement of a
//! session's transaction waits for `maxTransactionLockRequestTimeoutMillis`. A client may set another time
//! for its connection.
//!
//! # No deadlock lasts
//! A statement outside, and the first one of a transaction, hold no key while they wait. A later statement
//! holds those of its transaction, and its time is limited: by the parameter, or else by the lifetime of its
//! transaction, which ends it and gives its keys back.
//!
//! # Waits on a thread
//! A request waits without a thread where the caller handles it again ([`Handled::Again`](crate::Handled)).
//! One that has committed something cannot be handled again, and waits on its thread. Of many that do, most
//! give up after seconds, because each holds a thread of the blocking pool.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use pando_catalog::{
    BlockingMode, Contest, Contested, OperationWait, SessionTransaction, SnapshotTimestamp, WriteTransaction,
};
use pando_environment::Monotonic;
use pando_query::QueryError;
use parking_lot::{ArcMutexGuard, RawMutex};

use crate::CommandError;
use crate::connection::LockTimeout;
use crate::context::{Context, Suspension};
use crate::error::Failure;
use crate::intent_wait::StatementWait;
use crate::shared_state::SharedState;

/// Tries without a wait where a newer snapshot may be all that is needed.
const QUICK_TRIES: u32 = 3;
/// Tries without a wait where a live transaction has the key.
const QUICK_TRIES_HELD: u32 = 2;
/// The longest pause between two tries.
const PAUSE_MAX: Duration = Duration::from_millis(5);
/// The time for which a statement on a thread tries again before the client is told of the conflict: longer
/// than a transaction of another session may stay open.
const TRIES_TIME_MAX: Duration = Duration::from_secs(100);
/// Statements that may wait so long at the same time. Each of them holds a thread that may wait, and the
/// transaction that they wait for may need such a thread before it can end.
const LONG_WAITS_MAX: usize = 32;
/// The time for which the others try again.
const SHORT_TRIES_TIME: Duration = Duration::from_secs(5);

/// See the module's head. Dropping one of its own rolls it back.
pub(crate) enum UnitOfWork {
    /// A transaction of its own.
    Own(WriteTransaction),
    /// The transaction of the session.
    Session(ArcMutexGuard<RawMutex, Option<SessionTransaction>>),
}

impl UnitOfWork {
    /// The transaction to write to.
    ///
    /// # Panics
    /// Never: a lock of a transaction that has ended is not given out.
    pub fn writer(&mut self) -> &mut WriteTransaction {
        match self {
            UnitOfWork::Own(transaction) => transaction,
            UnitOfWork::Session(held) => held.as_mut().expect("the transaction has not ended").writer(),
        }
    }
}

impl Context<'_> {
    /// Begins the unit of work of a statement, after its lease.
    pub fn begin_work(&mut self) -> Result<UnitOfWork, CommandError> {
        let ticket = self.connection.wait().map(StatementWait::ticket);
        if let Some(session) = &mut self.session_use {
            session.forget_news();
            if let Some(open) = session.open() {
                let mut work = UnitOfWork::Session(open.lock_for_statement()?);
                // Also without one: the ticket of an earlier statement is not presented for this one.
                work.writer().present_ticket(ticket);
                return Ok(work);
            }
        }
        self.require_reads()?;
        let catalog = &self.shared.catalog;
        let early = self.session_use.as_mut().and_then(|session| session.early_write(catalog));
        let mut transaction = match early {
            Some(transaction) => transaction,
            None => catalog.begin_write()?,
        };
        if ticket.is_some() {
            transaction.present_ticket(ticket);
        }
        Ok(UnitOfWork::Own(transaction))
    }

    /// Rolls a unit of work of its own back.
    pub fn abandon_work(&mut self, work: UnitOfWork) {
        drop(work);
        if let Some(session) = &mut self.session_use {
            session.forget_news();
        }
    }

    /// Commits a unit of work of its own. The writes of the others stay in the session's transaction.
    pub fn commit_work(&mut self, work: UnitOfWork) -> Result<(), CommandError> {
        match work {
            UnitOfWork::Own(transaction) => self.commit(transaction),
            UnitOfWork::Session(_) => Ok(()),
        }
    }

    fn now(&self) -> Monotonic {
        self.shared.environment.clock().monotonic()
    }

    /// Counts a lost claim.
    fn count_conflict(&self) {
        self.operation.usage().add_conflict();
        self.shared.wait_figures.count_conflict();
    }
}

/// The outcome of a wait for a key.
enum Waited {
    /// The statement may run again.
    Over,
    /// The request waits without this thread, and is handled again.
    Suspended,
    /// There is no time left to wait.
    TooLong,
}

/// Runs `statement` until it ends in something other than a conflict that may be tried again.
pub(crate) fn run<T>(
    context: &mut Context<'_>,
    statement: impl FnMut(&mut Context<'_>) -> Result<T, CommandError>,
) -> Result<T, CommandError> {
    if context.connection.wait().is_some() {
        // The wait may have ended by an interruption. Such a statement does not take the key.
        context.operation.check_now().map_err(QueryError::from)?;
    }
    let outcome = match context.open_transaction() {
        None => run_alone(context, statement),
        Some(_) => run_in_session(context, statement),
    };
    if outcome.is_ok() {
        context.note_unit();
        // The next unit of the request has its own time and place. On an event loop this ends the listing as
        // well: a request that is answered there is not listed otherwise.
        context.connection.wait_mut().take();
    }
    outcome
}

fn run_alone<T>(
    context: &mut Context<'_>,
    mut statement: impl FnMut(&mut Context<'_>) -> Result<T, CommandError>,
) -> Result<T, CommandError> {
    let mut tries = 0;
    let mut polling = None;
    loop {
        let failure = match statement(context) {
            Err(CommandError::Failed(failure)) if failure.is_conflict() => failure,
            other => return other,
        };
        tries += 1;
        context.count_conflict();
        context.operation.check_now().map_err(QueryError::from)?;
        match &failure.contested {
            None => poll(context, &mut polling, tries, failure)?,
            Some(contested) if tries < quick_tries(contested) => std::thread::yield_now(),
            Some(contested) => match wait_for_key(context, contested, None)? {
                Waited::Over => {}
                Waited::Suspended => return Err(CommandError::WouldBlock(None)),
                Waited::TooLong => return Err(CommandError::Failed(failure)),
            },
        }
        context.shared.wait_figures.count_retry();
    }
}

/// Statements are tried so often before they wait.
fn quick_tries(contested: &Contested) -> u32 {
    match contested.contest {
        Contest::Committed => QUICK_TRIES,
        Contest::Held(_) => QUICK_TRIES_HELD,
        Contest::Reserved => 0,
    }
}

/// Pauses before another try, where no queue takes the statement: a whole range was claimed, or the
/// collection has changed.
fn poll(
    context: &Context<'_>,
    polling: &mut Option<ConflictWait>,
    tries: u32,
    failure: Box<Failure>,
) -> Result<(), CommandError> {
    if tries >= QUICK_TRIES && context.blocking == BlockingMode::CachedOnly {
        return Err(CommandError::WouldBlock(None));
    }
    let now = context.now();
    let wait = polling.get_or_insert_with(|| ConflictWait::begin(context.shared, now));
    if wait.is_over(now) {
        return Err(CommandError::Failed(failure));
    }
    pause(context, tries)
}

/// Waits for a key, without this thread where that is possible. `kept` is the snapshot with which the
/// statement runs again, unless it takes a newer one.
#[cold]
fn wait_for_key(
    context: &mut Context<'_>,
    contested: &Arc<Contested>,
    kept: Option<SnapshotTimestamp>,
) -> Result<Waited, CommandError> {
    if context.connection.wait().is_none() {
        let limit = wait_limit(context);
        *context.connection.wait_mut() = StatementWait::begin(context.shared, limit).map(Box::new);
    }
    if context.blocking == BlockingMode::MayBlock {
        let mut statement = None;
        context.note(|notes| statement = notes.waiting_statement.take());
        if let Some(statement) = statement {
            context.list_change(|request| request.command = statement);
        }
    }
    let now = context.now();
    let is_resumable = context.is_resumable();
    let is_of_server = context.connection.is_resumable();
    let (shared, record, blocking) = (context.shared, context.record, context.blocking);
    let Some(wait) = context.connection.wait_mut() else { return Ok(Waited::TooLong) };
    if wait.is_over(now) {
        shared.wait_figures.count_time_out();
        return Ok(Waited::TooLong);
    }
    if is_resumable {
        if contested.contest == Contest::Committed {
            // The commit is about to become visible.
            std::thread::yield_now();
        }
        let waits = wait.enqueue(contested, kept, record);
        context.suspend(Suspension::Intent(waits));
        return Ok(Waited::Suspended);
    }
    match blocking {
        BlockingMode::CachedOnly => Ok(Waited::Suspended),
        BlockingMode::MayBlock => {
            // A program that has called the library waits on a thread of its own, which nobody else needs.
            let bounded = is_of_server.then(|| ConflictWait::begin(shared, now));
            let end = bounded.as_ref().map(|bounded| now.plus(bounded.time_max));
            wait.enqueue(contested, kept, record).wait_until(end);
            context.operation.check_now().map_err(QueryError::from)?;
            let is_over = bounded.is_some_and(|bounded| bounded.is_over(context.now()));
            Ok(if is_over { Waited::TooLong } else { Waited::Over })
        }
    }
}

/// The time for which a statement may wait for keys.
fn wait_limit(context: &Context<'_>) -> Option<Duration> {
    match (context.connection.lock_timeout(), context.open_transaction()) {
        (LockTimeout::Own(limit), _) => Some(limit),
        (LockTimeout::OfServer, Some(_)) => context.shared.sessions.wait_limit(),
        (LockTimeout::OfServer, None) => None,
    }
}

#[cold]
fn run_in_session<T>(
    context: &mut Context<'_>,
    mut statement: impl FnMut(&mut Context<'_>) -> Result<T, CommandError>,
) -> Result<T, CommandError> {
    loop {
        let mut before = context.begin_work()?;
        let (savepoint, snapshot) = (before.writer().savepoint(), before.writer().snapshot());
        drop(before);
        let outcome = statement(context);
        let undo = |context: &mut Context<'_>| -> Result<(), CommandError> {
            context.begin_work()?.writer().rollback_to(savepoint);
            Ok(())
        };
        let failure = match outcome {
            Err(CommandError::WouldBlock(missed)) => {
                undo(context)?;
                return Err(CommandError::WouldBlock(missed));
            }
            Err(CommandError::Failed(failure)) if failure.is_conflict() => failure,
            other => return other,
        };
        context.count_conflict();
        let kept = (!context.begins_anew()).then_some(snapshot);
        let waited = match &failure.contested {
            Some(contested) if may_win(contested, kept) => {
                context.operation.check_now().map_err(QueryError::from)?;
                wait_for_key(context, contested, kept)?
            }
            _ => Waited::TooLong,
        };
        match waited {
            Waited::Over => undo(context)?,
            Waited::Suspended => {
                undo(context)?;
                return Err(CommandError::WouldBlock(None));
            }
            Waited::TooLong => {
                context.shared.sessions.figures.count_conflict();
                return Err(CommandError::Failed(failure));
            }
        }
        context.shared.wait_figures.count_retry();
    }
}

/// Whether a statement may get the key after a wait. With a snapshot that stays, it has lost to a commit.
fn may_win(contested: &Contested, kept: Option<SnapshotTimestamp>) -> bool {
    kept.is_none() || contested.contest != Contest::Committed
}

/// The wait of a statement for transactions that have changed the same documents.
struct ConflictWait {
    shared: Arc<SharedState>,
    began: Monotonic,
    time_max: Duration,
}

impl ConflictWait {
    fn begin(shared: &Arc<SharedState>, now: Monotonic) -> ConflictWait {
        let others = shared.conflict_waits.fetch_add(1, Ordering::Relaxed);
        let time_max = if others < LONG_WAITS_MAX { TRIES_TIME_MAX } else { SHORT_TRIES_TIME };
        ConflictWait { shared: Arc::clone(shared), began: now, time_max }
    }

    fn is_over(&self, now: Monotonic) -> bool {
        now.since(self.began) >= self.time_max
    }
}

impl Drop for ConflictWait {
    fn drop(&mut self) {
        self.shared.conflict_waits.fetch_sub(1, Ordering::Relaxed);
    }
}

fn pause(context: &Context<'_>, tries: u32) -> Result<(), CommandError> {
    if tries < QUICK_TRIES {
        std::thread::yield_now();
        return Ok(());
    }
    let time = (Duration::from_micros(50) * (tries - QUICK_TRIES + 1)).min(PAUSE_MAX);
    Ok(context.operation.pause(OperationWait::Conflict, time).map_err(QueryError::from)?)
}

#[cfg(test)]
mod tests {
    use pando_catalog::SharedEngine;
    use pando_environment::Environment;

    use super::*;
    use crate::CommandsOptions;

    #[test]
    fn only_some_statements_wait_for_long_at_the_same_time() {
        let environment = Environment::real();
        let engine: SharedEngine = Arc::new(pando_memory::MemoryEngine::new(&environment));
        let commands =
            crate::Commands::open(engine, environment.clone(), CommandsOptions::default()).unwrap();
        let shared = commands.shared();
        let now = environment.clock().monotonic();
        let mut waits: Vec<_> = (0..LONG_WAITS_MAX).map(|_| ConflictWait::begin(shared, now)).collect();
        let late = ConflictWait::begin(shared, now);
        assert!(late.is_over(now.plus(SHORT_TRIES_TIME)) && !late.is_over(now));
        assert!(waits.iter().all(|wait| !wait.is_over(now.plus(SHORT_TRIES_TIME))));
        assert!(waits.iter().all(|wait| wait.is_over(now.plus(TRIES_TIME_MAX))));
        waits.truncate(3);
        drop(late);
        assert!(!ConflictWait::begin(shared, now).is_over(now.plus(SHORT_TRIES_TIME)));
    }
}
