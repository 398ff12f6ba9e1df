//! The memory of queries: one budget for all queries of a store, an account for each query, a reservation for
//! each stage.
//!
//! # Terms
//! - *Budget*: the bytes that all queries may hold together ([`QueryMemory`]). It counts against the engine's
//!   limit, so the cache gives way.
//! - *Account*: the sum of one query ([`QueryAccount`]). A cursor keeps it from one batch to the next.
//! - *Reservation*: the part of one stage ([`Reservation`]).
//! - *Spill*: a stage whose reservation cannot grow writes its data to scratch files.
//!
//! # Rules
//! 1. A reservation grows in steps of [`STEP_BYTES`] or an eighth of its size, so a document costs a
//!    comparison and no atomic operation.
//! 2. A query takes no more than it leaves free for others. A lone query gets half of the budget, the next
//!    one a quarter, and so on. A cursor that nobody reads keeps no newcomer from its share.
//! 3. The first [`LEAST_BYTES`] of a reservation are always granted, so every stage gets on. With 64 queries
//!    the sum may therefore exceed the budget by 32 MiB for each stage.
//! 4. [`Reservation::hold`] counts memory that is used in any case, such as one document or a reply.
//!
//! # Invariants
//! - An account is zero once the stages and cursors of its query are dropped.
//! - A store without scratch files, such as one in memory, refuses growth beyond its budget like any other,
//!   and its stages fail then: they cannot spill. It has no budget unless somebody sets one.
//!
//! # Not here
//! Allocation: a reservation counts. Pages and write buffers: the engine.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use crate::engine::SharedEngine;
use crate::error::StorageError;
use crate::memory::{HeldMemory, MemoryAccount};
use crate::operation::{DeviceAccount, Operation, OperationWait};
use crate::run::RunFiles;
use crate::scratch::{ScratchFigures, ScratchSpace};

/// The least step of a reservation.
pub const STEP_BYTES: usize = 64 << 10;
/// Bytes that every reservation gets, unless the budget is tiny.
pub const LEAST_BYTES: usize = 512 << 10;
/// The smallest budget that makes sense.
pub const QUERY_MEMORY_MIN: usize = 1 << 20;
/// The divisor of a tiny budget for the bytes that every reservation gets.
const LEAST_SHARE: usize = 16;
/// After so much growth the engine makes room at once. It looks by itself once a second.
const NOTE_BYTES: usize = 8 << 20;

/// The figures of a budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueryMemoryFigures {
    /// Bytes that queries hold now.
    pub held_bytes: u64,
    /// The most that they held at one time.
    pub peak_bytes: u64,
    /// The budget.
    pub limit_bytes: u64,
    /// Times that a stage wrote its memory to scratch files.
    pub spills: u64,
    /// Bytes that stages wrote to scratch files, as they stand there.
    pub spilled_bytes: u64,
    /// The scratch files.
    pub scratch: ScratchFigures,
}

/// The budget of a store. Clones are the same budget.
#[derive(Clone)]
pub struct QueryMemory(Arc<Budget>);

struct Budget {
    limit: AtomicUsize,
    held: AtomicUsize,
    peak: AtomicUsize,
    spills: AtomicU64,
    spilled: AtomicU64,
    /// The held bytes when the engine last made room.
    noted: AtomicUsize,
    /// `None`: no engine has a limit for it to count against.
    engine: Option<SharedEngine>,
    /// Of no bytes: reservations clone it to count in the engine's account.
    counted: HeldMemory,
    /// `None`: stages cannot spill.
    scratch: Option<Arc<ScratchSpace>>,
}

impl QueryMemory {
    /// The budget of an engine's store. Without scratch files queries take what they need.
    pub fn new(engine: &SharedEngine, limit: usize, scratch: Option<Arc<ScratchSpace>>) -> QueryMemory {
        QueryMemory::of_parts(Some(Arc::clone(engine)), limit, scratch)
    }

    /// A budget without bounds, for tools.
    pub fn unlimited() -> QueryMemory {
        QueryMemory::of_parts(None, usize::MAX, None)
    }

    /// A budget that counts against no engine's limit, for tests.
    pub fn with_scratch(limit: usize, scratch: &Arc<ScratchSpace>) -> QueryMemory {
        QueryMemory::of_parts(None, limit, Some(Arc::clone(scratch)))
    }

