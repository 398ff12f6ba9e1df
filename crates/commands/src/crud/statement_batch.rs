//! The statements of an `update` or a `delete`, carried out in order against one collection.
//!
//! # Steps
//! 1. One write transaction takes the statements, each behind a savepoint. A statement that fails is rolled
//!    back to its savepoint, and its failure is noted. An ordered batch ends there; an unordered one goes on.
//! 2. A statement that concerns too many documents for one transaction is rolled back. The transaction before
//!    it commits, the statement runs in several transactions of its own ([`steps`](super::steps)), and a new
//!    transaction takes the rest.
//! 3. A transaction that is [large](pando_catalog::Transaction::is_large) for the engine commits, and another
//!    one takes the rest, unless the batch is to be one transaction.
//! 4. The last transaction commits.
//!
//! # Invariants
//! - [`StatementBatch::run`] can be called again after a conflict: it goes on behind the statements that are
//!   committed.
//! - A failure of the whole transaction (a conflict, a full device, a shutdown) ends the run and is no
//!   statement's failure.
//! - A statement whose collection is dropped meanwhile fails, and ends the run. Its client is told of that
//!   statement, as in MongoDB.
//! - In a session's transaction there is one transaction, and the first failure ends it.
//! - `WouldBlock` ends the run before anything of the current transaction is committed.
//!
//! # Not here
//! Repeating a batch after a conflict: [`unit_of_work`](crate::unit_of_work). The reply: `update.rs` and
//! `delete.rs`.

use std::sync::Arc;

use pando_catalog::{Collection, WriteTransaction};
use pando_document::{RawDocumentBuf, Value};
use pando_query::expression::ParseScope;

use super::insert::{ends_session_transaction, ends_transaction};
use super::write_reply::{FailedWrite, Order, push_failed, refusals};
use crate::CommandError;
use crate::context::Context;
use crate::unit_of_work::UnitOfWork;

/// One statement of a batch, as its request gives it.
pub(super) trait Statement {
    /// The effect of one statement.
    type Outcome: Default;
    /// The parsed form of a statement that concerns too many documents for one transaction.
    type Large;

    /// Carries the statement out within the transaction of its batch.
    ///
    /// # Errors
    /// After an error, and after [`StatementRun::TooLarge`], the caller rolls the transaction back to its
    /// savepoint.
    fn run(
        &self,
        context: &Context<'_>,
        collection: &Arc<Collection>,
        transaction: &mut WriteTransaction,
        scope: &ParseScope,
    ) -> Result<StatementRun<Self>, CommandError>;

    /// The statement as lists of operations show it; `None` of one that was refused before.
    fn shown(&self) -> Option<RawDocumentBuf>;

    /// The effect of a statement that has changed something.
    fn effect(outcome: &Self::Outcome) -> Option<Effect<'_>>;

    /// The outcome of a statement that an earlier request has carried out, with the `_id` that it has
    /// upserted.
    fn repeated(upserted: Option<Value>) -> Self::Outcome;

    /// Carries a large statement out in transactions of its own.
    ///
    /// # Errors
    /// Transactions that committed before the error stay. `outcome` holds the part that the client is told.
    fn run_in_steps(
        large: &Self::Large,
        context: &mut Context<'_>,
        collection: &Arc<Collection>,
        outcome: &mut Self::Outcome,
    ) -> Result<(), CommandError>;
}

/// The effect of a statement that is remembered for its repetition.
pub(super) struct Effect<'o> {
    /// The `_id` of the document that it has inserted.
    pub upserted: Option<&'o Value>,
}

/// The end of a statement within the transaction of its batch.
pub(super) enum StatementRun<S: Statement + ?Sized> {
    /// It is carried out.
    Done(S::Outcome),
    /// It concerns too many documents, and has to run in steps.
    TooLarge(Box<S::Large>),
}

/// The effects of some statements of a batch.
pub(super) struct BatchOutcome<O> {
    /// Statements that were carried out or have failed.
    statements: usize,
    /// The effects of those that were carried out.
    pub outcomes: Vec<StatementOutcome<O>>,
    /// Those that have failed.
    pub failed: Vec<FailedWrite>,
}

/// The effect of one statement.
pub(super) struct StatementOutcome<O> {
    /// Its place in the batch.
    pub index: usize,
    pub outcome: O,
}

impl<O> Default for BatchOutcome<O> {
    fn default() -> BatchOutcome<O> {
        BatchOutcome { statements: 0, outcomes: Vec::new(), failed: Vec::new() }
    }
}

/// Refuses every statement for one reason, or the first if that ends the batch.
pub(super) fn refuse_statements<O>(
    context: &mut Context<'_>,
    reason: CommandError,
    statements: usize,
    order: Order,
) -> Result<BatchOutcome<O>, CommandError> {
    let CommandError::Failed(failure) = reason else { return Err(reason) };
    ends_session_transaction(context);
    Ok(BatchOutcome::refused(refusals(&failure, statements, order)))
}

impl<O> BatchOutcome<O> {
    /// A batch of which no statement was carried out.
    pub fn refused(failed: Vec<FailedWrite>) -> BatchOutcome<O> {
        BatchOutcome { statements: failed.len(), outcomes: Vec::new(), failed }
    }

    /// Notes that the next statement was carried out.
    pub fn succeed(&mut self, index: usize, outcome: O) {
        self.statements += 1;
        self.outcomes.push(StatementOutcome { index, outcome });
    }

