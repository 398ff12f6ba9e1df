//! The selection of a statement: its filter, planned and executed against one collection.

use std::sync::Arc;

use pando_catalog::{Caller, Collection, SnapshotTimestamp, Transaction};
use pando_document::{RawDocument, RawValue};
use pando_query::execute::{Executor, Revisits};
use pando_query::explain::Purpose;
use pando_query::filter::Filter;
use pando_query::memory::{DiskUse, StageMemory};
use pando_query::plan::{FindSpecification, Hint, ProjectionNeeds, plan};
use pando_query::projection::Projection;
use pando_query::sort::Sort;

use crate::CommandError;
use crate::context::Context;

/// A selection: which documents, in which order, how many.
pub(super) struct Selection {
    pub filter: Filter,
    sort: Sort,
    hint: Option<Hint>,
    limit: Option<u64>,
}

impl Selection {
    /// Parses sort and hint.
    pub fn new(
        filter: Filter,
        sort: Option<&RawDocument>,
        hint: Option<RawValue<'_>>,
        limit: Option<u64>,
    ) -> Result<Selection, CommandError> {
        let sort = match sort {
            Some(sort) => Sort::parse(sort)?,
            None => Sort::Unordered,
        };
        let hint = match hint {
            Some(hint) => Hint::parse(hint)?,
            None => None,
        };
        Ok(Selection { filter, sort, hint, limit })
    }

    fn executor(
        &self,
        context: &Context<'_>,
        collection: &Arc<Collection>,
        snapshot: SnapshotTimestamp,
        needs: ProjectionNeeds<'_>,
    ) -> Result<Executor, CommandError> {
        let specification = FindSpecification {
            sort: &self.sort,
            hint: self.hint.as_ref(),
            limit: self.limit,
            needs,
            ..FindSpecification::matching(&self.filter)
        };
        let plan = plan(&specification, &collection.describe_indexes_at(snapshot))?;
        let purpose = match needs {
            ProjectionNeeds::Nothing => Purpose::Count,
            _ => Purpose::Find,
        };
        context.note_plan(&plan, purpose);
        let account = collection.query_memory().account();
        let memory = StageMemory { account, disk_use: DiskUse::Allowed };
        Ok(Executor::new(Arc::clone(collection), plan, &memory, Revisits::Impossible)?)
    }
}

/// The primary keys of all selected documents, before any of them is changed. `None` where there are more
/// than `most`.
pub(super) fn keys(
    selection: &Selection,
    collection: &Arc<Collection>,
    transaction: &dyn Transaction,
    context: &Context<'_>,
    most: usize,
) -> Result<Option<Vec<Vec<u8>>>, CommandError> {
    let mut scan = KeyScan::new(selection, collection, transaction, context)?;
    let found = scan.next(transaction, context.caller(), most + 1)?;
    Ok((found.len() <= most).then_some(found))
}

/// A scan of the primary keys of the selected documents, some at a time.
pub(super) struct KeyScan {
    executor: Executor,
}

impl KeyScan {
    /// Begins to look for them.
    pub fn new(
        selection: &Selection,
        collection: &Arc<Collection>,
        transaction: &dyn Transaction,
        context: &Context<'_>,
    ) -> Result<KeyScan, CommandError> {
        let needs = ProjectionNeeds::Everything;
        Ok(KeyScan { executor: selection.executor(context, collection, transaction.snapshot(), needs)? })
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
    Ok(selection
        .executor(context, collection, transaction.snapshot(), ProjectionNeeds::Nothing)?
        .count(transaction, context.caller())?)
}

/// Calls `visit` with each document.
pub(super) fn for_each(
    selection: &Selection,
    collection: &Arc<Collection>,
    transaction: &dyn Transaction,
    context: &Context<'_>,
    mut visit: impl FnMut(&RawDocument) -> Result<(), CommandError>,
) -> Result<(), CommandError> {
    let mut executor =
        selection.executor(context, collection, transaction.snapshot(), ProjectionNeeds::Everything)?;
    while let Some(row) = executor.next(transaction, context.caller())? {
        visit(row.document)?;
    }
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
