//! `update`: a batch of updates of one collection, carried out by
//! [`statement_batch`](super::statement_batch).

use std::sync::Arc;

use pando_catalog::{Collection, Namespace, WriteTransaction};
use pando_document::{Document, DocumentWriter, RawDocument, RawDocumentBuf, RawValue, Value};
use pando_query::expression::ParseScope;

use super::blind_update::{self, Blindness};
use super::insert::{check_batch_length, ends_session_transaction, is_of_view};
use super::series_change;
use super::statement_batch::{
    BatchOutcome, Effect, Statement, StatementBatch, StatementRun, refuse_statements,
};
use super::statement_parts::{array_of_documents, check_stages, checked_hint, checked_modification};
use super::update_statement::{Reach, UpdateOutcome, UpdateParts, UpdateStatement, Upsert};
use super::write_reply::{
    FailedWrite, Order, count, note_failed, tried, write_errors, write_retried, writes_into_view,
};
use crate::arguments::{Arguments, collection_name, missing};
use crate::collation::CollationChoice;
use crate::context::Context;
use crate::operation_counters::OperationKind;
use crate::{CommandError, ErrorCode, Request, unit_of_work};

/// Updates.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    let name = collection_name(request.command()?.1)?;
    let mut order = Order::Ordered;
    let mut variables = RawDocument::empty();
    for argument in Arguments::of_command("update", request.body) {
        let argument = argument?;
        match argument.name {
            "updates" => {}
            "ordered" if argument.boolean()? == Some(false) => order = Order::Unordered,
            "ordered" => {}
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
    let updates = request.documents("update", "updates")?.ok_or_else(|| missing("update", "updates"))?;
    check_batch_length(updates.len())?;
    let mut parts = updates.iter().map(|update| parse_parts(update)).collect::<Result<Vec<_>, _>>()?;
    if !context.concern.wants_answer() {
        let usual = parts.iter_mut().filter(|part| part.blindness == Blindness::Never);
        usual.for_each(|part| part.blindness = Blindness::IfPossible);
    }
    context.read_bypasses(request.body)?;
    let namespace = context.writable(name)?;
    if let Some(session) = &context.session_use {
        session.check_statements(updates.len())?;
    }
    let outcome = match context.restartable_scope().with_let(variables) {
        Ok(scope) => update_batch(context, &namespace, &parts, &scope, order)?,
        Err(error) => refuse_statements(context, error.into(), parts.len(), order)?,
    };
    note_effect(context, &outcome);
    note_failed(context, &outcome.failed);
    let shown = if context.concern.wants_answer() { outcome } else { BatchOutcome::default() };
    write_reply(context, reply, &parts, &shown);
    Ok(())
}

/// Carries a batch of updates out.
pub(super) fn update_batch(
    context: &mut Context<'_>,
    namespace: &Namespace,
    parts: &[UpdateParts<'_>],
    scope: &ParseScope,
    order: Order,
) -> Result<BatchOutcome<UpdateOutcome>, CommandError> {
    let mut batch = StatementBatch::new(parts, scope, order);
    let mut without_collection = None;
    unit_of_work::run(context, |context| {
        let upserts = parts.iter().any(|part| part.upsert == Upsert::Yes);
        let lease = match context.lease(namespace)? {
            Some(lease) => lease,
            None if upserts => context.lease_or_create(namespace)?,
            None => {
                without_collection = Some(check_without_collection(context, parts, scope, order)?);
                return Ok(());
            }
        };
        batch.run(context, &lease)
    })
    .or_else(|error| {
        if is_of_view(&error) && context.series_of(namespace)?.is_some() {
            without_collection = Some(series_change::update_batch(context, namespace, parts, scope, order)?);
            return Ok(());
        }
        let refused = writes_into_view(error, parts.len(), order)?;
        ends_session_transaction(context);
        without_collection = Some(BatchOutcome::refused(refused));
        Ok::<(), CommandError>(())
    })?;
    let outcome = without_collection.unwrap_or_else(|| batch.into_outcome());
    context.shared.operations.add(OperationKind::Update, tried(parts.len(), order, &outcome.failed));
    Ok(outcome)
}

/// Reads the fields of one update.
fn parse_parts(update: &RawDocument) -> Result<UpdateParts<'_>, CommandError> {
    let (mut query, mut modification) = (None, None);
    let mut parts = UpdateParts::empty();
    for argument in Arguments::inside("update.updates", update) {
        let argument = argument?;
        match argument.name {
            "q" => query = argument.document()?,
            "u" => modification = Some(checked_modification(argument.value)?),
            "c" => parts.constants = argument.document()?,
            "arrayFilters" => parts.array_filters = Some(array_of_documents(&argument)?),
            "sort" => parts.sort = argument.document()?,
            "hint" => parts.hint = Some(checked_hint(argument.value)?),
            "multi" if argument.boolean()? == Some(true) => parts.reach = Reach::Many,
            "upsert" if argument.boolean()? == Some(true) => parts.upsert = Upsert::Yes,
            "multi" | "upsert" => {}
            "collation" => parts.collation = CollationChoice::of(argument.document()?),
            "upsertSupplied" => {
                argument.boolean()?;
            }
            "blind" if argument.boolean()? == Some(true) => parts.blindness = Blindness::Demanded,
            "blind" | "sampleId" => {}
            _ => return Err(argument.unknown()),
        }
    }
    parts.query = query.ok_or_else(|| missing("update.updates", "q"))?;
    parts.update = modification.ok_or_else(|| missing("update.updates", "u"))?;
    check_stages(parts.update)?;
    Ok(parts)
}

/// The section of `explain` about an update with `blind: true`: whether it goes down without a read.
pub(super) fn explain_blind(
    context: &Context<'_>,
    command: &RawDocument,
    collection: Option<&Collection>,
) -> Result<Option<Document>, CommandError> {
    let Some(RawValue::Array(updates)) = command.get("updates")? else { return Ok(None) };
    let first = updates.iter().next().transpose()?.and_then(|first| first.as_document());
    let (Some(first), Some(collection)) = (first, collection) else { return Ok(None) };
    let parts = parse_parts(first)?;
    if parts.blindness != Blindness::Demanded {
        return Ok(None);
    }
    let mut section = Document::new();
    let obstacle = blind_update::obstacle(&parts, context, collection)?;
    section.push("possible", obstacle.is_none());
    if let Some(obstacle) = obstacle {
        section.push("reason", obstacle.as_str());
    }
    Ok(Some(section))
}

/// The outcome of updates of a collection that does not exist: they match no document, but are checked all
/// the same.
fn check_without_collection(
    context: &Context<'_>,
    parts: &[UpdateParts<'_>],
    scope: &ParseScope,
    order: Order,
) -> Result<BatchOutcome<UpdateOutcome>, CommandError> {
    let mut batch = BatchOutcome::default();
    for (index, part) in parts.iter().enumerate() {
        let checked = part
            .collation
            .scope_in(scope, None)
            .and_then(|scope| UpdateStatement::parse(part.clone(), &scope))
            .and_then(|_| blind_update::check_without_collection(part, context));
        match checked {
            Ok(()) => batch.succeed(index, UpdateOutcome::default()),
            Err(error @ CommandError::WouldBlock(_)) => return Err(error),
            Err(CommandError::Failed(failure)) => {
                batch.fail(FailedWrite { index, failure: *failure });
                if order == Order::Ordered {
                    break;
                }
            }
        }
    }
    Ok(batch)
}

impl<'a> Statement for UpdateParts<'a> {
    type Outcome = UpdateOutcome;
    type Large = UpdateStatement<'a>;

    fn run(
        &self,
        context: &Context<'_>,
        collection: &Arc<Collection>,
        transaction: &mut WriteTransaction,
        scope: &ParseScope,
    ) -> Result<StatementRun<UpdateParts<'a>>, CommandError> {
        if let Some(keyed) = &self.keyed
            && let Some(outcome) = keyed.run(self.upsert, context, collection, transaction)?
        {
            return Ok(StatementRun::Done(outcome));
        }
        context.list_statement(self.query, || self.shown());
        if let Some(outcome) = self.run_blind(context, collection, transaction, scope)? {
            return Ok(StatementRun::Done(outcome));
        }
        if self.reach == Reach::Many && context.is_retryable_write() {
            return Err(CommandError::failed(
                ErrorCode::InvalidOptions,
                "Cannot use (or request) retryable writes with multi=true",
            ));
        }
        let scope = self.collation.scope_in(scope, Some(collection))?;
        let statement = UpdateStatement::parse(self.clone(), &scope)?;
        Ok(match statement.run(context, collection, transaction)? {
            Some(outcome) => StatementRun::Done(outcome),
            None => StatementRun::TooLarge(Box::new(statement)),
        })
    }

    fn shown(&self) -> Option<RawDocumentBuf> {
        Some(UpdateParts::shown(self))
    }

    fn effect(outcome: &UpdateOutcome) -> Option<Effect<'_>> {
        let has_changed = outcome.modified > 0 || outcome.upserted.is_some() || outcome.is_blind;
        has_changed.then_some(Effect { upserted: outcome.upserted.as_ref() })
    }

    fn repeated(upserted: Option<Value>) -> UpdateOutcome {
        let changed = u64::from(upserted.is_none());
        UpdateOutcome { matched: changed, modified: changed, upserted, ..UpdateOutcome::default() }
    }

    /// After an error the client is told of no document of this statement, although the earlier steps stay.
    fn run_in_steps(
        large: &UpdateStatement<'a>,
        context: &mut Context<'_>,
        collection: &Arc<Collection>,
        outcome: &mut UpdateOutcome,
    ) -> Result<(), CommandError> {
        *outcome = large.run_in_steps(context, collection)?;
        Ok(())
    }
}

