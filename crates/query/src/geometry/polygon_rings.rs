//! The rings of a polygon, checked: closed, of three different vertices or more, without crossings, the first
//! around all others.

use std::collections::HashSet;
use std::ops::ControlFlow;

use pando_document::{RawArray, RawValue};
use s2rst::s2::crossing_edge_query::CrossingType;
use s2rst::s2::shape_util::visit_crossing_edge_pairs;
use s2rst::s2::{Loop, Point, Polygon};

use super::GeometryFault;
use super::coordinates::{PlanePoint, sphere_points};
use super::sphere_polygon::{PointBits, SpherePolygon, bits_of};
use crate::shell_text::value_text;

/// The side of its edges on which a polygon lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Winding {
    /// The smaller one.
    Smaller,
    /// The left one.
    Strict,
}

/// Rings that a polygon may have. Their nesting is found by comparing each with all others.
const RINGS_MAX: usize = 10_000;

/// Parses the rings of a polygon.
pub(super) fn parse(rings: &RawArray, winding: Winding) -> Result<SpherePolygon, GeometryFault> {
    let mut loops: Vec<Loop> = Vec::new();
    let mut first: Option<RawValue<'_>> = None;
    let whole = || value_text(RawValue::Array(rings));
    for ring in rings {
        let ring = ring?;
        if winding == Winding::Strict && !loops.is_empty() {
            let reason = format!("Only one simple loop is allowed in a big polygon: {}", whole());
            return Err(GeometryFault::new(reason));
        }
        if loops.len() == RINGS_MAX {
            return Err(GeometryFault::new(format!("Polygon has more than {RINGS_MAX} loops")));
        }
        let mut one = parse_ring(ring)?;
        if winding == Winding::Smaller {
            one.normalize();
        }
        if let Some(first) = first
            && !loops[0].contains_loop(&one)
        {
            return Err(GeometryFault::new(format!(
                "Secondary loops not contained by first exterior loop - secondary loops must be holes: {} first loop: {}",
                value_text(ring),
                value_text(first)
            )));
        }
        first = first.or(Some(ring));
        loops.push(one);
    }
    if loops.is_empty() {
        return Err(GeometryFault::new("Polygon has no loops."));
    }
    let is_single = loops.len() == 1;
    if !is_single && shares_an_edge(&loops) {
        return Err(GeometryFault::new(format!("Polygon isn't valid: Duplicate edge {}", whole())));
    }
    let polygon = Polygon::from_loops(loops);
    if !is_single && has_crossing(&polygon) {
        return Err(GeometryFault::new(format!("Polygon isn't valid: its loops cross {}", whole())));
    }
    Ok(SpherePolygon::new(polygon))
}

/// One ring, as it is wound.
fn parse_ring(ring: RawValue<'_>) -> Result<Loop, GeometryFault> {
    let points = sphere_points(Some(ring))?;
    let shown = || value_text(ring);
    let mut vertices: Vec<Point> = points.into_iter().map(PlanePoint::on_sphere).collect();
    if vertices.is_empty() {
        return Err(GeometryFault::new(format!("Loop has no vertices: {}", shown())));
    }
    if vertices.first() != vertices.last() {
        return Err(GeometryFault::new(format!("Loop is not closed: {}", shown())));
    }
    vertices.dedup();
    // The last vertex is the first.
    vertices.pop();
    if vertices.len() < 3 {
        let reason = format!("Loop must have at least 3 different vertices: {}", shown());
        return Err(GeometryFault::new(reason));
    }
    let mut seen = HashSet::with_capacity(vertices.len());
    for (at, vertex) in vertices.iter().enumerate() {
        if !seen.insert(bits_of(*vertex)) {
            let earlier = vertices.iter().position(|other| other == vertex).unwrap_or(at);
            let reason = format!("Loop is not valid: {} Duplicate vertices: {earlier} and {at}", shown());
            return Err(GeometryFault::new(reason));
        }
    }
    let one = Loop::new(vertices);
    let mut crossing = None;
    let _found = visit_crossing_edge_pairs(one.shape_index(), CrossingType::Interior, &mut |a, b, _| {
        crossing = Some((a.id.edge_id, b.id.edge_id));
        ControlFlow::Break(())
    });
    match crossing {
        Some((a, b)) => {
            let reason = format!("Loop is not valid: {} Edges {a} and {b} cross.", shown());
            Err(GeometryFault::new(reason))
        }
        None => Ok(one),
    }
}

/// Whether two rings have an edge in common, in either direction.
fn shares_an_edge(loops: &[Loop]) -> bool {
    let mut seen: HashSet<(PointBits, PointBits)> = HashSet::new();
    loops.iter().any(|one| {
        (0..one.num_vertices()).any(|at| {
            let (from, to) = (bits_of(one.vertex(at)), bits_of(one.vertex(at + 1)));
            !seen.insert((from.min(to), from.max(to)))
        })
    })
}

fn has_crossing(polygon: &Polygon) -> bool {
    visit_crossing_edge_pairs(polygon.shape_index(), CrossingType::Interior, &mut |_, _, _| {
        ControlFlow::Break(())
    })
    .is_break()
}
