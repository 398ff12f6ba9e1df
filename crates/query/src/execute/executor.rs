//! The executor: steps through a plan, row by row.

mod batches;
mod candidates;

use std::cell::Cell;
use std::ops::ControlFlow;
use std::sync::Arc;

use pando_catalog::{
    BlockingMode, Bytes, Caller, Collection, KeyRange, KeySet, Operation, QueryAccount, StorageError,
    Transaction,
};
use pando_document::RawDocument;

pub use self::batches::BatchEnd;

use self::candidates::Gathering;
use super::gathered_keys::{GatheredKeys, KeyOrder};
use super::row::{Row, Run};
use super::source::{Found, Source, Surroundings, Sweep, TakeRow};
use super::{Counters, ExecutionFigures};
use crate::QueryError;
use crate::filter::Filter;
use crate::memory::StageMemory;
use crate::plan::{Access, Coverage, Plan};
use crate::sort::{DocumentSorter, Sorted};

/// Entries examined that must not block before the thread is given back.
const WORK_BUDGET: u32 = 256;

/// Entries that are passed over at the cost of one that is examined.
const PASSED_A_PIECE: u64 = 16;

/// Whether a scan may come to a document again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Repeats {
    Impossible,
    Possible,
}

/// A plan under way.
#[derive(Debug)]
pub struct Executor {
    collection: Arc<Collection>,
    source: Source,
    residual: Option<Filter>,
    /// Primary keys that have come already, where one may come again.
    seen: Option<KeySet>,
    account: QueryAccount,
    sort: Option<Sorting>,
    skip: u64,
    /// The skip of the plan.
    whole_skip: u64,
    skipping: Skipping,
    limit: Option<u64>,
    /// Whether the collection's counter is still to be asked for the number of all rows.
    counter: CounterUse,
    found: Found,
    /// A key whose document is still to be fetched.
    pending: Pending,
    /// Keys that wait for others, where some are to be fetched together.
    gathered: Option<GatheredKeys>,
    gathering: Gathering,
    /// A document that needs no copy of its own.
    fetched: Option<Bytes>,
    counters: Cell<Counters>,
    /// The counters that its operations know.
    reported: Counters,
    /// Pieces of work, to report now and then within a long call.
    pieces: u8,
    budget: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pending {
    Nothing,
    Fetch,
}

/// Whether the collection's counter tells the number of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CounterUse {
    /// It was not asked yet.
    Wanted,
    /// Rows are counted one by one, or all of them have been given.
    Over,
}

/// When `skip` passes over candidates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Skipping {
    BeforeFetching,
    AfterFiltering,
}

#[derive(Debug)]
struct Sorting {
    sorter: DocumentSorter,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Filling,
    Emptying,
}

impl Executor {
    /// An executor of a plan.
    ///
    /// # Errors
    /// An index of the plan is gone.
    pub fn new(
        collection: Arc<Collection>,
        plan: Plan,
        memory: &StageMemory,
    ) -> Result<Executor, QueryError> {
        let repeats = match &plan.access {
            Access::Nothing
            | Access::Id(_)
            | Access::Collection(_)
            | Access::Intersection(_)
            | Access::Near(_) => false,
            Access::Index(access) => access.gives_duplicates(),
            Access::Union(_) => true,
            Access::Merge(access) => access.gives_duplicates(),
            Access::Text(access) => !access.others.is_empty(),
        };
        let repeats = if repeats { Repeats::Possible } else { Repeats::Impossible };
        let source = Source::new(&collection, plan.access.clone(), plan.coverage, &memory.account)?;
        Ok(Executor::of_source(collection, plan, source, repeats, memory))
    }

    /// An executor of a plan that reads documents by their primary keys, over those whose keys lie in a part
    /// of what it reads.
    pub fn over_range(
        collection: Arc<Collection>,
        plan: Plan,
        memory: &StageMemory,
        range: KeyRange,
    ) -> Executor {
        let source = Source::of_range(&collection, range, &plan.access, plan.coverage);
        Executor::of_source(collection, plan, source, Repeats::Impossible, memory)
    }

