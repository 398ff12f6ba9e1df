//! Geometry of strangers: parsing and the relations of shapes never panic, and a shape that a region finds
//! has a key in the ranges of that region.
//!
//! Coordinates come from a coarse grid, so that shapes often share vertices and edges, touch the poles and
//! cross the antimeridian.

use arbitrary::Arbitrary;
use pando_document::{Document, RawValue, Value, doc};
use pando_query::geometry::covering::{CellLevels, keys_of, ranges_of_region, ranges_of_ring};
use pando_query::geometry::{Metric, NearCentre, NearQuery, PlanePoint, Region, StoredGeometry};

/// Chance makes as good decisions as any.
pub fn examples() -> Vec<Vec<u8>> {
    crate::targets::by_chance()
}

/// A drawn shape.
#[derive(Arbitrary, Clone, Debug)]
pub struct Drawn {
    kind: u8,
    is_strict: bool,
    rings: Vec<Vec<(i8, i8)>>,
}

/// The grown input.
pub type Input = (Drawn, Drawn, (i8, i8));

fn pair(point: &(i8, i8)) -> (f64, f64) {
    (f64::from(point.0 / 8) * 12.0, f64::from(point.1 / 8) * 6.0)
}

fn coordinates(point: &(i8, i8)) -> Value {
    let (x, y) = pair(point);
    Value::Array(vec![Value::Double(x), Value::Double(y)])
}

impl Drawn {
    fn document(&self) -> Document {
        let line = |ring: &Vec<(i8, i8)>| Value::Array(ring.iter().take(12).map(coordinates).collect());
        let closed = |ring: &Vec<(i8, i8)>| {
            Value::Array(ring.iter().take(12).chain(ring.first()).map(coordinates).collect())
        };
        let rings = || self.rings.iter().take(3);
        let first = || self.rings.first().cloned().unwrap_or_default();
        let (kind, coordinates) = match self.kind % 6 {
            0 => ("Point", first().first().map_or(Value::Null, coordinates)),
            1 => ("LineString", line(&first())),
            2 => ("Polygon", Value::Array(rings().map(closed).collect())),
            3 => ("MultiPoint", line(&first())),
            4 => ("MultiLineString", Value::Array(rings().map(line).collect())),
            _ => {
                ("MultiPolygon", Value::Array(rings().map(|ring| Value::Array(vec![closed(ring)])).collect()))
            }
        };
        let mut document = doc! { "type": kind, "coordinates": (coordinates) };
        if self.is_strict {
            let name = "urn:x-mongodb:crs:strictwinding:EPSG:4326";
            document.push("crs", doc! { "type": "name", "properties": { "name": name } });
        }
        document
    }
}

/// See the module.
pub fn run(input: Input) {
    let (stored, wanted, centre) = &input;
    let stored = stored.document().to_raw();
    let region = Region::parse(&doc! { "$geometry": (wanted.document()) }.to_raw());
    let Ok(stored) = StoredGeometry::parse("l", RawValue::Document(&stored)) else { return };
    let Some(shape) = stored.on_sphere() else { return };
    let (x, y) = pair(centre);
    let near = NearQuery {
        centre: PlanePoint { x, y },
        form: NearCentre::Legacy,
        metric: Metric::Radians,
        least: 0.0,
        greatest: f64::MAX,
    };
    let distance = near.distance(&stored).filter(|_| near.centre.is_on_sphere());
    for levels in [CellLevels::default(), CellLevels::new(3, 8).expect("the levels are in order")] {
        let keys = keys_of(&shape, levels);
        assert!(!keys.is_empty());
        let is_met = |ranges: &[(i64, i64)]| {
            keys.iter().any(|key| ranges.iter().any(|(first, last)| (*first..=*last).contains(key)))
        };
        if let Ok(Some(region)) = &region {
            let ranges = ranges_of_region(region, levels).expect("a shape lies on the sphere");
            let is_found = region.contains(&stored) || region.intersects(&stored);
            assert!(!is_found || is_met(&ranges), "the index does not find it");
        }
        if let Some(distance) = distance {
            let ranges = ranges_of_ring(near.centre, (distance - 1e-6).max(0.0), distance + 1e-6, levels);
            assert!(is_met(&ranges), "no ring finds it at {distance}");
        }
    }
}
