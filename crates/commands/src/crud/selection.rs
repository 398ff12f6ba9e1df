//! The selection of a statement: its filter, planned and executed against one collection.

use std::sync::Arc;

use pando_catalog::{Caller, Collection, IdKey, Transaction};
use pando_collation::TextOrder;
use pando_document::{RawDocument, RawValue};
use pando_query::execute::{EntryEstimates, Executor};
use pando_query::explain::{Choice, Display, ExplainedProjection, Purpose};
use pando_query::filter::Filter;
use pando_query::memory::{DiskUse, StageMemory};
use pando_query::plan::{
    Access, Consumer, Coverage, FindSpecification, Hint, Plan, ProjectionNeeds, plan_at, plan_by_id,
};
use pando_query::projection::Projection;
use pando_query::sort::Sort;

use super::table_scan;
use crate::CommandError;
use crate::context::Context;
use crate::error::Execution;

/// A selection: which documents, in which order, how many.
pub(super) struct Selection {
    pub filter: Filter,
    sort: Sort,
    hint: Option<Hint>,
    limit: Option<u64>,
}

impl Selection {
    /// Parses sort and hint. A sort comes with the order of its strings.
    pub fn new(
        filter: Filter,
        sort: Option<(&RawDocument, &TextOrder)>,
        hint: Option<RawValue<'_>>,
        limit: Option<u64>,
    ) -> Result<Selection, CommandError> {
        let sort = match sort {
            Some((sort, order)) => Sort::parse(sort)?.collated_by(order),
            None => Sort::Unordered,
        };
        let hint = match hint {
            Some(hint) => Hint::parse(hint)?,
            None => None,
        };
        Ok(Selection { filter, sort, hint, limit })
    }

    /// The documents that match, found by this index, up to a limit.
    pub fn by_index(filter: Filter, hint: Hint, limit: u64) -> Selection {
        Selection { filter, sort: Sort::Unordered, hint: Some(hint), limit: Some(limit) }
    }

    fn specification(&self) -> FindSpecification<'_> {
        FindSpecification {
            sort: &self.sort,
            hint: self.hint.as_ref(),
            limit: self.limit,
            metadata: self.sort.metadata(),
            ..FindSpecification::matching(&self.filter)
        }
    }

    /// Its plan against the indexes that a transaction may use.
    pub fn plan(
        &self,
        collection: &Arc<Collection>,
        transaction: &dyn Transaction,
    ) -> Result<Plan, CommandError> {
        let estimates = EntryEstimates::new(collection, transaction);
        Ok(plan_at(&self.specification(), collection, transaction.snapshot(), &estimates)?)
    }

    /// The key by which the only document that can match is found, where the filter asks for nothing else.
    /// Notes the plan.
    fn only_id(&self, context: &Context<'_>, collection: &Collection) -> Option<IdKey> {
        let plan = plan_by_id(&self.specification(), collection.text_order())?;
        let Plan { access: Access::Id(id), residual: None, .. } = &plan else { return None };
        context.note_plan(&plan, Purpose::Find);
        context.note_stages(&self.filter, &plan, display_of(Purpose::Find));
        Some(collection.id_key(id.raw()))
    }

    /// Notes the plan of a statement that is carried out without it.
    pub fn note_plan(
        &self,
        context: &Context<'_>,
        collection: &Arc<Collection>,
        transaction: &dyn Transaction,
    ) -> Result<(), CommandError> {
        self.executor(context, collection, transaction, Purpose::Delete).map(drop)
    }

    /// An executor that gives primary keys, and documents only where a filter is left.
    fn executor(
        &self,
        context: &Context<'_>,
        collection: &Arc<Collection>,
        transaction: &dyn Transaction,
        purpose: Purpose,
    ) -> Result<Executor, CommandError> {
        let specification = self.specification_of_keys(purpose);
        executor_of(context, &specification, collection, transaction, purpose)
    }

    fn specification_of_keys(&self, purpose: Purpose) -> FindSpecification<'_> {
        let needs = ProjectionNeeds::Nothing;
        let consumer = match purpose {
            Purpose::Count => Consumer::Groups,
            Purpose::Find | Purpose::Update | Purpose::Delete => Consumer::Documents,
        };
        FindSpecification { needs, consumer, ..self.specification() }
    }
}

/// The place where a selection is carried out.
pub(super) struct Reader<'r> {
    pub collection: &'r Arc<Collection>,
    pub transaction: &'r dyn Transaction,
    pub context: &'r Context<'r>,
}

/// How the profiler shows the plan of a selection.
fn display_of(purpose: Purpose) -> Display<'static> {
    Display { projection: ExplainedProjection::Whole, purpose, choice: Choice::Free }
}

fn executor_of(
    context: &Context<'_>,
    specification: &FindSpecification<'_>,
    collection: &Arc<Collection>,
    transaction: &dyn Transaction,
    purpose: Purpose,
) -> Result<Executor, CommandError> {
    let plan = noted_plan(context, specification, collection, transaction, purpose)?;
    executor_of_plan(collection, plan)
}

/// The plan, which the context notes.
fn noted_plan(
    context: &Context<'_>,
    specification: &FindSpecification<'_>,
    collection: &Arc<Collection>,
    transaction: &dyn Transaction,
    purpose: Purpose,
) -> Result<Plan, CommandError> {
    let estimates = EntryEstimates::new(collection, transaction);
    let plan = plan_at(specification, collection, transaction.snapshot(), &estimates)?;
    table_scan::check(context, collection, specification.filter, &plan)?;
    context.note_plan(&plan, purpose);
    context.note_stages(specification.filter, &plan, display_of(purpose));
    Ok(plan)
}

