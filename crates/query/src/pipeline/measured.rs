//! A measured stage: it counts the documents that a stage gives, its time, its memory and its spills, for
//! `explain`.
//!
//! As in MongoDB the time of a stage includes that of the stages in front of it.

use std::sync::Arc;
use std::time::Duration;

use pando_catalog::{Bytes, StageUsage};
use pando_document::{Document, Value};
use pando_environment::Clock;

use super::stage::{Memory, Stage};
use super::{Sink, Source};
use crate::error::QueryError;

/// See the module's head.
pub(super) struct Measured {
    stage: Box<dyn Stage>,
    memory: Memory,
    usage: Arc<StageUsage>,
    clock: Arc<dyn Clock>,
    returned: u64,
    took: Duration,
}

impl Measured {
    /// A stage whose reservations and spills are counted in `usage`.
    pub fn new(
        stage: Box<dyn Stage>,
        memory: Memory,
        usage: Arc<StageUsage>,
        clock: &Arc<dyn Clock>,
    ) -> Measured {
        Measured { stage, memory, usage, clock: Arc::clone(clock), returned: 0, took: Duration::ZERO }
    }
}

impl Stage for Measured {
    fn next(&mut self, input: &mut dyn Source) -> Result<Option<Bytes>, QueryError> {
        let began = self.clock.monotonic();
        let next = self.stage.next(input);
        self.took += self.clock.monotonic().since(began);
        self.returned += u64::from(matches!(next, Ok(Some(_))));
        next
    }

    fn for_each(&mut self, input: &mut dyn Source, sink: &mut Sink<'_>) -> Result<(), QueryError> {
        let Measured { stage, clock, returned, took, .. } = self;
        let began = clock.monotonic();
        let mut behind = Duration::ZERO;
        let outcome = stage.for_each(input, &mut |document, check| {
            let given = clock.monotonic();
            let flow = sink(document, check)?;
            *returned += 1;
            behind += clock.monotonic().since(given);
            Ok(flow)
        });
        *took += clock.monotonic().since(began).saturating_sub(behind);
        outcome
    }

    fn explain(&self, shown: &mut Document) {
        self.stage.explain(shown);
        if self.memory == Memory::Reserved {
            let figures = self.usage.figures();
            shown.push("maxTotalMemoryUsageBytes", long(figures.peak_bytes));
            shown.push("usedDisk", figures.spills > 0);
            shown.push("spills", long(figures.spills));
            if figures.spills > 0 {
                shown.push("spilledBytes", long(figures.spilled_bytes));
            }
        }
        shown.push("nReturned", long(self.returned));
        let milliseconds = u64::try_from(self.took.as_millis()).unwrap_or(u64::MAX);
        shown.push("executionTimeMillisEstimate", long(milliseconds));
    }
}

/// Counts of stages are int64, as MongoDB shows them.
pub(super) fn long(count: u64) -> Value {
    Value::Int64(i64::try_from(count).unwrap_or(i64::MAX))
}
