//! `insert`: a batch of documents into one collection.
//!
//! # Steps
//! 1. The request is checked whole; nothing is written if it is malformed.
//! 2. One transaction takes all documents, each behind a savepoint: one that fails is undone alone. An
//!    ordered batch ends there, an unordered one goes on.
//! 3. The transaction commits: one log record and one sync serve the whole batch. Where it becomes
//!    [large](pando_catalog::Transaction::is_large) for the engine before, it commits, and another one takes
//!    the rest, unless the batch is to be one transaction.
//! 4. A conflict with another transaction starts the part that is not committed again from step 2.
//!
//! Where the connection has a load open, that takes the documents (`load_insert.rs`).
//!
//! In a session's transaction there is no step 3, and the first failure or conflict ends the transaction.

use pando_catalog::{Collection, Namespace, WriteTransaction};
use pando_document::{DocumentWriter, RawDocument};
use pando_query::update::check_built;

use super::write_reply::{
    FailedWrite, Order, count, note_failed, push_failed, tried, write_errors, write_retried, writes_into_view,
};
use super::{load_insert, stored_document, time_series};
use crate::arguments::{Arguments, collection_name, missing};
use crate::context::Context;
use crate::error::{Failure, write_failure};
use crate::identity::WRITE_BATCH_MAX;
use crate::operation_counters::OperationKind;
use crate::validation::Validator;
use crate::{CommandError, ErrorCode, Request, unit_of_work};

/// Documents in a batch that may be inserted on a thread that serves many clients; a larger one would hold
/// the others up.
const INLINE_DOCUMENTS_MAX: usize = 16;

/// Documents of which the engine is told before the first of them is inserted.
const EXPECTED_AT_ONCE: usize = 1_000;

/// Inserts the documents.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    let name = collection_name(request.command()?.1)?;
    let mut order = Order::Ordered;
    for argument in Arguments::of_command("insert", request.body) {
        let argument = argument?;
        match argument.name {
            "documents" => {}
            "ordered" if argument.boolean()? == Some(false) => order = Order::Unordered,
            "ordered" => {}
            "bypassDocumentValidation" => {
                argument.lenient_boolean()?;
            }
            "bypassEmptyTsReplacement" => {
                argument.boolean()?;
            }
            _ => argument.refuse_unless_generic()?,
        }
    }
    let documents =
        request.documents("insert", "documents")?.ok_or_else(|| missing("insert", "documents"))?;
    check_batch_length(documents.len())?;
    if documents.len() > INLINE_DOCUMENTS_MAX {
        context.require_may_block()?;
    }
    for document in &documents {
        check_built(document)?;
    }
    context.read_bypasses(request.body)?;
    let namespace = context.writable(name)?;

    if let Some(session) = &context.session_use {
        session.check_statements(documents.len())?;
    }

    let (inserted, failed) = match context.connection.load().cloned() {
        None => insert_batch(context, &namespace, &documents, order)?,
        Some(load) => load_insert::insert_batch(context, &load, &documents, order)?,
    };
    context.note(|notes| notes.inserted = Some(inserted));
    note_failed(context, &failed);
    if context.concern.wants_answer() {
        reply.append("n", count(inserted));
        write_errors(reply, &failed);
        write_retried(context, reply);
    } else {
        reply.append("n", count(0));
    }
    Ok(())
}

/// Inserts a batch; gives the number of inserted documents, and those that failed.
pub(super) fn insert_batch(
    context: &mut Context<'_>,
    namespace: &Namespace,
    documents: &[&RawDocument],
    order: Order,
) -> Result<(u64, Vec<FailedWrite>), CommandError> {
    let mut batch = Batch { documents, order, next: 0, inserted: 0, failed: Vec::new() };
    while batch.next < documents.len() {
        match batch.insert_part(context, namespace) {
            Ok(()) => {}
            Err(error) if batch.next > 0 => return Err(error),
            Err(error) => {
                if is_of_view(&error)
                    && let Some((_, series)) = context.series_of(namespace)?
                {
                    (batch.inserted, batch.failed) =
                        time_series::insert_batch(context, namespace, &series, documents, order)?;
                } else {
                    batch.failed = writes_into_view(error, documents.len(), order)?;
                    ends_session_transaction(context);
                }
                break;
            }
        }
    }
    let Batch { inserted, failed, .. } = batch;
    context.shared.operations.add(OperationKind::Insert, tried(documents.len(), order, &failed));
    Ok((inserted, failed))
}

/// A batch, and its committed part.
struct Batch<'a> {
    documents: &'a [&'a RawDocument],
    order: Order,
    /// The first document that is not committed; behind the last one where the batch has ended.
    next: usize,
    inserted: u64,
    failed: Vec<FailedWrite>,
}

