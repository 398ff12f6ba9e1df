//! `delete`: a batch of deletions from one collection, in one transaction, each behind a savepoint; statements
//! about many documents go in [`steps`](super::steps).

use std::sync::Arc;

use pando_catalog::{Begin, Bytes, Collection, Transaction};
use pando_document::{DocumentWriter, Number, RawDocument, RawValue};
use pando_query::expression::ParseScope;
use pando_query::filter::Filter;

use super::collation::refuse_collation;
use super::insert::{check_batch_length, ends_transaction};
use super::matching::{self, Selection};
use super::retry;
use super::statement_parts::checked_hint;
use super::steps::{Meter, STEP_DOCUMENTS, Written, in_steps};
use super::update_statement::Reach;
use super::write_reply::{FailedWrite, Order, count, tried, write_errors};
use crate::arguments::{Arguments, collection_name, missing};
use crate::context::Context;
use crate::error::write_failure;
use crate::operation_counters::OperationKind;
use crate::{CommandError, ErrorCode, Request};

/// A deletion as a request gives it.
struct DeleteParts<'a> {
    query: &'a RawDocument,
    reach: Reach,
    hint: Option<RawValue<'a>>,
}

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
            "let" => variables = argument.document()?.unwrap_or(variables),
            _ => argument.refuse_unless_generic()?,
        }
    }
    let deletes = request.documents("delete", "deletes")?.ok_or_else(|| missing("delete", "deletes"))?;
    check_batch_length(deletes.len())?;
    let parts = deletes.iter().map(|delete| parse_parts(delete)).collect::<Result<Vec<_>, _>>()?;
    let namespace = context.writable(name)?;
    let scope = ParseScope::with_let(context.shared.now_ms(), variables)?;

    let mut progress = Progress::default();
    retry::on_conflict(context, |context| {
        let lease =
            context.catalog().lease(namespace.database(), namespace.collection(), context.blocking)?;
        let Some(lease) = lease else {
            for part in &parts {
                Filter::parse(part.query, &scope)?;
            }
            return Ok(());
        };
        delete_all(context, &lease, &parts, &scope, order, &mut progress)
    })?;
    let Progress { deleted, failed, .. } = progress;
    let tried = tried(parts.len(), order, &failed);
    context.shared.operations.add(OperationKind::Delete, tried);
    if context.concern.wants_answer() {
        reply.append("n", count(deleted));
        write_errors(reply, &failed);
    } else {
        reply.append("n", count(0));
    }
    Ok(())
}

