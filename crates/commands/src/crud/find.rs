//! `find`: documents of one collection.
//!
//! # Steps
//! 1. The fields are read. A filter `{_id: x}`, without sort, skip or hint, is a point lookup: one fetch,
//!    projected into the reply.
//! 2. Otherwise filter, sort and projection are parsed, planned and executed; the first batch goes into the
//!    reply, and the rest stays in a cursor that owns executor and transaction.

use std::ops::ControlFlow;
use std::sync::Arc;

use pando_catalog::{BlockingMode, Caller, Collection};
use pando_document::{DocumentWriter, RawDocument, RawValue};
use pando_query::execute::{EntryEstimates, ExecutionFigures, Executor};
use pando_query::explain::{PlanSummary, Purpose};
use pando_query::expression::EvaluationWatch;
use pando_query::filter::Filter;
use pando_query::memory::StageMemory;
use pando_query::metadata::MetadataSet;
use pando_query::pipeline::{Flow, RunOptions};
use pando_query::plan::{Access, Plan, plan_at, point_lookup};
use pando_query::projection::Projection;

use super::aggregate::ranged_scan::{RangedScan, SortedRanges};
use super::find_request::{FindRequest, ParsedFind, not_capped};
use super::ranged_filter::RangedFilter;
use super::row_metadata::RowMetadata;
use super::selection::project;
use super::table_scan;
use super::tail_source::TailSource;
use super::view_read;
use crate::collation::CollationChoice;
use crate::context::Context;
use crate::cursor_reply::{self, FIRST_BATCH_DEFAULT, NewCursor};
use crate::cursor_source::{BatchPlace, CursorSource};
use crate::error::Execution;
use crate::point_lookup::PointLookup;
use crate::reader::Reader;
use crate::request_notes::RequestNotes;
use crate::shared_state::SharedState;
use crate::suspended_find::SuspendedFind;
use crate::{CommandError, ErrorCode, Request};

/// Finds.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    let find = FindRequest::read(request.body)?;
    let found = context.collection(find.collection)?;
    if let Some(collection) = &found
        && context.reads_plainly()
        && let Some(id) = point_lookup_id(&find)
    {
        return find_point(context, request, &find, Arc::clone(collection), id, reply);
    }
    if names_search(find.filter)? {
        // A search takes too long for the event loop: it would be parsed and planned there, and once more
        // on a thread that may block.
        context.require_may_block()?;
    }
    let namespace = context.readable(find.collection)?;
    if found.is_none() && context.view_to_read(find.collection)?.is_some() {
        return view_read::find(context, request, &find, reply);
    }
    let watch = EvaluationWatch::in_mode(context.record.operation(), context.blocking);
    let scope = context.watched_scope(&watch);
    let scope = find.collation.scope_in(&scope, found.as_deref())?;
    let parsed = ParsedFind::parse(&find, &scope)?;
    let memory = StageMemory::new(context.query_account(), find.disk_use);
    let mut snapshot = None;
    let source: Box<dyn CursorSource> = match found {
        Some(collection) if find.tailing.is_some() => tail_source(context, collection, &find, parsed)?,
        Some(collection) => {
            check_read_concern(context, &collection)?;
            let reader = context.reader()?;
            snapshot = Some(reader.snapshot()?);
            let collection = as_of_reader(context, collection, find.collection)?;
            Box::new(FindSource::new(context, collection, reader, parsed, &memory)?)
        }
        None if parsed.filter.has_text() => {
            return Err(CommandError::failed(
                ErrorCode::IndexNotFound,
                format!("text index required for $text query (no such collection '{namespace}')"),
            ));
        }
        None => {
            context.note(|notes| notes.plan = PlanSummary::Nothing);
            Box::new(cursor_reply::ListSource::new(Vec::new()))
        }
    };
    let cursor = NewCursor {
        execution: Some(Execution::Find),
        expiry: find.expiry,
        first_batch: find.batch_size,
        keeping: find.keeping,
        watch: Some(watch),
        // Also of a collection that is not there, where MongoDB tells none: the session would read the next
        // collection at a later snapshot.
        read_time: context.read_time(),
        snapshot,
        ..NewCursor::new(request.body, namespace.to_string(), source, memory.account)
    };
    cursor_reply::open(context, cursor, reply)
}

/// The collection as it is known after the snapshot of its reader: an index that was dropped before the
/// snapshot is not planned with.
fn as_of_reader(
    context: &Context<'_>,
    before: Arc<Collection>,
    name: &str,
) -> Result<Arc<Collection>, CommandError> {
    let now = context.collection(name)?.filter(|now| now.uuid() == before.uuid());
    Ok(now.unwrap_or(before))
}

