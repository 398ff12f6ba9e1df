//! Random documents of a collection, for a `$sample` that wants few of many.
//!
//! # Steps
//! 1. For each document a place among all of them is drawn.
//! 2. A key near before that place is found by bisection of the engine's estimates, which reads no
//!    documents. Those between it and the place are stepped over: estimates are about as fine as a page.
//!    The document at the place is drawn, unless it was drawn before.
//! 3. When all are drawn they are fetched one by one.
//!
//! The plan reads all documents where estimates do not tell places well: where they differ from the counter
//! of documents, as those of many fresh writes do, where many draws fail, and where one place is far behind
//! the nearest key that bisection finds. To draw another one instead would favour the documents elsewhere.
//!
//! # Invariants
//! - No document comes twice, and as many come as are wanted.
//! - At most [`WANTED_MAX`] keys are held, which count as memory of the query.
//!
//! # Not here
//! The order of the sample, which the stage `$sample` makes. Chances that are equal to the last digit: they
//! are as equal as the estimates are right.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;

use pando_catalog::{
    Bytes, Caller, Collection, Direction, EstimateOrigin, KeyRange, QueryAccount, Reservation, Transaction,
};
use pando_environment::SeededRandom;
use pando_query::QueryError;
use pando_query::execute::{Counters, ExecutionFigures};
use pando_query::pipeline::Pipeline;
use pando_query::plan::{Access, Coverage, Plan};

use super::ranged_scan::key_ranges::KeySpan;
use crate::context::Context;

/// The largest sample: its keys are held in memory.
const WANTED_MAX: u64 = 10_000;
/// Documents that a scan reads in about the time of a draw.
const DOCUMENTS_A_DRAW: u64 = 500;
/// The divisor of the number of documents by which estimates may differ from it.
const DIFFERENCE_SHARE: u64 = 50;
/// Documents before the place of one at which the bisection ends.
const NEAR: u64 = 16;
/// The most documents that are stepped over to a place. Many documents whose keys begin with the same bytes
/// are as one place for the bisection.
const STEPS_MAX: u64 = 4_096;
/// Draws that may fail, beside as many as documents are wanted.
const FAILURES_MAX: u64 = 100;

/// See the module's head.
pub(super) struct RandomDocuments {
    collection: Arc<Collection>,
    /// Of the documents that are still to be given, the last one first.
    keys: Vec<Vec<u8>>,
    /// Counts the keys.
    _reservation: Reservation,
    counters: Counters,
}

/// A collection from which documents are drawn.
#[derive(Clone, Copy)]
pub(super) struct DrawnFrom<'d> {
    pub collection: &'d Arc<Collection>,
    pub transaction: &'d dyn Transaction,
    pub account: &'d QueryAccount,
}

impl RandomDocuments {
    /// Those of the collection of a plan for the stages behind it, where they are few of many and the plan
    /// would read all.
    pub fn draw(
        context: &Context<'_>,
        from: DrawnFrom<'_>,
        plan: &Plan,
        rest: &Pipeline,
    ) -> Result<Option<RandomDocuments>, QueryError> {
        let reads_all = matches!(plan.access, Access::Collection(_))
            && plan.residual.is_none()
            && plan.sort.is_none()
            && plan.skip == 0
            && plan.limit.is_none()
            && plan.coverage == Coverage::Document;
        let Some(wanted) = rest.sample_size().filter(|wanted| reads_all && *wanted <= WANTED_MAX) else {
            return Ok(None);
        };
        let DrawnFrom { collection, transaction, account } = from;
        let (shared, caller) = (context.shared, context.caller());
        // Estimates do not see the writes of a transaction.
        if shared.catalog.engine().capabilities().estimates != EstimateOrigin::Pages
            || context.open_transaction().is_some()
        {
            return Ok(None);
        }
        let estimated =
            collection.estimate_documents(&KeyRange::all(), transaction, caller.blocking)?.entries;
        if estimated / DOCUMENTS_A_DRAW < wanted.max(1) {
            return Ok(None);
        }
        let documents = collection.document_count(transaction, caller.blocking)?;
        if documents.is_none_or(|documents| documents.abs_diff(estimated) > documents / DIFFERENCE_SHARE) {
            return Ok(None);
        }
        let Some(keys) = KeySpan::of(collection, &KeyRange::all(), transaction, caller)? else {
            return Ok(None);
        };
        let mut draw = Draw { from, caller, keys, documents: estimated, stepped: 0 };
        let random = SeededRandom::new(shared.environment.random().next_u64());
        let Some(keys) = draw.keys(wanted, &random)? else { return Ok(None) };
        let mut reservation = account.reserve();
        reservation.hold(keys.iter().map(|key| key.len() + size_of::<Vec<u8>>()).sum());
        caller.operation.usage().add_examined(0, draw.stepped);
        Ok(Some(RandomDocuments {
            collection: Arc::clone(collection),
            keys,
            _reservation: reservation,
            counters: Counters { documents_examined: draw.stepped, ..Counters::default() },
        }))
    }

