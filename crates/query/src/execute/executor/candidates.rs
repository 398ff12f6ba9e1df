//! The search for the next candidate: steps of the source, and the documents of the keys that they find.

use std::cell::Cell;

use pando_catalog::{Caller, KeySet, Transaction};
use pando_document::RawDocument;

use super::super::gathered_keys::{GatheredKeys, KeyOrder, Next, Stop};
use super::super::source::{Found, Source, Step, Surroundings};
use super::{Executor, Pending, Skipping};
use crate::QueryError;

/// The fewest keys that are looked up at once where a filter decides how many are needed.
const FILTERED_MIN: u64 = 16;

/// Whether keys are gathered in the order of their entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gathering {
    /// The first transaction tells.
    Undecided,
    Decided,
}

impl Executor {
    /// Moves to the next candidate that passes the filter, in the order of the access; false at the end.
    pub(super) fn find(
        &mut self,
        transaction: &dyn Transaction,
        caller: Caller<'_>,
    ) -> Result<bool, QueryError> {
        self.decide_order(transaction);
        loop {
            self.spend(caller)?;
            if self.pending == Pending::Nothing {
                self.fetched = None;
                match self.next_candidate(transaction, caller)? {
                    Step::End => return Ok(false),
                    Step::Nothing => continue,
                    Step::Document => return Ok(true),
                    Step::Key => self.pending = Pending::Fetch,
                }
            }
            let document = match &mut self.gathered {
                Some(gathered) => gathered.fetch(&self.collection, transaction, caller.blocking)?,
                None => self.collection.fetch(transaction, &self.found.primary_key, caller.blocking)?,
            };
            self.pending = Pending::Nothing;
            let Some(document) = document else {
                // A lookup that finds nothing has examined nothing.
                self.counters.get_mut().keys_examined -= 1;
                continue;
            };
            self.counters.get_mut().documents_examined += 1;
            if let Some(filter) = &self.residual
                && !filter.matches(RawDocument::from_bytes(&document)?)?
            {
                continue;
            }
            self.fetched = Some(self.source.scored(document)?);
            return Ok(true);
        }
    }

    /// Gathers keys in the order of their entries, where a request for several costs about as much as one
    /// for one.
    fn decide_order(&mut self, transaction: &dyn Transaction) {
        let is_open = std::mem::replace(&mut self.gathering, Gathering::Decided) == Gathering::Undecided;
        if is_open && self.gathered.is_none() && transaction.sends_gets() {
            self.gathered = Some(GatheredKeys::new(KeyOrder::OfEntries));
        }
    }

    /// Moves to the next candidate, whose document is not looked at where it is to be fetched.
    fn next_candidate(
        &mut self,
        transaction: &dyn Transaction,
        caller: Caller<'_>,
    ) -> Result<Step, QueryError> {
        if let Some(gathered) = &mut self.gathered {
            match gathered.next(self.counters.get_mut()) {
                None => return self.gather(transaction, caller),
                Some(Next::End) => return Ok(Step::End),
                Some(Next::Document(key)) => {
                    self.found.primary_key = key;
                    return Ok(Step::Document);
                }
                Some(Next::Key(key)) => {
                    self.found.primary_key.clear();
                    self.found.primary_key.extend_from_slice(key);
                    return Ok(Step::Key);
                }
            }
        }
        let filter = self.residual.as_ref();
        let surroundings = Surroundings::new(caller, transaction, &self.collection, filter, &self.counters);
        let step = self.source.step(&surroundings, &mut self.found)?;
        self.pass_over(step, caller)
    }

    /// Takes one step of the source, and its key.
    fn gather(&mut self, transaction: &dyn Transaction, caller: Caller<'_>) -> Result<Step, QueryError> {
        let examined = Cell::default();
        let filter = self.residual.as_ref();
        let surroundings = Surroundings::new(caller, transaction, &self.collection, filter, &examined);
        let outcome = self.source.step(&surroundings, &mut self.found);
        let Some(gathered) = &mut self.gathered else { unreachable!("only a gathering executor gathers") };
        gathered.count(examined.get());
        let step = self.pass_over(outcome?, caller)?;
        let most = self.keys_wanted();
        let Some(gathered) = &mut self.gathered else { unreachable!("as above") };
        match step {
            Step::Nothing => {}
            Step::Key => gathered.push(&self.found.primary_key, most),
            Step::Document => gathered.stop(Stop::Document(self.found.primary_key.clone())),
            Step::End => gathered.stop(Stop::End),
        }
        Ok(Step::Nothing)
    }

    /// The step; or nothing, where the candidate came before, or is passed over by the skip.
    fn pass_over(&mut self, step: Step, caller: Caller<'_>) -> Result<Step, QueryError> {
        let is_candidate = matches!(step, Step::Document | Step::Key);
        if is_candidate && !is_new(&mut self.seen, &self.source, &self.found, caller)? {
            return Ok(Step::Nothing);
        }
        if step == Step::Key && self.skip > 0 && self.skipping == Skipping::BeforeFetching {
            self.skip -= 1;
            return Ok(Step::Nothing);
        }
        Ok(step)
    }

    /// The number of keys that the rows which are left may need: with a filter that leaves out many, twice as
    /// many after each request.
    fn keys_wanted(&self) -> usize {
        let Some(limit) = self.limit.filter(|_| self.sort.is_none()) else { return usize::MAX };
        let rows = match self.skipping {
            Skipping::BeforeFetching => limit,
            Skipping::AfterFiltering => limit.saturating_add(self.skip),
        };
        let keys = match self.residual {
            None => rows,
            Some(_) => rows.max(self.counters.get().documents_examined).max(FILTERED_MIN),
        };
        usize::try_from(keys).unwrap_or(usize::MAX)
    }
}

/// Whether the primary key of the last step comes for the first time.
fn is_new(
    seen: &mut Option<KeySet>,
    source: &Source,
    found: &Found,
    caller: Caller<'_>,
) -> Result<bool, QueryError> {
    let Some(seen) = seen else { return Ok(true) };
    let key = source.scanned().map_or(found.primary_key.as_slice(), |(key, _)| key);
    seen.insert(key, &mut || Ok(caller.operation.check_now()?))
}
