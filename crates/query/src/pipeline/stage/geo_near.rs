//! `$geoNear`: the documents of the collection in the order of their distances from a point, with the
//! distance in a field. It stands first, and its plan needs an index of geometries: it is taken off the front
//! of the pipeline, as a filter with `$near` ([`GeoNearSpecification::filter`]). In the pipeline of `$lookup`
//! or `$unionWith` the other collection is searched ([`Source::find_near`]).

use std::sync::Arc;

use pando_catalog::Bytes;
use pando_document::{DocumentWriter, Number, RawDocument, RawDocumentBuf, RawValue};

use super::{Definition, RunOptions, Source, Stage};
use crate::error::QueryError;
use crate::expression::{Expression, FieldPath, ParseScope};
use crate::literal::Literal;
use crate::pipeline::PipelineFault;

/// A parsed `$geoNear`.
#[derive(Clone, Debug)]
pub struct GeoNearSpecification {
    /// The field of geometries, where it is named.
    pub key: Option<String>,
    /// The dotted path of the distance.
    pub distance_field: String,
    /// The dotted path of the nearest geometry.
    pub place_field: Option<String>,
    /// The factor of the distance.
    pub multiplier: f64,
    query: RawDocumentBuf,
    /// The point.
    near: Literal,
    /// The variables of the query.
    scope: ParseScope,
    is_spherical: bool,
    least: Option<f64>,
    greatest: Option<f64>,
}

#[derive(Debug)]
struct GeoNear(GeoNearSpecification);

struct Run;

/// Parses the stage.
pub(super) fn parse(argument: RawValue<'_>, scope: &ParseScope) -> Result<Arc<dyn Definition>, QueryError> {
    Ok(Arc::new(GeoNear(GeoNearSpecification::parse(argument, scope)?)))
}

impl Definition for GeoNear {
    fn as_geo_near(&self) -> Option<&GeoNearSpecification> {
        Some(&self.0)
    }

    fn start(&self, _options: &RunOptions) -> Box<dyn Stage> {
        Box::new(Run)
    }
}

impl Stage for Run {
    fn next(&mut self, _input: &mut dyn Source) -> Result<Option<Bytes>, QueryError> {
        Err(QueryError::not_implemented("$geoNear without a collection"))
    }
}

impl GeoNearSpecification {
    /// Parses the argument of the stage.
    ///
    /// # Errors
    /// In MongoDB's words.
    fn parse(argument: RawValue<'_>, scope: &ParseScope) -> Result<GeoNearSpecification, QueryError> {
        let RawValue::Document(fields) = argument else {
            return Err(
                PipelineFault::GeoNearNotObject.error("invalid parameter: expected an object ($geoNear)")
            );
        };
        refuse_old(fields)?;
        let Some(RawValue::String(distance_field)) = fields.get("distanceField")? else {
            let reason = "$geoNear requires a 'distanceField' option as a String";
            return Err(PipelineFault::GeoNearDistanceField.error(reason));
        };
        FieldPath::parse(distance_field)?;
        let Some(near) = fields.get("near")? else {
            return Err(PipelineFault::GeoNearWithoutNear.error("$geoNear requires a 'near' argument"));
        };
        let place_field = match fields.get("includeLocs")? {
            None => None,
            Some(RawValue::String(path)) => {
                FieldPath::parse(path)?;
                Some(path.to_owned())
            }
            Some(_) => {
                let reason = "$geoNear requires that 'includeLocs' option is a String";
                return Err(PipelineFault::GeoNearPlaceField.error(reason));
            }
        };
        let key = match fields.get("key")? {
            None => None,
            Some(RawValue::String("")) => {
                return Err(QueryError::bad_value("$geoNear parameter 'key' cannot be the empty string"));
            }
            Some(RawValue::String(key)) => Some(key.to_owned()),
            Some(other) => {
                let found = other.element_type().alias();
                return Err(QueryError::type_mismatch(format!(
                    "$geoNear parameter 'key' must be of type string but found type: {found}"
                )));
            }
        };
        let query = match fields.get("query")? {
            None => RawDocument::empty().to_owned(),
            Some(RawValue::Document(query)) => query.to_owned(),
            Some(_) => return Err(QueryError::type_mismatch("query must be an object")),
        };
        Ok(GeoNearSpecification {
            key,
            distance_field: distance_field.to_owned(),
            place_field,
            multiplier: natural(fields, "distanceMultiplier")?.unwrap_or(1.0),
            query,
            is_spherical: fields.get("spherical")?.is_some_and(|value| value.to_bool()),
            least: natural(fields, "minDistance")?,
            greatest: natural(fields, "maxDistance")?,
            near: point_of(near, scope)?,
            scope: scope.clone(),
        })
    }

    /// The scope of the filter: the variables that it may name.
    pub fn scope(&self) -> &ParseScope {
        &self.scope
    }

    /// The filter of the search by a field of geometries.
    ///
    /// # Errors
    /// The point is no object and no array.
    pub fn filter(&self, key: &str) -> Result<RawDocumentBuf, QueryError> {
        let point = self.near.raw();
        if !matches!(point, RawValue::Document(_) | RawValue::Array(_)) {
            let reason = "$geoNear requires near argument to be a GeoJSON object or a legacy point(array)";
            return Err(PipelineFault::GeoNearPoint.error(reason));
        }
        let mut bytes = Vec::new();
        let mut writer = DocumentWriter::begin(&mut bytes);
        let mut parts = writer.array("$and");
        parts.push_document(&self.query);
        let mut near = parts.document();
        let mut operators = near.document(key);
        operators.append(if self.is_spherical { "$nearSphere" } else { "$near" }, point);
        for (name, distance) in [("$minDistance", self.least), ("$maxDistance", self.greatest)] {
            if let Some(distance) = distance {
                operators.append(name, RawValue::Double(distance));
            }
        }
        operators.finish();
        near.finish();
        parts.finish();
        writer.finish();
        Ok(RawDocumentBuf::from_vec(bytes)?)
    }
}

/// The point, which is an expression without fields: it may name a variable.
fn point_of(near: RawValue<'_>, scope: &ParseScope) -> Result<Literal, QueryError> {
    let point = Expression::of_pipeline(near, scope)?;
    if !point.is_constant() {
        let reason = "$geoNear requires a constant near argument";
        return Err(PipelineFault::GeoNearNotConstant.error(reason));
    }
    let value = point.evaluate(RawDocument::empty())?;
    Ok(Literal::new(value.raw_or_null()))
}

/// Refuses options that earlier versions had.
fn refuse_old(fields: &RawDocument) -> Result<(), QueryError> {
    for (name, fault, reason) in [
        ("limit", PipelineFault::GeoNearLimit, "'limit' parameter. Use a $limit stage instead."),
        ("num", PipelineFault::GeoNearNum, "'num' parameter. Use a $limit stage instead."),
        ("start", PipelineFault::GeoNearStart, "'start' argument."),
    ] {
        if fields.get(name)?.is_some() {
            return Err(fault.error(format!("$geoNear no longer supports the {reason}")));
        }
    }
    Ok(())
}

/// A number that is not negative.
fn natural(fields: &RawDocument, name: &str) -> Result<Option<f64>, QueryError> {
    let Some(value) = fields.get(name)? else { return Ok(None) };
    match Number::from_value(value).map(Number::to_f64) {
        None => Err(QueryError::type_mismatch(format!("{name} must be a number"))),
        Some(number) if number >= 0.0 => Ok(Some(number)),
        Some(_) => Err(QueryError::bad_value(format!("{name} must be nonnegative"))),
    }
}
