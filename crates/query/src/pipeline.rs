//! Aggregation pipelines: each stage draws documents from the one before it, one at a time.
//!
//! ```text
//! source ──> $match ──> $group ──> $sort ──> caller
//!        <── next   <── next   <── next  <── next
//! ```
//!
//! 1. [`Pipeline::parse`] checks all stages before any document is read. The [`optimiser`] moves those
//!    forward that leave less to do for the others.
//! 2. [`Pipeline::split_pushdown`] takes off the front the stages that a plan does better: filter, sort, skip
//!    and limit.
//! 3. [`Pipeline::start`] gives a [`PipelineRun`], which owns the state of all stages. [`PipelineRun::next`]
//!    pulls one document through them, and [`PipelineRun::for_each`] pushes borrowed documents into a *sink*.
//!    Blocking stages (`$group`, `$sort`) read their whole input at the first call.
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
mod depth_guard;
mod fault;
mod foreign;
mod measured;
mod optimiser;
mod searches_shown;
mod stage;
mod upstream;
mod wanted_metadata;

use std::sync::Arc;

use pando_catalog::Bytes;
use pando_document::{Document, RawArray, RawDocument, RawDocumentBuf, RawValue, doc};
use pando_environment::Clock;

pub use self::fault::PipelineFault;
pub use self::foreign::{ForeignAccess, ForeignPath, ForeignSearch, Searches};

use self::depth_guard::DepthGuard;
use self::measured::Measured;
pub use self::stage::GeoNearSpecification;
use self::stage::{Definition, Nesting, Stage};
use self::upstream::Upstream;
use crate::error::{ErrorCode, QueryError};
use crate::expression::ParseScope;
use crate::filter::{Filter, has_text};
use crate::memory::StageMemory;
use crate::metadata::MetadataSet;
use crate::needs::Needs;
use crate::plan::GroupEnds;
use crate::sort::SortPattern;

/// Most stages of one pipeline, as in MongoDB.
const STAGES_MAX: usize = 1000;

/// Stages that may only stand first.
const FIRST_ONLY: [&str; 6] =
    ["$collStats", "$documents", "$indexStats", "$listLocalSessions", "$listSessions", "$planCacheStats"];

/// Whether a sink takes more documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// It does.
    More,
    /// It has had enough for now.
    Enough,
}

/// Takes one document after the other, borrowed for the call.
pub type Sink<'s> = dyn FnMut(&RawDocument, Check<'_>) -> Result<Flow, QueryError> + 's;

/// Fails if the operation has to end. A sink calls it between long steps, because its source is lent out.
pub type Check<'c> = &'c mut dyn FnMut() -> Result<(), QueryError>;

/// Takes documents together with how many of them are equal in all that the pipeline looks at.
pub type RunSink<'s> = dyn FnMut(&RawDocument, u64, Check<'_>) -> Result<(), QueryError> + 's;

/// Tells how documents of a collection are found by the values at a path.
pub type AccessOf<'a> = &'a mut dyn FnMut(&str, &str) -> Result<ForeignAccess, QueryError>;

/// Where the documents of a pipeline come from.
pub trait Source {
    /// The next document, or none at the end.
    ///
    /// # Errors
    /// Any; after one that [is retryable](QueryError::is_would_block) the call may be repeated and must go on
    /// where it was.
    fn next(&mut self) -> Result<Option<Bytes>, QueryError>;

    /// Gives documents to a sink until it has enough or there are no more.
    ///
    /// # Errors
    /// Those of the sink, and as for [`Source::next`]: a document that the sink took is not given again.
    fn for_each(&mut self, sink: &mut Sink<'_>) -> Result<(), QueryError> {
        while let Some(bytes) = self.next()? {
            if sink(RawDocument::from_bytes(&bytes)?, &mut || self.check())? == Flow::Enough {
                break;
            }
        }
        Ok(())
    }

    /// Gives all documents to a sink, equal ones together where they come so.
    ///
    /// # Errors
    /// As for [`Source::for_each`].
    fn for_each_run(&mut self, sink: &mut RunSink<'_>) -> Result<(), QueryError> {
        self.for_each(&mut |document, check| sink(document, 1, check).map(|()| Flow::More))
    }

