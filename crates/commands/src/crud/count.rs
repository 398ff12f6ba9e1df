//! `count`: how many documents match. Exact: it counts, within one snapshot.

use pando_document::{DocumentWriter, RawDocument};
use pando_query::expression::ParseScope;
use pando_query::filter::Filter;

use super::matching::{self, Selection};
use super::statement_fields::refuse_collation;
use super::write_reply::count;
use crate::arguments::{Arguments, collection_name};
use crate::context::Context;
use crate::{CommandError, Request};

/// Counts.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    let name = collection_name(request.command()?.1)?;
    let mut query = RawDocument::empty();
    let mut hint = None;
    let mut limit = None;
    let mut skip = 0;
    for argument in Arguments::new("count", request.body) {
        let argument = argument?;
        match argument.name {
            "query" if argument.value.is_null() => {}
            "query" => query = argument.document()?,
            "limit" => limit = Some(argument.integer()?.unsigned_abs()).filter(|limit| *limit > 0),
            "skip" => skip = argument.natural()?,
            "hint" => hint = Some(argument.value),
            "collation" => refuse_collation(argument.document()?)?,
            "fields" | "fromMongos" => {}
            _ => return Err(argument.unknown()),
        }
    }
    let namespace = context.namespace(name)?;
    let filter = Filter::parse(query, &ParseScope::at(context.shared.now_ms()))?;
    let transaction = context.begin_read()?;
    let matched = match context.catalog().collection(namespace.database(), namespace.collection()) {
        Some(collection) => {
            let reach = limit.map(|limit| limit.saturating_add(skip));
            let selection = Selection::new(filter, None, hint, reach)?;
            matching::count(&selection, &collection, &*transaction, context.patience)?
        }
        None => 0,
    };
    transaction.rollback();
    reply.append("n", count(matched.saturating_sub(skip)));
    Ok(())
}
