//! A ranged scan: the documents of a collection in several ranges, which threads read side by side for stages
//! that gather.
//!
//! 1. The scan is worth it where the first stages read the whole collection, or a range of its primary keys,
//!    before they give anything ([`Pipeline::gathering_stages`]), or the plan sorts all documents for the
//!    first of them; where these are many, and more than one processor is free.
//! 2. Keys that part the documents into ranges of about the same size are found by bisection of the engine's
//!    estimates.
//! 3. Each range has a run of the stages, a transaction at the reader's snapshot, and an operation of its own
//!    whose counters are added up at the end.
//! 4. The run of the first range takes in the others in the order of the ranges. So the result is that of one
//!    thread, `$first` and `$push` included; a sum of doubles may differ in its last digit, as one that
//!    spilled does.
//!
//! # Invariants
//! - An interruption of the caller's operation ends all threads: one that only waits looks at it, and
//!   interrupts the operations of the ranges.
//! - Of several errors the caller gets that of the first range which has one, because one thread would have
//!   met it first.
//!
//! # Not here
//! Scans by an index; documents that go to the client as they come (`ranged_filter`); writers' transactions,
//! whose own writes only their own thread sees.

pub(in crate::crud) mod key_ranges;
pub(in crate::crud) mod supervision;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use pando_catalog::{Begin, Bytes, Caller, Collection, EstimateOrigin, KeyRange, Operation, Transaction};
use pando_environment::Work;
use pando_query::QueryError;
use pando_query::execute::{Counters, ExecutionFigures, Executor, primary_range};
use pando_query::filter::Filter;
use pando_query::memory::{DiskUse, StageMemory};
use pando_query::pipeline::{Flow, Pipeline, PipelineRun, RunOptions, RunSink, Sink, Source, Take};
use pando_query::plan::{Coverage, Plan};

use self::key_ranges::ranges_within;
use self::supervision::{EndedPart, PartOutcome, Supervision};
use crate::ErrorCode;
use crate::reader::Reader;
use crate::shared_state::SharedState;

/// The least documents of a range: some milliseconds of work, against some ten microseconds for a thread.
const RANGE_DOCUMENTS_MIN: u64 = 10_000;

/// See the module's head.
pub(in crate::crud) struct RangedScan {
    collection: Arc<Collection>,
    plan: Plan,
    /// The primary keys that the plan reads.
    range: KeyRange,
    pipeline: Pipeline,
    stages: usize,
    memory: StageMemory,
    options: RunOptions,
    target: Target,
}

/// The stages that gather.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    /// Those in front of the pipeline behind the plan.
    Pipeline,
    /// The sort of the plan, which is a stage of its own here.
    Sort,
}

/// The documents that have been read.
pub(in crate::crud) enum Gathered {
    /// All of them, by the stages of the run.
    Whole,
    /// All of them, by the sort of the plan.
    Sorted(SortedRanges),
    /// None: they are read one after the other.
    Nothing,
}

/// The documents that the sort of a plan gives.
pub(in crate::crud) struct SortedRanges {
    run: PipelineRun,
    figures: ExecutionFigures,
}

impl SortedRanges {
    /// Gives documents to a sink until it has enough or there are no more.
    pub fn for_each(&mut self, caller: Caller<'_>, sink: &mut Sink<'_>) -> Result<(), QueryError> {
        let returned = &mut self.figures.counters.returned;
        self.run.for_each(&mut NoDocuments { operation: caller.operation }, &mut |document, check| {
            *returned += 1;
            sink(document, check)
        })
    }

    pub fn figures(&self) -> ExecutionFigures {
        self.figures
    }
}

/// The source of a run that has gathered all of its documents.
struct NoDocuments<'o> {
    operation: &'o Operation,
}

impl Source for NoDocuments<'_> {
    fn next(&mut self) -> Result<Option<Bytes>, QueryError> {
        Ok(None)
    }

    fn find_in(&mut self, collection: &str, _: &Filter, _: Take<'_>) -> Result<(), QueryError> {
        Err(searched_within(collection))
    }

    fn check(&self) -> Result<(), QueryError> {
        Ok(self.operation.check()?)
    }
}

/// Stages that look at each document alone, or sort, search in no other collection.
fn searched_within(collection: &str) -> QueryError {
    let message = format!("the collection {collection} is searched within a range of another one");
    QueryError::new(ErrorCode::InternalError, message)
}

/// The threads that one request may have now, its own among them.
pub(in crate::crud) fn free_threads(shared: &SharedState) -> usize {
    // The request itself is one of the busy ones.
    shared.options.query_threads.saturating_sub(shared.running.busy().saturating_sub(1))
}

