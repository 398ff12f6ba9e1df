//! `delete`: a batch of deletions from one collection, in one transaction, each behind a savepoint.

use std::sync::Arc;

use pando_catalog::{Begin, Collection, Transaction};
use pando_document::{DocumentWriter, Number, RawDocument, RawValue};
use pando_query::expression::ParseScope;
use pando_query::filter::Filter;

use super::collation::refuse_collation;
use super::insert::{check_batch_length, ends_transaction};
use super::matching::{self, Selection};
use super::retry;
use super::statement_parts::checked_hint;
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

    let (deleted, failed) = retry::on_conflict(context, |context| {
        let lease =
            context.catalog().lease(namespace.database(), namespace.collection(), context.patience)?;
        let Some(lease) = lease else {
            for part in &parts {
                Filter::parse(part.query, &scope)?;
            }
            return Ok((0, Vec::new()));
        };
        let mut transaction = context.catalog().begin(Begin::WRITE)?;
        let outcome = delete_all(context, &lease, &mut *transaction, &parts, &scope, order)?;
        context.commit(transaction)?;
        Ok(outcome)
    })?;
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

fn delete_all(
    context: &Context<'_>,
    collection: &Arc<Collection>,
    transaction: &mut dyn Transaction,
    parts: &[DeleteParts<'_>],
    scope: &ParseScope,
    order: Order,
) -> Result<(u64, Vec<FailedWrite>), CommandError> {
    let mut deleted = 0;
    let mut failed = Vec::new();
    for (index, part) in parts.iter().enumerate() {
        let savepoint = transaction.savepoint();
        match delete_statement(context, collection, transaction, part, scope) {
            Ok(count) => deleted += count,
            Err(error @ CommandError::WouldBlock(_)) => return Err(error),
            Err(CommandError::Failed(failure)) if ends_transaction(&failure) => {
                return Err(CommandError::Failed(failure));
            }
            Err(CommandError::Failed(failure)) => {
                transaction.rollback_to(savepoint);
                failed.push(FailedWrite { index, failure: *failure });
                if order == Order::Ordered {
                    break;
                }
            }
        }
    }
    Ok((deleted, failed))
}

fn delete_statement(
    context: &Context<'_>,
    collection: &Arc<Collection>,
    transaction: &mut dyn Transaction,
    part: &DeleteParts<'_>,
    scope: &ParseScope,
) -> Result<u64, CommandError> {
    let limit = match part.reach {
        Reach::One => Some(1),
        Reach::Many => None,
    };
    let selection = Selection::new(Filter::parse(part.query, scope)?, None, part.hint, limit)?;
    let mut deleted = 0;
    for key in matching::keys(&selection, collection, transaction, context.patience)? {
        let Some(old) = collection.fetch(transaction, &key, context.patience)? else { continue };
        let document = RawDocument::from_bytes(&old)?;
        collection
            .remove(transaction, &key, document, context.patience)
            .map_err(|error| write_failure(error, &collection.namespace().to_string()))?;
        deleted += 1;
    }
    Ok(deleted)
}
