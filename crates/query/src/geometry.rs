//! Geometry: points, lines, polygons and regions, on the sphere and in the plane.
//!
//! # Terms
//! - *Legacy pair*: a point as two numbers, in an array or a document of any names. It lies in the plane, and
//!   on the sphere as well if it is a longitude and a latitude.
//! - *GeoJSON*: a document with `type` and `coordinates`. It lies on the sphere, with geodesics as edges. A
//!   point lies in the plane, too.
//! - *Shape*: parts on the sphere ([`SphereShape`]): points, lines and polygons, one or several of them.
//! - *Region*: the argument of `$geoWithin` and `$geoIntersects` ([`Region`]).
//! - *Strict winding*: a CRS whose polygon lies left of its edges, and so may be larger than a hemisphere.
//!   All other polygons are the smaller side. It occurs in queries only.
//!
//! # Steps
//! 1. `geo_json` and `coordinates` parse values; `polygon_rings` checks the rings of polygons.
//! 2. `sphere_shape` and `plane` decide containment, intersection and distance.
//! 3. [`covering`] gives the cells of S2 for shapes and regions, [`geo_hash`] the cells of the plane: the
//!    keys of indexes, and the bounds of queries.
//!
//! # Invariants
//! - A covering has every point of its region. Bounds are re-checked by the filter, so it may have others.
//! - Parsing bounds all memory and time by the length of the document; a polygon whose edges cross is refused
//!   at its first crossing.
//!
//! # Not here
//! Predicates with exact arithmetic, cells and shape indexes: crate `s2rst`, a port of Google's S2.

mod coordinates;
pub mod covering;
pub mod geo_hash;
mod geo_json;
mod line_clip;
mod near;
mod plane;
mod polygon_rings;
mod region;
mod sphere_polygon;
mod sphere_shape;
mod stored;

pub use coordinates::{PlanePoint, plane_point};
pub use geo_json::parse_point as geo_json_point;
pub use near::{Metric, NearCentre, NearQuery};
pub use plane::{PlaneBox, PlaneCircle, PlanePolygon};
pub use region::{Region, SphereCap};
pub use sphere_shape::{EARTH_RADIUS_METRES, SphereShape};
pub use stored::{StoredGeometry, stored_geometries};

/// The reason why a value is no geometry, in MongoDB's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GeometryFault(pub String);

impl GeometryFault {
    fn new(reason: impl Into<String>) -> GeometryFault {
        GeometryFault(reason.into())
    }
}

impl From<pando_document::DocumentError> for GeometryFault {
    fn from(error: pando_document::DocumentError) -> GeometryFault {
        GeometryFault(error.to_string())
    }
}

impl std::fmt::Display for GeometryFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests;