/// The source of a tailable cursor.
fn tail_source(
    context: &Context<'_>,
    collection: Arc<Collection>,
    find: &FindRequest<'_>,
    parsed: ParsedFind<'_>,
) -> Result<Box<dyn CursorSource>, CommandError> {
    if context.open_transaction().is_some() {
        return Err(CommandError::failed(
            ErrorCode::InvalidOptions,
            "It is illegal to open a tailable cursor in a transaction",
        ));
    }
    let (Some(tailing), Some(_)) = (find.tailing, collection.capped_limits()) else {
        return Err(not_capped());
    };
    check_read_concern(context, &collection)?;
    context.note(|notes| notes.plan = PlanSummary::Collection);
    let metadata =
        RowMetadata::new(&parsed.metadata, collection.layout(), (&parsed.sort, &parsed.order), None)?;
    Ok(Box::new(TailSource::new(context.shared, collection, tailing, parsed, metadata)))
}

/// Refuses a snapshot of a past time of a capped collection, as MongoDB does.
fn check_read_concern(context: &Context<'_>, collection: &Collection) -> Result<(), CommandError> {
    if collection.capped_limits().is_none() || context.past.is_none() {
        return Ok(());
    }
    Err(CommandError::failed(
        ErrorCode::SnapshotUnavailable,
        "Reading from capped collections with readConcern snapshot is not supported",
    ))
}

/// The `_id` of a request that one lookup can answer.
fn point_lookup_id<'a>(find: &FindRequest<'a>) -> Option<RawValue<'a>> {
    let plain = find.hint.is_none()
        && find.min.is_none()
        && find.max.is_none()
        && find.skip == 0
        && find.batch_size.unwrap_or(FIRST_BATCH_DEFAULT) > 0
        && find.sort.is_none()
        && find.tailing.is_none()
        && find.metadata.is_empty()
        && find.projection.is_none_or(|projection| MetadataSet::asked_in(projection).is_empty())
        && matches!(find.collation, CollationChoice::Inherited);
    if plain { point_lookup(find.filter) } else { None }
}

