//! Plans of `$near` and its kin: an index of geometries finds the documents in the order of their distances.
//!
//! # Rules
//! - A GeoJSON point needs a `2dsphere` index, a legacy pair in the plane a `2d` index. A legacy pair on the
//!   sphere takes either, a `2dsphere` index first.
//! - Of several indexes that serve, the one with the most bounded fields wins.
//! - The tests beside `$near` are asked of each document; they bound the other fields of the index as well.

use pando_catalog::{FieldKind, IndexDescription};

use super::geo_bounds::{self, cells_of};
use super::interval::Intervals;
use super::usable_index::UsableIndex;
use super::{Access, Coverage, FindSpecification, Hint, Plan, candidate, forced, index_bounds, predicates};
use crate::filter::{NearTest, Node, Test};
use crate::geo_index::GeoCells;
use crate::geometry::{Metric, NearQuery};
use crate::metadata::{Metadata, MetadataSet};
use crate::path::Path;
use crate::shell_text::short_double_text;
use crate::sort::Sort;
use crate::{ErrorCode, QueryError};

/// A search for documents in the order of their distances.
#[derive(Clone, Debug)]
pub struct NearAccess {
    /// The index, as it was when planned.
    pub index: IndexDescription,
    /// The place of its geometry field.
    pub at: usize,
    /// The cells of that field.
    pub cells: GeoCells,
    /// Bounds of the fields; those of the geometry field are put in for each ring.
    pub fields: Vec<Intervals>,
    /// The centre and the distances.
    pub query: NearQuery,
    /// The distance beyond which no document lies.
    pub reach: f64,
    /// The documents that are asked for, where the nearest ones do.
    pub wanted: Option<u64>,
    /// The use of the distances.
    pub output: NearOutput,
    /// The metadata of the documents: distance and place.
    pub metadata: MetadataSet,
}

/// The fields that a search adds to its documents.
#[derive(Clone, Debug)]
pub enum NearOutput {
    /// They stay as they are.
    Document,
    /// The distance and the nearest geometry, as `$geoNear` asks for them.
    Fields {
        /// The dotted path of the distance.
        distance_field: String,
        /// The dotted path of the geometry.
        place_field: Option<String>,
        /// The factor of the distance.
        multiplier: f64,
    },
}

/// The plan of a find with `$near` at a path.
pub(super) fn plan(
    find: &FindSpecification<'_>,
    path: &Path,
    near: &NearTest,
    indexes: &[IndexDescription],
) -> Result<Plan, QueryError> {
    let refused = |what: &str| {
        Err(QueryError::bad_value(format!("geoNear expression not allowed with $natural {what}")))
    };
    if matches!(find.sort, Sort::Natural(_)) {
        return refused("sort order");
    }
    if find.filter.has_text() {
        return Err(QueryError::bad_value("text and geoNear not allowed in same query"));
    }
    if find.metadata.has(Metadata::TextScore) {
        return Err(Metadata::TextScore.not_available());
    }
    let hinted = match find.hint {
        Some(Hint::Natural(_)) => return refused("hint"),
        Some(hint) => Some(forced::hinted(hint, indexes)?),
        None => None,
    };
    let nodes = predicates::conjunction(find.filter);
    let others: Vec<Node> = nodes.iter().filter(|node| !is_near(node)).cloned().collect();
    let candidates = match hinted {
        Some(index) => std::slice::from_ref(index),
        None => indexes,
    };
    let usable = candidates
        .iter()
        .filter(|index| {
            hinted.is_some() || UsableIndex::of(index).is_some_and(|usable| usable.has_all_of(&others))
        })
        .filter_map(|index| access(index, path, &near.query, &others));
    let best = usable.max_by_key(|access| {
        let bounded = access.fields.iter().filter(|field| !field.is_all()).count();
        let is_sphere = matches!(access.cells, GeoCells::Sphere(_));
        // Of equal ones the first wins.
        (is_sphere, bounded, std::cmp::Reverse(access.fields.len()))
    });
    let mut access = best.ok_or_else(|| no_index(path, &near.query, &others))?;
    access.metadata = find.metadata;
    if find.sort_pattern().is_none() {
        access.wanted = find.limit.map(|limit| limit.saturating_add(find.skip));
    }
    if let GeoCells::Plane(grid) = &access.cells
        && grid.hash(near.query.centre).is_none()
    {
        let reason = format!("point not in interval of {}", grid.bounds_text());
        return Err(super::PlanFault::NearOutOfBounds.error(reason));
    }
    Ok(Plan {
        access: Access::Near(Box::new(access)),
        residual: candidate::residual_of(&others.iter().collect::<Vec<_>>()),
        coverage: Coverage::Document,
        sort: find.sort_pattern().cloned(),
        skip: find.skip,
        limit: find.limit,
    })
}

fn is_near(node: &Node) -> bool {
    matches!(node, Node::Field(field) if matches!(field.test, Test::Near(_)))
}

/// The search by an index; `None` where the index does not serve it.
fn access(index: &IndexDescription, path: &Path, query: &NearQuery, others: &[Node]) -> Option<NearAccess> {
    let kinds: &[FieldKind] = match query.metric {
        Metric::Metres => &[FieldKind::Sphere],
        Metric::Plane => &[FieldKind::Plane],
        Metric::Radians => &[FieldKind::Sphere, FieldKind::Plane],
    };
    let at =
        index.fields.iter().position(|field| field.path == path.as_str() && kinds.contains(&field.kind))?;
    let cells = cells_of(index)?;
    let mut fields = index_bounds::of_index(index, &predicates::of_conjunction(others)).fields;
    fields[at] = Intervals::all();
    let reach = match &cells {
        GeoCells::Plane(grid) if query.metric == Metric::Plane => {
            query.greatest.min(grid.farthest(query.centre))
        }
        _ => query.reach(),
    };
    Some(NearAccess {
        index: index.clone(),
        at,
        cells,
        fields,
        query: *query,
        reach,
        wanted: None,
        output: NearOutput::Document,
        metadata: MetadataSet::EMPTY,
    })
}

/// The bounds of the geometry field for a ring.
pub(crate) fn ring_bounds(cells: &GeoCells, query: &NearQuery, inner: f64, outer: f64) -> Intervals {
    geo_bounds::intervals_of(&cells.ranges_of_ring(query, inner, outer))
}

/// The bounds of the geometry field for the cell of a level around the centre, where there are cells of a
/// sphere.
pub(crate) fn cell_bounds(cells: &GeoCells, query: &NearQuery, level: u8) -> Option<Intervals> {
    Some(geo_bounds::intervals_of(&[cells.range_around(query, level)?]))
}

/// The refusal, with as much of MongoDB's picture of the query as programs look for: Parse Server takes the
/// name of the field out of it, and makes the index.
fn no_index(path: &Path, query: &NearQuery, others: &[Node]) -> QueryError {
    let above = if others.is_empty() { "" } else { "$and\n    " };
    let greatest = short_double_text(query.greatest.min(f64::MAX));
    let is_near_sphere = u8::from(query.metric == Metric::Radians);
    let reason = format!(
        "error processing query: Tree: {above}GEONEAR  field={} maxdist={greatest} isNearSphere={is_near_sphere}\n \
         planner returned error :: caused by :: unable to find index for $geoNear query",
        path.as_str()
    );
    QueryError::new(ErrorCode::NoQueryExecutionPlans, reason)
}