    fn of_source(
        collection: Arc<Collection>,
        plan: Plan,
        source: Source,
        repeats: Repeats,
        memory: &StageMemory,
    ) -> Executor {
        let sort_limit = plan.sort_limit();
        let skipping = match plan.skips_before_fetching() {
            true => Skipping::BeforeFetching,
            false => Skipping::AfterFiltering,
        };
        let counter = match plan.coverage {
            Coverage::Counter => CounterUse::Wanted,
            _ => CounterUse::Over,
        };
        let sort = plan.sort.map(|pattern| Sorting {
            sorter: DocumentSorter::new(Arc::new(pattern), sort_limit, memory),
            phase: Phase::Filling,
        });
        let gathering = if source.gives_keys() { Gathering::Undecided } else { Gathering::Decided };
        Executor {
            source,
            collection,
            residual: plan.residual,
            seen: (repeats == Repeats::Possible).then(|| KeySet::new(&memory.account)),
            account: memory.account.clone(),
            sort,
            skip: plan.skip,
            whole_skip: plan.skip,
            skipping,
            limit: plan.limit,
            counter,
            found: Found::default(),
            pending: Pending::Nothing,
            gathered: None,
            gathering,
            fetched: None,
            counters: Cell::new(Counters::default()),
            reported: Counters::default(),
            pieces: 0,
            budget: WORK_BUDGET,
        }
    }

    /// The same executor, whose rows may come in any order: it then fetches documents in the order of their
    /// keys. Rows that are sorted or counted are left as they are.
    #[must_use]
    pub fn in_any_order(mut self) -> Executor {
        let is_free = self.sort.is_none() && self.limit.is_none() && self.skip == 0;
        self.gathered =
            (is_free && self.source.fetches_entries()).then(|| GatheredKeys::new(KeyOrder::OfKeys));
        self
    }

