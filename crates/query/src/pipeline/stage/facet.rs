//! `$facet`: several pipelines over the same documents, as arrays in one document.
//!
//! The pipelines run side by side over one pass of the input:
//! 1. A portion of the input is read.
//! 2. Each pipeline reads the portion. At its end the source answers `WouldBlock`, which no stage loses state
//!    by, and the next pipeline has its turn.
//! 3. Portions follow until the input ends, or all pipelines have ended before it.
//!
//! # Memory
//! The input takes a portion; the pipelines' own stages have reservations. The results together are bounded
//! by the memory of a stage: they may be larger than a document, for a stage behind that makes them smaller.

use std::any::Any;
use std::sync::Arc;

use pando_catalog::{Bytes, Reservation, StorageError};
use pando_document::{DOCUMENT_BYTES_MAX, Document, DocumentWriter, RawDocument, RawValue, Value};

use super::{
    Check, Definition, Flow, ForeignAccess, Gathering, GeoNearSpecification, Memory, RunOptions, Searches,
    Sink, Source, Stage, Take, same_stage,
};
use crate::error::QueryError;
use crate::expression::ParseScope;
use crate::filter::Filter;
use crate::memory::{MEMORY_BYTES_MAX, hold_value};
use crate::metadata::MetadataSet;
use crate::needs::Needs;
use crate::pipeline::{Pipeline, PipelineFault, PipelineRun};
use crate::shell_text;

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

/// A portion of the input has so many documents at most, and ends when it has so many bytes.
const PORTION_DOCUMENTS: usize = 256;
const PORTION_BYTES: usize = 256 << 10;
/// Bytes that the results may have in any case: somewhat more than an answer, which is refused as one.
const RESULT_BYTES_LEAST: usize = 2 * DOCUMENT_BYTES_MAX;

#[derive(Clone, Debug)]
struct Facet {
    facets: Vec<(String, Pipeline)>,
}

struct Run {
    facets: Vec<OneFacet>,
    portion: Documents,
    input: Input,
    /// The facet that reads the portion.
    turn: usize,
    results_bytes: usize,
    reservation: Reservation,
    phase: Phase,
}

/// Documents one behind the other in one buffer, which serves all portions.
#[derive(Default)]
struct Documents {
    bytes: Vec<u8>,
    /// Where each ends.
    ends: Vec<usize>,
}

impl Documents {
    fn push(&mut self, document: &RawDocument) {
        self.bytes.extend_from_slice(document.as_bytes());
        self.ends.push(self.bytes.len());
    }

    fn get(&self, at: usize) -> Option<&[u8]> {
        let end = *self.ends.get(at)?;
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        Some(&self.bytes[start..end])
    }

    fn is_full(&self) -> bool {
        self.ends.len() >= PORTION_DOCUMENTS || self.bytes.len() >= PORTION_BYTES
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }
}

struct OneFacet {
    name: String,
    run: PipelineRun,
    /// Its first stages that can read the input in parts.
    gathering_stages: Option<usize>,
    /// The pipeline, where the run is measured.
    measured: Option<Pipeline>,
    /// Documents of the portion that it has read.
    read: usize,
    given: Vec<Bytes>,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Input {
    HasMore,
    AtEnd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Running,
    Done,
}

/// The portion, as the source of one facet.
struct Portion<'h> {
    documents: &'h Documents,
    read: &'h mut usize,
    input: Input,
    /// Whether it answered `WouldBlock` by itself.
    reached: Reached,
    others: &'h mut dyn Source,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reached {
    Within,
    PortionEnd,
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
            let is_join = matches!(stage, "$lookup" | "$unionWith");
            let is_refused = NOT_ALLOWED.contains(&stage) || (is_join && super::joins_figures(argument));
            (is_refused && !is_empty_facet).then(|| stage.to_owned())
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
    fn gathers(&self) -> bool {
        self.facets.iter().all(|(_, pipeline)| pipeline.gathering_stages().is_some())
    }

    fn memory(&self) -> Memory {
        Memory::Reserved
    }

