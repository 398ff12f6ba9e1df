//! `findAndModify`: changes or removes one document and answers its old or its new form.

use std::borrow::Cow;
use std::sync::Arc;

use pando_catalog::{Collection, Namespace, WriteTransaction};
use pando_document::{Document, DocumentWriter, RawArray, RawDocument, RawDocumentBuf, RawValue, Value};
use pando_query::expression::ParseScope;
use pando_query::filter::Filter;
use pando_query::metadata::MetadataSet;
use pando_query::plan::Plan;
use pando_query::projection::Projection;

use super::blind_update::Blindness;
use super::found_metadata;
use super::insert::{ends_transaction, is_of_view};
use super::measurement_delete::MeasurementFilter;
use super::selection::{self, Selection};
use super::series_change;
use super::statement_parts::{array_of_documents, checked_hint, checked_modification};
use super::update_statement::{Counted, Reach, UpdateOutcome, UpdateParts, UpdateStatement, Upsert};
use crate::arguments::{Arguments, collection_name};
use crate::collation::CollationChoice;
use crate::context::Context;
use crate::error::{Execution, write_failure};
use crate::sessions::write_record::Image;
use crate::{CommandError, ErrorCode, Request, unit_of_work};

/// The form of the document in the answer.
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
    collation: CollationChoice<'a>,
    /// The metadata that the projection asks for.
    metadata: MetadataSet,
}

/// The effect.
#[derive(Default)]
struct Outcome {
    document: Option<RawDocumentBuf>,
    matched: u64,
    modified: u64,
    upserted: Option<Value>,
    /// The metadata of the document that was found, in hidden fields.
    metadata: Document,
}

/// Finds and modifies.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    let name = collection_name(request.command()?.1)?;
    let parts = parse(request.body)?;
    context.read_bypasses(request.body)?;
    let namespace = context.writable(name)?;
    if parts.projection.is_some_and(may_take_long) {
        // It is evaluated when the change has been committed, and the request must not begin anew then.
        context.require_may_block()?;
    }
    let scope = context.parse_scope().with_let(parts.variables)?;
    let restartable = context.restartable_scope().with_let(parts.variables)?;
    if let Some(session) = &context.session_use {
        session.check_statements(1)?;
    }
    if let Some(outcome) = repeated(context, request.body)? {
        // As durable as the client wants it now.
        let work = context.begin_work()?;
        context.commit_work(work)?;
        let scope = parts.collation.scope_in(&scope, context.collection(name)?.as_deref())?;
        write_reply(reply, &parts, &outcome, &scope)?;
        reply.append_i32("retriedStmtId", context.retried_statement());
        return Ok(());
    }
    let outcome = unit_of_work::run(context, |context| {
        let lease = match context.lease(&namespace)? {
            Some(lease) => lease,
            None if parts.upsert == Upsert::Yes => context.lease_or_create(&namespace)?,
            None => {
                parts.check_alone(&*parts.collation.scope_in(&restartable, None)?)?;
                return Ok(Outcome::default());
            }
        };
        let mut work = context.begin_work()?;
        let scope = parts.collation.scope_in(&restartable, Some(&lease))?;
        let outcome = modify(context, &lease, work.writer(), &parts, &scope)?;
        remember(context, &parts, &outcome);
        context.commit_work(work)?;
        Ok(outcome)
    });
    let outcome = match outcome {
        Err(error)
            if is_of_view(&error)
                && matches!(parts.change, Change::Remove)
                && context.series_of(&namespace)?.is_some() =>
        {
            remove_measurement(context, &namespace, &parts, &restartable)?
        }
        other => other?,
    };
    context.note(|notes| match parts.change {
        Change::Remove => notes.deleted = Some(outcome.matched),
        Change::Update(_) => {
            notes.matched = Some(outcome.matched);
            notes.modified = Some(outcome.modified);
            notes.upserted = Some(u64::from(outcome.upserted.is_some()));
        }
    });
    // A projection of the element that matched asks the filter again.
    let scope = match parts.projection {
        Some(_) => parts.collation.scope_in(&scope, context.collection(name)?.as_deref())?,
        None => Cow::Borrowed(&scope),
    };
    write_reply(reply, &parts, &outcome, &scope)
}

/// Whether a projection may have expressions, or asks the filter again.
fn may_take_long(projection: &RawDocument) -> bool {
    projection.iter().flatten().any(|(name, value)| {
        let computes = matches!(value, RawValue::Document(_) | RawValue::Array(_) | RawValue::String(_));
        computes || name.ends_with(".$")
    })
}

/// The outcome that an earlier request with the same number has had.
fn repeated(context: &mut Context<'_>, body: &RawDocument) -> Result<Option<Outcome>, CommandError> {
    let Some(session) = &mut context.session_use else { return Ok(None) };
    let Some(upserted) = session.repeated(0) else { return Ok(None) };
    let Some(image) = session.image(0) else {
        let shown = pando_query::shell_text::document_text(body);
        return Err(CommandError::failed(
            ErrorCode::Location(40_607),
            format!("No pre-image available for findAndModify retry request:{shown}"),
        ));
    };
    let Image { matched, document, .. } = image.clone();
    Ok(Some(Outcome { document, matched: u64::from(matched), upserted, ..Outcome::default() }))
}

