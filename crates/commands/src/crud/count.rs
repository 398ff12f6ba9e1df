//! `count`: the number of documents that match, counted within one snapshot. Without a filter and a hint the
//! collection's counter has it, unless the statement belongs to a transaction.

use pando_catalog::Collection;
use pando_document::{DocumentWriter, Number, RawArray, RawDocument, RawValue};
use pando_query::explain::PlanSummary;
use pando_query::filter::Filter;
use pando_query::shell_text::value_text;

use super::aggregate::AggregateRequest;
use super::selection::{self, Selection};
use super::view_read::{self, Stages};
use super::write_reply::count;
use crate::arguments::{Arguments, collection_name_or};
use crate::collation::CollationChoice;
use crate::context::{Context, RequestForm};
use crate::{CommandError, ErrorCode, Request};

/// Counts.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    let name = collection_name_or(request.command()?.1, ErrorCode::InvalidNamespace)?;
    let mut query = RawDocument::empty();
    let mut hint = None;
    let mut limit = None;
    let mut skip = 0;
    let mut collation = CollationChoice::Inherited;
    for argument in Arguments::of_command("count", request.body) {
        let argument = argument?;
        match argument.name {
            "query" => query = argument.document()?.unwrap_or(query),
            "limit" => limit = Some(limit_of(argument.value)?).filter(|limit| *limit > 0),
            "skip" => skip = argument.natural()?.unwrap_or(0),
            "hint" => hint = Some(argument.value),
            "collation" => collation = CollationChoice::of(argument.document()?),
            "fields" | "fromMongos" => {}
            _ => argument.refuse_unless_generic()?,
        }
    }
    let namespace = context.readable(name)?;
    let reader = context.reader()?;
    let reach = limit.map(|limit| limit.saturating_add(skip));
    let collection = context.collection(namespace.collection())?;
    let scope = context.restartable_scope();
    let filter = Filter::parse_for_plan(query, &*collation.scope_in(&scope, collection.as_deref())?)?;
    if collection.is_none() && context.view_to_read(name)?.is_some() {
        drop(reader);
        let mut stages = Stages::default();
        stages.push_match(query)?;
        stages.push_reach(skip, limit);
        stages.push("$count", "count");
        let stages = stages.to_array();
        let stages = RawArray::from_document(&stages);
        let request = AggregateRequest { hint, collation, ..AggregateRequest::of(name, stages) };
        reply.append("n", shown(context, view_read::count(context, &request)?));
        return Ok(());
    }
    let held = reader.hold()?;
    let transaction = held.transaction();
    // The counter lacks the writes of a transaction that is open.
    let has_counter = context.open_transaction().is_none();
    let matched = match collection {
        Some(collection) if query.is_empty() && hint.is_none() && has_counter => {
            context.note(|notes| notes.plan = PlanSummary::Counter);
            let all = collection.document_count(transaction, context.blocking)?;
            let all = all.map_or_else(|| first_count(context, &collection), Ok)?;
            reach.map_or(all, |reach| all.min(reach))
        }
        Some(collection) => {
            let selection = Selection::new(filter, None, hint, reach)?;
            selection::count(&selection, &collection, transaction, context)?
        }
        None => 0,
    };
    reply.append("n", shown(context, matched.saturating_sub(skip)));
    Ok(())
}

/// The number as the client's time had it: before OP_MSG it was a double, and there are clients that read
/// nothing else.
fn shown(context: &Context<'_>, number: u64) -> RawValue<'static> {
    match context.form {
        RequestForm::LegacyQuery => RawValue::Double(number as f64),
        _ => count(number),
    }
}

/// The number of documents of a collection that has no counters yet.
fn first_count(context: &Context<'_>, collection: &Collection) -> Result<u64, CommandError> {
    context.require_may_block()?;
    Ok(context.catalog().counts(collection, context.operation)?.documents)
}

/// The limit without its sign.
fn limit_of(value: RawValue<'_>) -> Result<u64, CommandError> {
    if !value.is_number() {
        return Err(CommandError::failed(ErrorCode::BadValue, "limit value is not a valid number"));
    }
    if let Some(limit) = value.as_i64_exact() {
        return Ok(limit.unsigned_abs());
    }
    let shown = value_text(value);
    let reason = match Number::from_value(value).map_or(f64::NAN, Number::to_f64) {
        number if number.is_nan() => format!("Expected an integer, but found NaN in: limit: {shown}"),
        number if number.fract() == 0.0 || number.is_infinite() => {
            format!("Cannot represent as a 64-bit integer: limit: {shown}")
        }
        _ => format!("Expected an integer: limit: {shown}"),
    };
    Err(CommandError::failed(ErrorCode::FailedToParse, reason))
}
