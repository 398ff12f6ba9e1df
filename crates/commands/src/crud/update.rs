//! `update`: a batch of updates of one collection, in one transaction, each behind a savepoint; statements
//! about many documents go in [`steps`](super::steps).

use pando_catalog::{Begin, Collection};
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

impl BatchOutcome {
    /// Statements that were carried out, or failed.
    fn len(&self) -> usize {
        self.outcomes.len() + self.failed.len()
    }
}

/// How much of a batch is committed: a conflict later on does not repeat it.
#[derive(Default)]
struct Progress {
    /// The next statement.
    next: usize,
    done: BatchOutcome,
}

impl Progress {
    /// The next statements are committed, or have failed for good.
    fn commit(&mut self, batch: BatchOutcome) {
        self.next += batch.len();
        self.done.outcomes.extend(batch.outcomes);
        self.done.failed.extend(batch.failed);
    }
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

    let mut progress = Progress::default();
    retry::on_conflict(context, |context| {
        let upserts = parts.iter().any(|part| part.upsert == Upsert::Yes);
        let lease =
            match context.catalog().lease(namespace.database(), namespace.collection(), context.blocking)? {
                Some(lease) => lease,
                None if upserts => context.lease_or_create(&namespace)?,
                None => {
                    progress.done = check_alone(&parts, &scope, order)?;
                    return Ok(());
                }
            };
        update_all(context, &lease, &parts, &scope, order, &mut progress)
    })?;
    let batch = progress.done;
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

/// How a statement went within the transaction of its batch.
enum Attempt<'a> {
    Done(UpdateOutcome),
    /// It is about too many documents.
    NeedsSteps(Box<UpdateStatement<'a>>),
}

/// Carries out what is left of a batch: one transaction, and those of statements that need several.
fn update_all(
    context: &mut Context<'_>,
    collection: &Arc<Collection>,
    parts: &[UpdateParts<'_>],
    scope: &ParseScope,
    order: Order,
    progress: &mut Progress,
) -> Result<(), CommandError> {
    let mut transaction = context.catalog().begin(Begin::WRITE)?;
    let mut batch = BatchOutcome::default();
    while let Some(part) = parts.get(progress.next + batch.len()) {
        let index = progress.next + batch.len();
        let savepoint = transaction.savepoint();
        let attempt = UpdateStatement::parse(part.clone(), scope).and_then(|statement| {
            Ok(match statement.run(context, collection, &mut *transaction)? {
                Some(outcome) => Attempt::Done(outcome),
                None => Attempt::NeedsSteps(Box::new(statement)),
            })
        });
        match attempt {
            Ok(Attempt::Done(outcome)) => batch.outcomes.push((index, outcome)),
            Ok(Attempt::NeedsSteps(statement)) => {
                context.require_may_block()?;
                transaction.rollback_to(savepoint);
                context.commit(transaction)?;
                progress.commit(std::mem::take(&mut batch));
                progress.commit(in_steps(context, collection, index, &statement)?);
                transaction = context.catalog().begin(Begin::WRITE)?;
            }
            Err(error @ CommandError::WouldBlock(_)) => return Err(error),
            Err(CommandError::Failed(failure)) if ends_transaction(&failure) => {
                return Err(CommandError::Failed(failure));
            }
            Err(CommandError::Failed(failure)) => {
                transaction.rollback_to(savepoint);
                batch.failed.push(FailedWrite { index, failure: *failure });
            }
        }
        if order == Order::Ordered && (!batch.failed.is_empty() || !progress.done.failed.is_empty()) {
            break;
        }
    }
    context.commit(transaction)?;
    progress.commit(batch);
    Ok(())
}

/// Runs a statement in transactions of its own. Whatever fails is an error of the statement, for what was done before it stays.
fn in_steps(
    context: &mut Context<'_>,
    collection: &Arc<Collection>,
    index: usize,
    statement: &UpdateStatement<'_>,
) -> Result<BatchOutcome, CommandError> {
    let mut batch = BatchOutcome::default();
    match statement.run_in_steps(context, collection) {
        Ok(outcome) => batch.outcomes.push((index, outcome)),
        Err(CommandError::Failed(failure)) => batch.failed.push(FailedWrite { index, failure: *failure }),
        Err(error @ CommandError::WouldBlock(_)) => return Err(error),
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