/// Notes the outcome for a repetition of the request, if it has changed something.
fn remember(context: &mut Context<'_>, parts: &Parts<'_>, outcome: &Outcome) {
    let Some(session) = context.session_use.as_mut().filter(|session| session.is_write()) else { return };
    let has_changed = match parts.change {
        Change::Remove => outcome.matched > 0,
        Change::Update(_) => outcome.modified > 0 || outcome.upserted.is_some(),
    };
    if has_changed {
        session.executed(0, outcome.upserted.as_ref());
        let (matched, document) = (outcome.matched > 0, outcome.document.clone());
        session.answered(|statement| Image { statement, matched, document });
    }
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
        collation: CollationChoice::Inherited,
        metadata: MetadataSet::EMPTY,
    };
    let mut remove = false;
    let mut update = None;
    for argument in Arguments::of_command("findAndModify", body) {
        let argument = argument?;
        match argument.name {
            "query" => parts.query = argument.document()?.unwrap_or(parts.query),
            "sort" => parts.sort = argument.document()?.filter(|sort| !sort.is_empty()),
            "hint" => parts.hint = Some(checked_hint(argument.value)?),
            "fields" => parts.projection = argument.document()?,
            "arrayFilters" => parts.array_filters = Some(array_of_documents(&argument)?),
            "let" => parts.variables = argument.document()?.unwrap_or(parts.variables),
            "remove" => remove = argument.lenient_boolean()? == Some(true),
            "update" => update = Some(checked_modification(argument.value)?),
            "new" if argument.lenient_boolean()? == Some(true) => parts.answer = Answer::After,
            "upsert" if argument.lenient_boolean()? == Some(true) => parts.upsert = Upsert::Yes,
            "new" | "upsert" => {}
            "bypassDocumentValidation" => {
                argument.lenient_boolean()?;
            }
            "bypassEmptyTsReplacement" | "singleBatch" => {
                argument.boolean()?;
            }
            // Without effect, as in MongoDB.
            "batchSize" => {
                argument.integer()?;
            }
            "collation" => parts.collation = CollationChoice::of(argument.document()?),
            _ => argument.refuse_unless_generic()?,
        }
    }
    let failed = |sentence: &str| Err(CommandError::failed(ErrorCode::FailedToParse, sentence));
    match (remove, update) {
        (true, Some(_)) => return failed("Cannot specify both an update and remove=true"),
        (true, None) if parts.upsert == Upsert::Yes => {
            return failed("Cannot specify both upsert=true and remove=true ");
        }
        (true, None) if parts.answer == Answer::After => {
            return failed(
                "Cannot specify both new=true and remove=true; 'remove' always returns the deleted document",
            );
        }
        (true, None) if parts.array_filters.is_some() => {
            return failed("Cannot specify arrayFilters and remove=true");
        }
        (true, None) => {}
        (false, Some(update)) => parts.change = Change::Update(update),
        (false, None) => return failed("Either an update or remove=true must be specified"),
    }
    parts.metadata = parts.projection.map_or(MetadataSet::EMPTY, MetadataSet::asked_in);
    Ok(parts)
}

impl<'a> Parts<'a> {
    fn update_statement(
        &self,
        update: RawValue<'a>,
        scope: &ParseScope,
    ) -> Result<UpdateStatement<'a>, CommandError> {
        let parts = UpdateParts {
            query: self.query,
            update,
            constants: None,
            array_filters: self.array_filters,
            sort: self.sort,
            hint: self.hint,
            reach: Reach::One,
            upsert: self.upsert,
            collation: self.collation,
            counted: Counted::Documents,
            keyed: None,
            blindness: Blindness::Never,
        };
        UpdateStatement::parse(parts, scope)
    }

    fn projection(&self, scope: &ParseScope) -> Result<Option<Projection>, CommandError> {
        found_metadata::check(self.metadata)?;
        let scope = scope.with_possible_metadata(self.metadata);
        Ok(self.projection.map(|projection| Projection::parse(projection, &scope)).transpose()?)
    }

    fn selection(&self, scope: &ParseScope) -> Result<Selection, CommandError> {
        let sort = self.sort.map(|sort| (sort, scope.text_order()));
        Selection::new(Filter::parse_for_plan(self.query, scope)?, sort, self.hint, Some(1))
    }

    /// Checks a request whose collection does not exist.
    fn check_alone(&self, scope: &ParseScope) -> Result<(), CommandError> {
        match self.change {
            Change::Remove => self.selection(scope).map(|_| ()),
            Change::Update(update) => self.update_statement(update, scope).map(|_| ()),
        }
    }
}

/// An error that came up while the documents were looked for or changed, as MongoDB words it.
fn in_execution(error: CommandError) -> CommandError {
    match error {
        CommandError::Failed(failure) if ends_transaction(&failure) => CommandError::Failed(failure),
        other => Execution::FindAndModify.fault(other),
    }
}

