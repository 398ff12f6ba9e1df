//! Indexes of geometries, `2dsphere` and `2d`: the keys of a document, and the ranges of keys for a region.
//!
//! # Terms
//! - *Geometry part*: the part of a key that stands for a geometry: the number of a cell on the sphere, or
//!   the hash of a place in the plane, as a 64-bit number.
//!
//! # Keys of a document
//! 1. A field with geometries gives the cells of all of them ([`covering`](crate::geometry::covering),
//!    [`geo_hash`](crate::geometry::geo_hash)). Arrays on the way to the field are gone through; at its end a
//!    `2dsphere` index takes no array of geometries, while a `2d` index takes an array of pairs.
//! 2. A document without geometry has no key.
//! 3. Any other field gives its value, or the elements of its array, or null.
//! 4. The keys are all combinations of these.
//!
//! # Invariants
//! - A document that a filter finds by a geometry at the field has a key in the ranges of the filter's
//!   region.
//! - A field that met an array is flagged at all components of its path. So is a geometry with several cells.

use pando_catalog::index_keys::{GeneratedKeys, IndexKey};
use pando_catalog::index_kind::{KeyGenerator, KeysWithoutArrays};
use pando_catalog::{FieldKind, GeometryFault, IndexDescription, Multikey, WriteError};
use pando_collation::TextOrder;
use pando_document::{Number, RawDocument, RawValue};
use pando_keyorder::{Direction, TypeBits};

use crate::QueryError;
use crate::geometry::covering::{self, CellLevels};
use crate::geometry::geo_hash::HashGrid;
use crate::geometry::{Metric, NearQuery, PlanePoint, Region, StoredGeometry};
use crate::path::{Leaves, Path};
use crate::shell_text::document_text;

/// Bytes of the keys of one document, at most.
const KEY_BYTES_MAX: usize = 64 << 20;

/// The cells of an index, from its specification.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum GeoCells {
    /// Of a `2dsphere` index.
    Sphere(CellLevels),
    /// Of a `2d` index.
    Plane(HashGrid),
}

impl GeoCells {
    /// The cells of an index of geometries; `None` for another one.
    ///
    /// # Errors
    /// Its options are out of range.
    pub fn of_specification(specification: &RawDocument) -> Result<Option<GeoCells>, String> {
        let Ok(Some(RawValue::Document(pattern))) = specification.get("key") else { return Ok(None) };
        let has = |kind: &str| {
            pattern.iter().flatten().any(|(_, order)| matches!(order, RawValue::String(own) if own == kind))
        };
        let number = |name: &str, usual: f64| match specification.get(name) {
            Ok(Some(value)) => Number::from_value(value).map_or(usual, Number::to_f64),
            _ => usual,
        };
        if has("2dsphere") {
            let levels = CellLevels::new(
                number("coarsestIndexedLevel", 0.0) as i64,
                number("finestIndexedLevel", 23.0) as i64,
            );
            let levels = levels.ok_or("the levels of the cells are out of range")?;
            return Ok(Some(GeoCells::Sphere(levels)));
        }
        if has("2d") {
            let grid =
                HashGrid::new(number("bits", 26.0) as i64, number("min", -180.0), number("max", 180.0));
            return Ok(Some(GeoCells::Plane(grid.ok_or("the grid of the index is out of range")?)));
        }
        Ok(None)
    }

    /// The ranges of geometry parts for a region, both ends included; `None` where the index does not serve
    /// it.
    pub fn ranges_of_region(&self, region: &Region) -> Option<Vec<(i64, i64)>> {
        match self {
            GeoCells::Sphere(levels) => covering::ranges_of_region(region, *levels),
            GeoCells::Plane(grid) => grid.ranges_of_region(region),
        }
    }

