//! A ranged scan: the documents of a collection in several ranges, which threads read side by side for stages
//! that gather.
//!
//! 1. The scan is worth it where the first stages read the whole collection before they give anything
//!    ([`Pipeline::gathering_stages`]), the collection is large, and more than one processor is free.
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
//! Scans by an index; pipelines whose documents go to the client as they come; writers' transactions, whose
//! own writes only their own thread sees.

use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use pando_catalog::{
    Begin, Bytes, Caller, Collection, DeviceAccount, DeviceReads, Direction, EstimateOrigin, Interruption,
    KeyRange, Operation, OperationWait, StorageError, Transaction,
};
use pando_query::QueryError;
use pando_query::execute::Executor;
use pando_query::filter::Filter;
use pando_query::memory::{DiskUse, StageMemory};
use pando_query::pipeline::{Flow, Pipeline, PipelineRun, RunOptions, RunSink, Sink, Source, Take};
use pando_query::plan::{Access, Coverage, Plan, ScanDirection};
use parking_lot::{Condvar, Mutex};

use crate::ErrorCode;
use crate::reader::Reader;
use crate::shared_state::SharedState;

/// The least documents of a range: some milliseconds of work, against some ten microseconds for a thread.
const RANGE_DOCUMENTS_MIN: u64 = 10_000;
/// The time between two looks at the caller's operation.
const A_LOOK: Duration = Duration::from_millis(2);
/// Bytes of a key behind what all keys begin with that are bisected.
const BISECTED_BYTES: usize = 12;

/// See the module's head.
pub(super) struct RangedScan {
    collection: Arc<Collection>,
    plan: Plan,
    pipeline: Pipeline,
    stages: usize,
    memory: StageMemory,
    options: RunOptions,
}

