//! `delete`: a batch of deletions from one collection, in one transaction, each behind a savepoint.

use std::sync::Arc;

use pando_catalog::{Begin, Collection, Transaction};
use pando_document::{DocumentWriter, RawDocument, RawValue};
use pando_query::expression::ParseScope;
use pando_query::filter::Filter;

use super::insert::{check_batch_length, ends_transaction};
use super::matching::{self, Selection};
use super::retry;
use super::statement_fields::StatementFields;
use super::update_statement::Reach;
use super::write_reply::{FailedWrite, Order, count, write_errors};
use crate::arguments::{Arguments, collection_name, missing};
use crate::context::Context;
use crate::error::write_failure;
use crate::write_concern::WriteConcern;
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
    for argument in Arguments::new("delete", request.body) {
        let argument = argument?;
        match argument.name {
            "deletes" => {}
            "ordered" if argument.boolean()? => order = Order::Ordered,
            "ordered" => order = Order::Unordered,
            "let" => variables = argument.document()?,
            _ => return Err(argument.unknown()),
        }
    }
    let deletes = request.documents("delete", "deletes")?.ok_or_else(|| missing("delete", "deletes"))?;
    check_batch_length(deletes.len())?;
    let parts = deletes.iter().map(|delete| parse_parts(delete)).collect::<Result<Vec<_>, _>>()?;
    let concern = WriteConcern::of(request.body)?;
    let namespace = context.namespace(name)?;
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
        context.commit(transaction, concern.durability)?;
        Ok(outcome)
    })?;
    reply.append("n", count(deleted));
    write_errors(reply, &failed);
    Ok(())
}

fn parse_parts(delete: &RawDocument) -> Result<DeleteParts<'_>, CommandError> {
    let fields = StatementFields::new("delete.deletes", delete);
    let query = fields.required("q")?;
    let query = fields.as_document("q", query)?;
    let limit = fields.required("limit")?;
    let reach = match limit.as_i64_exact() {
        Some(0) => Reach::Many,
        Some(1) => Reach::One,
        _ => {
            let shown = pando_query::shell_text::value_text(limit);
            return Err(CommandError::failed(
                ErrorCode::FailedToParse,
                format!("The limit field in delete objects must be 0 or 1. Got {shown}"),
            ));
        }
    };
    let hint = fields.hint()?;
    fields.refuse_collation()?;
    fields.finish(&["q", "limit", "hint", "collation", "sampleId"])?;
    Ok(DeleteParts { query, reach, hint })
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
