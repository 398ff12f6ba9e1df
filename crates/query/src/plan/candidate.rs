//! Candidates: plans with their costs, of one index or of the whole collection.

use pando_catalog::{EntryContents, FieldKind, IndexDescription, IndexField, Sparseness};

use super::cost::{self, DocumentAccess, Order, Work};
use super::index_bounds::{self, IndexBounds};
use super::interval::Intervals;
use super::predicates::Predicate;
use super::{
    Access, Consumer, Coverage, FindSpecification, IndexAccess, Nulls, Picks, Plan, ProjectionNeeds,
    ScanBounds, ScanDirection, ends, from_index, merge, wildcard,
};
use crate::filter::{Filter, Node};
use crate::path::Path;

/// A find whose filter is taken apart.
#[derive(Clone, Copy, Debug)]
pub(super) struct Conjunction<'c> {
    pub find: &'c FindSpecification<'c>,
    /// The parts of the filter.
    pub nodes: &'c [Node],
    /// The tests in them.
    pub predicates: &'c [Predicate<'c>],
}

/// A plan that could be taken.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub plan: Plan,
    pub work: Work,
    pub document_access: DocumentAccess,
    pub order: Order,
    /// Whether bounds narrow the search.
    pub narrows: bool,
    /// The share of entries that a scan from value to value steps on.
    pub firsts: f64,
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
        Coverage::Entry(Nulls::Fetched) | Coverage::Document | Coverage::Nothing | Coverage::Counter => false,
    };
    let is_wanted = candidate.narrows || gives_order || replaces_documents || candidate.plan.is_distinct();
    is_wanted.then_some(candidate)
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
    let residual = left_by(&bounds, nodes);
    if residual.is_empty()
        && let Some(access) = ends::scans_of(find, index, &bounds)
    {
        return through_ends(find, index, access, narrows);
    }
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
    let picks = match (document_access, distinct) {
        (DocumentAccess::Covered, Some(fields)) => Picks::FirstOfEach { fields, valued: None },
        _ => Picks::Every,
    };
    let coverage = match (document_access, find.needs) {
        (DocumentAccess::Covered, _) if picks != Picks::Every => Coverage::Entry(Nulls::Taken),
        (DocumentAccess::Covered | DocumentAccess::Clustered, ProjectionNeeds::Nothing)
            if residual.is_empty() && direction != Some(None) =>
        {
            Coverage::Nothing
        }
        (DocumentAccess::Covered, _) if residual.is_empty() => Coverage::Entry(nulls_for(find)),
        (DocumentAccess::Covered, _) => Coverage::Entry(Nulls::Fetched),
        (DocumentAccess::Fetched | DocumentAccess::Clustered, _) => Coverage::Document,
    };
    let work = work.of_picks(picks, cost::DISTINCT);
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
            picks,
        }),
        skip: find.skip,
        limit: find.limit,
    };
    let plan = merge::instead_of_sort(plan);
    let order = match plan.access {
        Access::Merge(_) => Order::AsFound(find.limit_before_skip()),
        _ => order,
    };
    Candidate { plan, work, document_access, order, narrows, firsts: cost::DISTINCT }
}

/// The nodes that bounds do not settle.
fn left_by<'n>(bounds: &IndexBounds, nodes: &'n [Node]) -> Vec<&'n Node> {
    let left = nodes.iter().enumerate().filter(|(at, _)| !bounds.settled.contains(at));
    left.map(|(_, node)| node).filter(|node| !node.is_trivial()).collect()
}

/// The use of entries with null for the consumer, where nobody asks them anything else.
fn nulls_for(find: &FindSpecification<'_>) -> Nulls {
    if find.consumer.sees_values_only() { Nulls::Taken } else { Nulls::Fetched }
}

/// The plan of scans that step from group to group.
fn through_ends(
    find: &FindSpecification<'_>,
    index: &IndexDescription,
    access: Access,
    narrows: bool,
) -> Candidate {
    let covered = from_index::covers(index, find.needs, &[], None);
    let (document_access, coverage) = match (covered, index.contents) {
        (true, _) => (DocumentAccess::Covered, Coverage::Entry(nulls_for(find))),
        (false, EntryContents::Reference) => (DocumentAccess::Fetched, Coverage::Document),
        (false, EntryContents::Copy | EntryContents::Document) => {
            (DocumentAccess::Clustered, Coverage::Document)
        }
    };
    let work = ends::work_of(index, &access, cost::DISTINCT);
    let plan = Plan { residual: None, coverage, sort: None, access, skip: 0, limit: None };
    Candidate { plan, work, document_access, order: Order::AsFound(None), narrows, firsts: cost::DISTINCT }
}

/// The first fields of an index of which each combination of values is wanted once: the one that is asked
/// for, behind fields with lists of single values.
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
    // The entries of another collation would give a null for documents without the field, as those of the
    // own one do; but MongoDB reads the documents then, and finds no value.
    if index.text_order != *find.filter.text_order() {
        return None;
    }
    let is_asked = |field: &IndexField| field.kind == FieldKind::Value && field.path == path;
    let at = index.fields.iter().position(is_asked)?;
    bounds.fields[..at].iter().all(Intervals::is_points).then_some(at + 1)
}

/// The plan that looks at every document.
pub(super) fn of_collection(find: &FindSpecification<'_>) -> Candidate {
    let nodes = super::predicates::conjunction(find.filter);
    let order = match find.sort_pattern() {
        Some(_) if !find.consumer.sorts_itself() => Order::Sorted,
        Some(_) | None => Order::AsFound(find.limit_before_skip()),
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
            (ProjectionNeeds::Nothing, consumer)
                if consumer.sees_values_only() && find.hint.is_none() && !never =>
            {
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
    let document_access = DocumentAccess::Clustered;
    Candidate { plan, work, document_access, order, narrows: false, firsts: cost::DISTINCT }
}

/// A filter of what is left to ask.
pub(super) fn residual_of(nodes: &[&Node]) -> Option<Filter> {
    match nodes {
        [] => None,
        nodes => Some(Filter::all_of(nodes.iter().map(|node| (*node).clone()).collect())),
    }
}