/// Whether the documents have been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gathered {
    /// All of them.
    Whole,
    /// None: they are read one after the other.
    Nothing,
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
        let is_whole = matches!(plan.access, Access::Collection(ScanDirection::Forward))
            && plan.sort.is_none()
            && plan.skip == 0
            && plan.limit.is_none()
            && plan.coverage == Coverage::Document;
        let is_reader = !matches!(reader, Reader::Session(_));
        (is_whole && is_reader && memory.disk_use == DiskUse::Allowed).then(|| RangedScan {
            collection: Arc::clone(collection),
            plan: plan.clone(),
            pipeline: rest.clone(),
            stages,
            memory: memory.clone(),
            options: options.clone(),
        })
    }

    /// Has the first stages of a run read all documents, if that is worth several threads now.
    pub fn gather(
        self,
        shared: &SharedState,
        transaction: &dyn Transaction,
        run: &mut PipelineRun,
        caller: Caller<'_>,
    ) -> Result<Gathered, QueryError> {
        let documents =
            self.collection.estimate_documents(&KeyRange::all(), transaction, caller.blocking)?.entries;
        let of_size = usize::try_from(documents / RANGE_DOCUMENTS_MIN).unwrap_or(usize::MAX);
        // The caller's own request is one of the busy ones.
        let free = shared.options.query_threads.saturating_sub(shared.running.busy().saturating_sub(1));
        let wanted = free.min(of_size);
        if wanted < 2 {
            return Ok(Gathered::Nothing);
        }
        if shared.catalog.engine().capabilities().estimates != EstimateOrigin::Pages {
            return Ok(Gathered::Nothing);
        }
        let ranges = ranges_of(&self.collection, transaction, wanted, documents, caller)?;
        let begin = Begin::read_at(transaction.snapshot());
        // An engine without past snapshots is read by one thread.
        let transactions: Result<Vec<_>, _> = ranges.iter().map(|_| shared.catalog.begin(begin)).collect();
        match transactions {
            Ok(transactions) if ranges.len() > 1 => {
                shared.ranged_scans.fetch_add(1, Ordering::Relaxed);
                shared.scanned_ranges.fetch_add(ranges.len() as u64, Ordering::Relaxed);
                self.gather_ranges(shared, ranges, transactions, run, caller)?;
                Ok(Gathered::Whole)
            }
            Ok(_) | Err(_) => Ok(Gathered::Nothing),
        }
    }

    fn gather_ranges(
        &self,
        shared: &SharedState,
        ranges: Vec<KeyRange>,
        transactions: Vec<Box<dyn Transaction>>,
        run: &mut PipelineRun,
        caller: Caller<'_>,
    ) -> Result<(), QueryError> {
        let mut later: Vec<PipelineRun> =
            ranges.iter().skip(1).map(|_| self.pipeline.start(&self.options)).collect();
        let supervision = Supervision::default();
        let runs = std::iter::once(&mut *run).chain(&mut later);
        let mut parts = Vec::with_capacity(ranges.len());
        for (place, ((range, transaction), run)) in ranges.into_iter().zip(transactions).zip(runs).enumerate()
        {
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
        let mut works: Vec<Box<dyn FnOnce() + Send + '_>> = Vec::with_capacity(parts.len() + 1);
        for part in &mut parts {
            works.push(Box::new(|| part.gather(self.stages, &supervision)));
        }
        works.push(Box::new(|| supervision.watch(caller.operation, &operations)));
        shared.environment.spawner().run_together("pando-query", works);
        parts.into_iter().try_for_each(|part| part.outcome)?;
        for later in &mut later {
            run.absorb(self.stages, later, &mut || Ok(caller.operation.check_now()?))?;
        }
        Ok(())
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

/// The watch over all ranges: it ends them with the caller's operation, and those behind one that has failed.
#[derive(Default)]
struct Supervision {
    progress: Mutex<Progress>,
    changed: Condvar,
}

#[derive(Default)]
struct Progress {
    ended: usize,
    /// The place of the first range that has failed.
    first_failure: Option<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum PartOutcome {
    Read,
    Failed,
}

/// Tells of the end of a range when it is dropped.
struct EndedPart<'s> {
    supervision: &'s Supervision,
    place: usize,
    outcome: PartOutcome,
}

impl Drop for EndedPart<'_> {
    fn drop(&mut self) {
        let mut progress = self.supervision.progress.lock();
        progress.ended += 1;
        if self.outcome == PartOutcome::Failed {
            let first = progress.first_failure.map_or(self.place, |first| first.min(self.place));
            progress.first_failure = Some(first);
        }
        self.supervision.changed.notify_all();
    }
}

impl Supervision {
    /// Returns when all ranges have ended.
    fn watch(&self, whole: &Operation, parts: &[Arc<Operation>]) {
        let _charge = whole.device().charge_thread();
        let mut shown = Shown::default();
        let mut progress = self.progress.lock();
        while progress.ended < parts.len() {
            let is_waiting = parts.iter().any(|part| part.wait() == Some(OperationWait::Device));
            let _wait = is_waiting.then(|| DeviceAccount::waiting(OperationWait::Device));
            shown.bring_up(whole, parts);
            // The look at the clock is what finds a time limit.
            if let Err(interruption) = whole.check_now() {
                parts.iter().for_each(|part| part.interrupt(interruption));
            }
            // Nobody is told the error of a range behind one that has failed.
            let behind = progress.first_failure.map_or(parts.len(), |first| first + 1);
            parts[behind..].iter().for_each(|part| part.interrupt(Interruption::Killed));
            self.changed.wait_for(&mut progress, A_LOOK);
        }
        shown.bring_up(whole, parts);
    }
}

/// The work of the ranges that the caller's operation shows. While they are read, nobody else adds to it.
#[derive(Default)]
struct Shown {
    keys: u64,
    documents: u64,
    pages: u64,
    bytes: u64,
    time: Duration,
}

impl Shown {
    /// Adds what the ranges have done since the last time.
    fn bring_up(&mut self, whole: &Operation, parts: &[Arc<Operation>]) {
        let mut now = Shown::default();
        for part in parts {
            let (usage, reads) = (part.usage().figures(), part.device().reads());
            now.keys += usage.keys_examined;
            now.documents += usage.documents_examined;
            now.pages += reads.pages;
            now.bytes += reads.bytes;
            now.time += reads.time;
        }
        whole.usage().add_examined(now.keys - self.keys, now.documents - self.documents);
        whole.device().add(DeviceReads {
            pages: now.pages - self.pages,
            bytes: now.bytes - self.bytes,
            time: now.time.saturating_sub(self.time),
        });
        *self = now;
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
        // Stages that look at each document alone search in no other collection.
        let message = format!("the collection {collection} is searched within a range of another one");
        Err(QueryError::new(ErrorCode::InternalError, message))
    }

    fn check(&self) -> Result<(), QueryError> {
        Ok(self.caller.operation.check()?)
    }
}

/// Ranges of about the same number of documents, in the order of the keys.
fn ranges_of(
    collection: &Collection,
    transaction: &dyn Transaction,
    wanted: usize,
    documents: u64,
    caller: Caller<'_>,
) -> Result<Vec<KeyRange>, QueryError> {
    let end = |direction| -> Result<Option<Vec<u8>>, StorageError> {
        let mut scan = collection.scan_documents(KeyRange::all(), direction);
        Ok(scan.next(transaction, caller.blocking)?.map(|(key, _)| key.to_vec()))
    };
    let (Some(first), Some(last)) = (end(Direction::Forward)?, end(Direction::Backward)?) else {
        return Ok(Vec::new());
    };
    let keys = KeySpan::between(&first, &last);
    let mut splits: Vec<Vec<u8>> = Vec::with_capacity(wanted);
    for place in 1..wanted as u64 {
        let before = documents / wanted as u64 * place;
        let (mut low, mut high) = (keys.first, keys.last);
        while high - low > 1 {
            caller.operation.check()?;
            let middle = low + (high - low) / 2;
            let range = KeyRange { lower: Bound::Unbounded, upper: Bound::Excluded(keys.key(middle)) };
            match collection.estimate_documents(&range, transaction, caller.blocking)?.entries < before {
                true => low = middle,
                false => high = middle,
            }
        }
        splits.push(keys.key(high));
    }
    // Flushes between two bisections move the estimates.
    splits.sort_unstable();
    splits.dedup();
    Ok(ranges_between(splits))
}

fn ranges_between(splits: Vec<Vec<u8>>) -> Vec<KeyRange> {
    let mut lower = Bound::Unbounded;
    let mut ranges = Vec::with_capacity(splits.len() + 1);
    for split in splits {
        let upper = Bound::Excluded(split.clone());
        ranges.push(KeyRange { lower: std::mem::replace(&mut lower, Bound::Included(split)), upper });
    }
    ranges.push(KeyRange { lower, upper: Bound::Unbounded });
    ranges
}

/// Keys as numbers: the bytes behind those that all keys begin with.
struct KeySpan {
    common: Vec<u8>,
    first: u128,
    last: u128,
}

impl KeySpan {
    fn between(first: &[u8], last: &[u8]) -> KeySpan {
        let length = first.iter().zip(last).take_while(|(a, b)| a == b).count();
        let (common, first) = first.split_at(length);
        KeySpan { common: common.to_vec(), first: number_of(first), last: number_of(&last[length..]) }
    }

    fn key(&self, number: u128) -> Vec<u8> {
        let bytes = number.to_be_bytes();
        [&self.common, &bytes[bytes.len() - BISECTED_BYTES..]].concat()
    }
}

fn number_of(bytes: &[u8]) -> u128 {
    let padded = bytes.iter().copied().chain(std::iter::repeat(0));
    padded.take(BISECTED_BYTES).fold(0, |number, byte| number << 8 | u128::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_cover_all_keys_once() {
        let ranges = ranges_between(vec![b"b".to_vec(), b"d".to_vec()]);
        let holding = |key: &[u8]| ranges.iter().filter(|range| range.contains(key)).count();
        assert_eq!(ranges.len(), 3);
        assert!([&b""[..], b"a", b"b", b"c", b"d", b"e"].into_iter().all(|key| holding(key) == 1));
    }

    #[test]
    fn a_key_in_the_middle_lies_between_the_ends() {
        let keys = KeySpan::between(b"\x10\x20abc", b"\x10\x20zz");
        let middle = keys.key(keys.first + (keys.last - keys.first) / 2);
        assert!((b"\x10\x20abc".to_vec()..b"\x10\x20zz".to_vec()).contains(&middle));
        let same = KeySpan::between(b"a", b"a");
        assert_eq!(same.first, same.last);
    }
}
