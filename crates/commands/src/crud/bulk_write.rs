//! `bulkWrite`: inserts, updates and deletes of several collections in one request, MongoDB 8's command.
//!
//! # Steps
//! 1. The request is checked whole; nothing is written if it is malformed.
//! 2. Neighbouring operations of one kind and one collection are a *run*. Each run is carried out as the
//!    batch of an `insert`, an `update` or a `delete`, with one commit unless it is large.
//! 3. The first failure ends an ordered request, and any request in a transaction.
//! 4. The results are a cursor, one document for each operation that was tried, or for each failed one.
//!
//! The operations of a retryable write are numbered through all runs.

use pando_catalog::Namespace;
use pando_document::{DocumentWriter, RawDocument, RawValue};
use pando_query::expression::ParseScope;

use super::bulk_write_results::{Found, Results};
use super::delete::{DeleteParts, delete_batch};
use super::insert::{check_batch_length, ends_session_transaction, ends_transaction, insert_batch};
use super::statement_parts::{array_of_documents, check_stages, checked_hint, checked_modification};
use super::update::update_batch;
use super::update_statement::{Counted, Reach, UpdateParts, Upsert};
use super::write_reply::{FailedWrite, Order, note_failed, write_retried};
use crate::arguments::{Argument, Arguments, check_named_once, missing};
use crate::collation::CollationChoice;
use crate::context::Context;
use crate::cursor_reply::{self, ListSource, NewCursor, cursor_batch_size};
use crate::{CommandError, ErrorCode, Request};

/// The fields that may come as document sequences.
const SEQUENCES: [&str; 2] = ["ops", "nsInfo"];
/// The namespace of the cursor of the results.
const RESULTS: &str = "admin.$cmd.bulkWrite";

/// One operation.
enum Operation<'a> {
    Insert(&'a RawDocument),
    Update(UpdateParts<'a>),
    Delete(DeleteParts<'a>),
}

/// An operation with the place of its collection in `nsInfo`.
struct Addressed<'a> {
    namespace: usize,
    operation: Operation<'a>,
}

/// The other fields of the request.
struct Options<'a> {
    order: Order,
    errors_only: Found,
    variables: &'a RawDocument,
    batch_size: Option<u64>,
}

/// Writes.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    // The first runs are committed when a later one lacks a page.
    context.require_may_block()?;
    context.read_bypasses(request.body)?;
    let mut options = read_options(request.body)?;
    let operations = request
        .documents_beside("bulkWrite", "ops", &SEQUENCES)?
        .ok_or_else(|| missing("bulkWrite", "ops"))?;
    let namespaces = request
        .documents_beside("bulkWrite", "nsInfo", &SEQUENCES)?
        .ok_or_else(|| missing("bulkWrite", "nsInfo"))?;
    check_batch_length(operations.len())?;
    let namespaces = namespaces.into_iter().map(read_namespace).collect::<Result<Vec<_>, _>>()?;
    let operations = operations
        .into_iter()
        .enumerate()
        .map(|(at, operation)| read_operation(operation, at, namespaces.len()))
        .collect::<Result<Vec<_>, _>>()?;
    if let Some(session) = &context.session_use {
        session.check_statements(operations.len())?;
    }
    if context.open_transaction().is_some() {
        options.order = Order::Ordered;
    }
    let scope = context.restartable_scope().with_let(options.variables)?;
    let mut results = Results::new(options.errors_only);
    carry_out(context, &operations, &namespaces, &scope, options.order, &mut results)?;
    context.note(|notes| results.note(notes));
    answer(context, request, results, options.batch_size, reply)
}

fn read_options(body: &RawDocument) -> Result<Options<'_>, CommandError> {
    let mut options = Options {
        order: Order::Ordered,
        errors_only: Found::All,
        variables: RawDocument::empty(),
        batch_size: None,
    };
    for argument in Arguments::of_command("bulkWrite", body) {
        let argument = argument?;
        match argument.name {
            "ops" | "nsInfo" => {}
            "ordered" if argument.boolean()? == Some(false) => options.order = Order::Unordered,
            "errorsOnly" if argument.boolean()? == Some(true) => options.errors_only = Found::Failures,
            "ordered" | "errorsOnly" => {}
            "bypassDocumentValidation" => {
                argument.lenient_boolean()?;
            }
            "bypassEmptyTsReplacement" => {
                argument.boolean()?;
            }
            "let" => options.variables = argument.document()?.unwrap_or(options.variables),
            "cursor" => {
                if let Some(cursor) = argument.document()? {
                    options.batch_size = cursor_batch_size("bulkWrite.cursor", cursor)?;
                }
            }
            _ => argument.refuse_unless_generic()?,
        }
    }
    Ok(options)
}

