//! Candidates: plans with their costs, of one index or of the whole collection.

use pando_catalog::{EntryContents, FieldKind, IndexDescription, IndexField, Sparseness};

use super::cost::{self, DocumentAccess, Order, Work};
use super::index_bounds::{self, IndexBounds};
use super::interval::Intervals;
use super::predicates::Predicate;
use super::{
    Access, Consumer, Coverage, FindSpecification, IndexAccess, Nulls, Plan, ProjectionNeeds, ScanBounds,
    ScanDirection, from_index, merge, wildcard,
};
use crate::filter::{Filter, Node};
use crate::path::Path;

/// A plan that could be taken.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub plan: Plan,
    pub work: Work,
    pub document_access: DocumentAccess,
    pub order: Order,
    /// Whether bounds narrow the search.
    pub narrows: bool,
}

impl Candidate {
    /// The cost of so much work, given how many documents are thought to match.
    pub fn cost_of(&self, work: Work, matching: f64) -> f64 {
        cost::of(work, self.document_access, self.order, matching)
    }
}

/// The plan through an index; `None` where it neither narrows the search nor gives the order.
pub(super) fn of_index(
    find: &FindSpecification<'_>,
    nodes: &[Node],
    predicates: &[Predicate<'_>],
    index: &IndexDescription,
) -> Option<Candidate> {
    let bounds = index_bounds::of_index(index, predicates);
    let candidate = through_index(find, nodes, index, bounds);
    let gives_order = find.sort_pattern().is_some() && candidate.plan.sort.is_none();
    // Groups and distinct values are cheaper of entries than of documents, even of all entries.
    let replaces_documents = match candidate.plan.coverage {
        // An index with arrays has more entries than documents, and each document counts once.
        Coverage::Entry(Nulls::Taken) => !index.is_multikey(),
        Coverage::Distinct(_) => true,
        Coverage::Entry(Nulls::Fetched) | Coverage::Document | Coverage::Nothing | Coverage::Counter => false,
    };
    (candidate.narrows || gives_order || replaces_documents).then_some(candidate)
}

/// The plan through an index with these bounds, be it a good idea or not.
pub(super) fn through_index(
    find: &FindSpecification<'_>,
    nodes: &[Node],
    index: &IndexDescription,
    bounds: IndexBounds,
) -> Candidate {
    // A sparse index is small by itself.
    let narrows = bounds.narrows() || index.sparse == Sparseness::Sparse;
    let residual: Vec<&Node> = nodes
        .iter()
        .enumerate()
        .filter(|(at, node)| !bounds.settled.contains(at) && !node.is_trivial())
        .map(|(_, node)| node)
        .collect();
    let direction =
        find.sort_pattern().map(|pattern| from_index::sort_direction(pattern, index, &bounds.fields));
    let covered = from_index::covers(index, find.needs, &residual, find.sort_pattern())
        && (matches!(find.needs, ProjectionNeeds::Nothing) && residual.is_empty()
            || wildcard::entries_tell_values(index, &bounds.fields));
    let work = Work::of_bounds(index, &bounds.fields);
    let document_access = match (covered, index.contents) {
        (_, EntryContents::Document) | (false, EntryContents::Copy) => DocumentAccess::Clustered,
        (true, EntryContents::Reference | EntryContents::Copy) => DocumentAccess::Covered,
        (false, EntryContents::Reference) => DocumentAccess::Fetched,
    };
    let order = match direction {
        Some(None) => Order::Sorted,
        Some(Some(_)) | None => Order::AsFound(find.limit_before_skip()),
    };
    let distinct = distinct_fields(find, index, &bounds).filter(|_| residual.is_empty());
    let coverage = match (document_access, find.needs, distinct) {
        (DocumentAccess::Covered, _, Some(fields)) => Coverage::Distinct(fields),
        (DocumentAccess::Covered | DocumentAccess::Clustered, ProjectionNeeds::Nothing, _)
            if residual.is_empty() && direction != Some(None) =>
        {
            Coverage::Nothing
        }
        (DocumentAccess::Covered, _, _) => match find.consumer {
            Consumer::Groups if residual.is_empty() => Coverage::Entry(Nulls::Taken),
            _ => Coverage::Entry(Nulls::Fetched),
        },
        (DocumentAccess::Fetched | DocumentAccess::Clustered, _, _) => Coverage::Document,
    };
    let work = match coverage {
        Coverage::Distinct(_) => Work { entries: work.entries * cost::DISTINCT, ..work },
        _ => work,
    };
    let plan = Plan {
        residual: residual_of(&residual),
        coverage,
        sort: match direction {
            Some(None) => find.sort_pattern().cloned(),
            Some(Some(_)) | None => None,
        },
        access: Access::Index(IndexAccess {
            index: index.clone(),
            bounds: ScanBounds::Fields(bounds.fields),
            direction: direction.flatten().unwrap_or(ScanDirection::Forward),
            partitions: None,
        }),
        skip: find.skip,
        limit: find.limit,
    };
    let plan = merge::instead_of_sort(plan);
    let order = match plan.access {
        Access::Merge(_) => Order::AsFound(find.limit_before_skip()),
        _ => order,
    };
    Candidate { plan, work, document_access, order, narrows }
}

/// The first fields of an index of which each combination of values is wanted once: the one that is asked
/// for, behind fields with a single value each.
fn distinct_fields(
    find: &FindSpecification<'_>,
    index: &IndexDescription,
    bounds: &IndexBounds,
) -> Option<usize> {
    let Consumer::Values(path) = find.consumer else { return None };
    if Path::new(path).has_index() {
        // In an index a number is what it was for each document.
        return None;
    }
    let is_asked = |field: &IndexField| field.kind == FieldKind::Value && field.path == path;
    let at = index.fields.iter().position(is_asked)?;
    let is_single = |intervals: &Intervals| intervals.is_points() && intervals.list().len() == 1;
    bounds.fields[..at].iter().all(is_single).then_some(at + 1)
}

/// The plan that looks at every document.
pub(super) fn of_collection(find: &FindSpecification<'_>) -> Candidate {
    let nodes = super::predicates::conjunction(find.filter);
    let order = match find.sort_pattern() {
        Some(_) => Order::Sorted,
        None => Order::AsFound(find.limit_before_skip()),
    };
    let residual: Vec<&Node> = nodes.iter().filter(|node| !node.is_trivial()).collect();
    let never = nodes.iter().any(|node| matches!(node, Node::Never));
    let plan = Plan {
        access: if never { Access::Nothing } else { Access::Collection(super::natural_of(find.sort)) },
        coverage: match (find.needs, find.consumer) {
            (ProjectionNeeds::Nothing, _) if !residual.is_empty() || find.sort_pattern().is_some() => {
                Coverage::Document
            }
            // A hint asks for the documents themselves.
            (ProjectionNeeds::Nothing, Consumer::Groups) if find.hint.is_none() && !never => {
                Coverage::Counter
            }
            (ProjectionNeeds::Nothing, _) => Coverage::Nothing,
            _ => Coverage::Document,
        },
        residual: residual_of(&residual),
        sort: find.sort_pattern().cloned(),
        skip: find.skip,
        limit: find.limit,
    };
    let work = if never { Work { entries: -1.0, found: 0.0 } } else { Work::of_collection() };
    Candidate { plan, work, document_access: DocumentAccess::Clustered, order, narrows: false }
}

/// A filter of what is left to ask.
pub(super) fn residual_of(nodes: &[&Node]) -> Option<Filter> {
    match nodes {
        [] => None,
        nodes => Some(Filter::all_of(nodes.iter().map(|node| (*node).clone()).collect())),
    }
}
