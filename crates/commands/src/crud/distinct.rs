//! `distinct`: the different values of a field, arrays taken apart, in MongoDB's order of values.

mod values;

use std::borrow::Cow;

use pando_document::{DocumentWriter, RawArray, RawDocument, RawValue};
use pando_query::filter::Filter;
use pando_query::path::Path;

use self::values::Values;
use super::aggregate::{self, AggregateRequest};
use super::selection::{self, Reader, Selection};
use super::view_read::{self, Stages};
use crate::arguments::{Arguments, collection_name_or, missing};
use crate::collation::CollationChoice;
use crate::context::Context;
use crate::{CommandError, ErrorCode, Request};

/// Answers the values.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    let name = collection_name_or(request.command()?.1, ErrorCode::InvalidNamespace)?;
    let mut query = RawDocument::empty();
    let mut key = None;
    let mut hint = None;
    let mut collation = CollationChoice::Inherited;
    for argument in Arguments::of_command("distinct", request.body) {
        let argument = argument?;
        match argument.name {
            "key" => key = argument.string()?,
            "query" => query = argument.document()?.unwrap_or(query),
            "hint" => hint = Some(argument.value),
            "collation" => collation = CollationChoice::of(argument.document()?),
            _ => argument.refuse_unless_generic()?,
        }
    }
    let key = key.ok_or_else(|| missing("distinct", "key"))?;
    if key.is_empty() {
        return Err(CommandError::failed(
            pando_query::expression::ExpressionFault::EmptyPath.code(),
            "FieldPath cannot be constructed with empty string",
        ));
    }
    let path = Path::new(key);
    let namespace = context.readable(name)?;
    let snapshot = context.reader()?;
    let held = snapshot.hold()?;
    let account = context.query_account();
    let check = || {
        account.report(context.operation);
        context.check()
    };
    let found = held.collection(context.catalog(), namespace.database(), namespace.collection())?;
    drop(held);
    let scope = context.restartable_scope();
    let scope = match found.is_none() {
        true => Cow::Owned(aggregate::collated_scope(context, name, collation, scope)?),
        false => collation.scope_in(&scope, found.as_deref())?,
    };
    let filter = Filter::parse_for_plan(query, &scope)?;
    let mut values = Values::new(&account, scope.text_order());
    if found.is_none() && context.view_to_read(name)?.is_some() {
        let mut stages = Stages::default();
        stages.push_match(query)?;
        let stages = stages.to_array();
        let stages = RawArray::from_document(&stages);
        let request = AggregateRequest { hint, collation, ..AggregateRequest::of(name, stages) };
        view_read::for_each(context, &request, |document| {
            values.add_leaves(document, &path, &mut || check())
        })?;
    }
    let held = snapshot.hold()?;
    if let Some(collection) = found {
        let selection = Selection::new(filter, None, hint, None)?;
        let reader = Reader { collection: &collection, transaction: held.transaction(), context };
        selection::for_each_value(&selection, key, &reader, |document| {
            values.add_leaves(document, &path, &mut || check())
        })?;
    }
    let outcome = values.write(&mut reply.array("values"), &mut || check());
    account.report(context.operation);
    if let Some(time) = context.read_time() {
        reply.append("atClusterTime", RawValue::Timestamp(time));
    }
    outcome
}