    fn of_parts(
        engine: Option<SharedEngine>,
        limit: usize,
        scratch: Option<Arc<ScratchSpace>>,
    ) -> QueryMemory {
        let counted = match &engine {
            Some(engine) => engine.lend_memory(0),
            None => MemoryAccount::default().hold(0),
        };
        QueryMemory(Arc::new(Budget {
            limit: AtomicUsize::new(limit),
            held: AtomicUsize::new(0),
            peak: AtomicUsize::new(0),
            spills: AtomicU64::new(0),
            spilled: AtomicU64::new(0),
            noted: AtomicUsize::new(0),
            engine,
            counted,
            scratch,
        }))
    }

    /// The account of a new query.
    pub fn account(&self) -> QueryAccount {
        let account = Arc::new(Account {
            memory: self.clone(),
            held: AtomicUsize::new(0),
            spills: AtomicU64::new(0),
            spilled: AtomicU64::new(0),
            reported_spills: AtomicU64::new(0),
            reported: AtomicU64::new(0),
        });
        QueryAccount { account, stage: None }
    }

    /// The budget in bytes.
    pub fn limit(&self) -> usize {
        self.0.limit.load(Ordering::Relaxed)
    }

    /// Changes the budget. Queries that hold more keep it, and get no more.
    pub fn set_limit(&self, bytes: usize) {
        self.0.limit.store(bytes, Ordering::Relaxed);
    }

    /// Present sizes, and sums since the store was opened.
    pub fn figures(&self) -> QueryMemoryFigures {
        QueryMemoryFigures {
            held_bytes: self.0.held.load(Ordering::Relaxed) as u64,
            peak_bytes: self.0.peak.load(Ordering::Relaxed) as u64,
            limit_bytes: self.limit() as u64,
            spills: self.0.spills.load(Ordering::Relaxed),
            spilled_bytes: self.0.spilled.load(Ordering::Relaxed),
            scratch: self.0.scratch.as_ref().map(|scratch| scratch.figures()).unwrap_or_default(),
        }
    }

    fn least(&self) -> usize {
        LEAST_BYTES.min(self.limit() / LEAST_SHARE)
    }

    /// Counts more, if the rule allows it: the query's sum afterwards is at most what stays free.
    fn take(&self, more: usize, own_before: usize) -> bool {
        let limit = self.limit();
        let fits = |held: usize| {
            let after = held.saturating_add(more);
            (after.saturating_add(own_before).saturating_add(more) <= limit).then_some(after)
        };
        let taken = self.0.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits);
        if let Ok(before) = taken {
            self.note(before + more);
        }
        taken.is_ok()
    }

    /// Counts more, whatever the budget is.
    fn take_anyway(&self, more: usize) {
        let before = self.0.held.fetch_add(more, Ordering::Relaxed);
        self.note(before + more);
    }

    fn give_back(&self, bytes: usize) {
        self.0.held.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn note(&self, held: usize) {
        self.0.peak.fetch_max(held, Ordering::Relaxed);
        let noted = self.0.noted.load(Ordering::Relaxed);
        if held < noted {
            self.0.noted.store(held, Ordering::Relaxed);
        } else if held - noted >= NOTE_BYTES
            && let Some(engine) = &self.0.engine
        {
            self.0.noted.store(held, Ordering::Relaxed);
            let _waiting = DeviceAccount::waiting(OperationWait::QueryMemory);
            // An engine makes room at once for a loan of a megabyte or more.
            drop(engine.lend_memory(1 << 20));
        }
    }
}

impl std::fmt::Debug for QueryMemory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "QueryMemory({:?})", self.figures())
    }
}

/// The account of one query. Clones are the same account.
#[derive(Clone)]
pub struct QueryAccount {
    account: Arc<Account>,
    /// The stage that the reservations and spills of this clone are counted for as well.
    stage: Option<Arc<StageUsage>>,
}

/// The use of memory and scratch files by one stage of a query, for `explain`.
#[derive(Debug, Default)]
pub struct StageUsage {
    held: AtomicUsize,
    peak: AtomicUsize,
    spills: AtomicU64,
    spilled: AtomicU64,
}

/// The figures of a [`StageUsage`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StageFigures {
    /// The most bytes that the stage has reserved at one time.
    pub peak_bytes: u64,
    /// Times that it wrote its memory to scratch files.
    pub spills: u64,
    /// Bytes of that, as they stand there.
    pub spilled_bytes: u64,
}