impl UpdateParts<'_> {
    /// See [`blind_update::run`]. An update that no document takes is refused in the usual words.
    fn run_blind(
        &self,
        context: &Context<'_>,
        collection: &Arc<Collection>,
        transaction: &mut WriteTransaction,
        scope: &ParseScope,
    ) -> Result<Option<UpdateOutcome>, CommandError> {
        if self.blindness == Blindness::Demanded {
            let scope = self.collation.scope_in(scope, Some(collection))?;
            UpdateStatement::parse(self.clone(), &scope)?;
        }
        blind_update::run(self, context, collection, transaction)
    }
}

fn note_effect(context: &Context<'_>, batch: &BatchOutcome<UpdateOutcome>) {
    let blind = batch.outcomes.iter().filter(|statement| statement.outcome.is_blind).count() as u64;
    let others = batch.outcomes.len() as u64 - blind;
    context.note(|notes| {
        notes.blind = (blind > 0).then_some(blind);
        notes.not_blind = (others > 0 && !context.concern.wants_answer()).then_some(others);
    });
    if blind > 0 && others == 0 {
        return;
    }
    let sum = |count: fn(&UpdateOutcome) -> u64| {
        Some(batch.outcomes.iter().map(|statement| count(&statement.outcome)).sum())
    };
    context.note(|notes| {
        notes.matched = sum(|outcome| outcome.matched);
        notes.modified = sum(|outcome| outcome.modified);
        notes.upserted = sum(|outcome| u64::from(outcome.upserted.is_some()));
    });
}

