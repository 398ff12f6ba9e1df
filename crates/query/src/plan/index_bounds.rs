//! The bounds that a filter puts on each field of an index.
//!
//! # Rules
//! - Several tests of a field that never met an array: their bounds meet.
//! - A field that has met arrays takes the bounds of one test only: `{ a: { $gt: 1, $lt: 5 } }` may be met by
//!   two elements, so no single key need lie between.
//! - A second field that has met arrays goes through the same array as the first. It takes bounds only from
//!   the same `$elemMatch`, since other tests may be met by another element.
//!
//! Tests that the bounds do not settle stay as a filter on documents.

use std::collections::HashSet;

use pando_catalog::{IndexDescription, Sparseness, Truncation};

use super::interval::Intervals;
use super::predicate_bounds::{self, Arrays, Bounds, Tightness};
use super::predicates::{Predicate, Sense};

/// The bounds of an index, and which nodes of the filter they settle.
#[derive(Clone, Debug)]
pub(super) struct IndexBounds {
    /// By field, in the field's direction.
    pub fields: Vec<Intervals>,
    /// Nodes of the conjunction that need not be asked again.
    pub settled: HashSet<usize>,
}

impl IndexBounds {
    /// No bound at all on an index of so many fields.
    pub fn unbounded(index: &IndexDescription) -> IndexBounds {
        let fields = index.fields.iter().map(|field| Intervals::all().directed(field.direction)).collect();
        IndexBounds { fields, settled: HashSet::new() }
    }

    /// Whether the first field is bounded, so that the index narrows the search.
    pub fn narrows(&self) -> bool {
        !self.fields[0].is_all()
    }
}

/// Puts the tests of a filter on an index.
pub(super) fn of_index(index: &IndexDescription, predicates: &[Predicate<'_>]) -> IndexBounds {
    let mut bounds = IndexBounds::unbounded(index);
    // The `$elemMatch` from which the first bounded array field took its bounds; `Some(None)`: from no
    // `$elemMatch`.
    let mut array_bound: Option<Option<usize>> = None;
    for (at, field) in index.fields.iter().enumerate() {
        let of_field: Vec<&Predicate<'_>> =
            predicates.iter().filter(|predicate| predicate.path.is(&field.path)).collect();
        let chosen = if index.multikey[at].has_arrays() {
            let of_field = of_field.into_iter().filter(|predicate| sees_all_leaves(index, predicate));
            single(&of_field.collect::<Vec<_>>(), &mut array_bound, &mut bounds.settled)
        } else {
            meeting(&of_field, &mut bounds.settled)
        };
        if let Some(intervals) = chosen {
            bounds.fields[at] = intervals.directed(field.direction);
        }
    }
    if index.truncated == Truncation::Truncated {
        // A cut key stands for many values.
        bounds.settled.clear();
    }
    bounds
}

/// Whether a sparse index has every document that the filter matches.
pub(super) fn has_all_matches(index: &IndexDescription, predicates: &[Predicate<'_>]) -> bool {
    index.sparse == Sparseness::Dense
        || predicates.iter().any(|predicate| {
            predicate.sense == Sense::Wanted
                && index.fields.iter().any(|field| predicate.path.is(&field.path))
                && predicate_bounds::implies_existence(predicate.test)
        })
}

/// Whether each leaf by which a document may pass the test has a key: in a sparse index an array's elements
/// without the field have none, though others of the same array do.
fn sees_all_leaves(index: &IndexDescription, predicate: &Predicate<'_>) -> bool {
    index.sparse == Sparseness::Dense
        || predicate.sense == Sense::Unwanted
        || predicate_bounds::implies_existence(predicate.test)
}

fn bounds_of(predicate: &Predicate<'_>, arrays: Arrays) -> Option<Bounds> {
    match predicate.sense {
        Sense::Wanted => predicate_bounds::of_test(predicate.test),
        Sense::Unwanted => predicate_bounds::of_negation(predicate.test, arrays),
    }
}

/// All tests of a field without arrays at once.
fn meeting(predicates: &[&Predicate<'_>], settled: &mut HashSet<usize>) -> Option<Intervals> {
    let mut sets = Vec::with_capacity(predicates.len());
    for predicate in predicates {
        let Some(bounds) = bounds_of(predicate, Arrays::None) else { continue };
        if bounds.tightness == Tightness::Exact && !predicate.part_of_element {
            settled.insert(predicate.node);
        }
        sets.push(bounds.intervals);
    }
    Intervals::intersection_of(sets)
}

/// The best one test of a field with arrays.
fn single(
    predicates: &[&Predicate<'_>],
    array_bound: &mut Option<Option<usize>>,
    settled: &mut HashSet<usize>,
) -> Option<Intervals> {
    let group = |predicate: &Predicate<'_>| predicate.part_of_element.then_some(predicate.node);
    let allowed = |predicate: &&&Predicate<'_>| match array_bound {
        None => true,
        Some(taken) => taken.is_some() && *taken == group(predicate),
    };
    let (predicate, bounds) = predicates
        .iter()
        .filter(allowed)
        .filter_map(|predicate| Some((predicate, bounds_of(predicate, Arrays::Met)?)))
        .min_by_key(|(_, bounds)| rank(&bounds.intervals))?;
    if bounds.intervals.is_all() {
        return None;
    }
    *array_bound = Some(group(predicate));
    let is_exact = bounds.tightness == Tightness::Exact && predicate.sense == Sense::Wanted;
    if is_exact && !predicate.part_of_element {
        settled.insert(predicate.node);
    }
    Some(bounds.intervals)
}

/// Narrow bounds first.
fn rank(intervals: &Intervals) -> u8 {
    match intervals {
        none if none.is_empty() => 0,
        points if points.is_points() => 1,
        all if all.is_all() => 3,
        _ => 2,
    }
}