    /// Calls `take` with each document of another collection of the same database that matches a filter.
    ///
    /// # Errors
    /// As for [`Source::next`], but a repeated call begins anew; and the first error of `take`. A collection
    /// that does not exist is empty.
    fn find_in(&mut self, collection: &str, filter: &Filter, take: Take<'_>) -> Result<(), QueryError>;

    /// How documents of another collection are found by the values at a path. Without an answer each search
    /// is taken for one that reads all documents.
    ///
    /// # Errors
    /// As for [`Source::find_in`].
    fn foreign_access(&mut self, _collection: &str, _path: &str) -> Result<ForeignAccess, QueryError> {
        Ok(ForeignAccess::default())
    }

    /// Calls `take` with the documents of another collection in the order of their distances, as `$geoNear`
    /// gives them.
    ///
    /// # Errors
    /// As for [`Source::find_in`]; there is no index of geometries, or no collection.
    fn find_near(
        &mut self,
        collection: &str,
        near: &GeoNearSpecification,
        metadata: MetadataSet,
        take: Take<'_>,
    ) -> Result<(), QueryError> {
        let _ = (collection, near, metadata, take);
        Err(QueryError::not_implemented("$geoNear over documents of no collection"))
    }

    /// The work of [`Source::find_in`] since the last call, where the run is measured.
    fn take_searches(&mut self) -> Searches {
        Searches::default()
    }

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
    /// The metadata that its stages look at.
    metadata: MetadataSet,
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
    /// The `$geoNear` in front, which takes the place of the filter.
    pub near: Option<GeoNearSpecification>,
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
    /// The stages that give the same without the sort, where there are such: they are worth more than a sort
    /// in memory.
    pub rest_unsorted: Option<Pipeline>,
}

/// How a pipeline is run.
#[derive(Clone)]
pub struct RunOptions {
    /// The memory of its blocking stages.
    memory: StageMemory,
    /// Where `$sample` starts its choice.
    seed: u64,
    /// The clock of stages that are measured.
    clock: Option<Arc<dyn Clock>>,
}

impl RunOptions {
    /// The memory of the blocking stages, and where `$sample` starts its choice.
    pub fn new(memory: StageMemory, seed: u64) -> RunOptions {
        RunOptions { memory, seed, clock: None }
    }

    /// The same for a run that is [explained](Pipeline::explain): it costs two looks at the clock for each
    /// document and stage.
    #[must_use]
    pub fn measured_by(self, clock: &Arc<dyn Clock>) -> RunOptions {
        RunOptions { clock: Some(Arc::clone(clock)), ..self }
    }

    /// The same for a run within a stage, of which nothing is shown.
    fn unmeasured(&self) -> RunOptions {
        RunOptions { clock: None, ..self.clone() }
    }
}

impl std::fmt::Debug for RunOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RunOptions({:?}, seed {})", self.memory, self.seed)
    }
}

/// A pipeline at work.
pub struct PipelineRun {
    stages: Vec<Box<dyn Stage>>,
}

impl Pipeline {
    /// Parses the stages.
    pub fn parse(stages: &RawArray, scope: &ParseScope) -> Result<Pipeline, QueryError> {
        if scope.is_as_written() {
            // The pipeline of an update: its document comes with no metadata.
            return Pipeline::parse_stages(stages, scope);
        }
        let metadata = wanted_metadata::of(stages, scope)?;
        let mut pipeline = Pipeline::parse_stages(stages, &scope.with_metadata(metadata))?;
        if !metadata.is_empty() {
            pipeline.stages.push(wanted_metadata::removal(metadata)?);
            pipeline.metadata = metadata;
        }
        Ok(pipeline)
    }

    /// The metadata that its documents need.
    pub fn metadata(&self) -> MetadataSet {
        self.metadata
    }

