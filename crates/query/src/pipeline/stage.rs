//! The stages, one file each, and the table that finds them by name.
//!
//! A stage is parsed into a [`Definition`], which never changes and can be run any number of times; each run
//! has a [`Stage`] with the state of that run.

mod bucket;
mod bucket_auto;
mod count;
mod densify;
mod documents;
mod facet;
mod fetched;
mod fill;
mod geo_near;
mod graph_lookup;
mod group;
mod limit;
mod lookup;
mod match_stage;
mod project;
mod redact;
mod replace_root;
mod sample;
mod set_window_fields;
mod skip;
mod sort;
mod sort_by_count;
mod union_with;
mod unpack_bucket;
mod unwind;
mod values_at_path;

pub use geo_near::GeoNearSpecification;

use std::any::Any;
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;

use pando_catalog::Bytes;
use pando_document::{Document, RawArray, RawDocument, RawDocumentBuf, RawValue};

use self::lookup::Lookup;
use self::unwind::Unwind;
use super::{
    Check, Flow, ForeignAccess, ForeignPath, ForeignSearch, PipelineFault, RunOptions, Searches, Sink,
    Source, Take,
};
use crate::error::{ErrorCode, QueryError};
use crate::expression::ParseScope;
use crate::needs::Needs;
use crate::plan::GroupEnds;
use crate::sort::SortPattern;

/// Whether a stage reserves memory for documents or values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Memory {
    /// It holds one document at most.
    Passing,
    /// It does.
    Reserved,
}

/// Whether a stage puts values into others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Nesting {
    /// Its documents are nested no deeper than those that it takes, but for a path.
    Kept,
    /// They may be.
    MayGrow,
}

/// The filter of a stage's input that is the same as one of its output.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum FilterInFront {
    /// The same one.
    Same,
    /// Another one.
    Other(RawDocumentBuf),
    /// There is none.
    None,
}

/// A parsed stage.
pub(super) trait Definition: Debug + Send + Sync {
    /// The state of a new run.
    fn start(&self, options: &RunOptions) -> Box<dyn Stage>;

    /// The state of a new run of which only some fields are looked at.
    fn start_for(&self, options: &RunOptions, _behind: &Needs) -> Box<dyn Stage> {
        self.start(options)
    }

    /// Whether it reserves memory.
    fn memory(&self) -> Memory {
        Memory::Passing
    }

    /// Whether it puts values into others.
    fn nesting(&self) -> Nesting {
        Nesting::MayGrow
    }

    /// The stage as `explain` shows it, where it was written as `text`.
    fn shown(&self, text: &RawDocument) -> Document {
        Document::from_raw(text).unwrap_or_default()
    }

    /// Whether a filter of the documents in front of the stage is the same as one behind it, for fields that
    /// the stage [passes](Definition::passes).
    fn is_transparent(&self) -> bool {
        false
    }

    /// Whether the values at a path come through the stage as they are.
    fn passes(&self, _path: &str) -> bool {
        false
    }

    /// Whether there may be filters of the input that are the same as filters of the output.
    fn lets_filters_pass(&self) -> bool {
        self.is_transparent()
    }

    /// The filter of the input that is the same as one of the output, which asks about these paths.
    fn filter_in_front(
        &self,
        _filter: &RawDocument,
        paths: &BTreeSet<String>,
    ) -> Result<FilterInFront, QueryError> {
        let passes = self.is_transparent() && paths.iter().all(|path| self.passes(path));
        Ok(if passes { FilterInFront::Same } else { FilterInFront::None })
    }

    /// The stage as a `$lookup`, if it is one.
    fn as_lookup(&self) -> Option<&Lookup> {
        None
    }

    /// The size of the stage, if it is a `$sample`.
    fn sample_size(&self) -> Option<u64> {
        None
    }

    /// The stage as a `$geoNear`, if it is one.
    fn as_geo_near(&self) -> Option<&GeoNearSpecification> {
        None
    }

    /// The stage as an `$unwind`, if it is one.
    fn as_unwind(&self) -> Option<&Unwind> {
        None
    }

    /// Whether the stage looks at each document alone: whatever came before, it makes the same of it.
    fn looks_at_each_alone(&self) -> bool {
        false
    }

    /// Whether its runs are [gathering](Gathering).
    fn gathers(&self) -> bool {
        false
    }

    /// The pattern by which the stage sorts all its documents, if it does.
    fn sort_pattern(&self) -> Option<&Arc<SortPattern>> {
        None
    }

    /// The stage that makes of unsorted documents what this one makes of documents in the order of a
    /// pattern; `None` where there is none.
    fn over_unsorted(&self, _pattern: &Arc<SortPattern>) -> Option<Arc<dyn Definition>> {
        None
    }

