//! A plain scan of documents, batch by batch: its caller decides between two batches who reads the rest.

use pando_catalog::{BlockingMode, Caller, KeyRange, Transaction};

use super::super::source::{Step, Surroundings, TakeRow};
use super::Executor;
use crate::QueryError;

/// The end of one batch of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchEnd {
    /// There may be more documents.
    More,
    /// The caller broke off.
    Stopped,
    /// There is no further document.
    Exhausted,
}

impl Executor {
    /// Gives the rows of the batch at hand to `take`, until it breaks off; those of the next batch where none
    /// is at hand. So a caller gets control back in the middle of a scan that finds nothing.
    ///
    /// # Errors
    /// As for [`for_each`](Executor::for_each).
    ///
    /// # Panics
    /// If the plan is more than a scan of documents and a filter, or the call must not block.
    pub fn for_each_of_batch(
        &mut self,
        transaction: &dyn Transaction,
        caller: Caller<'_>,
        take: &mut TakeRow<'_>,
    ) -> Result<BatchEnd, QueryError> {
        let is_plain = self.sort.is_none() && self.skip == 0 && self.limit.is_none() && self.seen.is_none();
        assert!(is_plain && caller.blocking == BlockingMode::MayBlock, "a plain scan is read by its batches");
        self.spend(caller)?;
        let surroundings =
            Surroundings::new(caller, transaction, &self.collection, self.residual.as_ref(), &self.counters);
        let ends = match self.source.step(&surroundings, &mut self.found)? {
            Step::End => return Ok(BatchEnd::Exhausted),
            Step::Nothing => false,
            Step::Document => {
                self.counters.get_mut().returned += 1;
                take(self.row()?)?.is_break()
            }
            Step::Key => unreachable!("a scan of documents finds no keys"),
        };
        if ends {
            self.report(caller.operation);
            return Ok(BatchEnd::Stopped);
        }
        let ends = self.sweep(caller, take)?.is_break();
        Ok(if ends { BatchEnd::Stopped } else { BatchEnd::More })
    }

    /// The range of primary keys that is left to read, where the plan is a scan of the whole collection and
    /// no document is at hand.
    pub fn rest(&self) -> Option<&KeyRange> {
        self.source.rest()
    }
}