impl StageUsage {
    /// The figures so far.
    pub fn figures(&self) -> StageFigures {
        StageFigures {
            peak_bytes: self.peak.load(Ordering::Relaxed) as u64,
            spills: self.spills.load(Ordering::Relaxed),
            spilled_bytes: self.spilled.load(Ordering::Relaxed),
        }
    }

    fn change_held(&self, before: usize, after: usize) {
        let held = match after.checked_sub(before) {
            Some(more) => self.held.fetch_add(more, Ordering::Relaxed) + more,
            None => self.held.fetch_sub(before - after, Ordering::Relaxed) - (before - after),
        };
        self.peak.fetch_max(held, Ordering::Relaxed);
    }
}

struct Account {
    memory: QueryMemory,
    held: AtomicUsize,
    spills: AtomicU64,
    spilled: AtomicU64,
    /// Spills that the query's operations know of, and bytes of them. Only the working thread changes them.
    reported_spills: AtomicU64,
    reported: AtomicU64,
}

impl QueryAccount {
    /// An account without bounds, for tools and for pipelines without blocking stages. All are one account.
    pub fn unlimited() -> QueryAccount {
        static UNLIMITED: LazyLock<QueryAccount> = LazyLock::new(|| QueryMemory::unlimited().account());
        UNLIMITED.clone()
    }

    /// The same account for one stage, whose memory and spills are counted apart as well.
    pub fn of_stage(&self) -> (QueryAccount, Arc<StageUsage>) {
        let usage = Arc::new(StageUsage::default());
        (QueryAccount { account: Arc::clone(&self.account), stage: Some(Arc::clone(&usage)) }, usage)
    }

    /// A stage's part, empty.
    pub fn reserve(&self) -> Reservation {
        Reservation { account: self.clone(), bytes: 0, counted: None }
    }

    /// Bytes that the query holds.
    pub fn bytes(&self) -> usize {
        self.account.held.load(Ordering::Relaxed)
    }

    /// The scratch files, where stages can spill.
    pub(crate) fn scratch(&self) -> Option<&Arc<ScratchSpace>> {
        self.account.memory.0.scratch.as_ref()
    }

    /// Whether stages can spill.
    pub fn can_spill(&self) -> bool {
        self.scratch().is_some()
    }

    /// Whether a stage that needs more memory than there is can only fail.
    pub fn is_bounded_without_files(&self) -> bool {
        !self.can_spill() && self.account.memory.limit() != usize::MAX
    }

    /// New scratch files for a stage whose reservation cannot grow.
    pub(crate) fn create_files(&self) -> Result<RunFiles, StorageError> {
        match self.scratch() {
            Some(scratch) => RunFiles::create(scratch),
            None => Err(StorageError::out_of_query_memory(
                "the memory of all queries is used up, and a store in memory has no files to spill to: run \
                 fewer queries at once, narrow them, or raise it (--query-memory, in a program query_memory_bytes)",
            )),
        }
    }

    /// Times that stages of the query wrote their memory to scratch files.
    pub fn spills(&self) -> u64 {
        self.account.spills.load(Ordering::Relaxed)
    }

    /// Bytes of that, as they stand there.
    pub fn spilled_bytes(&self) -> u64 {
        self.account.spilled.load(Ordering::Relaxed)
    }

    /// Whether the query has data in scratch files, or had some: its next step may wait for the device.
    pub fn has_spilled(&self) -> bool {
        self.account.spilled.load(Ordering::Relaxed) > 0
    }

    /// Counts a spill of so many bytes.
    pub(crate) fn add_spilled(&self, bytes: u64) {
        let budget = &self.account.memory.0;
        for (counter, more) in [
            (&self.account.spills, 1),
            (&self.account.spilled, bytes),
            (&budget.spills, 1),
            (&budget.spilled, bytes),
        ] {
            counter.fetch_add(more, Ordering::Relaxed);
        }
        if let Some(stage) = &self.stage {
            stage.spills.fetch_add(1, Ordering::Relaxed);
            stage.spilled.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    /// Tells the operation that works on the query what the query holds, and what it spilled since the last
    /// report.
    pub fn report(&self, operation: &Operation) {
        let usage = operation.usage();
        usage.set_memory(self.bytes() as u64);
        let account = &self.account;
        let spilled = account.spilled.load(Ordering::Relaxed);
        let reported = account.reported.swap(spilled, Ordering::Relaxed);
        if spilled > reported {
            let spills = account.spills.load(Ordering::Relaxed);
            let before = account.reported_spills.swap(spills, Ordering::Relaxed);
            usage.add_spilled(spills - before, spilled - reported);
        }
    }
}

/// Every reservation keeps its account alive, and every account its budget: what is held at their end was
/// taken once and not given back.
impl Drop for Account {
    fn drop(&mut self) {
        debug_assert_eq!(self.held.load(Ordering::Relaxed), 0, "bytes of a query that has ended");
    }
}

impl Drop for Budget {
    fn drop(&mut self) {
        debug_assert_eq!(self.held.load(Ordering::Relaxed), 0, "bytes of a store that is closed");
    }
}

impl std::fmt::Debug for QueryAccount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "QueryAccount({} bytes)", self.bytes())
    }
}

