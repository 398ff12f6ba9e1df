//! `delete`: a batch of deletions from one collection, carried out by
//! [`statement_batch`](super::statement_batch).

use std::sync::Arc;

use pando_catalog::{Bytes, Collection, FetchAhead, Namespace, WriteTransaction};
use pando_document::{DocumentWriter, Number, RawDocument, RawDocumentBuf, RawValue, Value};
use pando_query::expression::ParseScope;
use pando_query::filter::Filter;

use super::insert::{check_batch_length, ends_session_transaction, is_of_view};
use super::selection::{self, Selection};
use super::series_change;
use super::statement_batch::{
    BatchOutcome, Effect, Statement, StatementBatch, StatementRun, refuse_statements,
};
use super::statement_parts::checked_hint;
use super::steps::{Meter, Written, documents_max, in_steps};
use super::update_statement::{Counted, Reach};
use super::write_reply::{
    Order, capped_removal, count, note_failed, tried, write_errors, write_retried, writes_into_view,
};
use crate::arguments::{Arguments, collection_name, missing};
use crate::collation::CollationChoice;
use crate::context::Context;
use crate::error::write_failure;
use crate::operation_counters::OperationKind;
use crate::operations::statement_of;
use crate::{CommandError, ErrorCode, Request, unit_of_work};

/// A deletion as a request gives it.
#[derive(Clone, Copy)]
pub(super) struct DeleteParts<'a> {
    pub query: &'a RawDocument,
    pub reach: Reach,
    pub hint: Option<RawValue<'a>>,
    pub collation: CollationChoice<'a>,
    pub counted: Counted<'a>,
}

/// A deletion of many documents.
pub(super) struct LargeDelete<'a> {
    selection: Selection,
    counted: Counted<'a>,
    way: Way,
}

/// The way in which a large deletion begins.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// By a truncation, or in steps where there can be none.
    Truncation,
    /// In steps.
    Steps,
}

/// The fewest documents that are truncated: fewer are gone as fast one by one.
const TRUNCATED_DOCUMENTS_MIN: u64 = 1_000;
/// Truncations that are tried before the documents are deleted in steps. Any writer may be in the way.
const TRUNCATION_TRIES: u32 = 3;

/// Deletes.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    let name = collection_name(request.command()?.1)?;
    let mut order = Order::Ordered;
    let mut variables = RawDocument::empty();
    for argument in Arguments::of_command("delete", request.body) {
        let argument = argument?;
        match argument.name {
            "deletes" => {}
            "ordered" if argument.boolean()? == Some(false) => order = Order::Unordered,
            "ordered" => {}
            // Taken and without effect, as in MongoDB: drivers send them with each command of a bulk write.
            "bypassDocumentValidation" => {
                argument.lenient_boolean()?;
            }
            "bypassEmptyTsReplacement" => {
                argument.boolean()?;
            }
            "let" => variables = argument.document()?.unwrap_or(variables),
            _ => argument.refuse_unless_generic()?,
        }
    }
    let deletes = request.documents("delete", "deletes")?.ok_or_else(|| missing("delete", "deletes"))?;
    check_batch_length(deletes.len())?;
    let parts = deletes.iter().map(|delete| parse_parts(delete)).collect::<Result<Vec<_>, _>>()?;
    let namespace = context.writable(name)?;
    if let Some(session) = &context.session_use {
        session.check_statements(deletes.len())?;
    }
    let outcome = match context.restartable_scope().with_let(variables) {
        Ok(scope) => delete_batch(context, &namespace, &parts, &scope, order)?,
        Err(error) => refuse_statements(context, error.into(), parts.len(), order)?,
    };
    let deleted = outcome.outcomes.iter().map(|statement| statement.outcome.documents).sum();
    context.note(|notes| notes.deleted = Some(deleted));
    note_failed(context, &outcome.failed);
    if context.concern.wants_answer() {
        reply.append("n", count(deleted));
        write_errors(reply, &outcome.failed);
        write_retried(context, reply);
    } else {
        reply.append("n", count(0));
    }
    Ok(())
}

