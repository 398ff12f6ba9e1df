//! `$project`, `$addFields`/`$set` and `$unset`: each document becomes its projection.

use std::collections::BTreeSet;
use std::sync::Arc;

use pando_catalog::Bytes;
use pando_document::{RawArray, RawDocument, RawValue};

use super::{Definition, FilterInFront, RunOptions, Sink, Source, Stage, document_in};
use crate::array_build::build_array;
use crate::error::QueryError;
use crate::expression::ParseScope;
use crate::needs::Needs;
use crate::pipeline::PipelineFault;
use crate::pipeline::optimiser::{self, Nulls};
use crate::projection::{Projection, in_stage};

#[derive(Clone, Debug)]
struct Project {
    projection: Arc<Projection>,
}

struct Run {
    projection: Arc<Projection>,
    /// The document at hand; one buffer for all.
    projected: Vec<u8>,
}

pub(super) fn parse(argument: RawValue<'_>, scope: &ParseScope) -> Result<Arc<dyn Definition>, QueryError> {
    let RawValue::Document(specification) = argument else {
        return Err(PipelineFault::ProjectNotObject.error("$project specification must be an object"));
    };
    definition(Projection::parse_stage(specification, scope).map_err(|error| in_stage("$project", error))?)
}

pub(super) fn parse_add_fields(
    name: &str,
    argument: RawValue<'_>,
    scope: &ParseScope,
) -> Result<Arc<dyn Definition>, QueryError> {
    let RawValue::Document(specification) = argument else {
        return Err(PipelineFault::AddFieldsNotObject.error(format!(
            "{name} specification stage must be an object, got {}",
            argument.element_type().alias()
        )));
    };
    definition(Projection::add_fields(specification, scope).map_err(|error| in_stage(name, error))?)
}

pub(super) fn parse_unset(argument: RawValue<'_>) -> Result<Arc<dyn Definition>, QueryError> {
    let single;
    let paths = match argument {
        RawValue::Array(paths) => paths,
        RawValue::String(_) => {
            single = build_array([argument]);
            RawArray::from_document(&single)
        }
        _ => {
            return Err(
                PipelineFault::UnsetNotPaths.error("$unset specification must be a string or an array")
            );
        }
    };
    if paths.is_empty() {
        return Err(PipelineFault::UnsetEmpty
            .error("$unset specification must be a string or an array with at least one field"));
    }
    for path in paths.iter() {
        if path?.as_str().is_none() {
            return Err(PipelineFault::UnsetNotStrings
                .error("$unset specification must be a string or an array containing only string values"));
        }
    }
    definition(Projection::unset(paths).map_err(|error| in_stage("$unset", error))?)
}

fn definition(projection: Projection) -> Result<Arc<dyn Definition>, QueryError> {
    Ok(of(projection))
}

pub(super) fn of(projection: Projection) -> Arc<dyn Definition> {
    Arc::new(Project { projection: Arc::new(projection) })
}

impl Definition for Project {
    fn looks_at_each_alone(&self) -> bool {
        true
    }

    fn start(&self, _: &RunOptions) -> Box<dyn Stage> {
        Box::new(Run { projection: Arc::clone(&self.projection), projected: Vec::new() })
    }

    fn is_transparent(&self) -> bool {
        true
    }

    fn passes(&self, path: &str) -> bool {
        self.projection.passes(path)
    }

    fn filter_in_front(
        &self,
        filter: &RawDocument,
        paths: &BTreeSet<String>,
    ) -> Result<FilterInFront, QueryError> {
        if paths.iter().all(|path| self.projection.passes(path)) {
            return Ok(FilterInFront::Same);
        }
        let in_front = |path: &str| match self.projection.passes(path) {
            true => Some(path.to_owned()),
            false => self.projection.source_of(path),
        };
        let renamed = optimiser::renamed(filter, &in_front, Nulls::Kept)?;
        Ok(renamed.map_or(FilterInFront::None, FilterInFront::Other))
    }

    fn is_one_to_one(&self) -> bool {
        true
    }

    fn needs(&self, behind: Needs) -> Needs {
        self.projection.needs(behind)
    }
}

impl Stage for Run {
    fn next(&mut self, input: &mut dyn Source) -> Result<Option<Bytes>, QueryError> {
        let Some(bytes) = input.next()? else { return Ok(None) };
        let mut projected = Vec::with_capacity(bytes.len());
        self.projection.apply(document_in(&bytes)?, None, &mut projected)?;
        Ok(Some(Bytes::from(projected)))
    }

    fn for_each(&mut self, input: &mut dyn Source, sink: &mut Sink<'_>) -> Result<(), QueryError> {
        input.for_each(&mut |document, check| {
            self.projected.clear();
            self.projection.apply(document, None, &mut self.projected)?;
            sink(RawDocument::from_bytes(&self.projected)?, check)
        })
    }
}
