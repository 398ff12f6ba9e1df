//! A ranged filter: the documents of a collection that pass a rare filter, found by several threads ahead of
//! the cursor that gives them.
//!
//! # Terms
//! - *Piece*: a part of the collection, in the order of the keys. It is a range that is still to be read, or
//!   the documents that were found in one.
//! - *Round*: the ranges at the front of the pieces are read side by side, and become found documents.
//!
//! # Steps
//! 1. The executor of the plan reads batch by batch, on the thread of the request.
//! 2. When few of many documents have passed, a long rest is to be read and more than one processor is free,
//!    the rest becomes pieces.
//! 3. The documents at the front are given. Where a range stands at the front, a round is made. Rounds grow,
//!    so that a client who takes no more documents has cost no more than those that it took.
//!
//! # Invariants
//! - Documents come in the order of one thread, and so does the error of a filter that fails.
//! - The threads read the snapshot of the cursor. An interruption of the caller's operation ends them.
//! - Documents that were found and not given count in the memory of their query. A range with many of them is
//!   read in parts.
//!
//! # Not here
//! Stages that gather ([`ranged_scan`](super::aggregate::ranged_scan)); scans of an index; the writes of a
//! session's own transaction, which only its own thread sees.

mod pieces;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use pando_catalog::{BlockingMode, Caller, Collection, EstimateOrigin, StorageError, Transaction};
use pando_document::RawDocument;
use pando_query::QueryError;
use pando_query::execute::{BatchEnd, Counters, ExecutionFigures, Executor, Row};
use pando_query::memory::StageMemory;
use pando_query::plan::{Access, Coverage, Plan, ScanDirection};

use self::pieces::{Pieces, RANGE_DOCUMENTS, Round, Scan};
use super::aggregate::ranged_scan::free_threads;
use crate::reader::Reader;
use crate::shared_state::SharedState;

/// So many documents are examined between two looks at whether threads would help.
const A_LOOK: u64 = 8 << 10;
/// At most one of so many documents passes a rare filter.
const RARE_SHARE: u64 = 8;

/// See the module's head.
pub(super) struct RangedFilter {
    shared: Arc<SharedState>,
    collection: Arc<Collection>,
    plan: Plan,
    memory: StageMemory,
    /// Documents that are examined before the next look.
    next_look: u64,
    /// The rest of the collection, once threads read it.
    pieces: Option<Pieces>,
}

/// Takes documents until it breaks off.
pub(super) type TakeDocument<'t> = dyn FnMut(&RawDocument) -> Result<ControlFlow<()>, QueryError> + 't;

impl RangedFilter {
    /// The ranged filter of a plan, where there can be one.
    pub fn of(
        shared: &Arc<SharedState>,
        collection: &Arc<Collection>,
        plan: &Plan,
        reader: &Reader,
        memory: &StageMemory,
    ) -> Option<RangedFilter> {
        let is_plain = matches!(plan.access, Access::Collection(ScanDirection::Forward))
            && plan.residual.is_some()
            && plan.sort.is_none()
            && plan.skip == 0
            && plan.limit.is_none()
            && plan.coverage == Coverage::Document;
        let is_reader = !matches!(reader, Reader::Session(_));
        let estimates = shared.catalog.engine().capabilities().estimates;
        let is_worth_a_look = estimates == EstimateOrigin::Pages && shared.options.query_threads > 1;
        (is_plain && is_reader && is_worth_a_look).then(|| RangedFilter {
            shared: Arc::clone(shared),
            collection: Arc::clone(collection),
            plan: plan.clone(),
            memory: memory.clone(),
            next_look: A_LOOK,
            pieces: None,
        })
    }

    /// Gives documents to `take` until it breaks off or there are no more. The executor is that of the plan.
    ///
    /// # Errors
    /// Those of `take`, and as for [`Executor::next`]. A document that was given is not given again.
    pub fn for_each(
        &mut self,
        executor: &mut Executor,
        transaction: &dyn Transaction,
        caller: Caller<'_>,
        take: &mut TakeDocument<'_>,
    ) -> Result<(), QueryError> {
        while self.pieces.is_none() {
            let mut take = |row: Row<'_>| take(row.document);
            if caller.blocking == BlockingMode::CachedOnly {
                return executor.for_each(transaction, caller, &mut take);
            }
            match executor.for_each_of_batch(transaction, caller, &mut take)? {
                BatchEnd::More => self.look(executor, transaction, caller)?,
                BatchEnd::Stopped | BatchEnd::Exhausted => return Ok(()),
            }
        }
        self.give(transaction, caller, take)
    }

    /// Makes pieces of the rest where threads would help.
    fn look(
        &mut self,
        executor: &Executor,
        transaction: &dyn Transaction,
        caller: Caller<'_>,
    ) -> Result<(), QueryError> {
        let Counters { documents_examined, returned, .. } = executor.counters();
        if documents_examined < self.next_look {
            return Ok(());
        }
        self.next_look = documents_examined + A_LOOK;
        let is_rare = returned * RARE_SHARE <= documents_examined;
        let Some(rest) = executor.rest().filter(|_| is_rare && free_threads(&self.shared) > 1) else {
            return Ok(());
        };
        let documents = self.collection.estimate_documents(rest, transaction, caller.blocking)?.entries;
        if documents >= 2 * RANGE_DOCUMENTS {
            self.pieces = Some(Pieces::of(rest.clone(), documents));
            self.shared.ranged_scans.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    fn give(
        &mut self,
        transaction: &dyn Transaction,
        caller: Caller<'_>,
        take: &mut TakeDocument<'_>,
    ) -> Result<(), QueryError> {
        let RangedFilter { shared, collection, plan, memory, pieces: Some(pieces), .. } = self else {
            return Ok(());
        };
        let round = Round { shared, scan: Scan { collection, plan, memory }, transaction, caller };
        loop {
            caller.operation.check()?;
            if pieces.give_found(take)?.is_break() || pieces.is_empty() {
                return Ok(());
            }
            if caller.blocking == BlockingMode::CachedOnly {
                // A round takes milliseconds.
                return Err(StorageError::would_block().into());
            }
            pieces.read_round(&round)?;
        }
    }

    /// The figures of the plan, to which those of its executor are given.
    pub fn figures(&self, of_executor: ExecutionFigures) -> ExecutionFigures {
        let read = self.pieces.as_ref().map(Pieces::counters).unwrap_or_default();
        let mut figures = of_executor;
        figures.counters.add(read);
        figures
    }
}
