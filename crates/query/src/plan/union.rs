//! The union plan of an `$or`: if an index narrows every branch, the union of those scans beats a scan of the
//! collection.
//!
//! Where the bounds of every branch settle all of its tests, the residual is the part of the filter beside
//! the `$or`. Else it is the whole filter.

use super::candidate::{self, Candidate};
use super::cost::{DocumentAccess, Order, Work};
use super::estimates::{self, AssumedShares, Estimates};
use super::merge::SharedEntries;
use super::usable_index::UsableIndex;
use super::{
    Access, Coverage, FindSpecification, IndexAccess, MergeAccess, Picks, Plan, ScanBounds, ScanDirection,
};
use super::{cost, index_bounds, merge, predicates};
use crate::filter::Node;

/// Branches of an `$or` that are estimated one by one.
const BRANCHES_ESTIMATED_MAX: usize = 16;

/// The union for the first `$or` of the conjunction whose branches all have indexes.
pub(super) fn of_branches(
    find: &FindSpecification<'_>,
    nodes: &[Node],
    indexes: &[UsableIndex<'_>],
    estimates: &dyn Estimates,
) -> Option<Candidate> {
    let (at, BranchScans { accesses, is_settled, found }) =
        nodes.iter().enumerate().find_map(|(at, node)| match node {
            Node::Or(branches) => Some((at, scans_of(nodes, branches, indexes, estimates)?)),
            _ => None,
        })?;
    let order = match find.sort_pattern() {
        Some(_) => Order::Sorted,
        None => Order::AsFound(find.limit_before_skip()),
    };
    let residual = left_by(nodes, at, is_settled);
    let plan = Plan {
        access: Access::Union(accesses),
        residual: candidate::residual_of(&residual),
        coverage: Coverage::Document,
        sort: find.sort_pattern().cloned(),
        skip: find.skip,
        limit: find.limit,
    };
    let work = Work { entries: found, found };
    let (document_access, firsts) = (DocumentAccess::Fetched, cost::DISTINCT);
    Some(Candidate { plan, work, document_access, order, narrows: true, firsts })
}

/// An ordered merge for the first `$or` of the conjunction whose branches all have scans in the order of the
/// sort.
pub(super) fn merge_of_branches(
    find: &FindSpecification<'_>,
    nodes: &[Node],
    indexes: &[UsableIndex<'_>],
    estimates: &dyn Estimates,
) -> Option<Candidate> {
    let pattern = find.sort_pattern()?;
    let (at, scans, found) = nodes.iter().enumerate().find_map(|(at, node)| match node {
        Node::Or(branches) if branches.len() <= merge::SCANS_MAX => {
            let estimates = affordable(branches, estimates);
            let (mut scans, mut parts) = (Vec::new(), 0);
            let mut found = 0.0;
            for branch in branches {
                let narrowing = narrowing(nodes, branch, indexes).into_iter();
                let in_order: Vec<Narrowing> =
                    narrowing.filter(|scan| merge::parts_in_order(pattern, &scan.access).is_some()).collect();
                let best = best_of(in_order, estimates)?;
                // They are made when it is known that they are not too many.
                parts += merge::parts_in_order(pattern, &best.0.access)?.count;
                if parts > merge::SCANS_MAX {
                    return None;
                }
                scans.push(best.0);
                found += best.1;
            }
            Some((at, scans, found))
        }
        _ => None,
    })?;
    let is_settled = scans.iter().all(|scan| scan.is_exact);
    let scans: Vec<IndexAccess> =
        scans.iter().filter_map(|scan| merge::scans_in_order(pattern, &scan.access)).flatten().collect();
    if !(2..=merge::SCANS_MAX).contains(&scans.len()) {
        return None;
    }
    let residual = left_by(nodes, at, is_settled);
    let plan = Plan {
        access: Access::Merge(Box::new(MergeAccess {
            scans,
            pattern: pattern.clone(),
            entries: SharedEntries::Possible,
        })),
        residual: candidate::residual_of(&residual),
        coverage: Coverage::Document,
        sort: None,
        skip: find.skip,
        limit: find.limit,
    };
    let (work, order) = (Work { entries: found, found }, Order::AsFound(find.limit_before_skip()));
    let (document_access, firsts) = (DocumentAccess::Fetched, cost::DISTINCT);
    Some(Candidate { plan, work, document_access, order, narrows: true, firsts })
}

/// The parts of a conjunction that scans of the branches of its `$or` leave to be asked.
fn left_by(nodes: &[Node], or_at: usize, is_settled: bool) -> Vec<&Node> {
    let left = nodes.iter().enumerate().filter(|(at, _)| !is_settled || *at != or_at);
    left.map(|(_, node)| node).collect()
}

/// The scans of the branches of an `$or`.
struct BranchScans {
    accesses: Vec<IndexAccess>,
    /// Whether the bounds settle every branch.
    is_settled: bool,
    /// The documents that they are thought to find.
    found: f64,
}

/// A scan that narrows a branch.
struct Narrowing {
    access: IndexAccess,
    /// Whether its bounds settle the branch.
    is_exact: bool,
    work: Work,
}

/// One scan for each branch.
fn scans_of(
    whole: &[Node],
    branches: &[Node],
    indexes: &[UsableIndex<'_>],
    estimates: &dyn Estimates,
) -> Option<BranchScans> {
    let estimates = affordable(branches, estimates);
    let mut scans =
        BranchScans { accesses: Vec::with_capacity(branches.len()), is_settled: true, found: 0.0 };
    for branch in branches {
        let (best, of_branch) = best_of(narrowing(whole, branch, indexes), estimates)?;
        scans.found += of_branch;
        scans.is_settled &= best.is_exact;
        scans.accesses.push(best.access);
    }
    Some(scans)
}

/// The estimates for the branches of an `$or`: of many, shares are assumed.
fn affordable<'e>(branches: &[Node], estimates: &'e dyn Estimates) -> &'e dyn Estimates {
    if branches.len() > BRANCHES_ESTIMATED_MAX { &AssumedShares } else { estimates }
}

/// The best scan for one branch, and the documents that it is thought to find.
pub(super) fn scan_of_branch(
    whole: &[Node],
    branch: &Node,
    indexes: &[UsableIndex<'_>],
    estimates: &dyn Estimates,
) -> Option<(IndexAccess, f64)> {
    let (best, found) = best_of(narrowing(whole, branch, indexes), estimates)?;
    Some((best.access, found))
}

/// The scans that narrow a branch.
fn narrowing(whole: &[Node], branch: &Node, indexes: &[UsableIndex<'_>]) -> Vec<Narrowing> {
    let nodes = match branch {
        Node::And(nodes) => nodes.as_slice(),
        single => std::slice::from_ref(single),
    };
    let predicates = predicates::of_conjunction(nodes);
    indexes
        .iter()
        .filter(|index| index.has_all_of(whole) || index.has_all_of(nodes))
        .map(|index| index.description)
        .filter(|index| index_bounds::has_all_matches(index, &predicates))
        .map(|index| (index, index_bounds::of_index(index, &predicates)))
        .filter(|(_, bounds)| bounds.narrows())
        .map(|(index, bounds)| Narrowing {
            work: Work::of_bounds(index, &bounds.fields),
            is_exact: (0..nodes.len()).all(|at| bounds.settled.contains(&at)),
            access: IndexAccess {
                index: index.clone(),
                bounds: ScanBounds::Fields(bounds.fields),
                direction: ScanDirection::Forward,
                partitions: None,
                picks: Picks::Every,
            },
        })
        .collect()
}

/// The scan that finds the fewest, and how many; by estimates where there is a choice.
fn best_of(narrowing: Vec<Narrowing>, estimates: &dyn Estimates) -> Option<(Narrowing, f64)> {
    let measured: Option<Vec<Work>> = match narrowing.len() {
        0 | 1 => None,
        _ => narrowing.iter().map(|scan| estimates::of_scan(&scan.access, estimates)).collect(),
    };
    let cost = |at: usize, assumed: Work| match &measured {
        Some(measured) => (measured[at].entries, assumed.found),
        None => (assumed.found, assumed.found),
    };
    let costs = narrowing.into_iter().enumerate().map(|(at, scan)| (cost(at, scan.work), scan));
    let (_, best) = costs.min_by(|(a, _), (b, _)| a.0.total_cmp(&b.0).then_with(|| a.1.total_cmp(&b.1)))?;
    let found = best.work.found;
    Some((best, found))
}
