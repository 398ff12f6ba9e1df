//! The pieces of a ranged filter, and the rounds that read them.

use std::collections::VecDeque;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pando_catalog::{Begin, Caller, Collection, KeyRange, Operation, Reservation, Transaction};
use pando_document::RawDocument;
use pando_environment::Work;
use pando_query::QueryError;
use pando_query::execute::{Counters, Executor};
use pando_query::memory::StageMemory;
use pando_query::plan::Plan;
use parking_lot::Mutex;

use super::super::aggregate::ranged_scan::free_threads;
use super::super::aggregate::ranged_scan::key_ranges::ranges_within;
use super::super::aggregate::ranged_scan::supervision::{EndedPart, PartOutcome, Supervision};
use super::TakeDocument;
use crate::shared_state::SharedState;

/// Documents of a range, about: a millisecond of work, against some ten microseconds for a thread.
pub(super) const RANGE_DOCUMENTS: u64 = 8 << 10;
/// Parts into which one range is cut at once.
const PARTS_MAX: u64 = 64;
/// Ranges of a round for each thread: the most. The first round has one.
const RANGES_A_THREAD_MAX: usize = 8;
/// Bytes of the found documents of a range, after which the rest of it waits for its turn.
const FOUND_BYTES_MAX: usize = 1 << 20;

/// See [`super`].
pub(super) struct Pieces {
    pieces: VecDeque<Piece>,
    ranges_a_thread: usize,
    counters: Counters,
}

enum Piece {
    /// A range, with the number of its documents, about.
    Range(KeyRange, u64),
    Found(Found),
    /// The filter failed on a document behind those of the piece before.
    Failed(QueryError),
}

/// Documents that were found, one behind the other.
struct Found {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// Documents that were given.
    given: usize,
    reservation: Reservation,
}

/// The surroundings of a round.
pub(super) struct Round<'r> {
    pub shared: &'r SharedState,
    pub scan: Scan<'r>,
    pub transaction: &'r dyn Transaction,
    pub caller: Caller<'r>,
}

/// The scan of which all ranges are parts.
#[derive(Clone, Copy)]
pub(super) struct Scan<'r> {
    pub collection: &'r Arc<Collection>,
    pub plan: &'r Plan,
    pub memory: &'r StageMemory,
}

/// The outcome of reading one range.
struct Reading {
    found: Found,
    /// The rest of the range, where it was too much at once.
    rest: Option<KeyRange>,
    outcome: Result<(), QueryError>,
    counters: Counters,
}

impl Pieces {
    /// One range that is still to be read.
    pub fn of(range: KeyRange, documents: u64) -> Pieces {
        let pieces = VecDeque::from([Piece::Range(range, documents)]);
        Pieces { pieces, ranges_a_thread: 1, counters: Counters::default() }
    }

    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// The work of all rounds.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Gives the found documents that stand before the next range.
    pub fn give_found(&mut self, take: &mut TakeDocument<'_>) -> Result<ControlFlow<()>, QueryError> {
        loop {
            match self.pieces.front_mut() {
                None | Some(Piece::Range(..)) => return Ok(ControlFlow::Continue(())),
                Some(Piece::Found(found)) => {
                    while let Some(document) = found.next() {
                        if take(document?)?.is_break() {
                            return Ok(ControlFlow::Break(()));
                        }
                    }
                    self.pieces.pop_front();
                }
                Some(Piece::Failed(_)) => {
                    // Nobody is given a document behind it.
                    let failed = std::mem::take(&mut self.pieces).pop_front();
                    let Some(Piece::Failed(error)) = failed else { return Ok(ControlFlow::Break(())) };
                    return Err(error);
                }
            }
        }
    }

    /// Reads ranges at the front.
    pub fn read_round(&mut self, round: &Round<'_>) -> Result<(), QueryError> {
        self.cut_front(round)?;
        let mut transactions = self.transactions(round);
        let wanted = (transactions.len() * self.ranges_a_thread).max(1);
        self.ranges_a_thread = (self.ranges_a_thread * 2).min(RANGES_A_THREAD_MAX);
        let mut ranges = Vec::with_capacity(wanted);
        while ranges.len() < wanted
            && let Some(Piece::Range(..)) = self.pieces.front()
            && let Some(Piece::Range(range, documents)) = self.pieces.pop_front()
        {
            ranges.push((range, documents));
        }
        transactions.truncate(ranges.len());
        let mut readings: Vec<Option<Reading>> = match transactions.len() {
            0 | 1 => {
                let read = |range| round.scan.read(range, round.transaction, round.caller);
                ranges.iter().take(1).map(|(range, _)| Some(read(range))).collect()
            }
            _ => round.read_together(&ranges, transactions),
        };
        readings.resize_with(ranges.len(), || None);
        // The threads have ended with the operation, if it had to end.
        round.caller.operation.check_now()?;
        for (range, reading) in ranges.into_iter().zip(readings).rev() {
            self.put_front(range, reading);
        }
        Ok(())
    }

    /// Cuts a range at the front that is too large.
    fn cut_front(&mut self, round: &Round<'_>) -> Result<(), QueryError> {
        while let Some(Piece::Range(range, documents)) = self.pieces.front()
            && *documents >= 2 * RANGE_DOCUMENTS
        {
            let parts = (*documents / RANGE_DOCUMENTS).min(PARTS_MAX);
            let wanted = (parts as usize, *documents);
            let (collection, caller) = (round.scan.collection, round.caller);
            let ranges = ranges_within(range, collection, round.transaction, wanted, caller)?;
            let each = match ranges.len() as u64 {
                // No document is left, or the estimates tell no parts from each other.
                0 | 1 => 0,
                parts => *documents / parts,
            };
            let Some(Piece::Range(whole, _)) = self.pieces.pop_front() else { return Ok(()) };
            let ranges = if ranges.is_empty() { vec![whole] } else { ranges };
            for range in ranges.into_iter().rev() {
                self.pieces.push_front(Piece::Range(range, each));
            }
        }
        Ok(())
    }

