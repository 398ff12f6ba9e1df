//! The stages, one file each, and the table that finds them by name.
//!
//! A stage is parsed into a [`Definition`], which never changes and can be run any number of times; each run
//! has a [`Stage`] with the state of that run.

mod bucket;
mod count;
mod facet;
mod group;
mod limit;
mod lookup;
mod match_stage;
mod project;
mod replace_root;
mod sample;
mod skip;
mod sort;
mod sort_by_count;
mod unwind;

use std::fmt::Debug;
use std::sync::Arc;

use pando_catalog::Bytes;
use pando_document::{RawDocument, RawValue};

use super::{PipelineFault, RunOptions, Source, Take};
use crate::error::QueryError;
use crate::expression::ParseScope;

/// A parsed stage.
pub(super) trait Definition: Debug + Send + Sync {
    /// The state of a new run.
    fn start(&self, options: &RunOptions) -> Box<dyn Stage>;
}

/// A stage at work.
pub(super) trait Stage: Send {
    /// The next document, drawn from `input`. An error of the input leaves the state as it was.
    fn next(&mut self, input: &mut dyn Source) -> Result<Option<Bytes>, QueryError>;
}

/// Stages that MongoDB has and this server does not yet.
const NOT_YET: [&str; 26] = [
    "$out",
    "$merge",
    "$unionWith",
    "$bucketAuto",
    "$indexStats",
    "$collStats",
    "$graphLookup",
    "$setWindowFields",
    "$densify",
    "$fill",
    "$changeStream",
    "$changeStreamSplitLargeEvent",
    "$currentOp",
    "$documents",
    "$geoNear",
    "$redact",
    "$planCacheStats",
    "$listSessions",
    "$listLocalSessions",
    "$search",
    "$searchMeta",
    "$vectorSearch",
    "$listSearchIndexes",
    "$rankFusion",
    "$scoreFusion",
    "$queryStats",
];

/// Parses `{name: argument}`; some stages stand for several.
pub(super) fn parse(
    name: &str,
    argument: RawValue<'_>,
    scope: &ParseScope,
) -> Result<Vec<Arc<dyn Definition>>, QueryError> {
    let definition: Arc<dyn Definition> = match name {
        "$match" => match_stage::parse(argument, scope)?,
        "$project" => project::parse(argument, scope)?,
        "$addFields" | "$set" => project::parse_add_fields(name, argument, scope)?,
        "$unset" => project::parse_unset(argument)?,
        "$group" => group::parse(argument, scope)?,
        "$sort" => sort::parse(argument)?,
        "$limit" => limit::parse(argument)?,
        "$skip" => skip::parse(argument)?,
        "$count" => count::parse(argument)?,
        "$unwind" => unwind::parse(argument)?,
        "$replaceRoot" => replace_root::parse(argument, scope)?,
        "$replaceWith" => replace_root::parse_replace_with(argument, scope)?,
        "$facet" => facet::parse(argument, scope)?,
        "$sample" => sample::parse(argument)?,
        "$lookup" => lookup::parse(argument, scope)?,
        "$sortByCount" => return sort_by_count::parse(argument, scope),
        "$bucket" => return bucket::parse(argument, scope),
        _ if NOT_YET.contains(&name) => {
            return Err(QueryError::not_implemented(&format!("the stage {name}")));
        }
        _ => {
            return Err(
                PipelineFault::UnknownStage.error(format!("Unrecognized pipeline stage name: '{name}'"))
            );
        }
    };
    Ok(vec![definition])
}

/// The document in a source's bytes.
fn document_in(bytes: &Bytes) -> Result<&RawDocument, QueryError> {
    Ok(RawDocument::from_bytes(bytes)?)
}