/// The part of one stage in its query's account. It leaves the account when it is dropped.
pub struct Reservation {
    account: QueryAccount,
    bytes: usize,
    /// The same bytes in the engine's account, from the first byte on: most reservations stay empty.
    counted: Option<HeldMemory>,
}

impl Reservation {
    /// Bytes reserved.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Its query's account.
    pub fn account(&self) -> &QueryAccount {
        &self.account
    }

    /// Bytes that all queries may have together.
    pub fn limit(&self) -> usize {
        self.account.account.memory.limit()
    }

    /// Reserves at least so many bytes in all. False: the budget does not have them, and nothing changes.
    #[inline]
    pub fn grow_to(&mut self, bytes: usize) -> bool {
        bytes <= self.bytes || self.grow(bytes)
    }

    #[cold]
    fn grow(&mut self, bytes: usize) -> bool {
        let generous = bytes.max(self.bytes + STEP_BYTES.max(self.bytes / 8));
        let memory = self.account.account.memory.clone();
        if bytes <= memory.least() {
            self.hold(bytes.max(STEP_BYTES.min(memory.least())));
            return true;
        }
        let own = self.account.bytes();
        for wanted in [generous, bytes] {
            if memory.take(wanted - self.bytes, own) {
                self.set(wanted);
                return true;
            }
        }
        false
    }

    /// Reserves exactly so many bytes in all, whatever the budget is: for memory that is in use in any case.
    pub fn hold(&mut self, bytes: usize) {
        let memory = &self.account.account.memory;
        match bytes.checked_sub(self.bytes) {
            Some(0) => return,
            Some(more) => memory.take_anyway(more),
            None => memory.give_back(self.bytes - bytes),
        }
        self.set(bytes);
    }

    /// Gives back what is beyond so many bytes.
    pub fn shrink_to(&mut self, bytes: usize) {
        if bytes < self.bytes {
            self.hold(bytes);
        }
    }

    /// Sets the sums of account and engine; the budget has the bytes already.
    fn set(&mut self, bytes: usize) {
        match bytes.checked_sub(self.bytes) {
            Some(more) => self.account.account.held.fetch_add(more, Ordering::Relaxed),
            None => self.account.account.held.fetch_sub(self.bytes - bytes, Ordering::Relaxed),
        };
        if let Some(stage) = &self.account.stage {
            stage.change_held(self.bytes, bytes);
        }
        self.bytes = bytes;
        let counted = &self.account.account.memory.0.counted;
        self.counted.get_or_insert_with(|| counted.clone()).set(bytes);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.hold(0);
    }
}