/// Carries a batch of deletions out. A collection that does not exist has no outcomes.
pub(super) fn delete_batch(
    context: &mut Context<'_>,
    namespace: &Namespace,
    parts: &[DeleteParts<'_>],
    scope: &ParseScope,
    order: Order,
) -> Result<BatchOutcome<DeleteOutcome>, CommandError> {
    let mut batch = StatementBatch::new(parts, scope, order);
    let ran = unit_of_work::run(context, |context| {
        let lease = context.lease(namespace).map_err(|error| capped_removal(error, namespace))?;
        let Some(lease) = lease else {
            for part in parts {
                Filter::parse_for_plan(part.query, &*part.collation.scope_in(scope, None)?)?;
            }
            return Ok(());
        };
        batch.run(context, &lease)
    });
    let outcome = match ran {
        Ok(()) => batch.into_outcome(),
        Err(error) if is_of_view(&error) && context.series_of(namespace)?.is_some() => {
            series_change::delete_batch(context, namespace, parts, scope, order)?
        }
        Err(error) => {
            let refused = writes_into_view(error, parts.len(), order)?;
            ends_session_transaction(context);
            BatchOutcome::refused(refused)
        }
    };
    context.shared.operations.add(OperationKind::Delete, tried(parts.len(), order, &outcome.failed));
    Ok(outcome)
}

impl DeleteParts<'_> {
    /// Refuses a delete of many documents that is to be repeated by its number.
    pub fn check_retryable(&self, context: &Context<'_>) -> Result<(), CommandError> {
        match self.reach == Reach::Many && context.is_retryable_write() {
            true => Err(CommandError::failed(
                ErrorCode::InvalidOptions,
                "Cannot use (or request) retryable writes with limit=0",
            )),
            false => Ok(()),
        }
    }

    /// Whether it is of all documents, and in no certain way.
    fn is_of_all(&self) -> bool {
        self.query.is_empty()
            && self.reach == Reach::Many
            && self.hint.is_none()
            && matches!(self.counted, Counted::Documents)
    }

    /// The delete as lists of operations show it.
    pub fn shown(&self) -> RawDocumentBuf {
        let limit = i32::from(self.reach == Reach::One);
        statement_of(&[("q", RawValue::Document(self.query)), ("limit", RawValue::Int32(limit))])
    }
}

fn parse_parts(delete: &RawDocument) -> Result<DeleteParts<'_>, CommandError> {
    let (mut query, mut reach, mut hint) = (None, None, None);
    let mut collation = CollationChoice::Inherited;
    for argument in Arguments::inside("delete.deletes", delete) {
        let argument = argument?;
        match argument.name {
            "q" => query = argument.document()?,
            "limit" => reach = Some(reach_of(argument.value)?),
            "hint" => hint = Some(checked_hint(argument.value)?),
            "collation" => collation = CollationChoice::of(argument.document()?),
            "sampleId" => {}
            _ => return Err(argument.unknown()),
        }
    }
    Ok(DeleteParts {
        query: query.ok_or_else(|| missing("delete.deletes", "q"))?,
        reach: reach.ok_or_else(|| missing("delete.deletes", "limit"))?,
        hint,
        collation,
        counted: Counted::Documents,
    })
}

/// 0 means all, 1 the first; what is no number counts as 0.
fn reach_of(limit: RawValue<'_>) -> Result<Reach, CommandError> {
    match Number::from_value(limit).map_or(0.0, Number::to_f64) {
        0.0 => Ok(Reach::Many),
        1.0 => Ok(Reach::One),
        number => {
            let shown = six_digits(number);
            Err(CommandError::failed(
                ErrorCode::FailedToParse,
                format!("The limit field in delete objects must be 0 or 1. Got {shown}"),
            ))
        }
    }
}

/// A number in at most six digits, as C++ streams print it.
fn six_digits(number: f64) -> String {
    if number.is_nan() {
        return "nan".to_owned();
    }
    if number.is_infinite() || number.abs() < 1e6 {
        return number.to_string();
    }
    let shown = format!("{number:.5e}");
    match shown.split_once('e') {
        Some((digits, exponent)) => {
            format!("{}e+{exponent:0>2}", digits.trim_end_matches('0').trim_end_matches('.'))
        }
        None => shown,
    }
}

/// The effect of one deletion.
#[derive(Default)]
pub(super) struct DeleteOutcome {
    /// Documents that were deleted.
    pub documents: u64,
}

impl<'a> Statement for DeleteParts<'a> {
    type Outcome = DeleteOutcome;
    type Large = LargeDelete<'a>;

