//! Polygons on the sphere, and their relations.
//!
//! # Terms
//! - *Oriented edge*: an edge with the inside of its polygon on the left.
//! - *Probe* of an edge with regard to another polygon: a point of the edge that is no vertex of the other.
//!   It is an end of the edge, or the middle where both ends are such vertices.
//!
//! # Relations of polygons
//! Where edges cross, the polygons intersect, and none holds the other. Otherwise each edge lies inside the
//! other polygon, outside, or on one of its edges:
//! - They intersect if an edge lies inside, or on an edge of the same orientation.
//! - One holds the other if no edge of the other lies outside or on an edge of the opposite orientation, and
//!   no edge of its own lies inside the other.
//!
//! So neighbours that share a border do not intersect, and a polygon holds itself. (The boolean operations of
//! `s2rst` 0.5 answer wrongly for some polygons with holes.)

use std::collections::HashSet;
use std::sync::OnceLock;

use s2rst::s2::crossing_edge_query::{CrossingEdgeQuery, CrossingType};
use s2rst::s2::shape_index::ShapeIndex;
use s2rst::s2::shape_index_region::ShapeIndexRegion;
use s2rst::s2::{Cell, Point, Polygon, Rect, Region, edge_distances};

/// A point by its bits; the two zeroes are one.
pub(super) type PointBits = [u64; 3];

pub(super) fn bits_of(point: Point) -> PointBits {
    [point.x(), point.y(), point.z()].map(|coordinate| (coordinate + 0.0).to_bits())
}

/// A polygon with its index of edges.
#[derive(Clone, Debug)]
pub(super) struct SpherePolygon {
    polygon: Polygon,
    border: OnceLock<Border>,
}

/// The vertices and the oriented edges, to look them up.
#[derive(Clone, Debug)]
struct Border {
    vertices: HashSet<PointBits>,
    edges: HashSet<(PointBits, PointBits)>,
}

/// Where an edge lies with regard to another polygon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Inside,
    Outside,
    OnSameEdge,
    OnOppositeEdge,
}

impl SpherePolygon {
    pub fn new(polygon: Polygon) -> SpherePolygon {
        SpherePolygon { polygon, border: OnceLock::new() }
    }

    /// The polygon by the index of its edges.
    pub fn region(&self) -> ShapeIndexRegion<'_> {
        ShapeIndexRegion::new(self.index())
    }

    /// The index of its edges.
    pub fn index(&self) -> &ShapeIndex {
        self.polygon.shape_index()
    }

    /// The least rectangle of latitudes and longitudes around it.
    pub fn bound(&self) -> Rect {
        self.polygon.rect_bound()
    }

    pub fn contains_point(&self, point: Point) -> bool {
        self.polygon.contains_point(&point)
    }

    pub fn meets_cell(&self, cell: &Cell) -> bool {
        self.region().intersects_cell(cell)
    }

    /// The angle to a point in radians: 0 within.
    pub fn distance(&self, point: Point) -> f64 {
        self.polygon.project_point(point).distance(point).radians()
    }

    /// Whether another polygon lies within.
    pub fn contains(&self, other: &SpherePolygon) -> bool {
        self.bound().intersects(other.bound())
            && !self.crosses(other)
            && other.edges().all(|edge| matches!(self.place(edge), Place::Inside | Place::OnSameEdge))
            && self.edges().all(|edge| other.place(edge) != Place::Inside)
    }

    /// Whether both have inner points in common.
    pub fn intersects(&self, other: &SpherePolygon) -> bool {
        let is_common = |place: Place| matches!(place, Place::Inside | Place::OnSameEdge);
        self.bound().intersects(other.bound())
            && (other.edges().any(|edge| is_common(self.place(edge)))
                || self.edges().any(|edge| is_common(other.place(edge)))
                || self.crosses(other))
    }

    /// The oriented edges.
    fn edges(&self) -> impl Iterator<Item = (Point, Point)> {
        self.polygon.loops().iter().flat_map(|one| {
            (0..one.num_vertices()).map(|at| (one.oriented_vertex(at), one.oriented_vertex(at + 1)))
        })
    }

    fn border(&self) -> &Border {
        self.border.get_or_init(|| Border {
            vertices: self.edges().map(|(from, _)| bits_of(from)).collect(),
            edges: self.edges().map(|(from, to)| (bits_of(from), bits_of(to))).collect(),
        })
    }

    /// Where an edge lies that crosses none of this polygon.
    fn place(&self, (from, to): (Point, Point)) -> Place {
        let is_near = self.bound().contains_point(from) || self.bound().contains_point(to);
        let middle = || edge_distances::interpolate(0.5, from, to);
        if !is_near && !self.bound().contains_point(middle()) {
            return Place::Outside;
        }
        let border = self.border();
        let (from_bits, to_bits) = (bits_of(from), bits_of(to));
        let probe = match (border.vertices.contains(&from_bits), border.vertices.contains(&to_bits)) {
            (false, _) => from,
            (true, false) => to,
            (true, true) if border.edges.contains(&(from_bits, to_bits)) => return Place::OnSameEdge,
            (true, true) if border.edges.contains(&(to_bits, from_bits)) => return Place::OnOppositeEdge,
            (true, true) => middle(),
        };
        if self.contains_point(probe) { Place::Inside } else { Place::Outside }
    }

    /// Whether edges of both cross.
    fn crosses(&self, other: &SpherePolygon) -> bool {
        let (few, many) = match self.polygon.num_vertices() < other.polygon.num_vertices() {
            true => (self, other),
            false => (other, self),
        };
        crosses(few.edges(), many.index(), CrossingType::Interior)
    }
}

/// Whether an edge crosses one of an index.
pub(super) fn crosses(
    mut edges: impl Iterator<Item = (Point, Point)>,
    index: &ShapeIndex,
    crossing: CrossingType,
) -> bool {
    let Some(shape) = index.shape(0) else { return false };
    let mut query = CrossingEdgeQuery::new(index);
    edges.any(|(from, to)| !query.crossings(from, to, shape, 0, crossing).is_empty())
}
