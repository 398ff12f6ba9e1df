//! The watch of evaluations: it ends one that takes long when its operation has to end.
//!
//! An evaluation works on one document, and loops over documents check between two of them. But an expression
//! may loop over an array of a million elements, and over another one for each.
//!
//! 1. The scope of a request's expressions has a watch, which follows the request's operation. Each call of
//!    an operator that is parsed in the scope keeps it.
//! 2. The frame of an evaluation counts steps: one for each argument of an operator, and more for long values
//!    ([`Steps`]).
//! 3. After [`STEPS_A_CHECK`] steps the call checks the operation. So expressions over small documents never
//!    do.
//!    A first attempt of a request that must not block gives up there: it is handled again by a thread that
//!    may take long.
//! 4. A cursor has its watch follow the operation of each `getMore`.
//!
//! Expressions without a watch, such as those of tools, are not interrupted.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pando_catalog::{BlockingMode, Operation, StorageError};
use pando_document::RawValue;

use super::Evaluated;
use crate::error::QueryError;

/// Steps between two checks: less than a millisecond of work.
const STEPS_A_CHECK: u32 = 1 << 10;
/// Bytes of a value that count as a step.
const BYTES_A_STEP: usize = 64;

/// The operation that evaluations work for. Clones follow the same one.
#[derive(Clone, Debug)]
pub struct EvaluationWatch(Arc<Mutex<Followed>>);

#[derive(Debug)]
struct Followed {
    operation: Arc<Operation>,
    blocking: BlockingMode,
}

impl EvaluationWatch {
    /// A watch that follows an operation.
    pub fn of(operation: &Arc<Operation>) -> EvaluationWatch {
        EvaluationWatch::in_mode(operation, BlockingMode::MayBlock)
    }

    /// A watch that follows an operation in a blocking mode. A long evaluation that must not block fails with
    /// `WouldBlock`, because the thread serves other clients too. So everything has to be done anew then.
    pub fn in_mode(operation: &Arc<Operation>, blocking: BlockingMode) -> EvaluationWatch {
        EvaluationWatch(Arc::new(Mutex::new(Followed { operation: Arc::clone(operation), blocking })))
    }

    /// Has it follow another operation. What an evaluation has begun is then never to be done anew.
    pub fn follow(&self, operation: &Arc<Operation>) {
        let operation = Arc::clone(operation);
        *self.followed() = Followed { operation, blocking: BlockingMode::MayBlock };
    }

    /// Whether an expression keeps it, so that evaluations may take long.
    pub fn is_kept(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }

    /// Fails if the operation has to end, or is too long for its thread.
    pub(crate) fn check(&self) -> Result<(), QueryError> {
        let followed = self.followed();
        followed.operation.check_now()?;
        match followed.blocking {
            BlockingMode::MayBlock => Ok(()),
            BlockingMode::CachedOnly => Err(StorageError::would_block().into()),
        }
    }

    fn followed(&self) -> MutexGuard<'_, Followed> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The steps of an evaluation since its last check.
#[derive(Debug, Default)]
pub(super) struct Steps(u32);

impl Steps {
    /// Counts the work on a value. True: it is time for a check.
    #[inline]
    pub fn count(&mut self, value: &Evaluated<'_>) -> bool {
        let bytes = match value {
            Evaluated::Raw(RawValue::Double(_) | RawValue::Int32(_) | RawValue::Int64(_)) => 0,
            other => other.raw().map_or(0, bytes_of),
        };
        self.count_bytes(bytes)
    }

