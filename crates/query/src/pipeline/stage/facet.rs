//! `$facet`: several pipelines over the same documents, as arrays in one document.
//!
//! The input is read once and held; then each pipeline reads from what is held.

use std::sync::Arc;

use pando_catalog::Bytes;
use pando_document::{DocumentWriter, RawValue};

use super::{Definition, RunOptions, Source, Stage};
use crate::error::{ErrorCode, QueryError};
use crate::expression::ParseScope;
use crate::filter::Filter;
use crate::pipeline::{Pipeline, PipelineFault, PipelineRun};
use crate::shell_text;
use crate::sort::{DiskUse, MEMORY_BYTES_MAX};

/// Stages that may not stand in a facet.
const NOT_ALLOWED: [&str; 9] = [
    "$out",
    "$merge",
    "$facet",
    "$collStats",
    "$indexStats",
    "$geoNear",
    "$planCacheStats",
    "$changeStream",
    "$documents",
];

#[derive(Clone, Debug)]
struct Facet {
    facets: Vec<(String, Pipeline)>,
}

struct Run {
    facets: Vec<OneFacet>,
    disk_use: DiskUse,
    held: Vec<Bytes>,
    bytes: usize,
    phase: Phase,
}

struct OneFacet {
    name: String,
    run: PipelineRun,
    read: usize,
    given: Vec<Bytes>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Reading,
    /// The facet under way.
    Running(usize),
    Done,
}

/// The held documents, as the source of one facet.
struct Held<'h> {
    documents: &'h [Bytes],
    read: &'h mut usize,
    others: &'h mut dyn Source,
}

pub(super) fn parse(argument: RawValue<'_>, scope: &ParseScope) -> Result<Arc<dyn Definition>, QueryError> {
    let facets = match argument {
        RawValue::Document(facets) if !facets.is_empty() => facets,
        other => {
            return Err(PipelineFault::FacetEmpty.error(format!(
                "the $facet specification must be a non-empty object, but found: $facet: {}",
                shell_text::value_text(other)
            )));
        }
    };
    let mut parsed = Vec::new();
    for facet in facets.iter() {
        let (name, stages) = facet?;
        crate::expression::check_field_name(name)?;
        let RawValue::Array(stages) = stages else {
            return Err(PipelineFault::FacetNotArray.error(format!(
                "arguments to $facet must be arrays, {name} is type {}",
                stages.element_type().alias()
            )));
        };
        let refused = stages.iter().filter_map(Result::ok).find_map(|stage| {
            let (stage, argument) = stage.as_document()?.iter().next()?.ok()?;
            // An empty inner $facet is told as that.
            let is_empty_facet =
                stage == "$facet" && argument.as_document().is_none_or(|facets| facets.is_empty());
            (NOT_ALLOWED.contains(&stage) && !is_empty_facet).then(|| stage.to_owned())
        });
        if let Some(stage) = refused {
            return Err(PipelineFault::NotInFacet
                .error(format!("{stage} is not allowed to be used within a $facet stage")));
        }
        parsed.push((name.to_owned(), Pipeline::parse(stages, scope)?));
    }
    Ok(Arc::new(Facet { facets: parsed }))
}

impl Definition for Facet {
    fn start(&self, options: &RunOptions) -> Box<dyn Stage> {
        let facets = self.facets.iter().map(|(name, pipeline)| OneFacet {
            name: name.clone(),
            run: pipeline.start(options),
            read: 0,
            given: Vec::new(),
        });
        Box::new(Run {
            facets: facets.collect(),
            disk_use: options.disk_use,
            held: Vec::new(),
            bytes: 0,
            phase: Phase::Reading,
        })
    }
}

impl Source for Held<'_> {
    fn next(&mut self) -> Result<Option<Bytes>, QueryError> {
        self.others.check()?;
        let next = self.documents.get(*self.read).cloned();
        *self.read += usize::from(next.is_some());
        Ok(next)
    }

    fn find_in(&mut self, collection: &str, filter: &Filter) -> Result<Vec<Bytes>, QueryError> {
        self.others.find_in(collection, filter)
    }

    fn check(&self) -> Result<(), QueryError> {
        self.others.check()
    }
}

impl Run {
    fn read(&mut self, input: &mut dyn Source) -> Result<(), QueryError> {
        while let Some(bytes) = input.next()? {
            self.bytes += bytes.len();
            self.held.push(bytes);
            if self.bytes > MEMORY_BYTES_MAX && self.disk_use == DiskUse::Forbidden {
                return Err(QueryError::new(
                    ErrorCode::ExceededMemoryLimit,
                    format!("$facet holds more than {MEMORY_BYTES_MAX} bytes"),
                ));
            }
        }
        Ok(())
    }

    fn write(&mut self) -> Result<Bytes, QueryError> {
        let mut bytes = Vec::new();
        let mut writer = DocumentWriter::begin(&mut bytes);
        for facet in &self.facets {
            let mut array = writer.array(&facet.name);
            facet.given.iter().for_each(|document| array.push_document_bytes(document));
            array.finish();
        }
        writer.finish();
        if bytes.len() > pando_document::DOCUMENT_BYTES_MAX {
            return Err(QueryError::new(
                ErrorCode::BsonObjectTooLarge,
                "the result of $facet is larger than a document may be",
            ));
        }
        Ok(Bytes::from(bytes))
    }
}

impl Stage for Run {
    fn next(&mut self, input: &mut dyn Source) -> Result<Option<Bytes>, QueryError> {
        if self.phase == Phase::Reading {
            self.read(input)?;
            self.phase = Phase::Running(0);
        }
        while let Phase::Running(at) = self.phase {
            let Some(facet) = self.facets.get_mut(at) else {
                self.phase = Phase::Done;
                self.held = Vec::new();
                return self.write().map(Some);
            };
            let mut source = Held { documents: &self.held, read: &mut facet.read, others: &mut *input };
            while let Some(bytes) = facet.run.next(&mut source)? {
                facet.given.push(bytes);
            }
            self.phase = Phase::Running(at + 1);
        }
        Ok(None)
    }
}
