//! `update`: a batch of updates of one collection, in one transaction, each behind a savepoint.

use pando_catalog::{Begin, Collection, Transaction};
use pando_document::{DocumentWriter, RawDocument, RawValue};
use pando_query::expression::ParseScope;

use std::sync::Arc;

use super::collation::refuse_collation;
use super::insert::{check_batch_length, ends_transaction};
use super::retry;
use super::statement_parts::{array_of_documents, check_stages, checked_hint, checked_modification};
use super::update_statement::{Reach, UpdateOutcome, UpdateParts, UpdateStatement, Upsert};
use super::write_reply::{FailedWrite, Order, count, tried, write_errors};
use crate::arguments::{Arguments, collection_name, missing};
use crate::context::Context;
use crate::operation_counters::OperationKind;
use crate::{CommandError, Request};

/// What a batch did.
#[derive(Default)]
struct BatchOutcome {
    outcomes: Vec<(usize, UpdateOutcome)>,
    failed: Vec<FailedWrite>,
}

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
            "let" => variables = argument.document()?.unwrap_or(variables),
            _ => argument.refuse_unless_generic()?,
        }
    }
    let updates = request.documents("update", "updates")?.ok_or_else(|| missing("update", "updates"))?;
    check_batch_length(updates.len())?;
    let parts = updates.iter().map(|update| parse_parts(update)).collect::<Result<Vec<_>, _>>()?;
    let namespace = context.writable(name)?;
    let scope = ParseScope::with_let(context.shared.now_ms(), variables)?;

    let batch = retry::on_conflict(context, |context| {
        let upserts = parts.iter().any(|part| part.upsert == Upsert::Yes);
        let lease =
            match context.catalog().lease(namespace.database(), namespace.collection(), context.patience)? {
                Some(lease) => lease,
                None if upserts => context.lease_or_create(&namespace)?,
                None => return check_alone(&parts, &scope, order),
            };
        let mut transaction = context.catalog().begin(Begin::WRITE)?;
        let batch = update_all(context, &lease, &mut *transaction, &parts, &scope, order)?;
        context.commit(transaction)?;
        Ok(batch)
    })?;
    let tried = tried(parts.len(), order, &batch.failed);
    context.shared.operations.add(OperationKind::Update, tried);
    let shown = if context.concern.wants_answer() { batch } else { BatchOutcome::default() };
    write_reply(reply, &shown);
    Ok(())
}

/// Reads the fields of one update.
fn parse_parts(update: &RawDocument) -> Result<UpdateParts<'_>, CommandError> {
    let (mut query, mut modification) = (None, None);
    let mut parts = UpdateParts {
        query: RawDocument::empty(),
        update: RawValue::Null,
        constants: None,
        array_filters: None,
        sort: None,
        hint: None,
        reach: Reach::One,
        upsert: Upsert::No,
    };
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
            "collation" => refuse_collation(argument.document()?)?,
            "upsertSupplied" => {
                argument.boolean()?;
            }
            "sampleId" => {}
            _ => return Err(argument.unknown()),
        }
    }
    parts.query = query.ok_or_else(|| missing("update.updates", "q"))?;
    parts.update = modification.ok_or_else(|| missing("update.updates", "u"))?;
    check_stages(parts.update)?;
    Ok(parts)
}

/// The errors of updates of a collection that does not exist: they match nothing, but are checked all the same.
fn check_alone(
    parts: &[UpdateParts<'_>],
    scope: &ParseScope,
    order: Order,
) -> Result<BatchOutcome, CommandError> {
    let mut batch = BatchOutcome::default();
    for (index, part) in parts.iter().enumerate() {
        match UpdateStatement::parse(part.clone(), scope) {
            Ok(_) => batch.outcomes.push((index, UpdateOutcome::default())),
            Err(error @ CommandError::WouldBlock(_)) => return Err(error),
            Err(CommandError::Failed(failure)) => {
                batch.failed.push(FailedWrite { index, failure: *failure });
                if order == Order::Ordered {
                    break;
                }
            }
        }
    }
    Ok(batch)
}

fn update_all(
    context: &Context<'_>,
    collection: &Arc<Collection>,
    transaction: &mut dyn Transaction,
    parts: &[UpdateParts<'_>],
    scope: &ParseScope,
    order: Order,
) -> Result<BatchOutcome, CommandError> {
    let mut batch = BatchOutcome::default();
    for (index, part) in parts.iter().enumerate() {
        let savepoint = transaction.savepoint();
        let outcome = UpdateStatement::parse(part.clone(), scope)
            .and_then(|statement| statement.run(context, collection, transaction));
        match outcome {
            Ok(outcome) => batch.outcomes.push((index, outcome)),
            Err(error @ CommandError::WouldBlock(_)) => return Err(error),
            Err(CommandError::Failed(failure)) if ends_transaction(&failure) => {
                return Err(CommandError::Failed(failure));
            }
            Err(CommandError::Failed(failure)) => {
                transaction.rollback_to(savepoint);
                batch.failed.push(FailedWrite { index, failure: *failure });
                if order == Order::Ordered {
                    break;
                }
            }
        }
    }
    Ok(batch)
}

fn write_reply(reply: &mut DocumentWriter<'_>, batch: &BatchOutcome) {
    let upserts = batch.outcomes.iter().filter(|(_, outcome)| outcome.upserted.is_some());
    let matched: u64 = batch.outcomes.iter().map(|(_, outcome)| outcome.matched).sum();
    let modified: u64 = batch.outcomes.iter().map(|(_, outcome)| outcome.modified).sum();
    reply.append("n", count(matched + upserts.clone().count() as u64));
    write_errors(reply, &batch.failed);
    if upserts.clone().next().is_some() {
        let mut list = reply.array("upserted");
        for (index, outcome) in upserts {
            let mut one = list.document();
            one.append("index", RawValue::Int32(i32::try_from(*index).unwrap_or(i32::MAX)));
            if let Some(id) = &outcome.upserted {
                one.append_value("_id", id);
            }
            one.finish();
        }
        list.finish();
    }
    reply.append("nModified", count(modified));
}
