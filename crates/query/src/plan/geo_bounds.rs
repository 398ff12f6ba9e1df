//! Bounds of the geometry fields of an index, by the coverings of regions.
//!
//! # Invariants
//! - The bounds settle no test: cells hold more than the region does.
//! - An index of geometries has every document that matches only if a region bounds one of its geometry
//!   fields: a document without geometry has no key.

use pando_catalog::{IndexDescription, IndexField};
use pando_collation::TextOrder;
use pando_document::RawValue;

use super::interval::{Cut, Intervals};
use super::predicates::{Predicate, PredicateTest, Sense};
use crate::filter::Test;
use crate::geo_index::GeoCells;

/// The bounds that the tests of a geometry field put on it: those of the test with the smallest covering.
pub(super) fn of_field(index: &IndexDescription, predicates: &[&Predicate<'_>]) -> Option<Intervals> {
    let cells = cells_of(index)?;
    let coverings = predicates.iter().filter_map(|predicate| ranges_of(&cells, predicate));
    let best = coverings.min_by(|a, b| cells.share_of(a).total_cmp(&cells.share_of(b)))?;
    Some(intervals_of(&best))
}

/// The cells of an index of geometries.
pub(super) fn cells_of(index: &IndexDescription) -> Option<GeoCells> {
    GeoCells::of_specification(&index.specification).ok().flatten()
}

/// Whether an index of geometries has every document that a conjunction with these tests matches.
pub(super) fn has_all_matches(index: &IndexDescription, predicates: &[Predicate<'_>]) -> bool {
    let Some(cells) = cells_of(index) else { return false };
    let is_of = |field: &IndexField, predicate: &Predicate<'_>| {
        field.kind.is_geometry() && predicate.path.is(&field.path)
    };
    predicates.iter().any(|predicate| {
        index.fields.iter().any(|field| is_of(field, predicate)) && serves(&cells, predicate)
    })
}

/// Whether the bounds of a test hold all documents that pass it.
fn serves(cells: &GeoCells, predicate: &Predicate<'_>) -> bool {
    match predicate.test {
        PredicateTest::Field(Test::Geo(geo)) => {
            predicate.sense == Sense::Wanted && cells.can_serve(geo.region())
        }
        _ => false,
    }
}

fn ranges_of(cells: &GeoCells, predicate: &Predicate<'_>) -> Option<Vec<(i64, i64)>> {
    match predicate.test {
        PredicateTest::Field(Test::Geo(geo)) if predicate.sense == Sense::Wanted => {
            cells.ranges_of_region(geo.region())
        }
        _ => None,
    }
}

/// Ranges of geometry parts, both ends included, as intervals.
pub(crate) fn intervals_of(ranges: &[(i64, i64)]) -> Intervals {
    Intervals::union_of(ranges.iter().map(|(first, last)| {
        Intervals::between(
            Cut::before(RawValue::Int64(*first), &TextOrder::SIMPLE),
            Cut::after(RawValue::Int64(*last), &TextOrder::SIMPLE),
        )
    }))
}
