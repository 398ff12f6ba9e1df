//! `$geoWithin` and `$geoIntersects`: a stored geometry that lies in a region, or meets it.

use std::sync::Arc;

use pando_document::{Document, RawDocument, RawValue};

use super::{Node, Test};
use crate::QueryError;
use crate::geometry::{GeometryFault, Region, StoredGeometry};
use crate::path::Path;
use crate::shell_text::{document_text, value_text};

/// The relation that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GeoRelation {
    /// `$geoWithin`.
    Within,
    /// `$geoIntersects`.
    Intersects,
}

/// An operator with its region.
#[derive(Clone, Debug)]
pub struct GeoTest {
    relation: GeoRelation,
    region: Arc<Region>,
    /// The argument as it was written.
    text: Arc<Document>,
}

/// Parses `$geoWithin` or `$geoIntersects`.
pub(super) fn parse(path: &Path, relation: GeoRelation, argument: RawValue<'_>) -> Result<Node, QueryError> {
    let RawValue::Document(fields) = argument else {
        return Err(QueryError::bad_value("geometry must be an object"));
    };
    let Some(region) = Region::parse(fields).map_err(bad_value)? else {
        return Err(QueryError::bad_value("geo query doesn't have any geometry"));
    };
    let (is_taken, shown, named) = match relation {
        GeoRelation::Within => (region.is_area(), "$within", "$geoWithin"),
        GeoRelation::Intersects => (region.is_on_sphere(), "$geoIntersect", "$geoIntersects"),
    };
    if !is_taken {
        let given = document_text(fields);
        let reason = format!("{shown} not supported with provided geometry: {{ {named}: {given} }}");
        return Err(QueryError::bad_value(reason));
    }
    let text = Arc::new(Document::from_raw(fields)?);
    Ok(Node::field(path, Test::Geo(GeoTest { relation, region: Arc::new(region), text })))
}

/// A fault of a geometry, with MongoDB's code.
pub(super) fn bad_value(fault: GeometryFault) -> QueryError {
    QueryError::bad_value(fault.0)
}

impl GeoTest {
    /// The region.
    pub fn region(&self) -> &Region {
        &self.region
    }

    /// The relation.
    pub fn relation(&self) -> GeoRelation {
        self.relation
    }

    /// Whether a leaf is a geometry for which the relation holds.
    pub(crate) fn holds(&self, value: Option<RawValue<'_>>) -> bool {
        let Some(value @ (RawValue::Document(_) | RawValue::Array(_))) = value else { return false };
        let Ok(stored) = StoredGeometry::parse("", value) else { return false };
        match self.relation {
            GeoRelation::Within => self.region.contains(&stored),
            GeoRelation::Intersects => self.region.intersects(&stored),
        }
    }

    /// The operator with its argument.
    pub(super) fn to_document(&self) -> Document {
        let mut document = Document::new();
        let name = match self.relation {
            GeoRelation::Within => "$geoWithin",
            GeoRelation::Intersects => "$geoIntersects",
        };
        document.push(name, Document::clone(&self.text));
        document
    }

    /// Whether both are written alike.
    pub(crate) fn is_same(&self, other: &GeoTest) -> bool {
        self.relation == other.relation && self.text == other.text
    }
}

/// Refuses other operators beside `$geoWithin` or `$geoIntersects`.
pub(super) fn refuse_siblings(document: &RawDocument) -> Result<(), QueryError> {
    const NAMES: [&str; 3] = ["$geoWithin", "$geoIntersects", "$within"];
    let Some(extra) = document.iter().nth(1) else { return Ok(()) };
    let (name, value) = extra?;
    if document.iter().any(|field| field.is_ok_and(|(name, _)| NAMES.contains(&name))) {
        let value = value_text(value);
        return Err(QueryError::bad_value(format!("can't parse extra field: {name}: {value}")));
    }
    Ok(())
}

/// Whether a document of operators is one of `$near` or its kin.
pub(super) fn is_near(document: &RawDocument) -> bool {
    const NAMES: [&str; 3] = ["$near", "$nearSphere", "$geoNear"];
    document.iter().any(|field| field.is_ok_and(|(name, _)| NAMES.contains(&name)))
}