    /// The next document; `None` behind the last.
    pub fn next(
        &mut self,
        transaction: &dyn Transaction,
        caller: Caller<'_>,
    ) -> Result<Option<Bytes>, QueryError> {
        caller.operation.check()?;
        let Some(key) = self.keys.last() else { return Ok(None) };
        let document = self.collection.fetch(transaction, key, caller.blocking)?;
        self.keys.pop();
        caller.operation.usage().add_examined(0, 1);
        self.counters.documents_examined += 1;
        self.counters.returned += 1;
        // The snapshot in which it was drawn has it.
        Ok(document)
    }

    /// What was read.
    pub fn figures(&self) -> ExecutionFigures {
        ExecutionFigures { counters: self.counters, ..ExecutionFigures::default() }
    }
}

/// What is at a place.
enum AtPlace {
    Key(Vec<u8>),
    /// No document: there are fewer than estimated.
    Nothing,
    /// Too many documents are to be stepped over.
    TooFar,
}

/// A draw of keys.
struct Draw<'d> {
    from: DrawnFrom<'d>,
    caller: Caller<'d>,
    keys: KeySpan,
    /// By the estimates.
    documents: u64,
    /// Documents that were stepped over.
    stepped: u64,
}

impl Draw<'_> {
    /// So many different keys, in descending order; `None` where places cannot be told.
    fn keys(&mut self, wanted: u64, random: &SeededRandom) -> Result<Option<Vec<Vec<u8>>>, QueryError> {
        let mut keys = BTreeSet::new();
        let mut failures = 0;
        while (keys.len() as u64) < wanted {
            let is_new = match self.key_at(random.below(self.documents))? {
                AtPlace::Key(key) => keys.insert(key),
                AtPlace::Nothing => false,
                AtPlace::TooFar => return Ok(None),
            };
            if is_new {
                continue;
            }
            failures += 1;
            if failures > FAILURES_MAX + wanted {
                return Ok(None);
            }
        }
        Ok(Some(keys.into_iter().rev().collect()))
    }

    /// The key at a place.
    fn key_at(&mut self, place: u64) -> Result<AtPlace, QueryError> {
        let DrawnFrom { collection, transaction, .. } = self.from;
        let keys = &self.keys;
        let (mut low, mut high, mut before_low) = (keys.first, None, 0);
        loop {
            self.caller.operation.check()?;
            let above = high.unwrap_or(keys.last + 1);
            if above - low <= 1 || place - before_low <= NEAR {
                break;
            }
            let middle = low + (above - low) / 2;
            let range = KeyRange { lower: Bound::Unbounded, upper: Bound::Excluded(keys.key(middle)) };
            let found = collection.estimate_documents(&range, transaction, self.caller.blocking)?.entries;
            match found <= place {
                true => (low, before_low) = (middle, found.max(before_low)),
                false => high = Some(middle),
            }
        }
        let steps = place - before_low;
        if steps > STEPS_MAX {
            return Ok(AtPlace::TooFar);
        }
        let upper = high.map_or(Bound::Unbounded, |high| Bound::Excluded(keys.key(high)));
        let range = KeyRange { lower: Bound::Included(keys.key(low)), upper };
        let mut scan = collection.scan_documents(range, Direction::Forward);
        for _ in 0..steps {
            self.caller.operation.check()?;
            if scan.next(transaction, self.caller.blocking)?.is_none() {
                return Ok(AtPlace::Nothing);
            }
            self.stepped += 1;
        }
        let found = scan.next(transaction, self.caller.blocking)?;
        Ok(found.map_or(AtPlace::Nothing, |(key, _)| AtPlace::Key(key.to_vec())))
    }
}