fn modify(
    context: &Context<'_>,
    collection: &Arc<Collection>,
    transaction: &mut WriteTransaction,
    parts: &Parts<'_>,
    scope: &ParseScope,
) -> Result<Outcome, CommandError> {
    match parts.change {
        Change::Remove => remove(context, collection, transaction, parts, scope),
        Change::Update(update) => {
            let statement = parts.update_statement(update, scope)?;
            // A wrong projection is refused before anything is changed.
            parts.projection(scope)?;
            let plan = plan_for(parts, &statement.selection, collection, transaction)?;
            let done = statement.run(context, collection, transaction).map_err(in_execution)?;
            let done = done.expect("a statement about one document needs no steps");
            let metadata = match (&plan, &done.before) {
                (Some(plan), Some(before)) => {
                    let (filter, found) = (&statement.selection.filter, RawDocument::from_bytes(before)?);
                    found_metadata::hidden_fields(parts.metadata, plan, filter, found)?
                }
                _ => Document::new(),
            };
            let document = match parts.answer {
                Answer::After => done.after,
                Answer::Before => match done.before {
                    Some(before) => Some(RawDocument::from_bytes(&before)?.to_owned()),
                    None => None,
                },
            };
            let UpdateOutcome { matched, modified, upserted, .. } = done;
            Ok(Outcome { document, matched, modified, upserted, metadata })
        }
    }
}

/// The plan of a selection, where the metadata of its document is wanted.
fn plan_for(
    parts: &Parts<'_>,
    selection: &Selection,
    collection: &Arc<Collection>,
    transaction: &WriteTransaction,
) -> Result<Option<Plan>, CommandError> {
    match parts.metadata.is_empty() {
        true => Ok(None),
        false => selection.plan(collection, &**transaction).map(Some),
    }
}

fn remove(
    context: &Context<'_>,
    collection: &Arc<Collection>,
    transaction: &mut WriteTransaction,
    parts: &Parts<'_>,
    scope: &ParseScope,
) -> Result<Outcome, CommandError> {
    let selection = parts.selection(scope)?;
    parts.projection(scope)?;
    let keys = selection::keys(&selection, collection, &**transaction, context, usize::MAX - 1)?;
    let keys = keys.unwrap_or_default();
    let Some(key) = keys.first() else { return Ok(Outcome::default()) };
    let Some(old) = collection.fetch(&**transaction, key, context.blocking)? else {
        return Ok(Outcome::default());
    };
    let document = RawDocument::from_bytes(&old)?;
    let metadata = match plan_for(parts, &selection, collection, transaction)? {
        Some(plan) => found_metadata::hidden_fields(parts.metadata, &plan, &selection.filter, document)?,
        None => Document::new(),
    };
    collection
        .remove(transaction, key, document, context.blocking)
        .map_err(|error| write_failure(error, &collection.namespace().to_string()))?;
    Ok(Outcome { document: Some(document.to_owned()), matched: 1, metadata, ..Outcome::default() })
}

/// Removes a measurement of a time series.
fn remove_measurement(
    context: &mut Context<'_>,
    namespace: &Namespace,
    parts: &Parts<'_>,
    scope: &ParseScope,
) -> Result<Outcome, CommandError> {
    let buckets = series_change::buckets_outside_transactions(context, namespace)?;
    if parts.sort.is_some() {
        return Err(CommandError::failed(
            ErrorCode::InvalidOptions,
            "Cannot perform a findAndModify with a sort on a time-series collection",
        ));
    }
    unit_of_work::run(context, |context| {
        let series = series_change::series_of(context, namespace)?;
        let lease = series_change::lease_of_buckets(context, &buckets)?;
        let mut work = context.begin_work()?;
        parts.projection(&*parts.collation.scope_in(scope, Some(&lease))?)?;
        let Parts { query, hint, collation, .. } = *parts;
        let of_buckets = series_change::bucket_hint(&series, hint);
        let hint = of_buckets.as_deref().map(RawValue::Document).or(hint);
        let filter = MeasurementFilter { series: &series, query, hint, collation };
        let document = filter.delete_first(context, &lease, work.writer(), scope).map_err(in_execution)?;
        let outcome = Outcome { matched: u64::from(document.is_some()), document, ..Outcome::default() };
        remember(context, parts, &outcome);
        context.commit_work(work)?;
        Ok(outcome)
    })
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
    let projection = match &outcome.document {
        Some(_) => parts.projection(scope)?,
        None => None,
    };
    match (&outcome.document, projection) {
        (None, _) => reply.append_null("value"),
        (Some(document), None) => reply.append_raw_document("value", document),
        (Some(document), Some(projection)) => {
            let filter = Filter::parse_for_plan(parts.query, scope)?;
            let mut projected = Vec::new();
            let with_metadata = match outcome.metadata.is_empty() {
                true => Cow::Borrowed(&**document),
                false => Cow::Owned(found_metadata::with_fields(document, &outcome.metadata)?),
            };
            selection::project(&projection, &filter, &with_metadata, &mut projected)?;
            reply.append_raw_document("value", RawDocument::from_bytes(&projected)?);
        }
    }
    Ok(())
}
