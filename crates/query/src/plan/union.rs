//! The union plan of an `$or`: if an index narrows every branch, the union of those scans beats a scan of the
//! collection.
//!
//! The whole filter is the residual: the bounds of a branch settle its own tests, but not those beside the
//! `$or`.

use pando_catalog::IndexDescription;

use super::candidate::{self, Candidate};
use super::cost::{DocumentAccess, Order, Work};
use super::index_bounds::IndexBounds;
use super::usable_index::UsableIndex;
use super::{Access, Coverage, FindSpecification, IndexAccess, Plan, ScanBounds, ScanDirection};
use super::{index_bounds, predicates};
use crate::filter::Node;

/// The union for the first `$or` of the conjunction whose branches all have indexes.
pub(super) fn of_branches(
    find: &FindSpecification<'_>,
    nodes: &[Node],
    indexes: &[UsableIndex<'_>],
) -> Option<Candidate> {
    let (accesses, found) = nodes.iter().find_map(|node| match node {
        Node::Or(branches) => scans_of(nodes, branches, indexes),
        _ => None,
    })?;
    let order = match find.sort_pattern() {
        Some(_) => Order::Sorted,
        None => Order::AsFound(find.limit_before_skip()),
    };
    let residual: Vec<&Node> = nodes.iter().collect();
    let plan = Plan {
        access: Access::Union(accesses),
        residual: candidate::residual_of(&residual),
        coverage: Coverage::Document,
        sort: find.sort_pattern().cloned(),
        skip: find.skip,
        limit: find.limit,
    };
    let work = Work { entries: found, found };
    Some(Candidate { plan, work, document_access: DocumentAccess::Fetched, order, narrows: true })
}

/// An index that narrows a branch.
struct Narrowing<'i> {
    index: &'i IndexDescription,
    bounds: IndexBounds,
    work: Work,
}

/// One scan for each branch, and the documents that they are thought to find.
fn scans_of(
    whole: &[Node],
    branches: &[Node],
    indexes: &[UsableIndex<'_>],
) -> Option<(Vec<IndexAccess>, f64)> {
    let mut found = 0.0;
    let mut scans = Vec::with_capacity(branches.len());
    for branch in branches {
        let (access, of_branch) = scan_of_branch(whole, branch, indexes)?;
        found += of_branch;
        scans.push(access);
    }
    Some((scans, found))
}

/// The best scan for one branch, and the documents that it is thought to find.
pub(super) fn scan_of_branch(
    whole: &[Node],
    branch: &Node,
    indexes: &[UsableIndex<'_>],
) -> Option<(IndexAccess, f64)> {
    let nodes = match branch {
        Node::And(nodes) => nodes.as_slice(),
        single => std::slice::from_ref(single),
    };
    let predicates = predicates::of_conjunction(nodes);
    let best = indexes
        .iter()
        .filter(|index| index.has_all_of(whole) || index.has_all_of(nodes))
        .map(|index| index.description)
        .filter(|index| index_bounds::has_all_matches(index, &predicates))
        .map(|index| (index, index_bounds::of_index(index, &predicates)))
        .filter(|(_, bounds)| bounds.narrows())
        .map(|(index, bounds)| {
            let work = Work::of_bounds(index, &bounds.fields);
            Narrowing { index, bounds, work }
        })
        .min_by(|a, b| a.work.found.total_cmp(&b.work.found))?;
    let access = IndexAccess {
        index: best.index.clone(),
        bounds: ScanBounds::Fields(best.bounds.fields),
        direction: ScanDirection::Forward,
    };
    Some((access, best.work.found))
}