fn read_namespace(entry: &RawDocument) -> Result<Namespace, CommandError> {
    check_named_once("bulkWrite.nsInfo", entry, &["ns"])?;
    let mut namespace = None;
    for argument in Arguments::inside("bulkWrite.nsInfo", entry) {
        let argument = argument?;
        match argument.name {
            "ns" => namespace = argument.string()?,
            "collectionUUID" | "encryptionInformation" if argument.is_absent() => {}
            _ => return Err(argument.unknown()),
        }
    }
    let namespace = namespace.ok_or_else(|| missing("bulkWrite.nsInfo", "ns"))?;
    let named = namespace.split_once('.').and_then(|(database, name)| Namespace::new(database, name).ok());
    named.ok_or_else(|| {
        CommandError::failed(
            ErrorCode::InvalidNamespace,
            format!("Invalid namespace specified for bulkWrite: '{namespace}'"),
        )
    })
}

fn read_operation(
    operation: &RawDocument,
    at: usize,
    namespaces: usize,
) -> Result<Addressed<'_>, CommandError> {
    let first = operation.iter().next().transpose()?;
    let (namespace, operation) = match first {
        Some(("insert", value)) => (value, read_insert(operation)?),
        Some(("update", value)) => (value, read_update(operation)?),
        Some(("delete", value)) => (value, read_delete(operation)?),
        other => {
            let name = other.map_or("", |(name, _)| name);
            return Err(CommandError::failed(
                ErrorCode::FailedToParse,
                format!(
                    "BulkWrite ops entry {at} has to begin with insert, update or delete, and not '{name}'"
                ),
            ));
        }
    };
    let place = Argument::of_value("bulkWrite", "ops", namespace).natural()?;
    let place = place.and_then(|place| usize::try_from(place).ok()).filter(|place| *place < namespaces);
    let namespace = place.ok_or_else(|| {
        CommandError::failed(
            ErrorCode::BadValue,
            format!("BulkWrite ops entry {at} has an invalid nsInfo index."),
        )
    })?;
    Ok(Addressed { namespace, operation })
}

fn read_insert(operation: &RawDocument) -> Result<Operation<'_>, CommandError> {
    let mut document = None;
    for argument in Arguments::inside("BulkWriteInsertOp", operation) {
        let argument = argument?;
        match argument.name {
            "insert" => {}
            "document" => document = argument.document()?,
            _ => return Err(argument.unknown()),
        }
    }
    Ok(Operation::Insert(document.ok_or_else(|| missing("BulkWriteInsertOp", "document"))?))
}

fn read_update(operation: &RawDocument) -> Result<Operation<'_>, CommandError> {
    let (mut query, mut modification) = (None, None);
    let mut parts = UpdateParts::empty();
    for argument in Arguments::inside("BulkWriteUpdateOp", operation) {
        let argument = argument?;
        match argument.name {
            "update" | "sampleId" => {}
            "filter" => query = argument.document()?,
            "updateMods" => modification = Some(checked_modification(argument.value)?),
            "constants" => parts.constants = argument.document()?,
            "arrayFilters" => parts.array_filters = Some(array_of_documents(&argument)?),
            "sort" => parts.sort = argument.document()?,
            "hint" => parts.hint = Some(checked_hint(argument.value)?),
            "multi" if argument.boolean()? == Some(true) => parts.reach = Reach::Many,
            "upsert" if argument.boolean()? == Some(true) => parts.upsert = Upsert::Yes,
            "multi" | "upsert" => {}
            "collation" => parts.collation = CollationChoice::of(argument.document()?),
            "upsertSupplied" => {
                argument.boolean()?;
            }
            _ => return Err(argument.unknown()),
        }
    }
    parts.query = query.ok_or_else(|| missing("BulkWriteUpdateOp", "filter"))?;
    parts.update = modification.ok_or_else(|| missing("BulkWriteUpdateOp", "updateMods"))?;
    check_stages(parts.update)?;
    Ok(Operation::Update(parts))
}

