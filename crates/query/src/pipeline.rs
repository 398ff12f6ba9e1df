//! Aggregation pipelines: each stage draws documents from the one before it, one at a time.
//!
//! ```text
//! source ──> $match ──> $group ──> $sort ──> caller
//!        <── next   <── next   <── next  <── next
//! ```
//!
//! 1. [`Pipeline::parse`] checks all stages before any document is read.
//! 2. [`Pipeline::split_pushdown`] takes off the front the stages that a plan does better: filter, sort, skip
//!    and limit.
//! 3. [`Pipeline::start`] gives a [`PipelineRun`], which owns the state of all stages. [`PipelineRun::next`]
//!    pulls one document through them. Blocking stages (`$group`, `$sort`) read their whole input at the
//!    first call.
//!
//! Terms: a *source* gives the documents of the collection, and of other collections for `$lookup`; it
//! belongs to the caller and is lent to each call, so that a run can wait for days in a cursor without
//! holding a transaction.
//!
//! Invariants: a run is `Send`. An error of the source passes through without losing state, so after
//! `WouldBlock` the call is simply repeated. A blocking stage holds what its query's account has for it, and
//! spills beyond ([`crate::memory`]).
//!
//! Not here: expressions and accumulators' arguments (`expression`), where documents come from (`execute`),
//! `$out` and `$merge`, which write (`commands`).

mod accumulator;
mod fault;
mod stage;

use std::sync::Arc;

use pando_catalog::Bytes;
use pando_document::{RawArray, RawDocument, RawDocumentBuf, RawValue};

pub use self::fault::PipelineFault;

use self::stage::{Definition, Stage};
use crate::error::QueryError;
use crate::expression::ParseScope;
use crate::filter::Filter;
use crate::memory::StageMemory;

/// Most stages of one pipeline, as in MongoDB.
const STAGES_MAX: usize = 1000;

/// Where the documents of a pipeline come from.
pub trait Source {
    /// The next document, or none at the end.
    ///
    /// # Errors
    /// Any; after one that [is retryable](QueryError::is_would_block) the call may be repeated and must go on
    /// where it was.
    fn next(&mut self) -> Result<Option<Bytes>, QueryError>;

    /// Calls `take` with each document of another collection of the same database that matches a filter.
    ///
    /// # Errors
    /// As for [`Source::next`], but a repeated call begins anew; and the first error of `take`. A collection
    /// that does not exist is empty.
    fn find_in(&mut self, collection: &str, filter: &Filter, take: Take<'_>) -> Result<(), QueryError>;

    /// Fails if the operation has to end: for loops that draw no documents. Drawing one checks already.
    ///
    /// # Errors
    /// The operation was interrupted.
    fn check(&self) -> Result<(), QueryError>;
}

/// Takes the documents that a [`Source`] finds.
pub type Take<'t> = &'t mut dyn FnMut(&RawDocument) -> Result<(), QueryError>;

/// A parsed pipeline.
#[derive(Clone, Debug, Default)]
pub struct Pipeline {
    stages: Vec<ParsedStage>,
}

#[derive(Clone, Debug)]
struct ParsedStage {
    /// As it was written: `{$name: …}`.
    text: RawDocumentBuf,
    definition: Arc<dyn Definition>,
}

/// The front of a pipeline that a plan takes over, in this order: filter, sort, skip, limit.
#[derive(Clone, Debug)]
pub struct Pushdown {
    /// The filter; an empty document if there is none.
    pub filter: RawDocumentBuf,
    /// The sort pattern.
    pub sort: Option<RawDocumentBuf>,
    /// Documents to pass over.
    pub skip: u64,
    /// Most documents.
    pub limit: Option<u64>,
    /// The stages that are left.
    pub rest: Pipeline,
}

/// How a pipeline is run.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// The memory of its blocking stages.
    pub memory: StageMemory,
    /// Where `$sample` starts its choice.
    pub seed: u64,
}

/// A pipeline at work.
pub struct PipelineRun {
    stages: Vec<Box<dyn Stage>>,
}

