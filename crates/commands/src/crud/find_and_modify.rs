//! `findAndModify`: changes or removes one document and answers it, as it was before or as it is after.

use std::sync::Arc;

use pando_catalog::{Begin, Collection, Transaction};
use pando_document::{DocumentWriter, RawArray, RawDocument, RawDocumentBuf, RawValue, Value};
use pando_query::expression::ParseScope;
use pando_query::filter::Filter;
use pando_query::projection::Projection;

use super::matching::{self, Selection};
use super::retry;
use super::update_statement::{Reach, UpdateParts, UpdateStatement, Upsert};
use crate::arguments::{Argument, Arguments, collection_name};
use crate::context::Context;
use crate::error::write_failure;
use crate::write_concern::WriteConcern;
use crate::{CommandError, ErrorCode, Request};

/// Which form of the document is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Before,
    After,
}

/// Remove or update.
#[derive(Clone, Copy)]
enum Change<'a> {
    Remove,
    Update(RawValue<'a>),
}

/// The request, read.
struct Parts<'a> {
    query: &'a RawDocument,
    sort: Option<&'a RawDocument>,
    hint: Option<RawValue<'a>>,
    projection: Option<&'a RawDocument>,
    array_filters: Option<&'a RawArray>,
    variables: &'a RawDocument,
    change: Change<'a>,
    answer: Answer,
    upsert: Upsert,
}

/// What was done.
#[derive(Default)]
struct Outcome {
    document: Option<RawDocumentBuf>,
    matched: u64,
    upserted: Option<Value>,
}

/// Finds and modifies.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    let name = collection_name(request.command()?.1)?;
    let parts = parse(request.body)?;
    let concern = WriteConcern::of(request.body)?;
    let namespace = context.namespace(name)?;
    let scope = ParseScope::with_let(context.shared.now_ms(), parts.variables)?;
    let outcome = retry::on_conflict(context, |context| {
        let lease =
            match context.catalog().lease(namespace.database(), namespace.collection(), context.patience)? {
                Some(lease) => lease,
                None if parts.upsert == Upsert::Yes => context.lease_or_create(&namespace)?,
                None => return Ok(Outcome::default()),
            };
        let mut transaction = context.catalog().begin(Begin::WRITE)?;
        let outcome = modify(context, &lease, &mut *transaction, &parts, &scope)?;
        context.commit(transaction, concern.durability)?;
        Ok(outcome)
    })?;
    write_reply(reply, &parts, &outcome, &scope)
}

fn parse(body: &RawDocument) -> Result<Parts<'_>, CommandError> {
    let mut parts = Parts {
        query: RawDocument::empty(),
        sort: None,
        hint: None,
        projection: None,
        array_filters: None,
        variables: RawDocument::empty(),
        change: Change::Remove,
        answer: Answer::Before,
        upsert: Upsert::No,
    };
    let mut remove = false;
    let mut update = None;
    for argument in Arguments::new("findAndModify", body) {
        let argument = argument?;
        match argument.name {
            "query" => parts.query = argument.document()?,
            "sort" => parts.sort = Some(argument.document()?).filter(|sort| !sort.is_empty()),
            "hint" => parts.hint = Some(hint(argument)?),
            "fields" => parts.projection = Some(argument.document()?),
            "arrayFilters" => parts.array_filters = Some(argument.array()?),
            "let" => parts.variables = argument.document()?,
            "remove" => remove = argument.lenient_boolean()?,
            "update" => update = Some(argument.value),
            "new" if argument.lenient_boolean()? => parts.answer = Answer::After,
            "upsert" if argument.lenient_boolean()? => parts.upsert = Upsert::Yes,
            "new" | "upsert" | "bypassDocumentValidation" => {}
            "collation" => super::statement_fields::refuse_collation(argument.document()?)?,
            _ => return Err(argument.unknown()),
        }
    }
    let failed = |sentence: &str| Err(CommandError::failed(ErrorCode::FailedToParse, sentence));
    match (remove, update) {
        (true, Some(_)) => return failed("Cannot specify both an update and remove=true"),
        (true, None) if parts.upsert == Upsert::Yes => {
            return failed("Cannot specify both upsert=true and remove=true");
        }
        (true, None) if parts.answer == Answer::After => {
            return failed(
                "Cannot specify both new=true and remove=true; 'remove' always returns the deleted document",
            );
        }
        (true, None) => {}
        (false, Some(update)) => parts.change = Change::Update(update),
        (false, None) => return failed("Either an update or remove=true must be specified"),
    }
    Ok(parts)
}

