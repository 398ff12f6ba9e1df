//! `$near`, `$nearSphere` and `$geoNear`: documents in the order of their distances from a point.
//!
//! The test itself holds for every leaf. The planner finds the documents by an index, in their order, and
//! only those between the least and the greatest distance; without an index there is no plan.

use std::sync::Arc;

use pando_document::{Document, Number, RawDocument, RawValue};

use super::geo::bad_value;
use super::{FilterFault, Node, Test};
use crate::QueryError;
use crate::geometry::{Metric, NearCentre, NearQuery, PlanePoint, geo_json_point, plane_point};
use crate::path::Path;
use crate::shell_text::{document_text, value_text};

/// The parsed operator.
#[derive(Clone, Debug)]
pub struct NearTest {
    /// The centre and the distances.
    pub query: NearQuery,
    /// The operators as they were written.
    text: Arc<Document>,
}

impl NearTest {
    /// The operators as they were written.
    pub(super) fn to_document(&self) -> Document {
        Document::clone(&self.text)
    }
}

/// A point and distances as they are read.
struct Reading {
    centre: Option<(PlanePoint, NearCentre)>,
    is_sphere: bool,
    least: f64,
    greatest: f64,
}

impl Default for Reading {
    fn default() -> Reading {
        Reading { centre: None, is_sphere: false, least: 0.0, greatest: f64::MAX }
    }
}

/// Parses all operators of a path, `$near` or its kin among them.
pub(super) fn parse(path: &Path, operators: &RawDocument) -> Result<Node, QueryError> {
    let first = operators.iter().next().transpose()?;
    let Some((_, argument)) = first.filter(|(name, value)| {
        matches!(*name, "$near" | "$nearSphere" | "$geoNear")
            && matches!(value, RawValue::Document(_) | RawValue::Array(_))
    }) else {
        let reason = format!("near must be first in: {}", document_text(operators));
        return Err(QueryError::bad_value(reason));
    };
    let mut reading = Reading::default();
    read_legacy(operators, &mut reading)?;
    if reading.centre.is_none() {
        reading = Reading::default();
        if let Some(extra) = operators.iter().nth(1) {
            let (name, value) = extra?;
            let value = value_text(value);
            return Err(QueryError::bad_value(format!(
                "geo near accepts just one argument when querying for a GeoJSON point. Extra field found: {name}: {value}"
            )));
        }
        read_fields(argument, &mut reading)?;
    }
    let Some((centre, form)) = reading.centre else {
        return Err(QueryError::bad_value("$geometry is required for geo near query"));
    };
    let metric = match (form, reading.is_sphere) {
        (NearCentre::GeoJson, _) => Metric::Metres,
        (NearCentre::Legacy, true) => Metric::Radians,
        (NearCentre::Legacy, false) => Metric::Plane,
    };
    if metric == Metric::Radians && !centre.is_on_sphere() {
        return Err(QueryError::bad_value("Legacy point is out of bounds for spherical query"));
    }
    let query = NearQuery { centre, form, metric, least: reading.least, greatest: reading.greatest };
    let text = Arc::new(Document::from_raw(operators)?);
    Ok(Node::field(path, Test::Near(NearTest { query, text })))
}

/// A point as the value of the operator, and distances beside it.
fn read_legacy(operators: &RawDocument, reading: &mut Reading) -> Result<(), QueryError> {
    for field in operators {
        let (name, value) = field?;
        match name {
            "$near" | "$nearSphere" | "$geoNear" => {
                if let Some((centre, form, greatest)) = point_of(value)? {
                    reading.centre = Some((centre, form));
                    reading.is_sphere = name == "$nearSphere";
                    reading.greatest = greatest.unwrap_or(reading.greatest);
                    if reading.greatest < 0.0 {
                        return Err(FilterFault::NearPointDistance.error("max distance must be non-negative"));
                    }
                }
            }
            "$minDistance" => {
                let faults = [FilterFault::MinDistanceType, FilterFault::MinDistanceNegative];
                reading.least = distance(name, value).map_err(|(at, reason)| faults[at].error(reason))?;
            }
            "$maxDistance" => {
                let faults = [FilterFault::MaxDistanceType, FilterFault::MaxDistanceNegative];
                reading.greatest = distance(name, value).map_err(|(at, reason)| faults[at].error(reason))?;
            }
            "$uniqueDocs" => {}
            _ => {
                let reason = format!("invalid argument in geo near query: {name}");
                return Err(FilterFault::NearSibling.error(reason));
            }
        }
    }
    Ok(())
}