    /// Whether the index serves a region: a `2dsphere` index those on the sphere, a `2d` index all others.
    pub fn can_serve(&self, region: &Region) -> bool {
        match (self, region) {
            (GeoCells::Sphere(_), Region::Shape(_) | Region::Cap(_)) => true,
            (
                GeoCells::Plane(_),
                Region::Box(_) | Region::Polygon(_) | Region::Circle(_) | Region::Cap(_),
            ) => true,
            (GeoCells::Sphere(_), _) | (GeoCells::Plane(_), _) => false,
        }
    }

    /// The ranges of the places between two distances from a centre, in the unit of its metric.
    pub fn ranges_of_ring(&self, near: &NearQuery, inner: f64, outer: f64) -> Vec<(i64, i64)> {
        match self {
            GeoCells::Sphere(levels) => {
                covering::ranges_of_ring(near.centre, inner / near.radius(), outer / near.radius(), *levels)
            }
            GeoCells::Plane(grid) => grid.ranges_of_ring(near, inner, outer),
        }
    }

    /// The least and the greatest distance of the places of a geometry part from a centre on the sphere.
    pub fn distances(&self, near: &NearQuery, part: i64) -> Option<(f64, f64)> {
        match (self, near.metric) {
            (GeoCells::Sphere(_), Metric::Metres | Metric::Radians) => {
                let (least, greatest) = covering::angles_of_cell(near.centre, part)?;
                Some((least * near.radius(), greatest * near.radius()))
            }
            (GeoCells::Sphere(_) | GeoCells::Plane(_), _) => None,
        }
    }

    /// The range of the places in the cell of a level around a centre on the sphere.
    pub fn range_around(&self, near: &NearQuery, level: u8) -> Option<(i64, i64)> {
        match self {
            GeoCells::Sphere(levels) => Some(covering::range_around(near.centre, level, *levels)),
            GeoCells::Plane(_) => None,
        }
    }

    /// The share of all geometry parts that ranges hold.
    pub fn share_of(&self, ranges: &[(i64, i64)]) -> f64 {
        /// Cells of the six faces of the cube.
        const SPHERE: f64 = 6.0 * (1_u64 << 61) as f64;
        const PLANE: f64 = u64::MAX as f64;
        let held: f64 = ranges.iter().map(|(first, last)| *last as f64 - *first as f64).sum();
        held / if matches!(self, GeoCells::Sphere(_)) { SPHERE } else { PLANE }
    }
}

/// The generator of the keys of an index of geometries.
#[derive(Debug)]
pub(crate) struct GeoKeys {
    /// The name of the index.
    index: String,
    cells: GeoCells,
    fields: Vec<(Path, FieldKind)>,
    directions: Vec<Direction>,
    order: TextOrder,
}

/// A part of a key.
#[derive(Clone, Copy)]
enum KeyPart<'d> {
    Geometry(i64),
    Value(RawValue<'d>),
    EmptyArray,
}

/// The parts that a document has for a field.
struct FieldParts<'d> {
    parts: Vec<KeyPart<'d>>,
    multikey: Multikey,
    has_geometry: bool,
}

impl GeoKeys {
    /// The generator of an index of geometries.
    pub fn new(description: &IndexDescription, cells: GeoCells) -> GeoKeys {
        let fields = &description.fields;
        GeoKeys {
            index: description.name.clone(),
            cells,
            fields: fields.iter().map(|field| (Path::new(&field.path), field.kind)).collect(),
            directions: fields.iter().map(|field| field.direction).collect(),
            order: description.text_order.clone(),
        }
    }

