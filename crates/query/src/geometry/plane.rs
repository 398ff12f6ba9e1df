//! Regions of the plane: boxes, polygons and circles. They hold points; nothing else lies in the plane.

use super::coordinates::{PlanePoint, plane_point};
use super::{GeometryFault, coordinates};
use pando_document::{Number, RawDocument, RawValue};

/// A box with its edges.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlaneBox {
    /// The corner of the least coordinates.
    pub least: PlanePoint,
    /// The corner of the greatest coordinates.
    pub greatest: PlanePoint,
}

/// A polygon of three points or more.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanePolygon {
    points: Vec<PlanePoint>,
}

/// A circle with its edge.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlaneCircle {
    /// Its centre.
    pub centre: PlanePoint,
    /// Its radius, not negative.
    pub radius: f64,
}

impl PlaneBox {
    /// The box of two corners, in any order.
    pub fn of_corners(a: PlanePoint, b: PlanePoint) -> PlaneBox {
        PlaneBox {
            least: PlanePoint { x: a.x.min(b.x), y: a.y.min(b.y) },
            greatest: PlanePoint { x: a.x.max(b.x), y: a.y.max(b.y) },
        }
    }

    pub(super) fn parse(corners: &RawDocument) -> Result<PlaneBox, GeometryFault> {
        let mut corners = corners.iter();
        let mut corner = || plane_point(corners.next().transpose()?.map(|(_, value)| value));
        Ok(PlaneBox::of_corners(corner()?, corner()?))
    }

    /// Whether a point lies within or on an edge.
    pub fn contains(&self, point: PlanePoint) -> bool {
        self.least.x <= point.x
            && point.x <= self.greatest.x
            && self.least.y <= point.y
            && point.y <= self.greatest.y
    }

    /// Whether both have a point in common.
    pub fn intersects(&self, other: &PlaneBox) -> bool {
        self.least.x <= other.greatest.x
            && other.least.x <= self.greatest.x
            && self.least.y <= other.greatest.y
            && other.least.y <= self.greatest.y
    }

    /// Whether another box lies within.
    pub fn contains_box(&self, other: &PlaneBox) -> bool {
        self.contains(other.least) && self.contains(other.greatest)
    }

    /// Whether an edge may have a point in the box: it has one if no side of the box, and no side of the
    /// edge, has all of the other.
    fn may_meet_edge(&self, from: PlanePoint, to: PlanePoint) -> bool {
        if !self.intersects(&PlaneBox::of_corners(from, to)) {
            return false;
        }
        let side = |x: f64, y: f64| (to.x - from.x) * (y - from.y) - (to.y - from.y) * (x - from.x);
        let sides = [
            side(self.least.x, self.least.y),
            side(self.least.x, self.greatest.y),
            side(self.greatest.x, self.least.y),
            side(self.greatest.x, self.greatest.y),
        ];
        !sides.iter().all(|side| *side > 0.0) && !sides.iter().all(|side| *side < 0.0)
    }

    /// The distance of a point from the box: 0 within.
    pub fn distance(&self, point: PlanePoint) -> f64 {
        let x = (self.least.x - point.x).max(point.x - self.greatest.x).max(0.0);
        let y = (self.least.y - point.y).max(point.y - self.greatest.y).max(0.0);
        x.hypot(y)
    }
}

impl PlanePolygon {
    pub(super) fn parse(points: &RawDocument) -> Result<PlanePolygon, GeometryFault> {
        let points: Vec<PlanePoint> =
            points.iter().map(|field| plane_point(Some(field?.1))).collect::<Result<_, GeometryFault>>()?;
        if points.len() < 3 {
            return Err(GeometryFault::new("Polygon must have at least 3 points"));
        }
        Ok(PlanePolygon { points })
    }

    /// The smallest box around it.
    pub fn bounds(&self) -> PlaneBox {
        let mut bounds = PlaneBox { least: self.points[0], greatest: self.points[0] };
        for point in &self.points {
            bounds.least = PlanePoint { x: bounds.least.x.min(point.x), y: bounds.least.y.min(point.y) };
            bounds.greatest =
                PlanePoint { x: bounds.greatest.x.max(point.x), y: bounds.greatest.y.max(point.y) };
        }
        bounds
    }

    /// Whether it may have a point in common with a box: no for most boxes that have none.
    pub fn may_meet(&self, cell: &PlaneBox) -> bool {
        let ends = self.points.iter().skip(1).chain(self.points.first());
        self.points.iter().zip(ends).any(|(from, to)| cell.may_meet_edge(*from, *to))
            || self.contains(cell.least)
    }

    /// Whether a point lies within or on an edge: a ray to the right crosses an odd number of edges.
    pub fn contains(&self, point: PlanePoint) -> bool {
        let mut is_inside = false;
        let ends = self.points.iter().skip(1).chain(self.points.first());
        for (from, to) in self.points.iter().zip(ends) {
            let is_at_height = from.y.min(to.y) <= point.y && point.y <= from.y.max(to.y);
            if !is_at_height {
                continue;
            }
            if from.y == to.y {
                if from.x.min(to.x) <= point.x && point.x <= from.x.max(to.x) {
                    return true;
                }
                continue;
            }
            let crossing = from.x + (point.y - from.y) * (to.x - from.x) / (to.y - from.y);
            if point.x == crossing {
                return true;
            }
            // The lower end of an edge belongs to it, the upper does not.
            let is_crossed = (from.y > point.y) != (to.y > point.y);
            if is_crossed && point.x < crossing {
                is_inside = !is_inside;
            }
        }
        is_inside
    }
}

impl PlaneCircle {
    /// Whether a point lies within or on the edge.
    pub fn contains(&self, point: PlanePoint) -> bool {
        self.centre.distance(point) <= self.radius
    }

    /// The smallest box around it.
    pub fn bounds(&self) -> PlaneBox {
        let PlaneCircle { centre, radius } = *self;
        PlaneBox {
            least: PlanePoint { x: centre.x - radius, y: centre.y - radius },
            greatest: PlanePoint { x: centre.x + radius, y: centre.y + radius },
        }
    }
}

/// The centre and the radius of a circle, in the plane or on the sphere.
pub(super) fn centre_and_radius(fields: &RawDocument) -> Result<PlaneCircle, GeometryFault> {
    let mut fields = fields.iter();
    let mut field = || -> Result<Option<RawValue<'_>>, GeometryFault> {
        Ok(fields.next().transpose()?.map(|(_, value)| value))
    };
    let centre = coordinates::plane_point(field()?)?;
    let radius = field()?.and_then(Number::from_value).map(Number::to_f64);
    let Some(radius) = radius.filter(|radius| *radius >= 0.0) else {
        return Err(GeometryFault::new("radius must be a non-negative number"));
    };
    if field()?.is_some() {
        return Err(GeometryFault::new("Only 2 fields allowed for circular region"));
    }
    Ok(PlaneCircle { centre, radius })
}
