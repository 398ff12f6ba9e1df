//! The intersection of two indexes: documents with one value in the first and one value in the second, where
//! no index has both.
//!
//! The entries of one value lie in the order of primary keys, so that two scans find what they have in common
//! ([`execute`](crate::execute)). A document is fetched only if it has an entry in both.
//!
//! # Rules
//! - Estimates decide, never assumed shares. The two tests are taken to be independent of each other.
//! - The cost has to be less than half of that of the best other plan. If the tests are not independent, as
//!   that of a city and its country, the scan of the second index is in vain.

use std::collections::HashSet;

use pando_catalog::{EntryContents, FieldKind, Truncation, Uniqueness};

use super::candidate::{self, Candidate, Conjunction};
use super::cost::{DocumentAccess, Order, Work};
use super::{Access, Coverage, IndexAccess, Plan, ProjectionNeeds, ScanBounds, ScanDirection};
use super::{cost, index_bounds};
use crate::filter::Node;

/// The times that the cost has to be less.
pub(super) const GAIN_MIN: f64 = 2.0;

/// The intersection of the two scans with the fewest entries, with its work. `works` are those of the
/// candidates, measured.
pub(super) fn of(
    conjunction: &Conjunction<'_>,
    candidates: &[Candidate],
    works: &[Work],
    documents: f64,
) -> Option<Candidate> {
    let scans = candidates.iter().zip(works).filter_map(|(candidate, work)| match &candidate.plan.access {
        Access::Index(access) if is_in_order_of_keys(access) => Some((access, work.entries)),
        _ => None,
    });
    let mut scans: Vec<(&IndexAccess, f64)> = scans.collect();
    scans.sort_by(|(_, one), (_, other)| one.total_cmp(other));
    let (first, first_entries) = *scans.first()?;
    let (second, second_entries) = *scans
        .iter()
        .find(|(other, _)| !first.index.fields.iter().any(|field| has_field(other, &field.path)))?;
    let found = first_entries * second_entries / documents.max(1.0);
    let work = Work { entries: first_entries + second_entries, found: found.max(1.0) };
    Some(of_two(conjunction, first, second, work))
}

fn has_field(access: &IndexAccess, path: &str) -> bool {
    access.index.fields.iter().any(|field| field.path == path)
}

/// Whether the entries of a scan lie in the order of primary keys: they have one value.
fn is_in_order_of_keys(access: &IndexAccess) -> bool {
    let index = &access.index;
    let ScanBounds::Fields(fields) = &access.bounds else { return false };
    !index.is_primary()
        && !index.is_wildcard()
        && !access.is_distinct()
        && index.unique != Uniqueness::Unique
        && index.truncated == Truncation::Whole
        && index.contents == EntryContents::Reference
        && index.fields.iter().all(|field| field.kind == FieldKind::Value)
        && fields.iter().all(|field| field.is_points() && field.list().len() == 1)
}

fn of_two(
    Conjunction { find, nodes, predicates }: &Conjunction<'_>,
    first: &IndexAccess,
    second: &IndexAccess,
    work: Work,
) -> Candidate {
    let settled_by = |access: &IndexAccess| index_bounds::of_index(&access.index, predicates).settled;
    let settled: HashSet<usize> = settled_by(first).union(&settled_by(second)).copied().collect();
    let left = nodes.iter().enumerate().filter(|(at, node)| !settled.contains(at) && !node.is_trivial());
    let residual: Vec<&Node> = left.map(|(_, node)| node).collect();
    let sort = find.sort_pattern();
    let needs_nothing =
        matches!(find.needs, ProjectionNeeds::Nothing) && residual.is_empty() && sort.is_none();
    let (document_access, coverage) = match needs_nothing {
        true => (DocumentAccess::Covered, Coverage::Nothing),
        false => (DocumentAccess::Fetched, Coverage::Document),
    };
    let order = match sort {
        Some(_) => Order::Sorted,
        None => Order::AsFound(find.limit_before_skip()),
    };
    let forward = |access: &IndexAccess| IndexAccess { direction: ScanDirection::Forward, ..access.clone() };
    let plan = Plan {
        access: Access::Intersection(Box::new([forward(first), forward(second)])),
        residual: candidate::residual_of(&residual),
        coverage,
        sort: sort.cloned(),
        skip: find.skip,
        limit: find.limit,
    };
    Candidate { plan, work, document_access, order, narrows: true, firsts: cost::DISTINCT }
}