/// The primary keys whose documents a plan reads in the order of the keys; `None` of another plan.
fn scanned_range(plan: &Plan) -> Option<KeyRange> {
    let is_plain = plan.skip == 0 && plan.coverage == Coverage::Document;
    if is_plain { primary_range(&plan.access) } else { None }
}

/// Whether several threads may see what a reader sees, and each may have memory of its own.
fn may_have_parts(reader: &Reader, memory: &StageMemory) -> bool {
    !matches!(reader, Reader::Session(_)) && memory.disk_use == DiskUse::Allowed
}

impl RangedScan {
    /// The ranged scan of a plan for the stages behind it, where there can be one.
    pub fn of(
        collection: &Arc<Collection>,
        plan: &Plan,
        rest: &Pipeline,
        reader: &Reader,
        memory: &StageMemory,
        options: &RunOptions,
    ) -> Option<RangedScan> {
        let stages = rest.gathering_stages()?;
        let range = scanned_range(plan).filter(|_| plan.sort.is_none() && plan.limit.is_none())?;
        may_have_parts(reader, memory).then(|| RangedScan {
            collection: Arc::clone(collection),
            plan: plan.clone(),
            range,
            pipeline: rest.clone(),
            stages,
            memory: memory.clone(),
            options: options.clone(),
            target: Target::Pipeline,
        })
    }

    /// The ranged scan of a plan that sorts all documents in memory for the first of them.
    pub fn of_sort(
        collection: &Arc<Collection>,
        plan: &Plan,
        reader: &Reader,
        memory: &StageMemory,
        options: &RunOptions,
    ) -> Option<RangedScan> {
        let (pattern, limit) = (plan.sort.as_ref()?, plan.sort_limit()?);
        let pipeline = Pipeline::sorting(pattern, limit);
        let stages = pipeline.gathering_stages()?;
        let range = scanned_range(plan)?;
        may_have_parts(reader, memory).then(|| RangedScan {
            collection: Arc::clone(collection),
            plan: Plan { sort: None, limit: None, ..plan.clone() },
            range,
            pipeline,
            stages,
            memory: memory.clone(),
            options: options.clone(),
            target: Target::Sort,
        })
    }

    /// Has the first stages of a run read all documents, or the sort of the plan, if that is worth several
    /// threads now.
    pub fn gather(
        self,
        shared: &SharedState,
        transaction: &dyn Transaction,
        run: &mut PipelineRun,
        caller: Caller<'_>,
    ) -> Result<Gathered, QueryError> {
        if self.target == Target::Sort {
            let sorted = self.sort(shared, transaction, caller)?;
            return Ok(sorted.map_or(Gathered::Nothing, Gathered::Sorted));
        }
        let parts = self.parts(shared, transaction, caller)?;
        if parts.is_empty() {
            return Ok(Gathered::Nothing);
        }
        self.gather_parts(shared, parts, run, caller)?;
        Ok(Gathered::Whole)
    }

    /// Sorts all documents, if that is worth several threads now.
    pub fn sort(
        self,
        shared: &SharedState,
        transaction: &dyn Transaction,
        caller: Caller<'_>,
    ) -> Result<Option<SortedRanges>, QueryError> {
        let parts = self.parts(shared, transaction, caller)?;
        if parts.is_empty() {
            return Ok(None);
        }
        let mut run = self.pipeline.start(&self.options);
        let counters = self.gather_parts(shared, parts, &mut run, caller)?;
        let sorted = counters.returned;
        let counters = Counters { returned: 0, ..counters };
        let figures = ExecutionFigures { counters, sorted, ..ExecutionFigures::default() };
        Ok(Some(SortedRanges { run, figures }))
    }

    /// The number of ranges that are worth a thread each now.
    pub fn wanted_parts(
        &self,
        shared: &SharedState,
        transaction: &dyn Transaction,
        caller: Caller<'_>,
    ) -> Result<(usize, u64), QueryError> {
        if shared.catalog.engine().capabilities().estimates != EstimateOrigin::Pages {
            return Ok((0, 0));
        }
        let documents =
            self.collection.estimate_documents(&self.range, transaction, caller.blocking)?.entries;
        let of_size = usize::try_from(documents / RANGE_DOCUMENTS_MIN).unwrap_or(usize::MAX);
        Ok((free_threads(shared).min(of_size), documents))
    }