    /// The next row; `None` at the end.
    ///
    /// # Errors
    /// [`WouldBlock`](pando_catalog::ErrorKind::WouldBlock) that must not block, where the device is
    /// needed or the work budget is used up: call again with [`BlockingMode::MayBlock`]. An
    /// [interruption](pando_catalog::Interruption) of the caller's operation, and all other errors, end the
    /// execution.
    pub fn next<'e>(
        &'e mut self,
        transaction: &dyn Transaction,
        caller: Caller<'_>,
    ) -> Result<Option<Row<'e>>, QueryError> {
        let outcome = self.step(transaction, caller);
        self.report(caller.operation);
        match outcome? {
            true => Ok(Some(self.row()?)),
            false => Ok(None),
        }
    }

    /// The next row, which stands for the rows behind it as well that are equal and at hand; `None` at the
    /// end.
    ///
    /// # Errors
    /// As for [`next`](Executor::next).
    pub fn next_run<'e>(
        &'e mut self,
        transaction: &dyn Transaction,
        caller: Caller<'_>,
    ) -> Result<Option<Run<'e>>, QueryError> {
        if self.counter == CounterUse::Wanted && self.take_counter(transaction, caller)? {
            let documents = self.counters.get().returned;
            return Ok((documents > 0).then(|| Run { row: Row::empty(), documents }));
        }
        let outcome = self.step(transaction, caller);
        let mut documents = 1;
        // Behind a sort, and where rows are counted or looked up one by one, each row stands for itself.
        let is_alone =
            self.sort.is_some() || self.limit.is_some() || self.seen.is_some() || self.fetched.is_some();
        if matches!(outcome, Ok(true)) && !is_alone {
            let surroundings = Surroundings::new(
                caller,
                transaction,
                &self.collection,
                self.residual.as_ref(),
                &self.counters,
            );
            let passed = self.source.pass_run(&surroundings);
            self.counters.get_mut().returned += passed;
            self.budget = self.budget.saturating_sub((passed / PASSED_A_PIECE) as u32);
            documents += passed;
        }
        self.report(caller.operation);
        match outcome? {
            true => Ok(Some(Run { row: self.row()?, documents })),
            false => Ok(None),
        }
    }

    /// Takes all rows at once, where the counter has their number.
    fn take_counter(
        &mut self,
        transaction: &dyn Transaction,
        caller: Caller<'_>,
    ) -> Result<bool, QueryError> {
        // The counter does not have the writes of a transaction that is not committed. A claim on the counter
        // would keep every writer of the collection away, and every change of it.
        let all = match transaction.has_writes() || transaction.claims_reads() {
            true => None,
            false => self.collection.document_count(transaction, caller.blocking)?,
        };
        self.counter = CounterUse::Over;
        let Some(all) = all else { return Ok(false) };
        let rows = all.saturating_sub(self.skip);
        self.counters.get_mut().returned = self.limit.map_or(rows, |limit| rows.min(limit));
        self.limit = Some(0);
        Ok(true)
    }

    /// Gives the rows that are left to `take`, until it breaks off.
    ///
    /// # Errors
    /// Those of `take`, and as for [`next`](Executor::next). A row that was given is not given again.
    pub fn for_each(
        &mut self,
        transaction: &dyn Transaction,
        caller: Caller<'_>,
        take: &mut TakeRow<'_>,
    ) -> Result<(), QueryError> {
        while let Some(row) = self.next(transaction, caller)? {
            if take(row)?.is_break() || self.sweep(caller, take)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Gives the rows that are left to `take`, equal ones together where they come so.
    ///
    /// # Errors
    /// As for [`for_each`](Executor::for_each).
    pub fn for_each_run(
        &mut self,
        transaction: &dyn Transaction,
        caller: Caller<'_>,
        take: &mut dyn FnMut(Run<'_>) -> Result<(), QueryError>,
    ) -> Result<(), QueryError> {
        while let Some(run) = self.next_run(transaction, caller)? {
            take(run)?;
            let _never_breaks_off = self.sweep(caller, &mut |row| {
                take(Run { row, documents: 1 })?;
                Ok(ControlFlow::Continue(()))
            })?;
        }
        Ok(())
    }

    /// Whether the rows at hand need no look at each: none comes again, and none is left out.
    fn can_sweep(&self, caller: Caller<'_>) -> bool {
        caller.blocking == BlockingMode::MayBlock && self.seen.is_none() && self.fetched.is_none()
    }

    /// Gives the rows at hand in a scan, for less than a step each.
    fn sweep(&mut self, caller: Caller<'_>, take: &mut TakeRow<'_>) -> Result<ControlFlow<()>, QueryError> {
        let is_counted = self.sort.is_some() || self.skip > 0 || self.limit.is_some();
        if is_counted || !self.can_sweep(caller) {
            return Ok(ControlFlow::Continue(()));
        }
        let Executor { source, residual, counters, .. } = self;
        let sweep =
            Sweep { filter: residual.as_ref(), operation: caller.operation, counters: counters.get_mut() };
        let mut returned = 0;
        let outcome = source.sweep(sweep, &mut |row| {
            returned += 1;
            take(row)
        });
        counters.get_mut().returned += returned;
        self.report(caller.operation);
        outcome
    }

    /// Moves to the next row; false at the end.
    fn step(&mut self, transaction: &dyn Transaction, caller: Caller<'_>) -> Result<bool, QueryError> {
        if caller.blocking == BlockingMode::CachedOnly && self.account.has_spilled() {
            return Err(StorageError::would_block().into());
        }
        loop {
            if self.limit == Some(0) || !self.advance(transaction, caller)? {
                return Ok(false);
            }
            if self.skip == 0 {
                break;
            }
            self.skip -= 1;
        }
        if let Some(limit) = &mut self.limit {
            *limit -= 1;
        }
        self.counters.get_mut().returned += 1;
        Ok(true)
    }

    /// Tells the operation about the work since the last report.
    fn report(&mut self, operation: &Operation) {
        let now = self.counters.get();
        let keys = now.keys_examined.saturating_sub(self.reported.keys_examined);
        let documents = now.documents_examined.saturating_sub(self.reported.documents_examined);
        if keys + documents > 0 {
            operation.usage().add_examined(keys, documents);
            self.reported = now;
            if self.sort.is_some() || self.seen.is_some() {
                self.account.report(operation);
            }
        }
    }

    /// Counts the rows that are left, skip and limit applied.
    pub fn count(&mut self, transaction: &dyn Transaction, caller: Caller<'_>) -> Result<u64, QueryError> {
        self.for_each_run(transaction, caller, &mut |_| Ok(()))?;
        Ok(self.counters.get().returned)
    }

    /// The counters so far.
    pub fn counters(&self) -> Counters {
        self.counters.get()
    }

    /// The figures so far.
    pub fn figures(&self) -> ExecutionFigures {
        let sorter = self.sort.as_ref().map(|sort| &sort.sorter);
        ExecutionFigures {
            counters: self.counters.get(),
            skipped: self.whole_skip - self.skip,
            sorted: sorter.map_or(0, DocumentSorter::total),
            sorted_bytes: sorter.map_or(0, DocumentSorter::total_bytes),
            spills: self.account.spills(),
            spilled_bytes: self.account.spilled_bytes(),
        }
    }

    /// The collection that is read.
    pub fn collection(&self) -> &Arc<Collection> {
        &self.collection
    }

    fn row(&self) -> Result<Row<'_>, QueryError> {
        let is_sorted = self.sort.as_ref().is_some_and(|sort| sort.phase == Phase::Emptying);
        match is_sorted {
            // The scan still stands at its last document, which is not the next one in order.
            true => self.found.row(),
            false => found_row(&self.source, &self.found, self.fetched.as_ref()),
        }
    }

    /// Moves to the next candidate in the order of the answer; false at the end.
    fn advance(&mut self, transaction: &dyn Transaction, caller: Caller<'_>) -> Result<bool, QueryError> {
        match self.sort.as_ref().map(|sort| sort.phase) {
            None => return self.find(transaction, caller),
            Some(Phase::Filling) => self.fill(transaction, caller)?,
            // Neither the sorter nor its caller looks at the operation for each document.
            Some(Phase::Emptying) => caller.operation.check()?,
        }
        let Some(sort) = &mut self.sort else { unreachable!("only a sort is emptied") };
        let next = sort.sorter.next(&mut || Ok(caller.operation.check_now()?))?;
        let Some(Sorted { primary_key, document, .. }) = next else { return Ok(false) };
        self.fetched = None;
        self.found.primary_key.clear();
        self.found.primary_key.extend_from_slice(primary_key);
        self.found.document.clear();
        self.found.document.extend_from_slice(document);
        Ok(true)
    }

    /// Takes all candidates into the sorter, unless they are too late in the order to be among the first.
    /// After `WouldBlock` it goes on where it was.
    fn fill(&mut self, transaction: &dyn Transaction, caller: Caller<'_>) -> Result<(), QueryError> {
        let mut check = || Ok(caller.operation.check_now()?);
        while self.find(transaction, caller)? {
            let sweeps = self.can_sweep(caller);
            let Executor { source, found, fetched, residual, counters, sort: Some(sort), .. } = self else {
                unreachable!("only a sort is filled");
            };
            let row = found_row(source, found, fetched.as_ref())?;
            sort.sorter.take(row.document, row.primary_key, &mut check)?;
            if sweeps {
                let sweep = Sweep {
                    filter: residual.as_ref(),
                    operation: caller.operation,
                    counters: counters.get_mut(),
                };
                let _never_breaks_off = source.sweep(sweep, &mut |row| {
                    sort.sorter.take(row.document, row.primary_key, &mut check)?;
                    Ok(ControlFlow::Continue(()))
                })?;
                self.report(caller.operation);
            }
        }
        if let Some(sort) = &mut self.sort {
            sort.phase = Phase::Emptying;
        }
        Ok(())
    }

    /// Counts one piece of work. It ends an interrupted operation, and gives the thread back after so many
    /// pieces that must not block.
    fn spend(&mut self, caller: Caller<'_>) -> Result<(), QueryError> {
        caller.operation.check()?;
        self.pieces = self.pieces.wrapping_add(1);
        if self.pieces == 0 {
            self.report(caller.operation);
        }
        match caller.blocking {
            BlockingMode::MayBlock => self.budget = WORK_BUDGET,
            BlockingMode::CachedOnly if self.budget == 0 => {
                self.budget = WORK_BUDGET;
                return Err(StorageError::would_block().into());
            }
            BlockingMode::CachedOnly => self.budget -= 1,
        }
        Ok(())
    }
}

/// The candidate of the last step.
fn found_row<'e>(
    source: &'e Source,
    found: &'e Found,
    fetched: Option<&'e Bytes>,
) -> Result<Row<'e>, QueryError> {
    match (fetched, source.scanned()) {
        (Some(document), _) => {
            Ok(Row { primary_key: &found.primary_key, document: RawDocument::from_bytes(document)? })
        }
        (None, Some((primary_key, document))) => {
            Ok(Row { primary_key, document: RawDocument::from_bytes(document)? })
        }
        (None, None) => found.row(),
    }
}

impl Found {
    /// The candidate in the buffers.
    fn row(&self) -> Result<Row<'_>, QueryError> {
        Ok(Row { primary_key: &self.primary_key, document: RawDocument::from_bytes(&self.document)? })
    }
}