    /// Counts the work on so many bytes. True: it is time for a check.
    #[inline]
    pub fn count_bytes(&mut self, bytes: usize) -> bool {
        let more = u32::try_from(bytes / BYTES_A_STEP).unwrap_or(u32::MAX);
        self.0 = self.0.saturating_add(more).saturating_add(1);
        let is_time = self.0 >= STEPS_A_CHECK;
        if is_time {
            self.0 = 0;
        }
        is_time
    }
}

fn bytes_of(value: RawValue<'_>) -> usize {
    match value {
        RawValue::String(text) => text.len(),
        RawValue::Document(document) => document.as_bytes().len(),
        RawValue::Array(array) => array.as_bytes().len(),
        RawValue::Binary(binary) => binary.bytes.len(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use pando_catalog::Interruption;
    use pando_document::{Document, Value, doc};
    use pando_environment::Environment;

    use super::*;
    use crate::expression::{Expression, ParseScope};

    /// Evaluates an expression over an array `a` of 1,000 numbers, after the time of its operation is over.
    fn evaluate_too_late(expression: Document) -> Result<(), QueryError> {
        let simulation = Environment::simulated(1);
        let operation = Arc::new(Operation::new(simulation.environment.clock()));
        operation.begin();
        let watch = EvaluationWatch::of(&Arc::default());
        watch.follow(&operation);
        let scope = ParseScope::at(0).watched_by(&watch);
        let holder = doc! { "e": expression }.to_raw();
        let parsed = Expression::parse(holder.get("e").unwrap().unwrap(), &scope)?.folded()?;
        let numbers: Vec<Value> = (0..1_000).map(Value::Int32).collect();
        let text = "word ".repeat(20_000);
        let root = doc! { "a": numbers, "text": text, "n": 7 }.to_raw();
        parsed.evaluate(&root)?;
        operation.limit_time(simulation.environment.clock().monotonic(), Duration::from_millis(50));
        simulation.clock.advance(Duration::from_millis(51));
        let outcome = parsed.evaluate(&root).map(|_| ());
        assert_eq!(outcome.is_err(), operation.interruption() == Some(Interruption::TimeLimit));
        outcome
    }

    #[test]
    fn a_long_evaluation_that_must_not_block_gives_its_thread_back() {
        let operation = Arc::new(Operation::default());
        let watch = EvaluationWatch::in_mode(&operation, BlockingMode::CachedOnly);
        let holder = doc! { "e": { "$map": { "input": "$a", "in": { "$add": ["$$this", 1] } } } }.to_raw();
        let scope = ParseScope::at(0).watched_by(&watch);
        let parsed = Expression::parse(holder.get("e").unwrap().unwrap(), &scope).unwrap();
        let array = |length| doc! { "a": ((0..length).map(Value::Int32).collect::<Vec<_>>()) }.to_raw();
        assert!(parsed.evaluate(&array(10)).is_ok());
        assert!(parsed.evaluate(&array(10_000)).is_err_and(|error| error.is_would_block()));
        watch.follow(&operation);
        assert!(parsed.evaluate(&array(10_000)).is_ok());
    }

    #[test]
    fn expressions_over_long_values_end_with_their_operation_and_short_ones_do_not_look() {
        let this = doc! { "$add": ["$$this", 1] };
        for long in [
            doc! { "$map": { "input": "$a", "in": this.clone() } },
            doc! { "$map": { "input": "$a", "as": "b", "in": { "$map": { "input": "$a", "in": "$$b" } } } },
            doc! { "$filter": { "input": "$a", "cond": { "$gt": ["$$this", 1] } } },
            doc! { "$reduce": { "input": "$a", "initialValue": 0, "in": { "$add": ["$$value", "$$this"] } } },
            doc! { "$size": { "$range": [0, { "$multiply": ["$n", 10_000] }] } },
            doc! { "$toUpper": { "$concat": ["$text", "$text"] } },
            doc! { "$size": { "$split": ["$text", " "] } },
            doc! { "$size": { "$setUnion": ["$a", { "$range": [0, { "$multiply": ["$n", 10_000] }] }] } },
            doc! { "$sortArray": { "input": { "$range": [0, { "$multiply": ["$n", 10_000] }] }, "sortBy": (-1) } },
        ] {
            assert!(evaluate_too_late(long.clone()).is_err(), "{long:?}");
        }
        for short in [doc! { "$add": ["$n", 1] }, doc! { "$cond": [{ "$gt": ["$n", 3] }, "$n", 0] }] {
            assert!(evaluate_too_late(short.clone()).is_ok(), "{short:?}");
        }
    }
}