    /// A transaction for each thread of a round; fewer than two where one thread reads.
    fn transactions(&self, round: &Round<'_>) -> Vec<Box<dyn Transaction>> {
        let ranges = self.pieces.iter().take_while(|piece| matches!(piece, Piece::Range(..))).count();
        let threads = free_threads(round.shared).min(ranges);
        if threads < 2 {
            return Vec::new();
        }
        let begin = Begin::read_at(round.transaction.snapshot());
        // An engine without past snapshots is read by one thread.
        let transactions = (0..threads).map(|_| round.shared.catalog.begin(begin));
        transactions.collect::<Result<_, _>>().unwrap_or_default()
    }

    fn put_front(&mut self, (range, documents): (KeyRange, u64), reading: Option<Reading>) {
        let Some(Reading { found, rest, outcome, counters }) = reading else {
            self.pieces.push_front(Piece::Range(range, documents));
            return;
        };
        self.counters.add(counters);
        if let Err(error) = outcome {
            self.pieces.push_front(Piece::Failed(error));
        } else if let Some(rest) = rest {
            self.pieces.push_front(Piece::Range(rest, documents));
        }
        if !found.ends.is_empty() {
            self.pieces.push_front(Piece::Found(found));
        }
    }
}

impl Found {
    fn new(memory: &StageMemory) -> Found {
        Found { bytes: Vec::new(), ends: Vec::new(), given: 0, reservation: memory.account.reserve() }
    }

    fn next(&mut self) -> Option<Result<&RawDocument, QueryError>> {
        let end = *self.ends.get(self.given)?;
        let start = self.given.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.given += 1;
        Some(RawDocument::from_bytes(&self.bytes[start..end]).map_err(QueryError::from))
    }

    /// Takes a document in, and breaks off where there is no room for another.
    fn push(&mut self, document: &RawDocument) -> ControlFlow<()> {
        self.bytes.extend_from_slice(document.as_bytes());
        self.ends.push(self.bytes.len());
        let held = self.bytes.capacity() + self.ends.capacity() * size_of::<usize>();
        let has_room = self.reservation.grow_to(held);
        if !has_room {
            self.reservation.hold(held);
        }
        match has_room && self.bytes.len() < FOUND_BYTES_MAX {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    }
}

impl Scan<'_> {
    /// Reads one range, on the thread of the call.
    fn read(self, range: &KeyRange, transaction: &dyn Transaction, caller: Caller<'_>) -> Reading {
        let (collection, plan) = (Arc::clone(self.collection), self.plan.clone());
        let mut executor = Executor::over_range(collection, plan, self.memory, range.clone());
        let mut found = Found::new(self.memory);
        let mut rest = None;
        let outcome = executor.for_each(transaction, caller, &mut |row| {
            let flow = found.push(row.document);
            if flow.is_break() {
                let lower = Bound::Excluded(row.primary_key.to_vec());
                rest = Some(KeyRange { lower, upper: range.upper.clone() });
            }
            Ok(flow)
        });
        Reading { found, rest, outcome, counters: executor.counters() }
    }
}

impl Round<'_> {
    /// Reads ranges by several threads, one with each of the transactions. A range behind one that has failed
    /// may be left out.
    fn read_together(
        &self,
        ranges: &[(KeyRange, u64)],
        transactions: Vec<Box<dyn Transaction>>,
    ) -> Vec<Option<Reading>> {
        let operations: Vec<Arc<Operation>> = transactions.iter().map(|_| Arc::default()).collect();
        let readings: Vec<Mutex<Option<Reading>>> = ranges.iter().map(|_| Mutex::new(None)).collect();
        let (next, first_failure) = (AtomicUsize::new(0), AtomicUsize::new(usize::MAX));
        let supervision = Supervision::default();
        let mut works: Vec<Work<'_>> = Vec::with_capacity(transactions.len() + 1);
        for (place, transaction) in transactions.into_iter().enumerate() {
            let (operation, next, first_failure) = (&*operations[place], &next, &first_failure);
            let (supervision, readings, scan) = (&supervision, &readings, self.scan);
            works.push(Box::new(move || {
                let _charge = operation.device().charge_thread();
                // Also where a filter panics, so that nobody waits for this thread. Other threads go on: a
                // range before this one may fail, too.
                let _ended = EndedPart { supervision, place, outcome: PartOutcome::Read };
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some((range, _)) = ranges.get(at) else { break };
                    if at > first_failure.load(Ordering::Relaxed) {
                        break;
                    }
                    let reading = scan.read(range, &*transaction, Caller::may_block(operation));
                    if reading.outcome.is_err() {
                        first_failure.fetch_min(at, Ordering::Relaxed);
                    }
                    *readings[at].lock() = Some(reading);
                }
            }));
        }
        let whole = self.caller.operation;
        works.push(Box::new(|| supervision.watch(whole, &operations)));
        self.shared.scanned_ranges.fetch_add(ranges.len() as u64, Ordering::Relaxed);
        self.shared.environment.spawner().run_together("pando-query", works);
        readings.into_iter().map(Mutex::into_inner).collect()
    }
}