/// A point with a greatest distance behind it, where a value is one.
type GivenPoint = (PlanePoint, NearCentre, Option<f64>);

fn point_of(value: RawValue<'_>) -> Result<Option<GivenPoint>, QueryError> {
    let fields = match value {
        RawValue::Document(fields) => fields,
        RawValue::Array(array) => array.as_document(),
        _ => return Ok(None),
    };
    let is_pair = matches!(value, RawValue::Array(_))
        || fields.iter().next().transpose()?.is_some_and(|(_, first)| first.is_number());
    if !is_pair {
        return Ok(geo_json_point(fields).ok().map(|point| (point, NearCentre::GeoJson, None)));
    }
    let Ok(point) = plane_point(Some(value)) else { return Ok(None) };
    let rest: Vec<RawValue<'_>> =
        fields.iter().skip(2).take(2).map(|field| field.map(|(_, value)| value)).collect::<Result<_, _>>()?;
    Ok(match rest.as_slice() {
        [] => Some((point, NearCentre::Legacy, None)),
        [greatest] => {
            Number::from_value(*greatest).map(|number| (point, NearCentre::Legacy, Some(number.to_f64())))
        }
        _ => None,
    })
}

/// `$geometry` with distances.
fn read_fields(argument: RawValue<'_>, reading: &mut Reading) -> Result<(), QueryError> {
    let fields = match argument {
        RawValue::Document(fields) => fields,
        RawValue::Array(array) => array.as_document(),
        _ => return Ok(()),
    };
    for field in fields {
        let (name, value) = field?;
        match (name, value) {
            ("$geometry", RawValue::Document(_) | RawValue::Array(_)) => {
                reading.centre = Some((given_point(value)?, NearCentre::GeoJson));
            }
            ("$geometry", _) => {}
            ("$minDistance", _) => {
                reading.least = distance(name, value).map_err(|(_, reason)| QueryError::bad_value(reason))?;
            }
            ("$maxDistance", _) => {
                reading.greatest =
                    distance(name, value).map_err(|(_, reason)| QueryError::bad_value(reason))?;
            }
            _ => {
                return Err(QueryError::bad_value(format!("invalid argument in geo near query: {name}")));
            }
        }
    }
    Ok(())
}

/// The GeoJSON point of `$geometry`.
fn given_point(value: RawValue<'_>) -> Result<PlanePoint, QueryError> {
    let (fields, is_array) = match value {
        RawValue::Document(fields) => (fields, false),
        RawValue::Array(array) => (array.as_document(), true),
        _ => return Err(QueryError::bad_value("$geometry is required for geo near query")),
    };
    let is_pair = is_array || fields.iter().next().transpose()?.is_some_and(|(_, first)| first.is_number());
    let shown = document_text(fields);
    if is_pair {
        plane_point(Some(value)).map_err(bad_value)?;
        return Err(QueryError::bad_value(format!("$near requires geojson point, given {shown}")));
    }
    geo_json_point(fields).map_err(|fault| {
        QueryError::bad_value(format!("invalid point in geo near query $geometry argument: {shown}  {fault}"))
    })
}

/// A distance; an error is the place of its cause (type, sign) and the reason.
fn distance(name: &str, value: RawValue<'_>) -> Result<f64, (usize, String)> {
    match Number::from_value(value).map(Number::to_f64) {
        None => Err((0, format!("{name} must be a number"))),
        Some(number) if number >= 0.0 => Ok(number),
        Some(_) => Err((1, format!("{name} must be non-negative"))),
    }
}