    fn needs(&self, _behind: Needs) -> Needs {
        let mut needs = Needs::nothing();
        for (_, pipeline) in &self.facets {
            match pipeline.needs() {
                Needs::Everything => needs.add_everything(),
                Needs::Paths(paths) => paths.iter().for_each(|path| needs.add(path)),
            }
        }
        needs
    }

    fn start(&self, options: &RunOptions) -> Box<dyn Stage> {
        let facets = self.facets.iter().map(|(name, pipeline)| OneFacet {
            name: name.clone(),
            run: pipeline.start(options),
            gathering_stages: pipeline.gathering_stages(),
            measured: options.clock.as_ref().map(|_| pipeline.clone()),
            read: 0,
            given: Vec::new(),
            phase: Phase::Running,
        });
        Box::new(Run {
            facets: facets.collect(),
            portion: Documents::default(),
            input: Input::HasMore,
            turn: self.facets.len(),
            results_bytes: 0,
            reservation: options.memory.account.reserve(),
            phase: Phase::Running,
        })
    }
}

impl Source for Portion<'_> {
    fn next(&mut self) -> Result<Option<Bytes>, QueryError> {
        self.others.check()?;
        let Some(next) = self.documents.get(*self.read) else {
            self.end()?;
            return Ok(None);
        };
        *self.read += 1;
        Ok(Some(Bytes::copy_from_slice(next)))
    }

    fn for_each(&mut self, sink: &mut Sink<'_>) -> Result<(), QueryError> {
        while let Some(next) = self.documents.get(*self.read) {
            self.others.check()?;
            let document = RawDocument::from_bytes(next)?;
            *self.read += 1;
            if sink(document, &mut || self.others.check())? == Flow::Enough {
                return Ok(());
            }
        }
        self.end()
    }

    fn find_in(&mut self, collection: &str, filter: &Filter, take: Take<'_>) -> Result<(), QueryError> {
        self.others.find_in(collection, filter, take)
    }

    fn find_near(
        &mut self,
        collection: &str,
        near: &GeoNearSpecification,
        metadata: MetadataSet,
        take: Take<'_>,
    ) -> Result<(), QueryError> {
        self.others.find_near(collection, near, metadata, take)
    }

    fn foreign_access(&mut self, collection: &str, path: &str) -> Result<ForeignAccess, QueryError> {
        self.others.foreign_access(collection, path)
    }

    fn take_searches(&mut self) -> Searches {
        self.others.take_searches()
    }

    fn check(&self) -> Result<(), QueryError> {
        self.others.check()
    }
}

impl<'h> Portion<'h> {
    /// The portion for a facet that has read some of it.
    fn of(
        documents: &'h Documents,
        input: Input,
        read: &'h mut usize,
        others: &'h mut dyn Source,
    ) -> Portion<'h> {
        Portion { documents, read, input, reached: Reached::Within, others }
    }

    /// Tells that the portion was read: more follows, or the input has ended.
    fn end(&mut self) -> Result<(), QueryError> {
        if self.input == Input::AtEnd {
            return Ok(());
        }
        self.reached = Reached::PortionEnd;
        Err(StorageError::would_block().into())
    }
}

impl Run {
    /// Reads a portion, if all facets have read the one before.
    fn read(&mut self, input: &mut dyn Source) -> Result<(), QueryError> {
        if self.turn < self.facets.len() {
            return Ok(());
        }
        // After `WouldBlock` in the middle of a portion it goes on there.
        if self.facets.iter().any(|facet| facet.read > 0) {
            self.portion.clear();
            self.facets.iter_mut().for_each(|facet| facet.read = 0);
        }
        let portion = &mut self.portion;
        input.for_each(&mut |document, _| {
            portion.push(document);
            Ok(if portion.is_full() { Flow::Enough } else { Flow::More })
        })?;
        if !portion.is_full() {
            self.input = Input::AtEnd;
        }
        self.hold()?;
        self.turn = 0;
        Ok(())
    }