fn parse_parts(delete: &RawDocument) -> Result<DeleteParts<'_>, CommandError> {
    let (mut query, mut reach, mut hint) = (None, None, None);
    for argument in Arguments::inside("delete.deletes", delete) {
        let argument = argument?;
        match argument.name {
            "q" => query = argument.document()?,
            "limit" => reach = Some(reach_of(argument.value)?),
            "hint" => hint = Some(checked_hint(argument.value)?),
            "collation" => refuse_collation(argument.document()?)?,
            "sampleId" => {}
            _ => return Err(argument.unknown()),
        }
    }
    Ok(DeleteParts {
        query: query.ok_or_else(|| missing("delete.deletes", "q"))?,
        reach: reach.ok_or_else(|| missing("delete.deletes", "limit"))?,
        hint,
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

/// How much of a batch is committed: a conflict later on does not repeat it.
#[derive(Default)]
struct Progress {
    /// The next statement.
    next: usize,
    deleted: u64,
    failed: Vec<FailedWrite>,
}

impl Progress {
    /// The next statements are committed, or have failed for good.
    fn commit(&mut self, batch: Progress) {
        self.next += batch.next;
        self.deleted += batch.deleted;
        self.failed.extend(batch.failed);
    }
}

/// How a statement went within the transaction of its batch.
enum Attempt {
    Done(u64),
    /// It is about too many documents.
    NeedsSteps(Box<Selection>),
}

/// Carries out what is left of a batch: one transaction, and those of statements that need several.
fn delete_all(
    context: &mut Context<'_>,
    collection: &Arc<Collection>,
    parts: &[DeleteParts<'_>],
    scope: &ParseScope,
    order: Order,
    progress: &mut Progress,
) -> Result<(), CommandError> {
    let mut transaction = context.catalog().begin(Begin::WRITE)?;
    // What is not committed yet; its `next` counts statements.
    let mut batch = Progress::default();
    while let Some(part) = parts.get(progress.next + batch.next) {
        let index = progress.next + batch.next;
        let savepoint = transaction.savepoint();
        match delete_statement(context, collection, &mut *transaction, part, scope) {
            Ok(Attempt::Done(count)) => {
                batch.deleted += count;
                batch.next += 1;
            }
            Ok(Attempt::NeedsSteps(selection)) => {
                context.require_may_block()?;
                transaction.rollback_to(savepoint);
                context.commit(transaction)?;
                progress.commit(std::mem::take(&mut batch));
                progress.commit(delete_in_steps(context, collection, index, &selection)?);
                transaction = context.catalog().begin(Begin::WRITE)?;
            }
            Err(error @ CommandError::WouldBlock(_)) => return Err(error),
            Err(CommandError::Failed(failure)) if ends_transaction(&failure) => {
                return Err(CommandError::Failed(failure));
            }
            Err(CommandError::Failed(failure)) => {
                transaction.rollback_to(savepoint);
                batch.failed.push(FailedWrite { index, failure: *failure });
                batch.next += 1;
            }
        }
        if order == Order::Ordered && (!batch.failed.is_empty() || !progress.failed.is_empty()) {
            break;
        }
    }
    context.commit(transaction)?;
    progress.commit(batch);
    Ok(())
}

fn delete_statement(
    context: &Context<'_>,
    collection: &Arc<Collection>,
    transaction: &mut dyn Transaction,
    part: &DeleteParts<'_>,
    scope: &ParseScope,
) -> Result<Attempt, CommandError> {
    let limit = match part.reach {
        Reach::One => Some(1),
        Reach::Many => None,
    };
    let selection = Selection::new(Filter::parse(part.query, scope)?, None, part.hint, limit)?;
    let keys = matching::keys(&selection, collection, transaction, context.blocking, STEP_DOCUMENTS)?;
    let Some(keys) = keys else { return Ok(Attempt::NeedsSteps(Box::new(selection))) };
    let mut deleted = 0;
    let mut meter = Meter::default();
    for key in keys {
        if meter.is_full() {
            return Ok(Attempt::NeedsSteps(Box::new(selection)));
        }
        let Some(old) = collection.fetch(transaction, &key, context.blocking)? else { continue };
        meter.add(&old);
        delete_one(context, collection, transaction, &key, &old)?;
        deleted += 1;
    }
    Ok(Attempt::Done(deleted))
}

fn delete_one(
    context: &Context<'_>,
    collection: &Collection,
    transaction: &mut dyn Transaction,
    key: &[u8],
    old: &[u8],
) -> Result<(), CommandError> {
    collection
        .remove(transaction, key, RawDocument::from_bytes(old)?, context.blocking)
        .map_err(|error| write_failure(error, &collection.namespace().to_string()))
}

/// Runs a statement in transactions of its own. Whatever fails is an error of the statement, for what was done before it stays.
fn delete_in_steps(
    context: &mut Context<'_>,
    collection: &Arc<Collection>,
    index: usize,
    selection: &Selection,
) -> Result<Progress, CommandError> {
    let mut done = Progress { next: 1, ..Progress::default() };
    let change = |context: &Context<'_>,
                  transaction: &mut dyn Transaction,
                  key: &[u8],
                  old: Bytes,
                  deleted: &mut u64| {
        delete_one(context, collection, transaction, key, &old)?;
        *deleted += 1;
        Ok(Written(0))
    };
    match in_steps(context, selection, collection, &change, |deleted: u64| done.deleted += deleted) {
        Ok(()) => {}
        Err(CommandError::Failed(failure)) => done.failed.push(FailedWrite { index, failure: *failure }),
        Err(error @ CommandError::WouldBlock(_)) => return Err(error),
    }
    Ok(done)
}
