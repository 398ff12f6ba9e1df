//! Regions: the arguments of `$geoWithin` and `$geoIntersects`.

use pando_document::{RawDocument, RawValue};
use s2rst::s1::Angle;
use s2rst::s2::Cap;

use super::coordinates::{fields_of, plane_point_alone};
use super::plane::centre_and_radius;
use super::polygon_rings::Winding;
use super::{
    GeometryFault, PlaneBox, PlaneCircle, PlanePoint, PlanePolygon, SphereShape, StoredGeometry, geo_json,
};
use crate::shell_text::{document_text, value_text};

/// A region.
#[derive(Clone, Debug)]
pub enum Region {
    /// `$geometry`.
    Shape(SphereShape),
    /// `$box`.
    Box(PlaneBox),
    /// `$polygon`.
    Polygon(PlanePolygon),
    /// `$center`.
    Circle(PlaneCircle),
    /// `$centerSphere`.
    Cap(SphereCap),
}

/// A circle on the sphere.
#[derive(Clone, Copy, Debug)]
pub struct SphereCap {
    pub(super) cap: Cap,
}

impl SphereCap {
    /// The circle of an angle in radians around a longitude and a latitude.
    pub(super) fn new(centre: PlanePoint, radius: f64) -> SphereCap {
        let radius = radius.clamp(0.0, std::f64::consts::PI);
        let cap = if radius >= std::f64::consts::PI {
            Cap::full()
        } else {
            Cap::from_center_angle(centre.on_sphere(), Angle::from_radians(radius))
        };
        SphereCap { cap }
    }
}

impl Region {
    /// Parses the fields of `$geoWithin` or `$geoIntersects`; of several specifiers the last counts. `None`
    /// without any.
    ///
    /// # Errors
    /// In MongoDB's words, all of them with its code for bad values.
    pub fn parse(fields: &RawDocument) -> Result<Option<Region>, GeometryFault> {
        let mut region = None;
        for field in fields {
            let (name, value) = field?;
            if name == "$uniqueDocs" {
                continue;
            }
            let unknown =
                || GeometryFault::new(format!("unknown geo specifier: {name}: {}", value_text(value)));
            let argument = fields_of(value).ok_or_else(unknown)?;
            region = Some(match name {
                "$geometry" => Region::Shape(shape(value, argument)?),
                "$box" => Region::Box(PlaneBox::parse(argument)?),
                "$polygon" => Region::Polygon(PlanePolygon::parse(argument)?),
                "$center" => Region::Circle(centre_and_radius(argument)?),
                "$centerSphere" => Region::Cap(cap(argument)?),
                _ => return Err(unknown()),
            });
        }
        Ok(region)
    }

    /// Whether `$geoWithin` takes it.
    pub fn is_area(&self) -> bool {
        match self {
            Region::Shape(shape) => shape.is_area(),
            Region::Box(_) | Region::Polygon(_) | Region::Circle(_) | Region::Cap(_) => true,
        }
    }

    /// Whether `$geoIntersects` takes it.
    pub fn is_on_sphere(&self) -> bool {
        matches!(self, Region::Shape(_) | Region::Cap(_))
    }

    /// Whether a stored geometry lies within.
    pub fn contains(&self, stored: &StoredGeometry) -> bool {
        match self {
            Region::Shape(own) => stored.on_sphere().is_some_and(|shape| own.contains(&shape)),
            Region::Cap(own) => stored
                .on_sphere()
                .is_some_and(|shape| shape.parts().iter().all(|part| part.is_within(&own.cap))),
            Region::Box(own) => stored.in_plane().is_some_and(|point| own.contains(point)),
            Region::Polygon(own) => stored.in_plane().is_some_and(|point| own.contains(point)),
            Region::Circle(own) => stored.in_plane().is_some_and(|point| own.contains(point)),
        }
    }

    /// Whether a stored geometry has a point in common with it. MongoDB takes a circle here, which then meets
    /// nothing.
    pub fn intersects(&self, stored: &StoredGeometry) -> bool {
        match self {
            Region::Shape(own) => stored.on_sphere().is_some_and(|shape| own.intersects(&shape)),
            Region::Cap(_) | Region::Box(_) | Region::Polygon(_) | Region::Circle(_) => false,
        }
    }
}

/// The argument of `$geometry`.
fn shape(value: RawValue<'_>, fields: &RawDocument) -> Result<SphereShape, GeometryFault> {
    if is_legacy(value, fields)? {
        let point = plane_point_alone(value)?;
        if !point.is_on_sphere() {
            let reason = format!("can't project geometry into spherical CRS: {}", document_text(fields));
            return Err(GeometryFault::new(reason));
        }
        return Ok(SphereShape::of_point(point));
    }
    let parsed = geo_json::parse(fields)?;
    debug_assert!(parsed.winding == Winding::Smaller || parsed.shape.is_area());
    Ok(parsed.shape)
}

/// Whether a value is meant to be a legacy pair: an array, or a document whose first field is a number.
pub(super) fn is_legacy(value: RawValue<'_>, fields: &RawDocument) -> Result<bool, GeometryFault> {
    Ok(match (value, fields.iter().next().transpose()?) {
        (RawValue::Array(_), _) => true,
        (_, first) => first.is_some_and(|(_, first)| first.is_number()),
    })
}

fn cap(fields: &RawDocument) -> Result<SphereCap, GeometryFault> {
    let PlaneCircle { centre, radius } = centre_and_radius(fields)?;
    if centre.is_on_sphere() {
        return Ok(SphereCap::new(centre, radius));
    }
    Err(GeometryFault::new(format!(
        "longitude/latitude is out of bounds, lng: {} lat: {}",
        crate::shell_text::general_text(centre.x),
        crate::shell_text::general_text(centre.y)
    )))
}