    /// Has the facets read the portion, each from where it stands.
    fn run(&mut self, input: &mut dyn Source) -> Result<(), QueryError> {
        while let Some(facet) = self.facets.get_mut(self.turn) {
            while facet.phase == Phase::Running {
                let mut source = Portion::of(&self.portion, self.input, &mut facet.read, input);
                match facet.run.next(&mut source) {
                    Ok(Some(bytes)) => {
                        self.results_bytes += bytes.len();
                        facet.given.push(bytes);
                        if self.results_bytes > MEMORY_BYTES_MAX {
                            return Err(too_large(self.results_bytes));
                        }
                    }
                    Ok(None) => facet.phase = Phase::Done,
                    Err(error) if error.is_would_block() && source.reached == Reached::PortionEnd => break,
                    Err(error) => return Err(error),
                }
            }
            // A facet that has ended needs no further portion; this one counts as read.
            facet.read = facet.read.max(1);
            self.turn += 1;
        }
        self.hold()
    }

    fn hold(&mut self) -> Result<(), QueryError> {
        let bytes = self.portion.bytes.len() + self.results_bytes;
        if bytes <= RESULT_BYTES_LEAST && !self.reservation.grow_to(bytes) {
            self.reservation.hold(bytes);
        }
        hold_value(&mut self.reservation, bytes, "$facet")
    }

    fn write(&mut self) -> Result<Bytes, QueryError> {
        let mut bytes = Vec::with_capacity(self.results_bytes);
        let mut writer = DocumentWriter::begin(&mut bytes);
        for facet in &self.facets {
            let mut array = writer.array(&facet.name);
            facet.given.iter().for_each(|document| array.push_document_bytes(document));
            array.finish();
        }
        writer.finish();
        // The figures of a measured facet are asked for behind the end.
        self.facets.retain(|facet| facet.measured.is_some());
        self.facets.iter_mut().for_each(|facet| facet.given = Vec::new());
        self.portion = Documents::default();
        self.reservation.hold(0);
        Ok(Bytes::from(bytes))
    }
}

fn too_large(bytes: usize) -> QueryError {
    PipelineFault::FacetTooLarge.error(format!(
        "document constructed by $facet is {bytes} bytes, which exceeds the limit of {MEMORY_BYTES_MAX} bytes"
    ))
}

impl Stage for Run {
    fn next(&mut self, input: &mut dyn Source) -> Result<Option<Bytes>, QueryError> {
        if self.phase == Phase::Done {
            return Ok(None);
        }
        while self.facets.iter().any(|facet| facet.phase == Phase::Running) {
            self.read(input)?;
            self.run(input)?;
        }
        self.phase = Phase::Done;
        self.write().map(Some)
    }

    fn gathering(&mut self) -> Option<&mut dyn Gathering> {
        Some(self)
    }

    fn explain(&self, shown: &mut Document) {
        let mut facets = Document::new();
        for OneFacet { name, run, measured, .. } in &self.facets {
            let Some(pipeline) = measured else { continue };
            let stages = pipeline.explain(Some(run)).into_iter().map(Value::Document);
            facets.push(name.as_str(), Value::Array(stages.collect()));
        }
        shown.insert("$facet", facets);
    }
}

impl Gathering for Run {
    fn gather(&mut self, input: &mut dyn Source) -> Result<(), QueryError> {
        while self.input == Input::HasMore {
            self.read(input)?;
            while let Some(facet) = self.facets.get_mut(self.turn) {
                let stages = facet.gathering_stages.expect("each facet of one that gathers does");
                let mut source = Portion::of(&self.portion, self.input, &mut facet.read, input);
                match facet.run.gather(stages, &mut source) {
                    Ok(()) => {}
                    Err(error) if error.is_would_block() && source.reached == Reached::PortionEnd => {}
                    Err(error) => return Err(error),
                }
                facet.read = facet.read.max(1);
                self.turn += 1;
            }
        }
        Ok(())
    }

    fn absorb(&mut self, later: &mut dyn Gathering, check: Check<'_>) -> Result<(), QueryError> {
        let later = same_stage::<Run>(later);
        for (facet, later) in self.facets.iter_mut().zip(&mut later.facets) {
            let stages = facet.gathering_stages.expect("each facet of one that gathers does");
            facet.run.absorb(stages, &mut later.run, check)?;
        }
        Ok(())
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}
