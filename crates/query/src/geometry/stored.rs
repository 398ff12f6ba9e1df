//! Geometries of documents.

use std::borrow::Cow;

use pando_document::RawValue;

use super::coordinates::{fields_of, plane_point};
use super::polygon_rings::Winding;
use super::region::is_legacy;
use super::{GeometryFault, PlanePoint, SphereShape, geo_json};
use crate::shell_text::value_text;

/// The geometry of a document's value.
#[derive(Clone, Debug)]
pub enum StoredGeometry {
    /// A legacy pair.
    Legacy(PlanePoint),
    /// GeoJSON; a single point lies in the plane as well.
    GeoJson {
        /// The shape.
        shape: SphereShape,
        /// The coordinates of a single point.
        point: Option<PlanePoint>,
    },
    /// A polygon with strict winding, which no query finds and no index holds.
    StrictWinding,
}

impl StoredGeometry {
    /// Parses a value. `name` is its name in messages.
    ///
    /// # Errors
    /// It is no geometry.
    pub fn parse(name: &str, value: RawValue<'_>) -> Result<StoredGeometry, GeometryFault> {
        let Some(fields) = fields_of(value) else {
            return Err(GeometryFault::new(format!(
                "geo element must be an array or object: {name}: {}",
                value_text(value)
            )));
        };
        if is_legacy(value, fields)? {
            return plane_point(Some(value)).map(StoredGeometry::Legacy);
        }
        let parsed = geo_json::parse(fields)?;
        Ok(match parsed.winding {
            Winding::Strict => StoredGeometry::StrictWinding,
            Winding::Smaller => StoredGeometry::GeoJson { shape: parsed.shape, point: parsed.point },
        })
    }

    /// The shape on the sphere, where there is one.
    pub fn on_sphere(&self) -> Option<Cow<'_, SphereShape>> {
        match self {
            StoredGeometry::Legacy(point) if point.is_on_sphere() => {
                Some(Cow::Owned(SphereShape::of_point(*point)))
            }
            StoredGeometry::GeoJson { shape, .. } => Some(Cow::Borrowed(shape)),
            StoredGeometry::Legacy(_) | StoredGeometry::StrictWinding => None,
        }
    }

    /// The point in the plane, where there is one.
    pub fn in_plane(&self) -> Option<PlanePoint> {
        match self {
            StoredGeometry::Legacy(point) => Some(*point),
            StoredGeometry::GeoJson { point, .. } => *point,
            StoredGeometry::StrictWinding => None,
        }
    }
}

/// The geometries of a value: its own, or those of an array's elements. Values that are none are left out.
pub fn stored_geometries<'d>(
    value: RawValue<'d>,
    give: &mut dyn FnMut(RawValue<'d>, StoredGeometry),
) -> Result<(), GeometryFault> {
    if let Ok(geometry) = StoredGeometry::parse("", value) {
        give(value, geometry);
        return Ok(());
    }
    if let RawValue::Array(array) = value {
        for element in array {
            let element = element?;
            if let Ok(geometry) = StoredGeometry::parse("", element) {
                give(element, geometry);
            }
        }
    }
    Ok(())
}
