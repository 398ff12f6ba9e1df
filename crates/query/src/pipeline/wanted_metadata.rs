//! The metadata that a pipeline looks at ([`crate::metadata`]).
//!
//! A pipeline that asks for metadata ends with a stage that removes the hidden fields. A pipeline that is a
//! part of `$facet` has those of the documents around it.
//!
//! | kind | available |
//! |---|---|
//! | score, distance, point | where the first stage searches |
//! | sort key, index key, random value | in pipelines that are no part of another one |
//!
//! A pipeline within `$lookup` or `$unionWith` whose first stage searches for words gets scores in any case.

use std::sync::Arc;

use pando_document::{RawArray, RawDocumentBuf, RawValue};

use super::{ParsedStage, PipelineFault, stage};
use crate::error::QueryError;
use crate::expression::ParseScope;
use crate::filter::has_text;
use crate::metadata::{Metadata, MetadataSet};
use crate::projection::Projection;
use crate::sort::SortPattern;

/// The metadata that the stages of a pipeline look at.
pub(super) fn of(stages: &RawArray, scope: &ParseScope) -> Result<MetadataSet, QueryError> {
    if !scope.metadata().is_empty() {
        return Ok(scope.metadata());
    }
    let asked = MetadataSet::asked_in(stages.as_document());
    let mut available = match scope.is_within_stage() {
        true => MetadataSet::EMPTY,
        false => MetadataSet::of(&[Metadata::SortKey, Metadata::IndexKey, Metadata::RandomValue]),
    };
    let first = match stages.iter().next() {
        Some(first) => first?.as_document().and_then(|stage| stage.iter().next()).transpose()?,
        None => None,
    };
    match first {
        Some(("$match", RawValue::Document(filter))) if has_text(filter) => {
            if scope.is_within_stage() {
                return Ok(MetadataSet::of(&[Metadata::TextScore]));
            }
            available = available.with(Metadata::TextScore);
        }
        Some(("$geoNear", _)) => {
            available = available.with(Metadata::GeoDistance).with(Metadata::GeoPoint);
        }
        _ => {}
    }
    Ok(asked.and(available))
}

/// Refuses a search that is not in the first stage.
pub(super) fn check_place(name: &str, argument: RawValue<'_>, at: usize) -> Result<(), QueryError> {
    if at > 0 && name == "$match" && argument.as_document().is_some_and(has_text) {
        return Err(PipelineFault::SearchNotFirst
            .error("$match with $text is only allowed as the first pipeline stage"));
    }
    Ok(())
}

/// Refuses an order by scores or distances that documents do not come with. Without random values all of
/// them are equal, as in MongoDB.
pub(super) fn check_order(pattern: &SortPattern, scope: &ParseScope) -> Result<(), QueryError> {
    let missing = |kind: &Metadata| *kind != Metadata::RandomValue && !scope.metadata().has(*kind);
    pattern.metadata().iter().find(missing).map_or(Ok(()), |kind| Err(kind.not_available()))
}

/// The stage that removes hidden fields. It has no text, for nobody wrote it.
pub(super) fn removal(metadata: MetadataSet) -> Result<ParsedStage, QueryError> {
    let definition = stage::of_projection(Projection::without_metadata(metadata));
    Ok(ParsedStage { text: RawDocumentBuf::new(), definition: Arc::clone(&definition) })
}
