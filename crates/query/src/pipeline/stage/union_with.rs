//! `$unionWith`: the documents of the input, and behind them the documents that a pipeline makes of another
//! collection.
//!
//! 1. The input passes through.
//! 2. At its end the other collection is asked, by the filter that its pipeline begins with. The documents
//!    that are found wait in a sorter, which may spill.
//! 3. The pipeline of the stage draws them. A pipeline that begins with `$documents` needs no collection.

use std::sync::Arc;

use pando_catalog::Bytes;
use pando_document::{Document, RawArray, RawDocument, RawValue};

use super::fetched::{self, Fetched};
use super::{Definition, Flow, Memory, RunOptions, Searches, Sink, Source, Stage};
use crate::error::{ErrorCode, QueryError};
use crate::expression::ParseScope;
use crate::filter::Filter;
use crate::needs::Needs;
use crate::pipeline::searches_shown::show;
use crate::pipeline::{Pipeline, PipelineFault, PipelineRun};
use crate::sort::Sorter;

#[derive(Clone, Debug)]
struct UnionWith {
    specification: Arc<Specification>,
}

#[derive(Debug)]
struct Specification {
    /// `None`: the pipeline makes its own documents.
    collection: Option<String>,
    filter: Filter,
    pipeline: Pipeline,
    /// The part of the pipeline behind its search, which the source answers; `None` without a search.
    behind_search: Option<Pipeline>,
}

struct Run {
    specification: Arc<Specification>,
    options: RunOptions,
    phase: Phase,
    /// The work in the other collection, where the run is measured.
    searches: Option<Searches>,
}

enum Phase {
    /// The input passes through.
    Input,
    /// The pipeline of the stage gives its documents.
    Other { documents: Sorter, run: PipelineRun },
}

pub(super) fn parse(argument: RawValue<'_>, scope: &ParseScope) -> Result<Arc<dyn Definition>, QueryError> {
    let mut collection = None;
    let mut stages = RawArray::from_document(RawDocument::empty());
    match argument {
        RawValue::String(name) => collection = Some(name),
        RawValue::Document(options) => {
            for option in options.iter() {
                match option? {
                    ("coll", RawValue::String(name)) => collection = Some(name),
                    ("coll", RawValue::Null) => {}
                    ("coll", other) => return Err(wrong_type("coll", other)),
                    ("pipeline", RawValue::Array(pipeline)) => stages = pipeline,
                    ("pipeline", _) => {
                        return Err(QueryError::type_mismatch(
                            "'pipeline' option must be specified as an array",
                        ));
                    }
                    (name, _) => {
                        let sentence = format!("BSON field '$unionWith.{name}' is an unknown field.");
                        return Err(QueryError::new(ErrorCode::IdlUnknownField, sentence));
                    }
                }
            }
        }
        other => {
            return Err(QueryError::failed_to_parse(format!(
                "the $unionWith stage specification must be an object or string, but found {}",
                other.element_type().alias()
            )));
        }
    }
    super::refuse_writes(stages, PipelineFault::WriteInUnion, "$unionWith")?;
    if let Some(name) = collection.filter(|name| name.starts_with('.')) {
        let sentence = format!("Collection names cannot start with '.': {name}");
        return Err(QueryError::new(ErrorCode::InvalidNamespace, sentence));
    }
    let scope = scope.within_stage()?;
    let pipeline = Pipeline::parse(stages, &scope)?;
    if pipeline.makes_documents() {
        collection = None;
    } else if collection.is_none() {
        return Err(QueryError::failed_to_parse(
            "$unionWith stage without explicit collection must have a pipeline with $documents as first stage",
        ));
    }
    let filter = Filter::parse(&pipeline.clone().split_pushdown().filter, &scope)?;
    let (collection, behind_search) = (collection.map(str::to_owned), pipeline.behind_search());
    let specification = Specification { collection, filter, pipeline, behind_search };
    Ok(Arc::new(UnionWith { specification: Arc::new(specification) }))
}

fn wrong_type(name: &str, value: RawValue<'_>) -> QueryError {
    QueryError::type_mismatch(format!(
        "BSON field '$unionWith.{name}' is the wrong type '{}', expected type 'string'",
        value.element_type().alias()
    ))
}

impl Definition for UnionWith {
    fn memory(&self) -> Memory {
        Memory::Reserved
    }

    fn needs(&self, behind: Needs) -> Needs {
        behind
    }

    /// The optimiser puts the filter into both collections.
    fn lets_filters_pass(&self) -> bool {
        true
    }

    fn start(&self, options: &RunOptions) -> Box<dyn Stage> {
        Box::new(Run {
            specification: Arc::clone(&self.specification),
            options: options.unmeasured(),
            phase: Phase::Input,
            searches: options.clock.as_ref().map(|_| Searches::default()),
        })
    }
}

impl Run {
    /// Asks the other collection. Nothing changes where that fails.
    fn begin_other(&mut self, input: &mut dyn Source) -> Result<(), QueryError> {
        let Specification { collection, filter, pipeline, behind_search } = &*self.specification;
        let memory = &self.options.memory;
        let documents = match collection {
            Some(collection) => fetched::fetch_for(collection, pipeline, filter, memory, input)?,
            None => fetched::none(memory),
        };
        let run = behind_search.as_ref().unwrap_or(pipeline).start(&self.options);
        self.phase = Phase::Other { documents, run };
        Ok(())
    }

    fn note(&mut self, input: &mut dyn Source) {
        if let Some(searches) = &mut self.searches {
            searches.add(input.take_searches());
        }
    }
}

impl Stage for Run {
    fn next(&mut self, input: &mut dyn Source) -> Result<Option<Bytes>, QueryError> {
        super::pulled(self, input)
    }

    fn for_each(&mut self, input: &mut dyn Source, sink: &mut Sink<'_>) -> Result<(), QueryError> {
        if matches!(self.phase, Phase::Input) {
            let mut last = Flow::More;
            input.for_each(&mut |document, check| {
                last = sink(document, check)?;
                Ok(last)
            })?;
            if last == Flow::Enough {
                return Ok(());
            }
            self.begin_other(input)?;
        }
        if let Phase::Other { documents, run } = &mut self.phase {
            run.for_each(&mut Fetched { documents, others: &mut *input }, sink)?;
        }
        self.note(input);
        Ok(())
    }

    fn explain(&self, shown: &mut Document) {
        show(self.searches.as_ref(), shown);
    }
}
