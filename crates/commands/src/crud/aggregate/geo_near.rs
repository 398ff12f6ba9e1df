//! The search of a `$geoNear` in front of a pipeline: its field of geometries, its filter, and the distances
//! in its documents.

use pando_catalog::{FieldKind, IndexDescription, Visibility};
use pando_query::QueryError;
use pando_query::filter::Filter;
use pando_query::pipeline::GeoNearSpecification;
use pando_query::plan::{Access, NearOutput, Plan};

use crate::{CommandError, ErrorCode};

/// The filter of the search.
pub(super) fn filter(
    near: &GeoNearSpecification,
    indexes: &[IndexDescription],
) -> Result<Filter, CommandError> {
    let key = match &near.key {
        Some(key) => key.clone(),
        None => key_of(indexes)?,
    };
    Ok(Filter::parse_for_plan(&near.filter(&key)?, near.scope())?)
}

/// The field of the only `2d` index, or else of the only `2dsphere` index.
fn key_of(indexes: &[IndexDescription]) -> Result<String, CommandError> {
    let visible = || indexes.iter().filter(|index| index.hidden == Visibility::Visible);
    for (kind, name) in [(FieldKind::Plane, "2d"), (FieldKind::Sphere, "2dsphere")] {
        let mut fields: Vec<&str> = visible()
            .flat_map(|index| &index.fields)
            .filter(|field| field.kind == kind)
            .map(|field| field.path.as_str())
            .collect();
        match (fields.pop(), fields.pop()) {
            (None, _) => {}
            (Some(only), None) => return Ok(only.to_owned()),
            (Some(_), Some(_)) => {
                return Err(CommandError::failed(
                    ErrorCode::IndexNotFound,
                    format!("There is more than one {name} index; unsure which to use for $geoNear"),
                ));
            }
        }
    }
    let reason = "$geoNear requires a 2d or 2dsphere index, but none were found";
    Err(CommandError::failed(ErrorCode::IndexNotFound, reason))
}

/// The error of a search in a collection that does not exist.
pub(super) fn no_collection(database: &str, collection: &str) -> QueryError {
    let reason = format!("$geoNear requires a geo index to run, but {database}.{collection} does not exist");
    QueryError::new(ErrorCode::NamespaceNotFound, reason)
}

/// Has the plan put the distances into the documents.
pub(super) fn give_distances(near: &GeoNearSpecification, plan: &mut Plan) {
    if let Access::Near(access) = &mut plan.access {
        access.output = NearOutput::Fields {
            distance_field: near.distance_field.clone(),
            place_field: near.place_field.clone(),
            multiplier: near.multiplier,
        };
    }
}
