//! Candidates: plans with their costs, of one index or of the whole collection.

use pando_catalog::{IndexDescription, Visibility};

use super::cost::{self, DocumentAccess, Order};
use super::index_bounds::{self, IndexBounds};
use super::predicates::Predicate;
use super::{
    Access, Coverage, FindSpecification, IndexAccess, PRIMARY_INDEX, Plan, ScanBounds, ScanDirection,
    from_index,
};
use crate::filter::{Filter, Node};

/// A plan that could be taken.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub plan: Plan,
    pub cost: f64,
    /// Whether bounds narrow the search.
    pub narrows: bool,
    /// Documents that it is thought to find.
    pub found: f64,
}

/// Whether the planner may take an index on its own.
pub(super) fn is_usable(index: &IndexDescription) -> bool {
    let has = |name: &str| !matches!(index.specification.get(name), Ok(None));
    // An index of some documents only, or in another order of strings, answers only what asks for that.
    index.hidden == Visibility::Visible && !has("partialFilterExpression") && !has("collation")
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
    (candidate.narrows || gives_order).then_some(candidate)
}

/// The plan through an index with these bounds, be it a good idea or not.
pub(super) fn through_index(
    find: &FindSpecification<'_>,
    nodes: &[Node],
    index: &IndexDescription,
    bounds: IndexBounds,
) -> Candidate {
    let narrows = bounds.narrows();
    let residual: Vec<&Node> = nodes
        .iter()
        .enumerate()
        .filter(|(at, node)| !bounds.settled.contains(at) && !node.is_trivial())
        .map(|(_, node)| node)
        .collect();
    let direction =
        find.sort_pattern().map(|pattern| from_index::sort_direction(pattern, index, &bounds.fields));
    let covered = from_index::covers(index, find.needs, &residual, find.sort_pattern());
    let work = cost::work(cost::DOCUMENTS_ASSUMED, &bounds.fields);
    let access = match (covered, index.name == PRIMARY_INDEX) {
        (_, true) => DocumentAccess::Clustered,
        (true, false) => DocumentAccess::Covered,
        (false, false) => DocumentAccess::Fetched,
    };
    let order = match direction {
        Some(None) => Order::Sorted,
        Some(Some(_)) | None => Order::AsFound(find.limit_before_skip()),
    };
    let is_empty = bounds.fields.iter().any(|field| field.is_empty());
    let plan = Plan {
        residual: residual_of(&residual),
        coverage: match access {
            DocumentAccess::Covered => Coverage::Entry,
            DocumentAccess::Fetched | DocumentAccess::Clustered => Coverage::Document,
        },
        sort: match direction {
            Some(None) => find.sort_pattern().cloned(),
            Some(Some(_)) | None => None,
        },
        access: Access::Index(IndexAccess {
            index: index.clone(),
            bounds: ScanBounds::Fields(bounds.fields),
            direction: direction.flatten().unwrap_or(ScanDirection::Forward),
        }),
        skip: find.skip,
        limit: find.limit,
    };
    let cost = if is_empty { 0.0 } else { cost::of_index(work, access, order) };
    Candidate { plan, cost, narrows, found: work.found }
}

/// The plan that looks at every document.
pub(super) fn of_collection(find: &FindSpecification<'_>, others: &[Candidate]) -> Candidate {
    let nodes = super::predicates::conjunction(find.filter);
    // The best guess of any index says how many documents match.
    let found = others.iter().map(|other| other.found).fold(cost::DOCUMENTS_ASSUMED, f64::min);
    let order = match find.sort_pattern() {
        Some(_) => Order::Sorted,
        None => Order::AsFound(find.limit_before_skip()),
    };
    let residual: Vec<&Node> = nodes.iter().filter(|node| !node.is_trivial()).collect();
    let never = nodes.iter().any(|node| matches!(node, Node::Never));
    let plan = Plan {
        access: if never { Access::Nothing } else { Access::Collection(super::natural_of(find.sort)) },
        residual: residual_of(&residual),
        coverage: Coverage::Document,
        sort: find.sort_pattern().cloned(),
        skip: find.skip,
        limit: find.limit,
    };
    let cost = if never { -1.0 } else { cost::of_collection(cost::DOCUMENTS_ASSUMED, found, order) };
    Candidate { plan, cost, narrows: false, found }
}

/// A filter of what is left to ask.
pub(super) fn residual_of(nodes: &[&Node]) -> Option<Filter> {
    match nodes {
        [] => None,
        nodes => Some(Filter::all_of(nodes.iter().map(|node| (*node).clone()).collect())),
    }
}
