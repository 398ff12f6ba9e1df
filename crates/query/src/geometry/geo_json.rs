//! GeoJSON: documents with a type and coordinates.

use pando_document::{RawDocument, RawValue};

use super::coordinates::{elements_of, sphere_point, sphere_points};
use super::polygon_rings::{self, Winding};
use super::sphere_shape::{Line, Part, SpherePoint, SphereShape};
use super::{GeometryFault, PlanePoint};
use crate::shell_text::{document_text, value_text};

/// The name of the CRS whose polygons lie left of their edges.
const STRICT_WINDING: &str = "urn:x-mongodb:crs:strictwinding:EPSG:4326";
/// The names of the usual CRS.
const USUAL: [&str; 2] = ["urn:ogc:def:crs:OGC:1.3:CRS84", "EPSG:4326"];

/// The type of a GeoJSON document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ShapeKind {
    Point,
    Line,
    Polygon,
    MultiPoint,
    MultiLine,
    MultiPolygon,
    Collection,
}

/// A parsed GeoJSON document.
pub(super) struct GeoJson {
    pub shape: SphereShape,
    pub winding: Winding,
    /// The coordinates of a single point.
    pub point: Option<PlanePoint>,
}

/// The coordinate reference system of a document.
pub(super) fn winding_of(document: &RawDocument) -> Result<Winding, GeometryFault> {
    let fault = |reason: &str| Err(GeometryFault::new(reason));
    let crs = match document.get("crs")? {
        None => return Ok(Winding::Smaller),
        Some(RawValue::Document(crs)) => crs,
        Some(_) => return fault("GeoJSON CRS must be an object"),
    };
    if !matches!(crs.get("type")?, Some(RawValue::String("name"))) {
        return fault("GeoJSON CRS must have field \"type\": \"name\"");
    }
    let Some(RawValue::Document(properties)) = crs.get("properties")? else {
        return fault("CRS must have field \"properties\" which is an object");
    };
    match properties.get("name")? {
        Some(RawValue::String(STRICT_WINDING)) => Ok(Winding::Strict),
        Some(RawValue::String(name)) if USUAL.contains(&name) => Ok(Winding::Smaller),
        Some(RawValue::String(name)) => Err(GeometryFault::new(format!("Unknown CRS name: {name}"))),
        _ => fault("In CRS, \"properties.name\" must be a string"),
    }
}

/// Parses a GeoJSON document.
pub(super) fn parse(document: &RawDocument) -> Result<GeoJson, GeometryFault> {
    let Some(kind) = kind_of(document)? else {
        let shown = document_text(document);
        return Err(GeometryFault::new(format!("unknown GeoJSON type: {shown}")));
    };
    let winding = winding_of(document)?;
    if winding == Winding::Strict && kind != ShapeKind::Polygon {
        return Err(GeometryFault::new("Strict winding order is only supported by polygon"));
    }
    let parts = match kind {
        ShapeKind::Collection => members_of(document)?,
        kind => parts_of(kind, document, winding)?,
    };
    let point = match parts.as_slice() {
        [Part::Point(point)] if kind == ShapeKind::Point => Some(point.coordinates()),
        _ => None,
    };
    Ok(GeoJson { shape: SphereShape::new(parts), winding, point })
}

/// The point of a GeoJSON document, which needs no type.
///
/// # Errors
/// It is none.
pub fn parse_point(document: &RawDocument) -> Result<PlanePoint, GeometryFault> {
    if winding_of(document)? == Winding::Strict {
        return Err(GeometryFault::new("Strict winding order is only supported by polygon"));
    }
    sphere_point(document.get("coordinates")?)
}

fn kind_of(document: &RawDocument) -> Result<Option<ShapeKind>, GeometryFault> {
    let Some(RawValue::String(name)) = document.get("type")? else { return Ok(None) };
    Ok(match name {
        "Point" => Some(ShapeKind::Point),
        "LineString" => Some(ShapeKind::Line),
        "Polygon" => Some(ShapeKind::Polygon),
        "MultiPoint" => Some(ShapeKind::MultiPoint),
        "MultiLineString" => Some(ShapeKind::MultiLine),
        "MultiPolygon" => Some(ShapeKind::MultiPolygon),
        "GeometryCollection" => Some(ShapeKind::Collection),
        _ => None,
    })
}

/// The parts of a shape that is no collection.
fn parts_of(kind: ShapeKind, document: &RawDocument, winding: Winding) -> Result<Vec<Part>, GeometryFault> {
    let coordinates = document.get("coordinates")?;
    let mut parts = Vec::with_capacity(1);
    match kind {
        ShapeKind::Point => parts.push(point(sphere_point(coordinates)?)),
        ShapeKind::Line => parts.push(line(coordinates)?),
        ShapeKind::Polygon => parts.push(polygon(coordinates, winding)?),
        ShapeKind::MultiPoint => {
            let points = sphere_points(coordinates)?;
            if points.is_empty() {
                return Err(GeometryFault::new("MultiPoint coordinates must have at least 1 element"));
            }
            parts.extend(points.into_iter().map(point));
        }
        ShapeKind::MultiLine => {
            for element in elements_of(coordinates, "MultiLineString coordinates")? {
                parts.push(line(Some(element?))?);
            }
        }
        ShapeKind::MultiPolygon => {
            for element in elements_of(coordinates, "MultiPolygon coordinates")? {
                parts.push(polygon(Some(element?), winding)?);
            }
        }
        ShapeKind::Collection => unreachable!("a collection has members, and they are parsed elsewhere"),
    }
    Ok(parts)
}

/// The parts of the members of a collection.
fn members_of(document: &RawDocument) -> Result<Vec<Part>, GeometryFault> {
    let mut parts = Vec::new();
    let members = elements_of(document.get("geometries")?, "GeometryCollection geometries")?;
    for (at, member) in members.iter().enumerate() {
        let RawValue::Document(member) = member? else {
            return Err(GeometryFault::new(format!("Element {at} of \"geometries\" is not an object")));
        };
        let shown = || document_text(member);
        match kind_of(member)? {
            None => return Err(GeometryFault::new(format!("Unknown GeoJSON type: {}", shown()))),
            Some(ShapeKind::Collection) => {
                return Err(GeometryFault::new(format!("GeometryCollections cannot be nested: {}", shown())));
            }
            Some(kind) => {
                let winding = winding_of(member)?;
                if winding == Winding::Strict {
                    return Err(GeometryFault::new("Strict winding order is only supported by polygon"));
                }
                parts.append(&mut parts_of(kind, member, winding)?);
            }
        }
    }
    Ok(parts)
}

fn point(coordinates: PlanePoint) -> Part {
    Part::Point(SpherePoint::new(coordinates))
}

fn line(coordinates: Option<RawValue<'_>>) -> Result<Part, GeometryFault> {
    let points = sphere_points(coordinates)?;
    let mut vertices: Vec<_> = points.into_iter().map(PlanePoint::on_sphere).collect();
    vertices.dedup();
    if vertices.len() < 2 {
        let shown = coordinates.map(value_text).unwrap_or_default();
        let reason = format!("GeoJSON LineString must have at least 2 vertices: {shown}");
        return Err(GeometryFault::new(reason));
    }
    Ok(Part::Line(Line::new(vertices)))
}

fn polygon(coordinates: Option<RawValue<'_>>, winding: Winding) -> Result<Part, GeometryFault> {
    let Some(RawValue::Array(rings)) = coordinates else {
        return Err(GeometryFault::new("Polygon coordinates must be an array"));
    };
    Ok(Part::Polygon(Box::new(polygon_rings::parse(rings, winding)?)))
}