    /// The stage that makes of documents what this one makes of their elements; `None` where there is none.
    fn over_elements(&self, _unwind: &Unwind) -> Option<Arc<dyn Definition>> {
        None
    }

    /// The sort that the stage has taken in, and the stage as it is behind it.
    fn with_sort_apart(&self) -> Option<(&Arc<SortPattern>, Arc<dyn Definition>)> {
        None
    }

    /// The documents that the stage needs of each group, where it groups and does not need all. `sort` is the
    /// order in which they come.
    fn group_ends(&self, _sort: Option<&SortPattern>) -> Option<GroupEnds> {
        None
    }

    /// Whether the stage makes one document of each.
    fn is_one_to_one(&self) -> bool {
        false
    }

    /// The same stage where only so many documents are drawn from it; `None` where that is no gain.
    fn limited(&self, _wanted: u64) -> Option<Box<dyn Definition>> {
        None
    }

    /// Whether the result is the same in whatever order the documents come, and whether a missing field of
    /// them is null.
    fn sees_values_only(&self) -> bool {
        false
    }

    /// The fields that the stage looks at, where `behind` are looked at in what it gives.
    fn needs(&self, _behind: Needs) -> Needs {
        Needs::Everything
    }
}

/// A stage at work.
pub(super) trait Stage: Send {
    /// The next document, drawn from `input`. An error of the input leaves the state as it was. Drawing a
    /// document checks whether the operation has to end; a stage that gives documents without drawing one
    /// calls [`Source::check`].
    fn next(&mut self, input: &mut dyn Source) -> Result<Option<Bytes>, QueryError>;

    /// Gives documents to a sink until it has enough or there are no more; the next call goes on behind the
    /// last. An error of the input leaves the state as it was.
    fn for_each(&mut self, input: &mut dyn Source, sink: &mut Sink<'_>) -> Result<(), QueryError> {
        while let Some(bytes) = self.next(input)? {
            if sink(document_in(&bytes)?, &mut || input.check())? == Flow::Enough {
                break;
            }
        }
        Ok(())
    }

    /// The stage as one that gathers.
    fn gathering(&mut self) -> Option<&mut dyn Gathering> {
        None
    }

    /// Adds the figures of a measured run to the stage as it is shown.
    fn explain(&self, _shown: &mut Document) {}
}

/// A stage that reads all of its input before it gives anything. Several runs of it can read one part of the
/// input each, and one of them takes in what the others have.
pub(super) trait Gathering: Send {
    /// Reads the input to its end, and keeps open for more. An error of the input leaves the state as it was.
    fn gather(&mut self, input: &mut dyn Source) -> Result<(), QueryError>;

    /// Takes in a run of the same stage that has read what comes behind the input of this one.
    fn absorb(&mut self, later: &mut dyn Gathering, check: Check<'_>) -> Result<(), QueryError>;

    /// Itself, for [`absorb`](Gathering::absorb).
    fn as_any(&mut self) -> &mut dyn Any;
}

/// The run behind the trait, which is of the same stage.
fn same_stage<T: 'static>(later: &mut dyn Gathering) -> &mut T {
    later.as_any().downcast_mut().expect("runs of one definition have one type")
}

/// The next document of a stage that gives its documents to sinks.
fn pulled(stage: &mut dyn Stage, input: &mut dyn Source) -> Result<Option<Bytes>, QueryError> {
    let mut next = None;
    stage.for_each(input, &mut |document, _| {
        next = Some(Bytes::copy_from_slice(document.as_bytes()));
        Ok(Flow::Enough)
    })?;
    Ok(next)
}

/// The sort of a plan as a stage.
pub(super) fn sorting(pattern: &SortPattern, limit: u64) -> Arc<dyn Definition> {
    Arc::new(sort::Sort::limited_by(pattern, limit))
}

/// Stages of change streams, which MongoDB has and this server does not yet.
const OF_CHANGE_STREAMS: [&str; 2] = ["$changeStream", "$changeStreamSplitLargeEvent"];
/// Stages that only a service of MongoDB Atlas has.
const OF_ATLAS: [&str; 6] =
    ["$search", "$searchMeta", "$vectorSearch", "$listSearchIndexes", "$rankFusion", "$scoreFusion"];
/// Stages that make documents from figures of a collection. The crate `commands` puts documents in their
/// place where they stand first.
const OF_COLLECTIONS: [&str; 3] = ["$collStats", "$indexStats", "$planCacheStats"];
/// Stages about shards, or about settings and statistics of queries, which one server without them has not.
const WITHOUT_MEANING: [&str; 5] = [
    "$listClusterCatalog",
    "$listSampledQueries",
    "$querySettings",
    "$queryStats",
    "$shardedDataDistribution",
];

