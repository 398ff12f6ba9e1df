//! The bounds that a filter puts on each field of an index.
//!
//! # Rules
//! - Several tests of a field that never met an array: their bounds meet.
//! - A field that has met arrays takes the bounds of one test only: `{ a: { $gt: 1, $lt: 5 } }` may be met by
//!   two elements, so no single key need lie between.
//! - The tests of one `$elemMatch` speak of one element. Their bounds meet, if the path meets no further
//!   array behind that of the `$elemMatch`.
//! - Two fields that go through one array together are both bounded only by one `$elemMatch` of that array or
//!   of one behind it, since other tests may be met by another element.
//!
//! Tests that the bounds do not settle stay as a filter on documents.

use std::collections::{BTreeMap, HashSet};

use pando_catalog::{FieldKind, IndexDescription, Multikey, Sparseness, Truncation};
use pando_collation::TextOrder;
use pando_document::RawValue;

use super::geo_bounds;
use super::interval::Intervals;
use super::predicate_bounds::{self, Arrays, Bounds, Tightness};
use super::predicates::{Predicate, PredicateTest, Sense};
use super::wildcard;
use crate::filter::{Operator, Test};
use crate::hashed_index::{hash_of, hash_of_literal};

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
    let mut bounded: Vec<BoundedField> = Vec::new();
    for (at, field) in index.fields.iter().enumerate() {
        // The others are bounded as a whole, behind this loop or by a search of their own.
        if !matches!(field.kind, FieldKind::Value | FieldKind::Hashed) && !field.kind.is_geometry() {
            continue;
        }
        let of_field: Vec<&Predicate<'_>> =
            predicates.iter().filter(|predicate| predicate.path.is(&field.path)).collect();
        let chosen = if field.kind.is_geometry() {
            geo_bounds::of_field(index, &of_field).map(|intervals| (intervals, None))
        } else if field.kind == FieldKind::Hashed {
            of_hashes(&of_field, &index.text_order).map(|intervals| (intervals, None))
        } else if index.multikey[at].has_arrays() {
            let shared: Vec<(usize, BoundedField)> = bounded
                .iter()
                .filter_map(|other| Some((shared_component(index, at, other.at)?, *other)))
                .collect();
            let of_field = of_field
                .into_iter()
                .filter(|predicate| sees_all_leaves(index, predicate) && may_bound(predicate, &shared));
            single(of_field, index.multikey[at], &index.text_order, &mut bounds.settled)
        } else {
            meeting(&of_field, &index.text_order, &mut bounds.settled).map(|intervals| (intervals, None))
        };
        if let Some((intervals, element)) = chosen {
            if !intervals.is_all() {
                bounded.push(BoundedField { at, element });
            }
            bounds.fields[at] = intervals.directed(field.direction);
        }
    }
    if let Some(at) = index.wildcard_path() {
        wildcard::bound_path(index, at, predicates, &mut bounds);
    }
    if index.truncated == Truncation::Truncated {
        // A cut key stands for many values.
        bounds.settled.clear();
    }
    bounds
}

/// The hashes that documents may have which pass all tests of a field without arrays. They settle none: other
/// values have the same hashes.
fn of_hashes(predicates: &[&Predicate<'_>], order: &TextOrder) -> Option<Intervals> {
    let of_literals = |literals: &mut dyn Iterator<Item = RawValue<'_>>, compared: &TextOrder| {
        let mut points = Vec::new();
        for literal in literals {
            if !order.agrees_on(compared, literal) {
                return None;
            }
            points.push(Intervals::point(RawValue::Int64(hash_of_literal(literal, order)?), order));
            if matches!(literal, RawValue::Null) {
                // It is equal to undefined as well.
                points.push(Intervals::point(RawValue::Int64(hash_of(RawValue::Undefined).ok()?), order));
            }
        }
        Some(Intervals::union_of(points))
    };
    let wanted =
        predicates.iter().filter(|predicate| predicate.sense == Sense::Wanted && !predicate.part_of_element);
    let sets = wanted.filter_map(|predicate| match predicate.test {
        PredicateTest::Field(Test::Comparison(comparison)) | PredicateTest::Implied(comparison)
            if comparison.operator == Operator::Equal =>
        {
            of_literals(&mut std::iter::once(comparison.literal.raw()), &comparison.order)
        }
        PredicateTest::Field(Test::In(list)) if list.regexes().is_empty() => {
            of_literals(&mut list.values().iter().map(|value| value.raw()), list.order())
        }
        _ => None,
    });
    Intervals::intersection_of(sets)
}

