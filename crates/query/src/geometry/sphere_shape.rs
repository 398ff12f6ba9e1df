//! Shapes on the sphere: points, lines and polygons, one or several, with geodesics as edges.
//!
//! # Terms
//! - *Part*: a point, a line or a polygon. A shape of several parts holds a part if one of its own does.
//! - *Leaf cell*: the smallest cell of S2, about one centimetre wide. Shapes meet a point if they meet its
//!   cell.

use std::sync::OnceLock;

use s2rst::s2::crossing_edge_query::CrossingType;
use s2rst::s2::polyline::Polyline;
use s2rst::s2::shape_index::ShapeIndex;
use s2rst::s2::shape_index_region::ShapeIndexRegion;
use s2rst::s2::{Cap, Cell, Point, Region};

use super::sphere_polygon::{SpherePolygon, crosses};
use super::{PlanePoint, line_clip};

/// The radius of the earth in distances: 6378.1 km, as in MongoDB.
pub const EARTH_RADIUS_METRES: f64 = 6_378_100.0;

/// A shape on the sphere.
#[derive(Clone, Debug)]
pub struct SphereShape {
    parts: Vec<Part>,
}

/// A part of a shape.
#[derive(Clone, Debug)]
pub(super) enum Part {
    Point(SpherePoint),
    Line(Line),
    Polygon(Box<SpherePolygon>),
}

/// A point.
#[derive(Clone, Copy, Debug)]
pub(super) struct SpherePoint {
    coordinates: PlanePoint,
    point: Point,
}

/// A line of two vertices or more.
#[derive(Debug)]
pub(super) struct Line {
    vertices: Polyline,
    index: OnceLock<ShapeIndex>,
}

impl SphereShape {
    pub(super) fn new(parts: Vec<Part>) -> SphereShape {
        SphereShape { parts }
    }

    /// The shape of one point, which is a longitude and a latitude.
    pub(super) fn of_point(point: PlanePoint) -> SphereShape {
        SphereShape::new(vec![Part::Point(SpherePoint::new(point))])
    }

    pub(super) fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Whether it can hold others.
    pub(super) fn is_area(&self) -> bool {
        self.polygons().next().is_some()
    }

    /// Whether every part of another shape lies within a polygon of this one.
    pub(super) fn contains(&self, other: &SphereShape) -> bool {
        other.parts.iter().all(|part| self.polygons().any(|polygon| part.is_within_polygon(polygon)))
    }

    /// Whether both have a point in common.
    pub(super) fn intersects(&self, other: &SphereShape) -> bool {
        other.parts.iter().any(|part| self.parts.iter().any(|own| own.intersects(part)))
    }

    /// The angle between a point and the nearest point of the shape, in radians.
    pub(super) fn distance(&self, point: Point) -> f64 {
        self.parts.iter().map(|part| part.distance(point)).fold(f64::INFINITY, f64::min)
    }

    fn polygons(&self) -> impl Iterator<Item = &SpherePolygon> {
        self.parts.iter().filter_map(|part| match part {
            Part::Polygon(polygon) => Some(&**polygon),
            Part::Point(_) | Part::Line(_) => None,
        })
    }
}

impl Part {
    fn intersects(&self, other: &Part) -> bool {
        match (self, other) {
            (Part::Point(a), Part::Point(b)) => a.leaf_cell() == b.leaf_cell(),
            (Part::Point(point), Part::Line(line)) | (Part::Line(line), Part::Point(point)) => {
                line.region().intersects_cell(&point.leaf_cell())
            }
            (Part::Point(point), Part::Polygon(polygon)) | (Part::Polygon(polygon), Part::Point(point)) => {
                point.is_within(polygon)
            }
            (Part::Line(a), Part::Line(b)) => a.meets_line(b),
            (Part::Line(line), Part::Polygon(polygon)) | (Part::Polygon(polygon), Part::Line(line)) => {
                line.meets_polygon(polygon)
            }
            (Part::Polygon(a), Part::Polygon(b)) => a.intersects(b),
        }
    }

    fn distance(&self, point: Point) -> f64 {
        match self {
            Part::Point(own) => own.point.distance(point).radians(),
            Part::Line(line) => line.vertices.project(point).0.distance(point).radians(),
            Part::Polygon(polygon) => polygon.distance(point),
        }
    }

    fn is_within_polygon(&self, polygon: &SpherePolygon) -> bool {
        match self {
            Part::Point(point) => point.is_within(polygon),
            Part::Line(line) => line.is_within(polygon),
            Part::Polygon(own) => polygon.contains(own),
        }
    }

    /// Whether it lies within a circle.
    pub(super) fn is_within(&self, cap: &Cap) -> bool {
        if let Part::Point(point) = self {
            return cap.contains_point(&point.point);
        }
        if cap.is_full() {
            return true;
        }
        let outside = cap.complement();
        self.distance(outside.center()) >= outside.angle_radius().radians()
    }
}

impl SpherePoint {
    pub fn new(coordinates: PlanePoint) -> SpherePoint {
        SpherePoint { coordinates, point: coordinates.on_sphere() }
    }

    pub fn coordinates(self) -> PlanePoint {
        self.coordinates
    }

    pub fn point(self) -> Point {
        self.point
    }

    /// Whether it lies in a polygon. Its border counts: MongoDB takes a point whose leaf cell meets it.
    fn is_within(self, polygon: &SpherePolygon) -> bool {
        polygon.contains_point(self.point) || polygon.meets_cell(&self.leaf_cell())
    }

    fn leaf_cell(self) -> Cell {
        Cell::from_point(self.point)
    }
}

impl Clone for Line {
    fn clone(&self) -> Line {
        Line { vertices: self.vertices.clone(), index: OnceLock::new() }
    }
}

impl Line {
    pub fn new(vertices: Vec<Point>) -> Line {
        Line { vertices: Polyline::new(vertices), index: OnceLock::new() }
    }

    fn index(&self) -> &ShapeIndex {
        self.index.get_or_init(|| {
            let mut index = ShapeIndex::new();
            index.add(Box::new(self.vertices.clone()));
            index.build();
            index
        })
    }

    /// The line by the index of its edges.
    pub fn region(&self) -> ShapeIndexRegion<'_> {
        ShapeIndexRegion::new(self.index())
    }

    fn edges(&self) -> impl Iterator<Item = (Point, Point)> {
        (1..self.vertices.num_vertices()).map(|at| (self.vertices.vertex(at - 1), self.vertices.vertex(at)))
    }

    fn meets_line(&self, other: &Line) -> bool {
        /// So many pairs of edges are compared without an index.
        const PAIRS_FEW: usize = 4096;
        let pairs = self.vertices.num_vertices().saturating_mul(other.vertices.num_vertices());
        if pairs <= PAIRS_FEW {
            return self.vertices.intersects(&other.vertices);
        }
        crosses(other.edges(), self.index(), CrossingType::All)
    }

    fn is_within(&self, polygon: &SpherePolygon) -> bool {
        line_clip::is_within(&self.vertices, polygon)
    }

    fn meets_polygon(&self, polygon: &SpherePolygon) -> bool {
        line_clip::meets(&self.vertices, polygon)
    }
}