/// The stages that a stage is written out as, where it is short for others.
pub(super) fn written_out(
    name: &str,
    argument: RawValue<'_>,
) -> Result<Option<Vec<RawDocumentBuf>>, QueryError> {
    match name {
        "$fill" => fill::written_out(argument).map(Some),
        _ => Ok(None),
    }
}

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
        "$sort" => sort::parse(argument, scope)?,
        "$limit" => limit::parse(argument)?,
        "$skip" => skip::parse(argument)?,
        "$count" => count::parse(argument)?,
        "$unwind" => unwind::parse(argument)?,
        "$replaceRoot" => replace_root::parse(argument, scope)?,
        "$replaceWith" => replace_root::parse_replace_with(argument, scope)?,
        "$facet" => facet::parse(argument, scope)?,
        "$sample" => sample::parse(argument, scope)?,
        "$lookup" => lookup::parse(argument, scope)?,
        "$setWindowFields" => set_window_fields::parse(argument, scope)?,
        "$densify" => densify::parse(argument, scope)?,
        "$unionWith" => union_with::parse(argument, scope)?,
        "$geoNear" => geo_near::parse(argument, scope)?,
        "$documents" => documents::parse(argument, scope)?,
        "$graphLookup" => graph_lookup::parse(argument, scope)?,
        "$redact" => redact::parse(argument, scope)?,
        "$out" | "$merge" => {
            return Err(PipelineFault::WriteNotLast
                .error(format!("{name} can only be the final stage in the pipeline")));
        }
        crate::time_series::UNPACK_STAGE => unpack_bucket::parse(argument)?,
        "$sortByCount" => return sort_by_count::parse(argument, scope),
        "$bucket" => return bucket::parse(argument, scope),
        "$bucketAuto" => bucket_auto::parse(argument, scope)?,
        _ => return Err(refusal(name)),
    };
    Ok(vec![definition])
}

/// The error of a stage that there is not, or not at this place.
fn refusal(name: &str) -> QueryError {
    let elsewhere = |sentence: &str| QueryError::new(ErrorCode::InvalidNamespace, sentence.to_owned());
    match name {
        "$currentOp" => elsewhere("$currentOp must be run against the 'admin' database with {aggregate: 1}"),
        "$listSessions" => elsewhere("$listSessions may only be run against config.system.sessions"),
        "$listLocalSessions" => elsewhere(
            "$listLocalSessions must be run against the database with {aggregate: 1}, not a collection",
        ),
        _ if OF_ATLAS.contains(&name) => {
            PipelineFault::OnlyOnAtlas.error(format!("{name} stage is only allowed on MongoDB Atlas"))
        }
        _ if WITHOUT_MEANING.contains(&name) => QueryError::new(
            ErrorCode::CommandNotSupported,
            format!("{name} has no meaning on a single server without query settings and statistics"),
        ),
        _ if OF_COLLECTIONS.contains(&name) => {
            QueryError::not_implemented(&format!("{name} in the stages of a view"))
        }
        _ if OF_CHANGE_STREAMS.contains(&name) => QueryError::no_change_streams(),
        _ => PipelineFault::UnknownStage.error(format!("Unrecognized pipeline stage name: '{name}'")),
    }
}

/// Whether a stage has a pipeline that begins with figures of a collection.
fn joins_figures(argument: RawValue<'_>) -> bool {
    let pipeline = argument.as_document().and_then(|options| options.get("pipeline").ok()?);
    let Some(RawValue::Array(stages)) = pipeline else { return false };
    let first = stages.iter().next().and_then(Result::ok).and_then(|stage| stage.as_document());
    let name = first.and_then(|stage| stage.iter().next()).and_then(Result::ok);
    name.is_some_and(|(name, _)| OF_COLLECTIONS.contains(&name))
}

/// The stage of a projection that nobody wrote.
pub(super) fn of_projection(projection: crate::projection::Projection) -> Arc<dyn Definition> {
    project::of(projection)
}

/// Refuses the stages that write in a pipeline within a stage.
fn refuse_writes(stages: &RawArray, fault: PipelineFault, owner: &str) -> Result<(), QueryError> {
    for stage in stages.iter() {
        let Some(first) = stage?.as_document().and_then(|stage| stage.iter().next()) else { continue };
        if let (name @ ("$out" | "$merge"), _) = first? {
            return Err(fault.error(format!("{name} is not allowed within a {owner}'s sub-pipeline")));
        }
    }
    Ok(())
}

/// The document in a source's bytes.
fn document_in(bytes: &Bytes) -> Result<&RawDocument, QueryError> {
    Ok(RawDocument::from_bytes(bytes)?)
}