    fn parse_stages(stages: &RawArray, scope: &ParseScope) -> Result<Pipeline, QueryError> {
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
            match stage::written_out(name, argument)? {
                None => pipeline.push(text, name, argument, scope)?,
                Some(texts) => {
                    for text in &texts {
                        let Some(field) = text.iter().next() else { continue };
                        let (name, argument) = field?;
                        pipeline.push(text, name, argument, scope)?;
                    }
                }
            }
        }
        if pipeline.stages.len() > STAGES_MAX {
            return Err(QueryError::failed_to_parse(format!(
                "Pipeline length must be no longer than {STAGES_MAX} stages"
            )));
        }
        Ok(Pipeline { stages: optimiser::optimised(pipeline.stages, scope)?, metadata: MetadataSet::EMPTY })
    }

    fn push(
        &mut self,
        text: &RawDocument,
        name: &str,
        argument: RawValue<'_>,
        scope: &ParseScope,
    ) -> Result<(), QueryError> {
        wanted_metadata::check_place(name, argument, self.stages.len())?;
        let is_misplaced = FIRST_ONLY.contains(&name) && !self.stages.is_empty();
        let misplaced = || {
            PipelineFault::StageNotFirst
                .error(format!("{name} is only valid as the first stage in a pipeline"))
        };
        let definitions = match stage::parse(name, argument, scope) {
            Err(error) if is_misplaced && error.code() == Some(ErrorCode::NotImplemented) => {
                return Err(misplaced());
            }
            parsed => parsed?,
        };
        if is_misplaced {
            return Err(misplaced());
        }
        if name == "$geoNear" && !self.stages.is_empty() {
            return Err(near_not_first());
        }
        for definition in definitions {
            self.stages.push(ParsedStage { text: text.to_owned(), definition });
        }
        Ok(())
    }

    /// A sort alone, of which so many documents are drawn.
    pub fn sorting(pattern: &SortPattern, limit: u64) -> Pipeline {
        let text = doc! { "$sort": (Document::new()) }.to_raw();
        let stages = vec![ParsedStage { text, definition: stage::sorting(pattern, limit) }];
        Pipeline { stages, metadata: pattern.metadata() }
    }

    /// Whether there are no stages.
    pub fn is_empty(&self) -> bool {
        self.stages.is_empty()
    }

    /// The pipeline behind the search that it begins with, which has been answered by the source.
    pub(crate) fn behind_search(&self) -> Option<Pipeline> {
        let first = self.stages.first()?;
        let is_text = || first.name() == "$match" && first.argument_document().is_some_and(|f| has_text(&f));
        let is_search = first.definition.as_geo_near().is_some() || is_text();
        is_search.then(|| Pipeline { stages: self.stages[1..].to_vec(), metadata: self.metadata })
    }

    /// The `$geoNear` that it begins with.
    pub fn near(&self) -> Option<&GeoNearSpecification> {
        self.stages.first()?.definition.as_geo_near()
    }

    /// The size of the `$sample` that it begins with.
    pub fn sample_size(&self) -> Option<u64> {
        self.stages.first()?.definition.sample_size()
    }

    /// Whether it reads no collection: it begins with `$documents`.
    pub fn makes_documents(&self) -> bool {
        self.stages.first().is_some_and(|stage| stage.name() == "$documents")
    }

    /// The stages as they were written, in the order in which they are carried out.
    pub fn stages(&self) -> impl Iterator<Item = &RawDocument> {
        self.stages.iter().map(|stage| &*stage.text)
    }

    /// The stages in the order in which they are carried out, for `explain`; with the figures of a run of
    /// them that was measured.
    pub fn explain(&self, run: Option<&PipelineRun>) -> Vec<Document> {
        let mut shown: Vec<Document> = self
            .stages
            .iter()
            .filter(|stage| !stage.name().is_empty())
            .map(|stage| stage.definition.shown(&stage.text))
            .collect();
        if let Some(run) = run {
            shown.iter_mut().zip(&run.stages).for_each(|(shown, stage)| stage.explain(shown));
        }
        shown
    }

    /// The same before a run: a join names the strategy that it will take from its second document on, by
    /// what `access` tells about the collection and field that it searches.
    ///
    /// # Errors
    /// Those of `access`.
    pub fn explain_planned(&self, access: AccessOf<'_>) -> Result<Vec<Document>, QueryError> {
        let mut shown = self.explain(None);
        let stages = self.stages.iter().filter(|stage| !stage.name().is_empty());
        for (shown, stage) in shown.iter_mut().zip(stages) {
            let Some(lookup) = stage.definition.as_lookup() else { continue };
            if let Some((collection, path)) = lookup.searched() {
                shown.push("strategy", lookup.strategy_by(access(collection, path)?.by));
            }
        }
        Ok(shown)
    }

    /// Takes off the front what a plan can do.
    pub fn split_pushdown(self) -> Pushdown {
        let mut stages = self.stages.into_iter().peekable();
        let near = stages
            .next_if(|stage| stage.definition.as_geo_near().is_some())
            .and_then(|stage| stage.definition.as_geo_near().cloned());
        let mut filters = Vec::new();
        // The filter of a search is its own; a `$match` may ask about the distance.
        while let Some(stage) = stages.next_if(|stage| near.is_none() && stage.name() == "$match") {
            filters.push(stage.text);
        }
        let mut sort =
            stages.next_if(|stage| stage.name() == "$sort").and_then(|stage| stage.argument_document());
        let (mut skip, mut limit) = (0_u64, None::<u64>);
        while let Some(stage) = stages.next_if(|stage| matches!(stage.name(), "$skip" | "$limit")) {
            let count = stage.argument_count().unwrap_or(0);
            match stage.name() {
                "$skip" => {
                    skip = skip.saturating_add(count);
                    limit = limit.map(|limit| limit.saturating_sub(count));
                }
                _ => limit = Some(limit.map_or(count, |limit| limit.min(count))),
            }
        }
        let mut rest = Pipeline { stages: stages.collect(), metadata: self.metadata };
        let mut rest_unsorted = None;
        let is_uncut = sort.is_none() && skip == 0 && limit.is_none();
        if let Some((pattern, apart)) =
            rest.stages.first().and_then(|first| first.definition.with_sort_apart())
            && is_uncut
        {
            sort = Some(pattern.to_document());
            rest_unsorted = Some(rest.clone());
            rest.stages[0].definition = apart;
        }
        Pushdown { near, filter: all_of(&filters), sort, skip, limit, rest, rest_unsorted }
    }

    /// The fields that the stages look at. Of a pipeline without stages that is everything: its documents are
    /// the answer.
    pub fn needs(&self) -> Needs {
        self.stages.iter().rev().fold(Needs::Everything, |behind, stage| stage.definition.needs(behind))
    }

    /// Whether the first stage gives the same result in whatever order the documents come, and whether a
    /// missing field of them is null.
    pub fn sees_values_only(&self) -> bool {
        self.stages.first().is_some_and(|stage| stage.definition.sees_values_only())
    }

    /// The documents that the first stage needs of each group, where it does not need all. `sort` is the
    /// order in which documents come.
    pub fn group_ends(&self, sort: Option<&SortPattern>) -> Option<GroupEnds> {
        self.stages.first()?.definition.group_ends(sort)
    }

    /// The number of stages in front that can read the source in parts: the last of them gathers, and those
    /// before it look at each document alone. `None` where there are none.
    pub fn gathering_stages(&self) -> Option<usize> {
        let last = self.stages.iter().position(|stage| !stage.definition.looks_at_each_alone())?;
        self.stages[last].definition.gathers().then_some(last + 1)
    }

    /// Starts a run.
    pub fn start(&self, options: &RunOptions) -> PipelineRun {
        let mut behind = Needs::Everything;
        let mut stages = Vec::with_capacity(self.stages.len());
        for stage in self.stages.iter().rev() {
            stages.push(stage.start(options, &behind));
            behind = stage.definition.needs(behind);
        }
        stages.reverse();
        PipelineRun { stages }
    }
}