impl std::fmt::Debug for Reservation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Reservation({} bytes)", self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use pando_environment::Environment;

    use super::*;

    const LIMIT: usize = 64 << 20;

    fn memory() -> QueryMemory {
        let simulation = Environment::simulated(1);
        let scratch = ScratchSpace::open(&simulation.environment, Path::new("/scratch")).expect("it opens");
        QueryMemory::with_scratch(LIMIT, &scratch)
    }

    /// Bytes that a reservation gets at most.
    fn most(reservation: &mut Reservation) -> usize {
        while reservation.grow_to(reservation.bytes() + 1) {}
        reservation.bytes()
    }

    #[test]
    fn a_query_takes_at_most_what_it_leaves_free_and_all_get_the_least() {
        let memory = memory();
        let mut queries: Vec<Reservation> = (0..12).map(|_| memory.account().reserve()).collect();
        let bytes: Vec<usize> = queries.iter_mut().map(most).collect();
        assert!(bytes[0].abs_diff(LIMIT / 2) <= STEP_BYTES, "{bytes:?}");
        assert!(bytes[1].abs_diff(LIMIT / 4) <= 2 * STEP_BYTES, "{bytes:?}");
        assert!(bytes.iter().all(|bytes| *bytes >= LEAST_BYTES), "{bytes:?}");
        let sum: usize = bytes.iter().sum();
        assert_eq!(memory.figures().held_bytes, sum as u64);
        drop(queries);
        assert_eq!((memory.figures().held_bytes, memory.figures().peak_bytes), (0, sum as u64));
    }

    #[test]
    fn the_stages_of_one_query_share_its_part() {
        let memory = memory();
        let account = memory.account();
        let (mut first, mut second) = (account.reserve(), account.reserve());
        let sum = most(&mut first) + most(&mut second);
        assert!(sum <= LIMIT / 2 + LEAST_BYTES, "{sum}");
        assert_eq!(account.bytes(), sum);
        first.shrink_to(0);
        assert!(second.grow_to(LIMIT / 4));
        drop((first, second));
        assert_eq!(account.bytes(), 0);
    }

    #[test]
    fn a_smaller_budget_stops_growth_and_memory_in_use_is_counted_beyond_it() {
        let memory = memory();
        let mut reservation = memory.account().reserve();
        assert!(reservation.grow_to(4 << 20));
        memory.set_limit(2 << 20);
        assert!(!reservation.grow_to(8 << 20));
        reservation.hold(20 << 20);
        assert_eq!(memory.figures().held_bytes, 20 << 20);
    }

    #[test]
    fn a_store_without_scratch_files_refuses_nothing() {
        let mut reservation = QueryMemory::unlimited().account().reserve();
        assert!(reservation.grow_to(1 << 40));
        assert!(reservation.account().bytes() >= 1 << 40);
    }

    #[test]
    fn an_operation_is_told_of_each_spill_once() {
        let (memory, operation) = (memory(), Operation::default());
        let account = memory.account();
        let mut reservation = account.reserve();
        reservation.hold(5_000);
        account.add_spilled(100);
        account.report(&operation);
        account.report(&operation);
        let figures = operation.usage().figures();
        assert_eq!((figures.memory_bytes, figures.spills, figures.spilled_bytes), (5_000, 1, 100));
        operation.begin();
        account.add_spilled(10);
        account.report(&operation);
        assert_eq!(operation.usage().figures().spilled_bytes, 10);
        assert_eq!(memory.figures().spilled_bytes, 110);
    }

    #[test]
    fn a_stage_of_a_query_is_counted_apart_and_in_its_account() {
        let memory = memory();
        let account = memory.account();
        let (stage, usage) = account.of_stage();
        let mut other = account.reserve();
        other.hold(1_000);
        let (mut first, mut second) = (stage.reserve(), stage.clone().reserve());
        first.hold(5_000);
        second.hold(2_000);
        drop(first);
        second.hold(3_000);
        stage.add_spilled(70);
        assert_eq!(usage.figures(), StageFigures { peak_bytes: 7_000, spills: 1, spilled_bytes: 70 });
        assert_eq!((account.bytes(), account.has_spilled()), (4_000, true));
    }

    #[test]
    fn a_store_without_files_refuses_growth_beyond_a_budget_and_its_stages_fail() {
        let memory = QueryMemory::of_parts(None, LIMIT, None);
        let account = memory.account();
        assert!(account.is_bounded_without_files());
        assert!(!QueryMemory::unlimited().account().is_bounded_without_files());
        let mut sorter = crate::Sorter::new(&account);
        let value = vec![7; 1 << 20];
        let mut pushes = (0_u32..64)
            .map(|number| sorter.push::<StorageError>(&number.to_be_bytes(), &value, &mut || Ok(())));
        let error = pushes.find_map(Result::err).expect("it needs more than there is");
        assert!(error.is_out_of_query_memory() && error.kind() == crate::ErrorKind::Busy, "{error}");
        let mut keys = crate::KeySet::new(&account);
        let mut inserts = (0_u32..2_000_000)
            .map(|number| keys.insert::<StorageError>(&number.to_be_bytes(), &mut || Ok(())).map(|_| ()));
        assert!(inserts.find_map(Result::err).expect("as above").is_out_of_query_memory());
        drop((sorter, keys));
        assert_eq!(memory.figures().held_bytes, 0);
    }
}