/// Whether a sparse index, or one of a path of a wildcard index, has every document that the filter matches.
pub(super) fn has_all_matches(index: &IndexDescription, predicates: &[Predicate<'_>]) -> bool {
    if let Some(at) = index.wildcard_path() {
        return wildcard::has_all_matches(index, at, predicates);
    }
    if index.is_of_geometries() {
        return geo_bounds::has_all_matches(index, predicates);
    }
    index.sparse == Sparseness::Dense
        || predicates.iter().any(|predicate| {
            predicate.sense == Sense::Wanted
                && index.fields.iter().any(|field| predicate.path.is(&field.path))
                && predicate_bounds::needs_field(predicate)
        })
}

/// Whether each leaf by which a document may pass the test has a key: in a sparse index an array's elements
/// without the field have none, though others of the same array do.
fn sees_all_leaves(index: &IndexDescription, predicate: &Predicate<'_>) -> bool {
    (index.sparse == Sparseness::Dense && !index.is_wildcard())
        || predicate.sense == Sense::Unwanted
        || predicate_bounds::needs_field(predicate)
}

fn bounds_of(predicate: &Predicate<'_>, arrays: Arrays, order: &TextOrder) -> Option<Bounds> {
    match (predicate.test, predicate.sense) {
        (PredicateTest::Field(test), Sense::Wanted) => predicate_bounds::of_test(test, arrays, order),
        (PredicateTest::Field(test), Sense::Unwanted) => predicate_bounds::of_negation(test, arrays, order),
        (PredicateTest::Implied(comparison), _) => predicate_bounds::of_implied(comparison, arrays, order),
    }
}

/// All tests of a field without arrays at once.
fn meeting(
    predicates: &[&Predicate<'_>],
    order: &TextOrder,
    settled: &mut HashSet<usize>,
) -> Option<Intervals> {
    let mut sets = Vec::with_capacity(predicates.len());
    for predicate in predicates {
        let Some(bounds) = bounds_of(predicate, Arrays::None, order) else { continue };
        if bounds.tightness == Tightness::Exact && !predicate.part_of_element {
            settled.insert(predicate.node);
        }
        sets.push(bounds.intervals);
    }
    Intervals::intersection_of(sets)
}

/// A field that is bounded.
#[derive(Clone, Copy, Debug)]
struct BoundedField {
    at: usize,
    /// The node of the `$elemMatch` from which an array field took its bounds, if it was one.
    element: Option<usize>,
}

/// The last component at which the paths of two fields go through one array.
fn shared_component(index: &IndexDescription, one: usize, other: usize) -> Option<usize> {
    let components = |at: usize| index.fields[at].path.split('.');
    let common = components(one).zip(components(other)).take_while(|(one, other)| one == other).count();
    let arrays = index.multikey[one].union(index.multikey[other]);
    (0..common).rev().find(|component| arrays.contains(*component))
}

/// Whether a test may bound a field beside those with which it shares arrays.
fn may_bound(predicate: &Predicate<'_>, shared: &[(usize, BoundedField)]) -> bool {
    shared.iter().all(|(component, other)| {
        predicate.part_of_element
            && other.element == Some(predicate.node)
            && *component < predicate.path.array_components()
    })
}

/// The best bounds of a field with arrays: those of one test, or of the tests of one `$elemMatch`; and the
/// node of the `$elemMatch`.
fn single<'p, 'f: 'p>(
    predicates: impl Iterator<Item = &'p Predicate<'f>>,
    multikey: Multikey,
    order: &TextOrder,
    settled: &mut HashSet<usize>,
) -> Option<(Intervals, Option<usize>)> {
    let mut choices: Vec<Choice> = Vec::new();
    let mut elements: BTreeMap<usize, Vec<Intervals>> = BTreeMap::new();
    for predicate in predicates {
        let Some(bounds) = bounds_of(predicate, Arrays::Met, order) else { continue };
        let node = predicate.node;
        if !predicate.part_of_element {
            let is_exact = bounds.tightness == Tightness::Exact && predicate.sense == Sense::Wanted;
            choices.push(Choice { node, intervals: bounds.intervals, element: None, is_exact });
        } else if multikey.has_arrays_from(predicate.path.array_components()) {
            let element = Some(node);
            choices.push(Choice { node, intervals: bounds.intervals, element, is_exact: false });
        } else {
            elements.entry(node).or_default().push(bounds.intervals);
        }
    }
    for (node, sets) in elements {
        if let Some(intervals) = Intervals::intersection_of(sets) {
            choices.push(Choice { node, intervals, element: Some(node), is_exact: false });
        }
    }
    choices.sort_by_key(|choice| choice.node);
    let best = choices.into_iter().min_by_key(|choice| rank(&choice.intervals))?;
    if best.intervals.is_all() {
        return None;
    }
    if best.is_exact {
        settled.insert(best.node);
    }
    Some((best.intervals, best.element))
}

/// Bounds that a field with arrays could have.
struct Choice {
    node: usize,
    intervals: Intervals,
    element: Option<usize>,
    /// Whether they settle their node.
    is_exact: bool,
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