    /// Ranges of the collection, each with a transaction; none where one thread reads.
    fn parts(
        &self,
        shared: &SharedState,
        transaction: &dyn Transaction,
        caller: Caller<'_>,
    ) -> Result<Vec<(KeyRange, Box<dyn Transaction>)>, QueryError> {
        let (wanted, documents) = self.wanted_parts(shared, transaction, caller)?;
        if wanted < 2 {
            return Ok(Vec::new());
        }
        let ranges = ranges_within(&self.range, &self.collection, transaction, (wanted, documents), caller)?;
        let begin = Begin::read_at(transaction.snapshot());
        // An engine without past snapshots is read by one thread.
        let transactions: Result<Vec<_>, _> = ranges.iter().map(|_| shared.catalog.begin(begin)).collect();
        match transactions {
            Ok(transactions) if ranges.len() > 1 => {
                shared.ranged_scans.fetch_add(1, Ordering::Relaxed);
                shared.scanned_ranges.fetch_add(ranges.len() as u64, Ordering::Relaxed);
                Ok(ranges.into_iter().zip(transactions).collect())
            }
            Ok(_) | Err(_) => Ok(Vec::new()),
        }
    }

    fn gather_parts(
        &self,
        shared: &SharedState,
        ranges: Vec<(KeyRange, Box<dyn Transaction>)>,
        run: &mut PipelineRun,
        caller: Caller<'_>,
    ) -> Result<Counters, QueryError> {
        let mut later: Vec<PipelineRun> =
            ranges.iter().skip(1).map(|_| self.pipeline.start(&self.options)).collect();
        let supervision = Supervision::default();
        let runs = std::iter::once(&mut *run).chain(&mut later);
        let mut parts = Vec::with_capacity(ranges.len());
        for (place, ((range, transaction), run)) in ranges.into_iter().zip(runs).enumerate() {
            parts.push(Part {
                place,
                run,
                executor: Executor::over_range(
                    Arc::clone(&self.collection),
                    self.plan.clone(),
                    &self.memory,
                    range,
                ),
                transaction,
                operation: Arc::new(Operation::default()),
                outcome: Ok(()),
            });
        }
        let operations: Vec<Arc<Operation>> = parts.iter().map(|part| Arc::clone(&part.operation)).collect();
        let mut works: Vec<Work<'_>> = Vec::with_capacity(parts.len() + 1);
        for part in &mut parts {
            works.push(Box::new(|| part.gather(self.stages, &supervision)));
        }
        works.push(Box::new(|| supervision.watch(caller.operation, &operations)));
        shared.environment.spawner().run_together("pando-query", works);
        let mut counters = Counters::default();
        for part in parts {
            part.outcome?;
            counters.add(part.executor.counters());
        }
        for later in &mut later {
            run.absorb(self.stages, later, &mut || Ok(caller.operation.check_now()?))?;
        }
        Ok(counters)
    }
}

/// One range under way.
struct Part<'r> {
    place: usize,
    run: &'r mut PipelineRun,
    executor: Executor,
    transaction: Box<dyn Transaction>,
    operation: Arc<Operation>,
    outcome: Result<(), QueryError>,
}

impl Part<'_> {
    /// Reads the range, on the thread of the call.
    fn gather(&mut self, stages: usize, supervision: &Supervision) {
        let _charge = self.operation.device().charge_thread();
        // Also where the stages panic, so that nobody waits for this range.
        let mut ended = EndedPart { supervision, place: self.place, outcome: PartOutcome::Failed };
        let mut documents = RangeDocuments {
            executor: &mut self.executor,
            transaction: &*self.transaction,
            caller: Caller::may_block(&self.operation),
        };
        self.outcome = self.run.gather(stages, &mut documents);
        if self.outcome.is_ok() {
            ended.outcome = PartOutcome::Read;
        }
    }
}

/// The documents of a range, for the stages.
struct RangeDocuments<'r> {
    executor: &'r mut Executor,
    transaction: &'r dyn Transaction,
    caller: Caller<'r>,
}

impl Source for RangeDocuments<'_> {
    fn next(&mut self) -> Result<Option<Bytes>, QueryError> {
        let row = self.executor.next(self.transaction, self.caller)?;
        Ok(row.map(|row| Bytes::copy_from_slice(row.document.as_bytes())))
    }

    fn for_each(&mut self, sink: &mut Sink<'_>) -> Result<(), QueryError> {
        let operation = self.caller.operation;
        self.executor.for_each(self.transaction, self.caller, &mut |row| {
            Ok(match sink(row.document, &mut || Ok(operation.check()?))? {
                Flow::More => ControlFlow::Continue(()),
                Flow::Enough => ControlFlow::Break(()),
            })
        })
    }

    fn for_each_run(&mut self, sink: &mut RunSink<'_>) -> Result<(), QueryError> {
        let operation = self.caller.operation;
        self.executor.for_each_run(self.transaction, self.caller, &mut |run| {
            sink(run.row.document, run.documents, &mut || Ok(operation.check()?))
        })
    }

    fn find_in(&mut self, collection: &str, _: &Filter, _: Take<'_>) -> Result<(), QueryError> {
        Err(searched_within(collection))
    }

    fn check(&self) -> Result<(), QueryError> {
        Ok(self.caller.operation.check()?)
    }
}