impl ParsedStage {
    fn start(&self, options: &RunOptions, behind: &Needs) -> Box<dyn Stage> {
        let Some(clock) = &options.clock else { return self.start_guarded(options, behind) };
        let (account, usage) = options.memory.account.of_stage();
        let memory = StageMemory { account, ..options.memory.clone() };
        let stage = self.start_guarded(&RunOptions { memory, ..options.clone() }, behind);
        Box::new(Measured::new(stage, self.definition.memory(), usage, clock))
    }

    fn start_guarded(&self, options: &RunOptions, behind: &Needs) -> Box<dyn Stage> {
        let stage = self.definition.start_for(options, behind);
        match self.definition.nesting() {
            Nesting::Kept => stage,
            Nesting::MayGrow => Box::new(DepthGuard::behind(stage)),
        }
    }

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

/// The error of a `$geoNear` behind another stage.
fn near_not_first() -> QueryError {
    PipelineFault::GeoNearNotFirst.error(
        "$geoNear was not the first stage in the pipeline after optimization. Is optimization disabled or inhibited?",
    )
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
    /// Whether documents of the source are changed, chosen or counted.
    pub fn has_stages(&self) -> bool {
        !self.stages.is_empty()
    }

    /// The next document of the result, or none at the end.
    pub fn next(&mut self, source: &mut dyn Source) -> Result<Option<Bytes>, QueryError> {
        Upstream { stages: &mut self.stages, source }.next()
    }

    /// Has the first stages, as many as [`gather`](Pipeline::gathering_stages), read a part of the source to
    /// its end.
    ///
    /// # Errors
    /// As for [`next`](PipelineRun::next).
    pub fn gather(&mut self, stages: usize, source: &mut dyn Source) -> Result<(), QueryError> {
        let Some((last, before)) = self.stages[..stages].split_last_mut() else { return Ok(()) };
        let last = last.gathering().expect("its definition says that it gathers");
        last.gather(&mut Upstream { stages: before, source })
    }

    /// Takes in another run of the pipeline, whose first stages have read the part of the source behind.
    ///
    /// # Errors
    /// Memory is used up; `check` fails.
    pub fn absorb(
        &mut self,
        stages: usize,
        later: &mut PipelineRun,
        check: Check<'_>,
    ) -> Result<(), QueryError> {
        let Some(last) = stages.checked_sub(1) else { return Ok(()) };
        let (own, later) = (self.stages[last].gathering(), later.stages[last].gathering());
        match (own, later) {
            (Some(own), Some(later)) => own.absorb(later, check),
            _ => unreachable!("its definition says that it gathers"),
        }
    }

    /// Gives documents of the result to a sink until it has enough or there are no more.
    pub fn for_each(&mut self, source: &mut dyn Source, sink: &mut Sink<'_>) -> Result<(), QueryError> {
        Upstream { stages: &mut self.stages, source }.for_each(sink)
    }
}