fn read_delete(operation: &RawDocument) -> Result<Operation<'_>, CommandError> {
    let (mut query, mut reach, mut hint) = (None, Reach::One, None);
    let mut collation = CollationChoice::Inherited;
    for argument in Arguments::inside("BulkWriteDeleteOp", operation) {
        let argument = argument?;
        match argument.name {
            "delete" | "sampleId" => {}
            "filter" => query = argument.document()?,
            "hint" => hint = Some(checked_hint(argument.value)?),
            "multi" if argument.boolean()? == Some(true) => reach = Reach::Many,
            "multi" => {}
            "collation" => collation = CollationChoice::of(argument.document()?),
            _ => return Err(argument.unknown()),
        }
    }
    let query = query.ok_or_else(|| missing("BulkWriteDeleteOp", "filter"))?;
    Ok(Operation::Delete(DeleteParts { query, reach, hint, collation, counted: Counted::Documents }))
}

/// Carries out run after run.
fn carry_out(
    context: &mut Context<'_>,
    operations: &[Addressed<'_>],
    namespaces: &[Namespace],
    scope: &ParseScope,
    order: Order,
    results: &mut Results,
) -> Result<(), CommandError> {
    let mut begin = 0;
    while begin < operations.len() {
        let run = run_at(&operations[begin..]);
        let namespace = &namespaces[operations[begin].namespace];
        if let Some(session) = &mut context.session_use {
            session.begin_batch(begin);
        }
        results.begin_run(begin);
        let carried = context
            .check_writable(namespace)
            .and_then(|()| carry_out_run(context, namespace, run, scope, order, results));
        let tried = match carried {
            Ok(()) => run.len(),
            // A fault that the whole run is refused for counts as one of its first operation.
            Err(CommandError::Failed(failure)) if !ends_transaction(&failure) => {
                let failed = FailedWrite { index: 0, failure: *failure };
                note_failed(context, std::slice::from_ref(&failed));
                results.fail(failed);
                ends_session_transaction(context);
                1
            }
            Err(error) => return Err(error),
        };
        if order == Order::Ordered && results.has_failures() {
            return Ok(());
        }
        begin += tried;
    }
    Ok(())
}

/// The operations at the beginning that are of one kind and one collection.
fn run_at<'o, 'a>(operations: &'o [Addressed<'a>]) -> &'o [Addressed<'a>] {
    let kind = |one: &Addressed<'a>| (std::mem::discriminant(&one.operation), one.namespace);
    let length = operations.iter().take_while(|one| kind(one) == kind(&operations[0])).count();
    &operations[..length]
}

fn carry_out_run(
    context: &mut Context<'_>,
    namespace: &Namespace,
    run: &[Addressed<'_>],
    scope: &ParseScope,
    order: Order,
    results: &mut Results,
) -> Result<(), CommandError> {
    match run[0].operation {
        Operation::Insert(_) => {
            let documents = run.iter().filter_map(|one| match &one.operation {
                Operation::Insert(document) => Some(*document),
                _ => None,
            });
            let (_, failed) = insert_batch(context, namespace, &documents.collect::<Vec<_>>(), order)?;
            note_failed(context, &failed);
            results.add_inserts(run.len(), failed, order);
        }
        Operation::Update(_) => {
            let parts = run.iter().filter_map(|one| match &one.operation {
                Operation::Update(parts) => Some(parts.clone()),
                _ => None,
            });
            let outcome = update_batch(context, namespace, &parts.collect::<Vec<_>>(), scope, order)?;
            note_failed(context, &outcome.failed);
            results.add_updates(outcome);
        }
        Operation::Delete(_) => {
            let parts = run.iter().filter_map(|one| match &one.operation {
                Operation::Delete(parts) => Some(*parts),
                _ => None,
            });
            let outcome = delete_batch(context, namespace, &parts.collect::<Vec<_>>(), scope, order)?;
            note_failed(context, &outcome.failed);
            results.add_deletes(run.len(), outcome, order);
        }
    }
    Ok(())
}

/// Answers the sums and the cursor of the results.
fn answer(
    context: &Context<'_>,
    request: &Request<'_>,
    results: Results,
    batch_size: Option<u64>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    let (sums, documents) = match context.concern.wants_answer() {
        true => results.into_parts(),
        false => Results::new(Found::All).into_parts(),
    };
    let account = context.query_account();
    let source = Box::new(ListSource::new(documents));
    let cursor = NewCursor {
        first_batch: Some(batch_size.unwrap_or(u64::MAX)),
        ..NewCursor::new(request.body, RESULTS.to_owned(), source, account)
    };
    cursor_reply::open(context, cursor, reply)?;
    for (name, sum) in sums {
        reply.append(name, RawValue::Int32(i32::try_from(sum).unwrap_or(i32::MAX)));
    }
    write_retried(context, reply);
    Ok(())
}
