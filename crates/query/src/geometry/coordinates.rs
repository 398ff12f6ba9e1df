//! Coordinates: pairs of numbers in arrays or documents.

use pando_document::{Number, RawArray, RawDocument, RawValue};
use s2rst::s2::{LatLng, Point};

use super::GeometryFault;
use crate::shell_text::general_text;

/// A point of the plane.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlanePoint {
    /// The first coordinate; the longitude of a point of the sphere.
    pub x: f64,
    /// The second coordinate; the latitude.
    pub y: f64,
}

impl PlanePoint {
    /// Whether it is a longitude and a latitude.
    pub fn is_on_sphere(self) -> bool {
        self.x.abs() <= 180.0 && self.y.abs() <= 90.0
    }

    /// The point of the sphere with this longitude and latitude.
    pub(super) fn on_sphere(self) -> Point {
        LatLng::from_degrees(self.y, self.x).to_point()
    }

    /// The distance in the plane. It is infinite for points that are far enough apart.
    pub fn distance(self, other: PlanePoint) -> f64 {
        (self.x - other.x).hypot(self.y - other.y)
    }
}

/// The fields of an array or a document.
pub(super) fn fields_of(value: RawValue<'_>) -> Option<&RawDocument> {
    match value {
        RawValue::Document(document) => Some(document),
        RawValue::Array(array) => Some(array.as_document()),
        _ => None,
    }
}

/// The name of a value's type, or `missing`.
fn type_name(value: Option<RawValue<'_>>) -> &'static str {
    value.map_or("missing", |value| value.element_type().alias())
}

/// The point that the first two fields of a value are; more fields do not matter.
///
/// # Errors
/// It is no array or document, or these are no finite numbers.
pub fn plane_point(value: Option<RawValue<'_>>) -> Result<PlanePoint, GeometryFault> {
    let Some(fields) = value.and_then(fields_of) else {
        let found = type_name(value);
        return Err(GeometryFault::new(format!(
            "Point must be an array or object, instead got type {found}"
        )));
    };
    let mut numbers = [0.0; 2];
    let mut fields = fields.iter();
    for number in &mut numbers {
        let value = fields.next().transpose()?.map(|(_, value)| value);
        let Some(read) = value.and_then(Number::from_value) else {
            return Err(GeometryFault::new("Point must only contain numeric elements"));
        };
        *number = read.to_f64();
    }
    let [x, y] = numbers;
    if x.is_finite() && y.is_finite() {
        Ok(PlanePoint { x, y })
    } else {
        Err(GeometryFault::new("Point coordinates must be finite numbers"))
    }
}

/// The point of a value that has nothing besides.
pub(super) fn plane_point_alone(value: RawValue<'_>) -> Result<PlanePoint, GeometryFault> {
    let point = plane_point(Some(value))?;
    match fields_of(value) {
        Some(fields) if fields.iter().nth(2).is_some() => {
            Err(GeometryFault::new("Point must only contain two numeric elements"))
        }
        _ => Ok(point),
    }
}

/// A longitude and a latitude.
pub(super) fn sphere_point(value: Option<RawValue<'_>>) -> Result<PlanePoint, GeometryFault> {
    let point = plane_point(value)?;
    if point.is_on_sphere() {
        return Ok(point);
    }
    Err(GeometryFault::new(format!(
        "longitude/latitude is out of bounds, lng: {} lat: {}",
        general_text(point.x),
        general_text(point.y)
    )))
}

/// A list of longitudes and latitudes.
pub(super) fn sphere_points(value: Option<RawValue<'_>>) -> Result<Vec<PlanePoint>, GeometryFault> {
    let Some(RawValue::Array(array)) = value else {
        return Err(GeometryFault::new("GeoJSON coordinates must be an array of coordinates"));
    };
    let mut points = Vec::new();
    for element in array {
        match element? {
            pair @ RawValue::Array(_) => points.push(sphere_point(Some(pair))?),
            _ => return Err(GeometryFault::new("GeoJSON coordinates must be an array")),
        }
    }
    Ok(points)
}

/// The elements of an array, of which there is at least one.
pub(super) fn elements_of<'d>(
    value: Option<RawValue<'d>>,
    kind: &str,
) -> Result<&'d RawArray, GeometryFault> {
    let Some(RawValue::Array(array)) = value else {
        return Err(GeometryFault::new(format!("{kind} must be an array")));
    };
    if array.iter().next().is_none() {
        return Err(GeometryFault::new(format!("{kind} must have at least 1 element")));
    }
    Ok(array)
}
