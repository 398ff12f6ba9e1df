//! The argument of `$near`, `$nearSphere` and `$geoNear`: a centre and distances.

use super::{EARTH_RADIUS_METRES, PlanePoint, StoredGeometry};

/// The surface on which distances are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// The plane; a distance is a number of its unit.
    Plane,
    /// The sphere; a distance is a number of metres.
    Metres,
    /// The sphere; a distance is an angle in radians.
    Radians,
}

/// The form in which the centre was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NearCentre {
    /// A GeoJSON point.
    GeoJson,
    /// A legacy pair.
    Legacy,
}

/// The centre and the range of distances, in the unit of the metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NearQuery {
    /// The centre.
    pub centre: PlanePoint,
    /// Its form.
    pub form: NearCentre,
    /// The metric.
    pub metric: Metric,
    /// The least distance.
    pub least: f64,
    /// The greatest distance.
    pub greatest: f64,
}

impl NearQuery {
    /// The distance of a stored geometry in the unit of the metric; `None` where it is not on the surface.
    pub fn distance(&self, stored: &StoredGeometry) -> Option<f64> {
        match self.metric {
            Metric::Plane => stored.in_plane().map(|point| self.centre.distance(point)),
            Metric::Metres | Metric::Radians => {
                let angle = stored.on_sphere()?.distance(self.centre.on_sphere());
                Some(angle * self.radius())
            }
        }
    }

    /// The radius of the sphere in the unit of the metric.
    pub fn radius(&self) -> f64 {
        match self.metric {
            Metric::Plane | Metric::Radians => 1.0,
            Metric::Metres => EARTH_RADIUS_METRES,
        }
    }

    /// The greatest distance that there can be.
    pub fn reach(&self) -> f64 {
        match self.metric {
            Metric::Plane => self.greatest,
            Metric::Metres | Metric::Radians => self.greatest.min(std::f64::consts::PI * self.radius()),
        }
    }
}