    fn parts_of<'d>(
        &self,
        path: &Path,
        kind: FieldKind,
        document: &'d RawDocument,
    ) -> Result<FieldParts<'d>, WriteError> {
        let mut values = Vec::with_capacity(1);
        let mut met_array = false;
        path.any(document, Leaves::Whole, &mut |leaf| {
            met_array |= leaf.outermost_index.is_some();
            values.extend(leaf.value);
            Ok(false)
        })
        .map_err(of_query)?;
        let mut parts = Vec::with_capacity(1);
        match kind {
            FieldKind::Sphere => self.add_sphere(path, &values, document, &mut parts)?,
            FieldKind::Plane => self.add_plane(&values, document, &mut parts)?,
            _ => {
                for value in values {
                    let RawValue::Array(array) = value else {
                        parts.push(KeyPart::Value(value));
                        continue;
                    };
                    met_array = true;
                    let before = parts.len();
                    for element in array {
                        parts.push(KeyPart::Value(element?));
                    }
                    if parts.len() == before {
                        parts.push(KeyPart::EmptyArray);
                    }
                }
            }
        }
        let has_geometry = kind.is_geometry() && !parts.is_empty();
        if parts.is_empty() {
            parts.push(KeyPart::Value(RawValue::Null));
        }
        let is_multikey = met_array || (kind.is_geometry() && parts.len() > 1);
        let multikey = if is_multikey { Multikey::anywhere(path.as_str()) } else { Multikey::NO };
        Ok(FieldParts { parts, multikey, has_geometry })
    }

    fn add_sphere(
        &self,
        path: &Path,
        values: &[RawValue<'_>],
        document: &RawDocument,
        parts: &mut Vec<KeyPart<'_>>,
    ) -> Result<(), WriteError> {
        let GeoCells::Sphere(levels) = self.cells else { return Ok(()) };
        if let [only] = values
            && is_none(*only)
        {
            return Ok(());
        }
        let refused = |reason: &str| {
            let shown = document_text(document);
            let reason = format!("Can't extract geo keys: {shown}  {reason}");
            WriteError::Geometry { fault: GeometryFault::NotOnSphere, reason }
        };
        let name = path.component(path.len() - 1);
        for value in values {
            let stored = StoredGeometry::parse(name, *value).map_err(|fault| refused(&fault.0))?;
            let Some(shape) = stored.on_sphere() else {
                return Err(refused(&match stored {
                    StoredGeometry::StrictWinding => {
                        "can't index geometry with strict winding order".to_owned()
                    }
                    _ => {
                        let shown = crate::shell_text::value_text(*value);
                        format!("can't project geometry into spherical CRS: {shown}")
                    }
                }));
            };
            parts.extend(covering::keys_of(&shape, levels).into_iter().map(KeyPart::Geometry));
        }
        Ok(())
    }

    fn add_plane(
        &self,
        values: &[RawValue<'_>],
        document: &RawDocument,
        parts: &mut Vec<KeyPart<'_>>,
    ) -> Result<(), WriteError> {
        for value in values {
            let Some(fields) = fields_of(*value) else { continue };
            let Some(first) = fields.iter().next().transpose()? else { continue };
            if first.1.is_number() {
                parts.push(self.hash_of(fields, document)?);
                continue;
            }
            for element in fields {
                let Some(pair) = fields_of(element?.1) else {
                    let reason = "location object expected, location array not in correct format";
                    let fault = GeometryFault::NoListOfPairs;
                    return Err(WriteError::Geometry { fault, reason: reason.to_owned() });
                };
                if !pair.is_empty() {
                    parts.push(self.hash_of(pair, document)?);
                }
            }
        }
        Ok(())
    }

    /// The hash of a pair of numbers.
    fn hash_of<'d>(&self, pair: &RawDocument, document: &RawDocument) -> Result<KeyPart<'d>, WriteError> {
        let GeoCells::Plane(grid) = &self.cells else { return Ok(KeyPart::Value(RawValue::Null)) };
        let refused = |fault, reason: &str| {
            let reason = format!("{reason} :: caused by :: {}", document_text(document));
            Err(WriteError::Geometry { fault, reason })
        };
        let mut coordinates = pair.iter();
        let mut next = || coordinates.next().transpose().map(|field| field.map(|(_, value)| value));
        let (Some(x), Some(y)) = (next()?, next()?) else {
            return refused(GeometryFault::OneCoordinate, "geo field only has 1 element");
        };
        let (Some(x), Some(y)) = (Number::from_value(x), Number::from_value(y)) else {
            let reason = "geo values must be 'legacy coordinate pairs' for 2d indexes";
            return refused(GeometryFault::NoPair, reason);
        };
        match grid.hash(PlanePoint { x: x.to_f64(), y: y.to_f64() }) {
            Some(hash) => Ok(KeyPart::Geometry(hash)),
            None => {
                let reason = format!("point not in interval of {}", grid.bounds_text());
                refused(GeometryFault::OutOfBounds, &reason)
            }
        }
    }

    /// The keys of all combinations of parts.
    fn combined(&self, fields: &[FieldParts<'_>]) -> Result<Vec<IndexKey>, WriteError> {
        let mut places = vec![0; fields.len()];
        let (mut keys, mut bytes) = (Vec::new(), 0);
        loop {
            let key = self.key_at(fields, &places);
            bytes += key.fields.len() + key.type_bits.len() + size_of::<IndexKey>();
            if bytes > KEY_BYTES_MAX {
                return Err(WriteError::KeysTooLarge { index: self.index.clone(), bytes_max: KEY_BYTES_MAX });
            }
            keys.push(key);
            let Some(at) = (0..fields.len()).rev().find(|at| places[*at] + 1 < fields[*at].parts.len())
            else {
                break;
            };
            places[at] += 1;
            places[at + 1..].fill(0);
        }
        keys.sort_unstable();
        keys.dedup_by(|a, b| a.fields == b.fields);
        Ok(keys)
    }

    fn key_at(&self, fields: &[FieldParts<'_>], places: &[usize]) -> IndexKey {
        let (mut bytes, mut type_bits) = (Vec::with_capacity(16), TypeBits::new());
        for ((field, place), direction) in fields.iter().zip(places).zip(&self.directions) {
            let value = match field.parts[*place] {
                KeyPart::Geometry(number) => RawValue::Int64(number),
                KeyPart::Value(value) => value,
                KeyPart::EmptyArray => {
                    pando_keyorder::encode_empty_array(*direction, &mut bytes);
                    continue;
                }
            };
            self.order.encode(value, *direction, &mut bytes, &mut type_bits);
        }
        IndexKey { fields: bytes, type_bits: type_bits.as_bytes().to_vec() }
    }
}

/// Whether a value is none: null, or without fields.
fn is_none(value: RawValue<'_>) -> bool {
    matches!(value, RawValue::Null | RawValue::Undefined)
        || fields_of(value).is_some_and(|fields| fields.is_empty())
}

fn fields_of(value: RawValue<'_>) -> Option<&RawDocument> {
    match value {
        RawValue::Document(document) => Some(document),
        RawValue::Array(array) => Some(array.as_document()),
        _ => None,
    }
}

fn of_query(error: QueryError) -> WriteError {
    match error {
        QueryError::Storage(error) => WriteError::Storage(error),
        QueryError::Refused { message, .. } => {
            WriteError::Geometry { fault: GeometryFault::NotOnSphere, reason: message }
        }
    }
}

impl KeyGenerator for GeoKeys {
    fn keys(&self, document: &RawDocument) -> Result<GeneratedKeys, WriteError> {
        let mut fields = Vec::with_capacity(self.fields.len());
        for (path, kind) in &self.fields {
            fields.push(self.parts_of(path, *kind, document)?);
        }
        if !fields.iter().any(|field| field.has_geometry) {
            return Ok(GeneratedKeys::default());
        }
        let is_multikey = fields.iter().any(|field| field.multikey.has_arrays());
        let multikey = match is_multikey {
            true => fields.iter().map(|field| field.multikey).collect(),
            false => Vec::new(),
        };
        Ok(GeneratedKeys { keys: self.combined(&fields)?, multikey })
    }

    fn directions(&self) -> &[Direction] {
        &self.directions
    }

    fn without_arrays(&self) -> KeysWithoutArrays {
        KeysWithoutArrays::Any
    }
}

#[cfg(test)]
mod tests;