fn hint(argument: Argument<'_>) -> Result<RawValue<'_>, CommandError> {
    match argument.value {
        hint @ (RawValue::String(_) | RawValue::Document(_)) => Ok(hint),
        _ => Err(CommandError::failed(ErrorCode::FailedToParse, "Hint must be a string or an object")),
    }
}

fn modify(
    context: &Context<'_>,
    collection: &Arc<Collection>,
    transaction: &mut dyn Transaction,
    parts: &Parts<'_>,
    scope: &ParseScope,
) -> Result<Outcome, CommandError> {
    match parts.change {
        Change::Remove => remove(context, collection, transaction, parts, scope),
        Change::Update(update) => {
            let statement = UpdateStatement::parse(
                UpdateParts {
                    query: parts.query,
                    update,
                    array_filters: parts.array_filters,
                    sort: parts.sort,
                    hint: parts.hint,
                    reach: Reach::One,
                    upsert: parts.upsert,
                },
                scope,
            )?;
            let done = statement.run(context, collection, transaction)?;
            let document = match parts.answer {
                Answer::After => done.after,
                Answer::Before => match done.before {
                    Some(before) => Some(RawDocument::from_bytes(&before)?.to_owned()),
                    None => None,
                },
            };
            Ok(Outcome { document, matched: done.matched, upserted: done.upserted })
        }
    }
}

fn remove(
    context: &Context<'_>,
    collection: &Arc<Collection>,
    transaction: &mut dyn Transaction,
    parts: &Parts<'_>,
    scope: &ParseScope,
) -> Result<Outcome, CommandError> {
    let selection = Selection::new(Filter::parse(parts.query, scope)?, parts.sort, parts.hint, Some(1))?;
    let keys = matching::keys(&selection, collection, transaction, context.patience)?;
    let Some(key) = keys.first() else { return Ok(Outcome::default()) };
    let Some(old) = collection.fetch(transaction, key, context.patience)? else {
        return Ok(Outcome::default());
    };
    let document = RawDocument::from_bytes(&old)?;
    collection
        .remove(transaction, key, document, context.patience)
        .map_err(|error| write_failure(error, &collection.namespace().to_string()))?;
    Ok(Outcome { document: Some(document.to_owned()), matched: 1, upserted: None })
}

fn write_reply(
    reply: &mut DocumentWriter<'_>,
    parts: &Parts<'_>,
    outcome: &Outcome,
    scope: &ParseScope,
) -> Result<(), CommandError> {
    let touched = outcome.matched + u64::from(outcome.upserted.is_some());
    let mut last = reply.document("lastErrorObject");
    last.append_i32("n", i32::try_from(touched).unwrap_or(i32::MAX));
    if matches!(parts.change, Change::Update(_)) {
        last.append_bool("updatedExisting", outcome.matched > 0);
        if let Some(id) = &outcome.upserted {
            last.append_value("upserted", id);
        }
    }
    last.finish();
    match (&outcome.document, parts.projection) {
        (None, _) => reply.append_null("value"),
        (Some(document), None) => reply.append_raw_document("value", document),
        (Some(document), Some(projection)) => {
            let filter = Filter::parse(parts.query, scope)?;
            let projection = Projection::parse(projection, scope)?;
            let mut projected = Vec::new();
            matching::project(&projection, &filter, document, &mut projected)?;
            reply.append_raw_document("value", RawDocument::from_bytes(&projected)?);
        }
    }
    Ok(())
}