/// Whether the filter is one for `$text`, or for `$near` of a field, as it is written plainly.
fn names_search(filter: &RawDocument) -> Result<bool, CommandError> {
    for condition in filter.iter() {
        let is_search = match condition? {
            ("$text", _) => true,
            (_, RawValue::Document(operators)) => {
                let first = operators.iter().next().transpose()?;
                matches!(first, Some(("$near" | "$nearSphere" | "$geoNear", _)))
            }
            _ => false,
        };
        if is_search {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Makes one lookup and projects the document straight into the reply. A lookup that lacks a page is
/// suspended.
fn find_point(
    context: &mut Context<'_>,
    request: &Request<'_>,
    find: &FindRequest<'_>,
    collection: Arc<Collection>,
    id: RawValue<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    // Parsed first, so that a wrong projection is refused even if there is no document.
    let projection = match find.projection {
        Some(projection) => {
            let scope = context.restartable_scope();
            let scope = find.collation.scope_in(&scope, Some(&collection))?;
            Some(Projection::parse(projection, &scope.with_let(find.variables)?)?)
        }
        None => None,
    };
    let key = collection.id_key(id);
    let reader = context.reader()?;
    let lookup = PointLookup { collection, key, projection, reader };
    let outcome = lookup.answer(context.caller(), reply);
    context.note(|notes| {
        *notes = RequestNotes { returned: outcome.as_ref().ok().copied(), ..RequestNotes::of_point_lookup() };
    });
    // In a session's transaction the request begins once more, because it has to take its session again.
    if let (Err(CommandError::WouldBlock(Some(_))), Reader::Own(_)) = (&outcome, &lookup.reader) {
        context.connection.suspend(Box::new(SuspendedFind::new(request.body, lookup)));
    }
    outcome.map(|_| ())
}

/// The source of a find's documents.
pub(crate) struct FindSource {
    reader: Reader,
    executor: Executor,
    /// The ways to read the documents by several threads.
    ranged: Option<RangedFilter>,
    ranged_sort: Option<RangedScan>,
    sorted: Option<SortedRanges>,
    /// A document that they have found; one buffer for all.
    found: Vec<u8>,
    shared: Arc<SharedState>,
    projection: Option<Projection>,
    metadata: Option<RowMetadata>,
    filter: Filter,
    /// Documents that may still be delivered, where the client set a limit or there is one at most.
    left: Option<u64>,
    sorting: Sorting,
}

/// The origin of the order of the documents.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sorting {
    /// From the access of the plan.
    ByAccess,
    /// From a sort in memory.
    InMemory,
}

impl FindSource {
    /// Plans a find against the indexes of this moment; the reader has its snapshot from before.
    pub fn new(
        context: &Context<'_>,
        collection: Arc<Collection>,
        reader: Reader,
        parsed: ParsedFind<'_>,
        memory: &StageMemory,
    ) -> Result<FindSource, CommandError> {
        let plan = {
            let held = reader.hold()?;
            let transaction = held.transaction();
            let estimates = EntryEstimates::new(&collection, transaction);
            plan_at(&parsed.specification(), &collection, transaction.snapshot(), &estimates)?
        };
        if matches!(plan.access, Access::Near(_) | Access::Text(_)) {
            // A search within other conditions, too, is too long for the event loop.
            context.require_may_block()?;
        }
        table_scan::check(context, &collection, &parsed.filter, &plan)?;
        context.note_plan(&plan, Purpose::Find);
        context.note_stages(&parsed.filter, &plan, parsed.display());
        let sorting = if plan.sort.is_some() { Sorting::InMemory } else { Sorting::ByAccess };
        let one_at_most = matches!(plan.access, Access::Id(_)).then_some(1);
        let metadata = RowMetadata::new(
            &parsed.metadata,
            collection.layout(),
            (&parsed.sort, &parsed.order),
            Some(&plan),
        )?;
        let (mut ranged, mut ranged_sort) = (None, None);
        if metadata.is_none() {
            ranged = RangedFilter::of(context.shared, &collection, &plan, &reader, memory);
            ranged_sort = ranged_sort_of(context, &collection, &plan, &reader, memory)?;
        }
        let executor = Executor::new(collection, plan, memory)?;
        let ParsedFind { projection, filter, limit, sort, .. } = parsed;
        // Documents that are sorted by a score or distance have it.
        let sorted_by = sort.metadata();
        let hides = !sorted_by.is_empty();
        let projection = projection.or_else(|| hides.then(|| Projection::without_metadata(sorted_by)));
        let left = limit.or(one_at_most);
        let (sorted, found, shared) = (None, Vec::new(), Arc::clone(context.shared));
        Ok(FindSource {
            reader,
            executor,
            ranged,
            ranged_sort,
            sorted,
            found,
            shared,
            projection,
            metadata,
            filter,
            left,
            sorting,
        })
    }
}

/// The ranged scan of a plan that sorts a large collection in memory. Its request waits on a thread.
fn ranged_sort_of(
    context: &Context<'_>,
    collection: &Arc<Collection>,
    plan: &Plan,
    reader: &Reader,
    memory: &StageMemory,
) -> Result<Option<RangedScan>, CommandError> {
    let options = RunOptions::new(memory.clone(), 0);
    let Some(scan) = RangedScan::of_sort(collection, plan, reader, memory, &options) else { return Ok(None) };
    let held = reader.hold()?;
    let (parts, _) = scan.wanted_parts(context.shared, held.transaction(), context.caller())?;
    if parts < 2 {
        return Ok(None);
    }
    context.require_may_block()?;
    Ok(Some(scan))
}

impl FindSource {
    /// Appends the document that several threads have found as the client wants it; false where there is
    /// none.
    fn give_found(&mut self, out: &mut Vec<u8>) -> Result<bool, CommandError> {
        if self.found.is_empty() {
            return Ok(false);
        }
        self.left = self.left.map(|left| left.saturating_sub(1));
        match &self.projection {
            None => out.extend_from_slice(&self.found),
            Some(projection) => {
                project(projection, &self.filter, RawDocument::from_bytes(&self.found)?, out)?
            }
        }
        Ok(true)
    }
}

impl CursorSource for FindSource {
    fn next(&mut self, caller: Caller<'_>, out: &mut Vec<u8>) -> Result<bool, CommandError> {
        let held = self.reader.hold()?;
        if self.ranged_sort.is_some() && caller.blocking == BlockingMode::CachedOnly {
            return Err(CommandError::WouldBlock(None));
        }
        if let Some(ranged) = self.ranged_sort.take() {
            self.sorted = ranged.sort(&self.shared, held.transaction(), caller)?;
        }
        if self.sorted.is_some() || self.ranged.is_some() {
            self.found.clear();
            let (executor, found) = (&mut self.executor, &mut self.found);
            match (&mut self.sorted, &mut self.ranged) {
                (Some(sorted), _) => sorted.for_each(caller, &mut |document, _| {
                    found.extend_from_slice(document.as_bytes());
                    Ok(Flow::Enough)
                }),
                (None, Some(ranged)) => {
                    ranged.for_each(executor, held.transaction(), caller, &mut |document| {
                        found.extend_from_slice(document.as_bytes());
                        Ok(ControlFlow::Break(()))
                    })
                }
                (None, None) => Ok(()),
            }?;
            drop(held);
            return self.give_found(out);
        }
        let next = self.executor.next(held.transaction(), caller);
        let Some(row) = next? else { return Ok(false) };
        self.left = self.left.map(|left| left.saturating_sub(1));
        let mut shown = |document: &RawDocument, out: &mut Vec<u8>| {
            match &self.projection {
                None => out.extend_from_slice(document.as_bytes()),
                Some(projection) => project(projection, &self.filter, document, out)?,
            }
            Ok(())
        };
        match &self.metadata {
            None => shown(row.document, out)?,
            Some(metadata) => metadata.write(row.primary_key, row.document, &mut shown, out)?,
        }
        Ok(true)
    }

    fn is_exhausted(&self, batch: BatchPlace) -> bool {
        // As in MongoDB, a sort in memory does not tell a getMore that it has given its last document.
        self.left == Some(0) && (batch == BatchPlace::First || self.sorting == Sorting::ByAccess)
    }

    fn figures(&self) -> Option<ExecutionFigures> {
        let figures = self.executor.figures();
        Some(match (&self.sorted, &self.ranged) {
            (Some(sorted), _) => sorted.figures(),
            (None, Some(ranged)) => ranged.figures(figures),
            (None, None) => figures,
        })
    }
}