    /// Notes that the next statement has failed.
    pub fn fail(&mut self, failed: FailedWrite) {
        self.statements += 1;
        push_failed(&mut self.failed, failed);
    }

    fn append(&mut self, later: BatchOutcome<O>) {
        self.statements += later.statements;
        self.outcomes.extend(later.outcomes);
        self.failed.extend(later.failed);
    }
}

/// A batch, and its committed part.
pub(super) struct StatementBatch<'a, S: Statement> {
    statements: &'a [S],
    scope: &'a ParseScope,
    order: Order,
    /// A conflict later on does not repeat these.
    committed: BatchOutcome<S::Outcome>,
}

impl<'a, S: Statement> StatementBatch<'a, S> {
    /// A batch of which nothing is carried out yet.
    pub fn new(statements: &'a [S], scope: &'a ParseScope, order: Order) -> StatementBatch<'a, S> {
        StatementBatch { statements, scope, order, committed: BatchOutcome::default() }
    }

    /// The effects of the statements that are committed.
    pub fn into_outcome(self) -> BatchOutcome<S::Outcome> {
        self.committed
    }

    /// Carries out the statements that are not committed yet.
    pub fn run(
        &mut self,
        context: &mut Context<'_>,
        collection: &Arc<Collection>,
    ) -> Result<(), CommandError> {
        let mut work = context.begin_work()?;
        let mut pending = BatchOutcome::default();
        loop {
            let index = self.committed.statements + pending.statements;
            let Some(statement) = self.statements.get(index) else { break };
            if let Some(upserted) = context.session_use.as_mut().and_then(|session| session.repeated(index)) {
                pending.succeed(index, S::repeated(upserted));
                continue;
            }
            let savepoint = work.writer().savepoint();
            match statement.run(context, collection, work.writer(), self.scope) {
                Ok(StatementRun::Done(outcome)) => {
                    if let Some(session) = &mut context.session_use
                        && let Some(effect) = S::effect(&outcome)
                    {
                        session.executed(index, effect.upserted);
                    }
                    pending.succeed(index, outcome);
                }
                Ok(StatementRun::TooLarge(large)) => {
                    context.require_may_block()?;
                    work.writer().rollback_to(savepoint);
                    self.commit_pending(context, work, &mut pending)?;
                    self.run_large(context, collection, index, &large)?;
                    work = context.begin_work()?;
                }
                Err(error @ CommandError::WouldBlock(_)) => return Err(error),
                Err(CommandError::Failed(_)) if context.is_collection_dropped() => {
                    // The statements of this transaction have changed documents that are gone.
                    ends_session_transaction(context);
                    self.committed.fail(FailedWrite { index, failure: context.drop_failure() });
                    return Ok(());
                }
                Err(CommandError::Failed(failure)) if ends_transaction(&failure) => {
                    if failure.contested.is_some() {
                        context.note(|notes| notes.waiting_statement = statement.shown());
                    }
                    return Err(CommandError::Failed(failure));
                }
                Err(CommandError::Failed(failure)) => {
                    work.writer().rollback_to(savepoint);
                    pending.fail(FailedWrite { index, failure: *failure });
                }
            }
            let has_failed = !pending.failed.is_empty() || !self.committed.failed.is_empty();
            let is_undone = context.undoes_failed_batch();
            let ends = is_undone || self.order == Order::Ordered;
            if has_failed && (ends_session_transaction(context) || ends) {
                break;
            }
            if !context.is_atomic() && work.writer().is_large() {
                context.require_may_block()?;
                self.commit_pending(context, work, &mut pending)?;
                work = context.begin_work()?;
            }
        }
        if !pending.failed.is_empty() && context.undoes_failed_batch() {
            context.abandon_work(work);
            pending.outcomes.clear();
        } else {
            context.commit_work(work)?;
        }
        self.committed.append(pending);
        Ok(())
    }

    fn commit_pending(
        &mut self,
        context: &mut Context<'_>,
        work: UnitOfWork,
        pending: &mut BatchOutcome<S::Outcome>,
    ) -> Result<(), CommandError> {
        context.commit_work(work)?;
        self.committed.append(std::mem::take(pending));
        Ok(())
    }

    /// Runs a statement in transactions of its own. A failure is one of the statement, because its earlier
    /// transactions stay. An interruption ends the whole request, as in MongoDB; they stay then, too.
    fn run_large(
        &mut self,
        context: &mut Context<'_>,
        collection: &Arc<Collection>,
        index: usize,
        large: &S::Large,
    ) -> Result<(), CommandError> {
        let mut outcome = S::Outcome::default();
        match S::run_in_steps(large, context, collection, &mut outcome) {
            Ok(()) => {}
            Err(CommandError::Failed(_)) if context.is_collection_dropped() => {
                self.committed.failed.push(FailedWrite { index, failure: context.drop_failure() });
            }
            Err(CommandError::Failed(failure)) if failure.code.is_interruption() => {
                return Err(CommandError::Failed(failure));
            }
            Err(CommandError::Failed(failure)) => {
                self.committed.failed.push(FailedWrite { index, failure: *failure });
            }
            Err(error @ CommandError::WouldBlock(_)) => return Err(error),
        }
        self.committed.succeed(index, outcome);
        Ok(())
    }
}