impl Batch<'_> {
    /// Inserts the next documents in one unit of work.
    fn insert_part(&mut self, context: &mut Context<'_>, namespace: &Namespace) -> Result<(), CommandError> {
        let part = unit_of_work::run(context, |context| {
            let collection = context.lease_or_create(namespace)?;
            let mut work = context.begin_work()?;
            let part = self.insert_next(context, &collection, work.writer())?;
            if !part.failed.is_empty() && context.undoes_failed_batch() {
                context.abandon_work(work);
                return Ok(Part { inserted: 0, ..part });
            }
            context.commit_work(work)?;
            Ok(part)
        })?;
        self.next = part.next;
        self.inserted += part.inserted;
        self.failed.extend(part.failed);
        Ok(())
    }

    /// Inserts each document that is left behind a savepoint, until the transaction is large. Errors that
    /// concern the whole transaction end the batch.
    fn insert_next(
        &self,
        context: &mut Context<'_>,
        collection: &Collection,
        transaction: &mut WriteTransaction,
    ) -> Result<Part, CommandError> {
        let (documents, first) = (self.documents, self.next);
        let order = if context.undoes_failed_batch() { Order::Ordered } else { self.order };
        let mut part = Part { next: documents.len(), inserted: 0, failed: Vec::new() };
        let mut stored = Vec::new();
        let target = Target { collection, validator: Validator::of(context, collection)? };
        for (index, document) in documents.iter().enumerate().skip(first) {
            context.check()?;
            if !context.is_atomic() && transaction.is_large() {
                context.require_may_block()?;
                part.next = index;
                break;
            }
            if (index - first).is_multiple_of(EXPECTED_AT_ONCE) {
                let next = &documents[index..documents.len().min(index + EXPECTED_AT_ONCE)];
                collection
                    .expect_inserts(transaction, next, context.blocking)
                    .map_err(|error| write_failure(error, &collection.namespace().to_string()))?;
            }
            if context.session_use.as_mut().is_some_and(|session| session.repeated(index).is_some()) {
                part.inserted += 1;
                continue;
            }
            let savepoint = transaction.savepoint();
            match insert_one(context, &target, transaction, document, &mut stored) {
                Ok(()) => {
                    part.inserted += 1;
                    if let Some(session) = &mut context.session_use {
                        session.executed(index, None);
                    }
                }
                Err(error @ CommandError::WouldBlock(_)) => return Err(error),
                Err(CommandError::Failed(failure)) if ends_transaction(&failure) => {
                    return Err(CommandError::Failed(failure));
                }
                Err(CommandError::Failed(failure)) => {
                    transaction.rollback_to(savepoint);
                    push_failed(&mut part.failed, FailedWrite { index, failure: *failure });
                    if ends_session_transaction(context) || order == Order::Ordered {
                        break;
                    }
                }
            }
        }
        Ok(part)
    }
}

/// The documents of a batch that one transaction has taken.
struct Part {
    /// The document that the next transaction begins with; behind the last one where the batch has ended.
    next: usize,
    inserted: u64,
    failed: Vec<FailedWrite>,
}

/// Whether the name is not one of a collection.
pub(super) fn is_of_view(error: &CommandError) -> bool {
    matches!(error, CommandError::Failed(failure) if failure.code == ErrorCode::CommandNotSupportedOnView)
}

/// Refuses batches that are empty or too long.
pub(super) fn check_batch_length(length: usize) -> Result<(), CommandError> {
    if (1..=WRITE_BATCH_MAX).contains(&length) {
        return Ok(());
    }
    Err(Failure::new(
        ErrorCode::InvalidLength,
        format!("Write batch sizes must be between 1 and {WRITE_BATCH_MAX}. Got {length} operations."),
    )
    .into())
}

/// Whether the batch is in a session's transaction, which a failed write ends.
pub(super) fn ends_session_transaction(context: &mut Context<'_>) -> bool {
    let Some(session) = context.session_use.as_mut().filter(|session| session.open().is_some()) else {
        return false;
    };
    session.fail();
    true
}

/// Whether a failure is not one document's but the transaction's.
pub(super) fn ends_transaction(failure: &Failure) -> bool {
    failure.code.is_interruption()
        || matches!(
            failure.code,
            ErrorCode::WriteConflict
                | ErrorCode::QueryPlanKilled
                | ErrorCode::OutOfDiskSpace
                | ErrorCode::FileStreamFailed
                | ErrorCode::TooManyFilesOpen
                | ErrorCode::TransactionTooLarge
                | ErrorCode::ShutdownInProgress
                | ErrorCode::LockTimeout
                | ErrorCode::NoSuchTransaction
                | ErrorCode::SnapshotUnavailable
        )
}

/// A collection and the rule for its documents.
struct Target<'t> {
    collection: &'t Collection,
    validator: Option<Validator>,
}

fn insert_one(
    context: &Context<'_>,
    target: &Target<'_>,
    transaction: &mut WriteTransaction,
    document: &RawDocument,
    stored: &mut Vec<u8>,
) -> Result<(), CommandError> {
    stored_document::prepare(context.shared, document, context.empty_timestamps, stored)?;
    let stored = RawDocument::from_bytes(stored)?;
    if let Some(validator) = &target.validator {
        validator.check_insert(stored)?;
    }
    target
        .collection
        .insert(transaction, stored, context.blocking)
        .map_err(|error| write_failure(error, &target.collection.namespace().to_string()))
}
