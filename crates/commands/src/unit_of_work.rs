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
//! 3. After a conflict of its own transaction, [`run`] calls it again. On an event loop it tries three
//!    times at once and then answers `WouldBlock`. On a thread that may wait it pauses a little longer each
//!    time, so that the other transaction can finish.
//!    Of many that wait, most give up after seconds, because each holds a thread of the blocking pool.
//! 4. A statement that answers `WouldBlock` has left the session's transaction as it found it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use pando_catalog::{BlockingMode, OperationWait, SessionTransaction, WriteTransaction};
use pando_environment::Monotonic;
use pando_query::QueryError;
use parking_lot::{ArcMutexGuard, RawMutex};

use crate::CommandError;
use crate::context::Context;
use crate::shared_state::SharedState;

/// Tries without waiting before the request moves to a thread that may wait.
const QUICK_TRIES: u32 = 3;
/// The longest pause between two tries.
const PAUSE_MAX: Duration = Duration::from_millis(5);
/// The time for which a statement tries again before the client is told of the conflict: longer than a
/// transaction of another session may stay open.
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
        let Some(session) = &mut self.session_use else {
            return Ok(UnitOfWork::Own(self.shared.catalog.begin_write()?));
        };
        session.forget_news();
        match session.open() {
            Some(open) => Ok(UnitOfWork::Session(open.lock_for_statement()?)),
            None => Ok(UnitOfWork::Own(self.shared.catalog.begin_write()?)),
        }
    }

    /// Commits a unit of work of its own. The writes of the others stay in the session's transaction.
    pub fn commit_work(&mut self, work: UnitOfWork) -> Result<(), CommandError> {
        match work {
            UnitOfWork::Own(transaction) => self.commit(transaction),
            UnitOfWork::Session(_) => Ok(()),
        }
    }
}

/// Runs `statement` until it ends in something other than a conflict that may be tried again.
pub(crate) fn run<T>(
    context: &mut Context<'_>,
    mut statement: impl FnMut(&mut Context<'_>) -> Result<T, CommandError>,
) -> Result<T, CommandError> {
    if context.open_transaction().is_some() {
        return run_in_session(context, statement);
    }
    let mut tries = 0;
    let mut wait = None;
    loop {
        match statement(context) {
            Err(error) if error.is_conflict() => {
                tries += 1;
                context.operation.usage().add_conflict();
                context.check()?;
                if tries >= QUICK_TRIES && context.blocking == BlockingMode::CachedOnly {
                    return Err(CommandError::WouldBlock(None));
                }
                let now = context.shared.environment.clock().monotonic();
                let wait = wait.get_or_insert_with(|| ConflictWait::begin(context.shared, now));
                if wait.is_over(now) {
                    return Err(error);
                }
                pause(context, tries)?;
            }
            other => return other,
        }
    }
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

#[cold]
fn run_in_session<T>(
    context: &mut Context<'_>,
    mut statement: impl FnMut(&mut Context<'_>) -> Result<T, CommandError>,
) -> Result<T, CommandError> {
    let savepoint = context.begin_work()?.writer().savepoint();
    let outcome = statement(context);
    match &outcome {
        Err(CommandError::WouldBlock(_)) => context.begin_work()?.writer().rollback_to(savepoint),
        Err(error) if error.is_conflict() => {
            context.operation.usage().add_conflict();
            context.shared.sessions.figures.count_conflict();
        }
        Err(_) | Ok(_) => {}
    }
    outcome
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