fn executor_of_plan(collection: &Arc<Collection>, plan: Plan) -> Result<Executor, CommandError> {
    let memory = StageMemory::new(collection.query_memory().account(), DiskUse::Allowed);
    Ok(Executor::new(Arc::clone(collection), plan, &memory)?)
}

/// The primary keys of all selected documents, before any of them is changed. `None` where there are more
/// than `most`. One key may be that of no document, where the filter is its `_id` alone.
pub(super) fn keys(
    selection: &Selection,
    collection: &Arc<Collection>,
    transaction: &dyn Transaction,
    context: &Context<'_>,
    most: usize,
) -> Result<Option<Vec<Vec<u8>>>, CommandError> {
    if let Some(id) = selection.only_id(context, collection) {
        // Whether there is a document, its caller finds out when it fetches it.
        let key = collection.locate(transaction, &id, context.blocking)?;
        context.operation.usage().add_examined(1, 1);
        return Ok(Some(key.into_iter().collect()));
    }
    let mut scan = KeyScan::new(selection, collection, transaction, context)?;
    let found = scan.next(transaction, context.caller(), most + 1)?;
    Ok((found.len() <= most).then_some(found))
}

/// A scan of the primary keys of the selected documents, some at a time.
///
/// It counts the documents that its caller is going to read as examined, and it takes back the entry beyond
/// the range of an index: the executor counts that one as for a count, and MongoDB does so only there.
pub(super) struct KeyScan {
    executor: Executor,
    /// The most keys of all batches together.
    limit: Option<u64>,
    /// Whether the executor counts an entry beyond the range at the end.
    end_count: EndCount,
    /// Documents that were counted here.
    counted_documents: u64,
}

/// The entry behind the last one of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EndCount {
    /// The executor counts it.
    Counted,
    /// It does not, or it was taken back.
    Uncounted,
}

impl KeyScan {
    /// Begins to look for them.
    pub fn new(
        selection: &Selection,
        collection: &Arc<Collection>,
        transaction: &dyn Transaction,
        context: &Context<'_>,
    ) -> Result<KeyScan, CommandError> {
        // The documents are read when they are changed; only a filter that is left may need them before.
        let specification = selection.specification_of_keys(Purpose::Find);
        let plan = noted_plan(context, &specification, collection, transaction, Purpose::Find)?;
        let reads_entries = matches!(&plan.access, Access::Index(access) if !access.index.is_primary());
        let end_count = match reads_entries && plan.coverage == Coverage::Nothing {
            true => EndCount::Counted,
            false => EndCount::Uncounted,
        };
        let executor = executor_of_plan(collection, plan)?;
        Ok(KeyScan { executor, limit: selection.limit, end_count, counted_documents: 0 })
    }

    /// At most `most` more keys; fewer only at the end. The transaction is always the same.
    pub fn next(
        &mut self,
        transaction: &dyn Transaction,
        caller: Caller<'_>,
        most: usize,
    ) -> Result<Vec<Vec<u8>>, CommandError> {
        let mut found = Vec::new();
        while found.len() < most
            && let Some(row) = self.executor.next(transaction, caller)?
        {
            found.push(row.primary_key.to_vec());
        }
        let usage = caller.operation.usage();
        let counters = self.executor.counters();
        let unread = counters.returned.saturating_sub(counters.documents_examined);
        usage.add_examined(0, unread.saturating_sub(self.counted_documents));
        self.counted_documents = unread.max(self.counted_documents);
        let is_at_end = found.len() < most && self.limit.is_none_or(|limit| counters.returned < limit);
        if is_at_end && std::mem::replace(&mut self.end_count, EndCount::Uncounted) == EndCount::Counted {
            usage.forget_keys(1);
        }
        Ok(found)
    }
}

/// The number of selected documents.
pub(super) fn count(
    selection: &Selection,
    collection: &Arc<Collection>,
    transaction: &dyn Transaction,
    context: &Context<'_>,
) -> Result<u64, CommandError> {
    let executor = selection.executor(context, collection, transaction, Purpose::Count)?;
    let mut executor = executor.in_any_order();
    let counted = executor.count(transaction, context.caller())?;
    context.note(|notes| notes.note_figures(Some(executor.figures())));
    Ok(counted)
}

/// Calls `visit` with documents that have every value which stands at a path in any selected document.
pub(super) fn for_each_value(
    selection: &Selection,
    path: &str,
    reader: &Reader<'_>,
    mut visit: impl FnMut(&RawDocument) -> Result<(), CommandError>,
) -> Result<(), CommandError> {
    let paths = [path.to_owned()];
    let specification = FindSpecification {
        needs: ProjectionNeeds::Paths(&paths),
        consumer: Consumer::Values(path),
        ..selection.specification()
    };
    let mut executor =
        executor_of(reader.context, &specification, reader.collection, reader.transaction, Purpose::Find)?;
    loop {
        let next = executor.next(reader.transaction, reader.context.caller());
        let Some(row) = next.map_err(|error| Execution::Distinct.fault(error))? else { break };
        visit(row.document)?;
    }
    reader.context.note(|notes| notes.note_figures(Some(executor.figures())));
    Ok(())
}

/// Appends the projection of a document that a filter has found.
pub(super) fn project(
    projection: &Projection,
    filter: &Filter,
    document: &RawDocument,
    out: &mut Vec<u8>,
) -> Result<(), CommandError> {
    let matched_index = match projection.needs_matched_index() {
        true => filter.matches_with_position(document)?.1,
        false => None,
    };
    Ok(projection.apply(document, matched_index, out)?)
}