/// The counts of a batch with a blind update are not known, and are left out.
fn write_reply(
    context: &Context<'_>,
    reply: &mut DocumentWriter<'_>,
    parts: &[UpdateParts<'_>],
    batch: &BatchOutcome<UpdateOutcome>,
) {
    // By the request, because a repeated one has the outcomes of no document.
    let is_blind = |index: usize| parts.get(index).is_some_and(|part| part.blindness == Blindness::Demanded);
    let blind = batch.outcomes.iter().filter(|statement| is_blind(statement.index)).count() as u64;
    let upserts = batch.outcomes.iter().filter(|statement| statement.outcome.upserted.is_some());
    let matched: u64 = batch.outcomes.iter().map(|statement| statement.outcome.matched).sum();
    let modified: u64 = batch.outcomes.iter().map(|statement| statement.outcome.modified).sum();
    match blind {
        0 => reply.append("n", count(matched + upserts.clone().count() as u64)),
        _ => reply.append("blind", count(blind)),
    }
    write_errors(reply, &batch.failed);
    write_retried(context, reply);
    if upserts.clone().next().is_some() {
        let mut list = reply.array("upserted");
        for statement in upserts {
            let mut one = list.document();
            one.append("index", RawValue::Int32(i32::try_from(statement.index).unwrap_or(i32::MAX)));
            if let Some(id) = &statement.outcome.upserted {
                one.append_value("_id", id);
            }
            one.finish();
        }
        list.finish();
    }
    if blind == 0 {
        reply.append("nModified", count(modified));
    }
}