impl Pipeline {
    /// Parses the stages.
    pub fn parse(stages: &RawArray, scope: &ParseScope) -> Result<Pipeline, QueryError> {
        let mut pipeline = Pipeline::default();
        for element in stages.iter() {
            let RawValue::Document(text) = element? else {
                return Err(QueryError::type_mismatch(
                    "Each element of the 'pipeline' array must be an object",
                ));
            };
            let mut fields = text.iter();
            let (Some(field), None) = (fields.next(), fields.next()) else {
                return Err(PipelineFault::StageNotOneField
                    .error("A pipeline stage specification object must contain exactly one field."));
            };
            let (name, argument) = field?;
            for definition in stage::parse(name, argument, scope)? {
                pipeline.stages.push(ParsedStage { text: text.to_owned(), definition });
            }
        }
        if pipeline.stages.len() > STAGES_MAX {
            return Err(QueryError::failed_to_parse(format!(
                "Pipeline length must be no longer than {STAGES_MAX} stages"
            )));
        }
        Ok(pipeline)
    }

    /// Whether there are no stages.
    pub fn is_empty(&self) -> bool {
        self.stages.is_empty()
    }

    /// The stages as they were written, for `explain`.
    pub fn stages(&self) -> impl Iterator<Item = &RawDocument> {
        self.stages.iter().map(|stage| &*stage.text)
    }

    /// Takes off the front what a plan can do.
    pub fn split_pushdown(self) -> Pushdown {
        let mut stages = self.stages.into_iter().peekable();
        let mut filters = Vec::new();
        while let Some(stage) = stages.next_if(|stage| stage.name() == "$match") {
            filters.push(stage.text);
        }
        let sort =
            stages.next_if(|stage| stage.name() == "$sort").and_then(|stage| stage.argument_document());
        let skip = stages.next_if(|stage| stage.name() == "$skip").and_then(|stage| stage.argument_count());
        let limit = stages.next_if(|stage| stage.name() == "$limit").and_then(|stage| stage.argument_count());
        Pushdown {
            filter: all_of(&filters),
            sort,
            skip: skip.unwrap_or(0),
            limit,
            rest: Pipeline { stages: stages.collect() },
        }
    }

    /// Starts a run.
    pub fn start(&self, options: &RunOptions) -> PipelineRun {
        PipelineRun { stages: self.stages.iter().map(|stage| stage.definition.start(options)).collect() }
    }
}

impl ParsedStage {
    fn field(&self) -> Option<(&str, RawValue<'_>)> {
        self.text.iter().next().and_then(Result::ok)
    }

    fn name(&self) -> &str {
        self.field().map_or("", |(name, _)| name)
    }

    fn argument_document(&self) -> Option<RawDocumentBuf> {
        self.field().and_then(|(_, argument)| argument.as_document()).map(RawDocument::to_owned)
    }

    fn argument_count(&self) -> Option<u64> {
        self.field()
            .and_then(|(_, argument)| argument.as_i64_exact())
            .and_then(|count| u64::try_from(count).ok())
    }
}

/// One filter for all `$match` stages.
fn all_of(stages: &[RawDocumentBuf]) -> RawDocumentBuf {
    let filters: Vec<&RawDocument> = stages
        .iter()
        .filter_map(|stage| stage.iter().next().and_then(Result::ok))
        .filter_map(|(_, argument)| argument.as_document())
        .collect();
    match filters.as_slice() {
        [] => RawDocumentBuf::new(),
        [only] => (*only).to_owned(),
        several => {
            let clauses =
                crate::array_build::build_array(several.iter().map(|filter| RawValue::Document(filter)));
            let mut bytes = Vec::new();
            let mut writer = pando_document::DocumentWriter::begin(&mut bytes);
            writer.append("$and", RawValue::Array(RawArray::from_document(&clauses)));
            writer.finish();
            RawDocumentBuf::from_vec(bytes).expect("a document just written is well formed")
        }
    }
}

impl PipelineRun {
    /// The next document of the result, or none at the end.
    pub fn next(&mut self, source: &mut dyn Source) -> Result<Option<Bytes>, QueryError> {
        Upstream { stages: &mut self.stages, source }.next()
    }
}

/// The stages before one stage, as that stage's source.
struct Upstream<'r> {
    stages: &'r mut [Box<dyn Stage>],
    source: &'r mut dyn Source,
}

impl Source for Upstream<'_> {
    fn next(&mut self) -> Result<Option<Bytes>, QueryError> {
        match self.stages.split_last_mut() {
            None => self.source.next(),
            Some((last, stages)) => last.next(&mut Upstream { stages, source: self.source }),
        }
    }

    fn find_in(&mut self, collection: &str, filter: &Filter, take: Take<'_>) -> Result<(), QueryError> {
        self.source.find_in(collection, filter, take)
    }

    fn check(&self) -> Result<(), QueryError> {
        self.source.check()
    }
}
