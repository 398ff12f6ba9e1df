//! An update by a pipeline: `$set`/`$addFields`, `$unset`/`$project`, `$replaceWith`/`$replaceRoot`, one
//! after the other.
//!
//! `_id` is kept where the stages lose it, and stands first.

use pando_catalog::Bytes;
use pando_document::{DocumentWriter, RawArray, RawDocument, RawDocumentBuf};

use super::Applied;
use super::replacement::with_own_id_first;
use crate::error::{ErrorCode, QueryError};
use crate::expression::{Optimisation, ParseScope};
use crate::filter::Filter;
use crate::memory::{DiskUse, StageMemory};
use crate::pipeline::{Pipeline, RunOptions, Source, Take};

const ALLOWED: [&str; 6] = ["$set", "$addFields", "$unset", "$project", "$replaceWith", "$replaceRoot"];

#[derive(Debug)]
pub(super) struct PipelineUpdate {
    pipeline: Pipeline,
}

/// One document, once.
struct One {
    document: Option<Bytes>,
}

impl PipelineUpdate {
    pub(super) fn parse(stages: &RawArray, scope: &ParseScope) -> Result<PipelineUpdate, QueryError> {
        // The optimiser would take away a stage that has no effect, and that is to be refused.
        let pipeline = Pipeline::parse(stages, &scope.as_written().optimised(Optimisation::Off))?;
        for stage in pipeline.stages() {
            if let Some(field) = stage.iter().next() {
                let (name, _) = field?;
                if !ALLOWED.contains(&name) {
                    return Err(QueryError::new(
                        ErrorCode::InvalidOptions,
                        format!("{name} is not allowed to be used within an update"),
                    ));
                }
            }
        }
        Ok(PipelineUpdate { pipeline })
    }

    pub(super) fn apply(&self, old: &RawDocument) -> Result<Applied, QueryError> {
        let mut source = One { document: Some(Bytes::copy_from_slice(old.as_bytes())) };
        let options = RunOptions::new(StageMemory::unlimited(DiskUse::Forbidden), 0);
        let Some(bytes) = self.pipeline.start(&options).next(&mut source)? else {
            unreachable!("the stages of updates give one document for each");
        };
        let new = RawDocument::from_bytes(&bytes)?;
        // A pipeline that loses `_id` counts as a change, though `_id` comes back.
        if new.as_bytes() == old.as_bytes() {
            return Ok(Applied::Unchanged);
        }
        with_id_of(old, new).map(Applied::Changed)
    }
}

fn with_id_of(old: &RawDocument, new: &RawDocument) -> Result<RawDocumentBuf, QueryError> {
    let (Some(id), None) = (old.get("_id")?, new.get("_id")?) else { return with_own_id_first(new) };
    let mut bytes = Vec::with_capacity(new.as_bytes().len() + 32);
    let mut writer = DocumentWriter::begin(&mut bytes);
    writer.append("_id", id);
    let fields = new.as_bytes();
    writer.append_raw_fields(&fields[4..fields.len() - 1]);
    writer.finish();
    Ok(RawDocumentBuf::from_vec(bytes)?)
}

impl Source for One {
    fn next(&mut self) -> Result<Option<Bytes>, QueryError> {
        Ok(self.document.take())
    }

    fn find_in(&mut self, _: &str, _: &Filter, _: Take<'_>) -> Result<(), QueryError> {
        unreachable!("no stage of an update reads another collection")
    }

    fn check(&self) -> Result<(), QueryError> {
        // One document is one turn of the statement's loop, which checks.
        Ok(())
    }
}

/// Whether array filters were given, which a pipeline has no use for.
pub(super) fn refuse_array_filters(array_filters: Option<&RawArray>) -> Result<(), QueryError> {
    match array_filters {
        Some(_) => {
            Err(QueryError::failed_to_parse("arrayFilters may not be specified for pipeline-style updates"))
        }
        None => Ok(()),
    }
}
