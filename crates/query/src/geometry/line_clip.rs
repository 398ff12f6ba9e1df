//! Lines on the sphere, clipped to a polygon: whether they lie within it, and whether a part of them does.
//!
//! MongoDB clips the line to the polygon, and looks whether it gets anything, or all of it. The algorithm is
//! that of the library S2 (`S2Polygon::IntersectWithPolyline` of 2011), so that both agree about lines that
//! touch the border or lie on it:
//! 1. Each edge of the line is cut where it crosses an edge of the polygon. Where both only share a vertex,
//!    S2's rule for vertices says whether they cross there.
//! 2. Between two cuts the edge is inside or outside, in turn.
//! 3. The line meets the polygon if any piece is inside. It is within if no part outside is longer than a
//!    rounding error. So it may touch the border from inside, and touches it from outside without meeting.

use s2rst::s1::Angle;
use s2rst::s2::crossing_edge_query::{CrossingEdgeQuery, CrossingType};
use s2rst::s2::edge_crossings::{Crossing, crossing_sign, intersection, vertex_crossing};
use s2rst::s2::edge_distances::distance_fraction;
use s2rst::s2::polyline::Polyline;
use s2rst::s2::{Point, Region};

use super::sphere_polygon::SpherePolygon;

/// The longest part outside of a line that is within, in radians: 1e-10 degrees.
const TOLERANCE: f64 = 1e-10 * std::f64::consts::PI / 180.0;

/// A place on an edge: its share of the edge, and the point.
type Cut = (f64, Point);

/// Whether all of a line lies within a polygon.
pub(super) fn is_within(line: &Polyline, polygon: &SpherePolygon) -> bool {
    let mut has_piece = false;
    for edge in Edges::of(line, polygon) {
        let mut reached = edge.from;
        for (begin, end) in edge.pieces() {
            if is_long(reached, begin) {
                return false;
            }
            (reached, has_piece) = (end, true);
        }
        if is_long(reached, edge.to) {
            return false;
        }
    }
    has_piece
}

/// Whether a part of a line lies within a polygon.
pub(super) fn meets(line: &Polyline, polygon: &SpherePolygon) -> bool {
    Edges::of(line, polygon).any(|edge| edge.pieces().next().is_some())
}

fn is_long(from: Point, to: Point) -> bool {
    from.distance(to) > Angle::from_radians(TOLERANCE)
}

/// The edges of a line, one after the other.
struct Edges<'e> {
    line: &'e Polyline,
    polygon: &'e SpherePolygon,
    query: CrossingEdgeQuery<'e>,
    /// The number of the next edge's end.
    next: usize,
    /// Whether the next edge begins inside.
    is_inside: bool,
}

/// An edge of a line with its cuts, of which each second one ends a piece that is inside.
struct ClippedEdge {
    from: Point,
    to: Point,
    cuts: Vec<Cut>,
}

impl<'e> Edges<'e> {
    fn of(line: &'e Polyline, polygon: &'e SpherePolygon) -> Edges<'e> {
        let is_near = line.num_vertices() > 1 && polygon.bound().intersects(line.rect_bound());
        let (next, is_inside) = match is_near {
            true => (1, polygon.contains_point(line.vertex(0))),
            false => (line.num_vertices(), false),
        };
        Edges { line, polygon, query: CrossingEdgeQuery::new(polygon.index()), next, is_inside }
    }
}

impl Iterator for Edges<'_> {
    type Item = ClippedEdge;

    fn next(&mut self) -> Option<ClippedEdge> {
        if self.next >= self.line.num_vertices() {
            return None;
        }
        let (from, to) = (self.line.vertex(self.next - 1), self.line.vertex(self.next));
        let mut cuts = cuts_of(&mut self.query, self.polygon, (from, to));
        if self.is_inside {
            cuts.push((0.0, from));
        }
        self.is_inside = cuts.len() % 2 == 1;
        if self.is_inside {
            cuts.push((1.0, to));
        }
        cuts.sort_by(|a, b| a.0.total_cmp(&b.0));
        self.next += 1;
        Some(ClippedEdge { from, to, cuts })
    }
}

impl ClippedEdge {
    /// The pieces that are inside.
    fn pieces(&self) -> impl Iterator<Item = (Point, Point)> {
        let pieces = self.cuts.chunks_exact(2).filter(|piece| piece[0] != piece[1]);
        pieces.map(|piece| (piece[0].1, piece[1].1))
    }
}

/// The cuts of an edge by the border of a polygon.
fn cuts_of(
    query: &mut CrossingEdgeQuery<'_>,
    polygon: &SpherePolygon,
    (from, to): (Point, Point),
) -> Vec<Cut> {
    let Some(shape) = polygon.index().shape(0) else { return Vec::new() };
    let crossed = query.crossings(from, to, shape, 0, CrossingType::All);
    let border = crossed.iter().filter_map(|id| usize::try_from(*id).ok()).map(|id| shape.edge(id));
    border
        .filter_map(|edge| match crossing_sign(from, to, edge.v0, edge.v1) {
            Crossing::Cross => {
                let point = intersection(from, to, edge.v0, edge.v1);
                Some((distance_fraction(point, from, to), point))
            }
            _ if !vertex_crossing(from, to, edge.v0, edge.v1) => None,
            _ if from == edge.v0 || from == edge.v1 => Some((0.0, from)),
            _ => Some((1.0, to)),
        })
        .collect()
}