    fn run(
        &self,
        context: &Context<'_>,
        collection: &Arc<Collection>,
        transaction: &mut WriteTransaction,
        scope: &ParseScope,
    ) -> Result<StatementRun<Self>, CommandError> {
        context.list_statement(self.query, || self.shown());
        self.check_retryable(context)?;
        let limit = match self.reach {
            Reach::One => Some(1),
            Reach::Many => None,
        };
        let scope = self.collation.scope_in(scope, Some(collection))?;
        let selection = Selection::new(Filter::parse_for_plan(self.query, &scope)?, None, self.hint, limit)?;
        let large = |selection, way| {
            Ok(StatementRun::TooLarge(Box::new(LargeDelete { selection, counted: self.counted, way })))
        };
        if self.is_of_all() && may_truncate(context, collection, transaction)? {
            return large(selection, Way::Truncation);
        }
        let keys = selection::keys(&selection, collection, &**transaction, context, documents_max(context))?;
        let Some(keys) = keys else { return large(selection, Way::Steps) };
        let mut outcome = DeleteOutcome::default();
        let mut meter = Meter::of(context);
        let mut documents = FetchAhead::default();
        for (place, key) in keys.iter().enumerate() {
            context.check()?;
            if meter.is_full(transaction) {
                return large(selection, Way::Steps);
            }
            let old = documents.fetch(&*keys, place, collection, &**transaction, context.blocking)?;
            let Some(old) = old else { continue };
            meter.add(&old);
            delete_one(context, collection, transaction, key, &old)?;
            outcome.documents += self.counted.number_in(RawDocument::from_bytes(&old)?)?;
        }
        Ok(StatementRun::Done(outcome))
    }

    fn shown(&self) -> Option<RawDocumentBuf> {
        Some(DeleteParts::shown(self))
    }

    fn effect(outcome: &DeleteOutcome) -> Option<Effect<'_>> {
        (outcome.documents > 0).then_some(Effect { upserted: None })
    }

    fn repeated(_upserted: Option<Value>) -> DeleteOutcome {
        DeleteOutcome { documents: 1 }
    }

    /// After an error the client is told of the documents that the earlier steps have deleted.
    fn run_in_steps(
        large: &LargeDelete<'a>,
        context: &mut Context<'_>,
        collection: &Arc<Collection>,
        outcome: &mut DeleteOutcome,
    ) -> Result<(), CommandError> {
        if large.way == Way::Truncation
            && let Some(documents) = truncate(context, &large.selection, collection)?
        {
            outcome.documents += documents;
            return Ok(());
        }
        let change = |context: &Context<'_>,
                      transaction: &mut WriteTransaction,
                      key: &[u8],
                      old: Bytes,
                      step: &mut DeleteOutcome| {
            delete_one(context, collection, transaction, key, &old)?;
            step.documents += large.counted.number_in(RawDocument::from_bytes(&old)?)?;
            Ok(Written(0))
        };
        loop {
            let gone = in_steps(context, &large.selection, collection, &change, |step: DeleteOutcome| {
                outcome.documents += step.documents;
            })?;
            // An insert between two steps may put the measurements of a bucket into another one.
            if gone == 0 || matches!(large.counted, Counted::Documents) {
                return Ok(());
            }
        }
    }
}

/// Whether so many documents of a collection go that a truncation is worth it, and none is missed by it: the
/// server has an eye on the documents of its own collections.
fn may_truncate(
    context: &Context<'_>,
    collection: &Collection,
    transaction: &WriteTransaction,
) -> Result<bool, CommandError> {
    if context.is_atomic() || collection.namespace().is_system() {
        return Ok(false);
    }
    let documents = collection.document_count(&**transaction, context.blocking)?;
    Ok(documents.is_some_and(|documents| documents >= TRUNCATED_DOCUMENTS_MIN))
}

/// Truncates a collection; gives the number of its documents. `None` where it cannot be, or others write to
/// it all the time.
fn truncate(
    context: &mut Context<'_>,
    selection: &Selection,
    collection: &Arc<Collection>,
) -> Result<Option<u64>, CommandError> {
    for _ in 0..TRUNCATION_TRIES {
        context.check()?;
        let mut work = context.begin_work()?;
        let transaction = work.writer();
        selection.note_plan(context, collection, &**transaction)?;
        let truncated = match collection.truncate(transaction, context.blocking) {
            Ok(Some(documents)) => context.commit_work(work).map(|()| documents),
            Ok(None) => {
                context.abandon_work(work);
                return Ok(None);
            }
            Err(error) => {
                context.abandon_work(work);
                Err(error.into())
            }
        };
        match truncated {
            Err(CommandError::Failed(failure)) if failure.is_conflict() => std::thread::yield_now(),
            other => return other.map(Some),
        }
    }
    Ok(None)
}

/// Removes one document and its entries.
pub(super) fn delete_one(
    context: &Context<'_>,
    collection: &Collection,
    transaction: &mut WriteTransaction,
    key: &[u8],
    old: &[u8],
) -> Result<(), CommandError> {
    collection
        .remove(transaction, key, RawDocument::from_bytes(old)?, context.blocking)
        .map_err(|error| write_failure(error, &collection.namespace().to_string()))
}
