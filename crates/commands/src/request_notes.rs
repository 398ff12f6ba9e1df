//! Notes that a command takes of its work, for lists of operations, the log of slow requests and the
//! profiler. They cost next to nothing, because every request takes them.

use std::sync::Arc;

use pando_document::{Document, RawDocumentBuf};
use pando_query::execute::ExecutionFigures;
use pando_query::explain::{PlanSummary, Purpose};
use pando_query::plan::Plan;

use crate::cursor_facts::CursorFacts;

/// The notes of one request. A count that its command does not have is `None`.
#[derive(Clone, Debug, Default)]
pub(crate) struct RequestNotes {
    /// The namespace of a request whose command does not name it.
    pub namespace: Option<String>,
    pub plan: PlanSummary,
    pub has_sort_stage: bool,
    /// The cursor that a `getMore` has worked on.
    pub cursor_facts: Option<Arc<CursorFacts>>,
    /// The number of the cursor that stays open.
    pub cursor: Option<i64>,
    /// Whether a cursor came to its end.
    pub is_cursor_exhausted: bool,
    pub returned: Option<u64>,
    pub inserted: Option<u64>,
    pub matched: Option<u64>,
    pub modified: Option<u64>,
    /// Updates that went down without a read, of which the other counts say nothing.
    pub blind: Option<u64>,
    /// Updates that would have gone down so, as their client waits for no answer, and needed a read.
    pub not_blind: Option<u64>,
    pub upserted: Option<u64>,
    pub deleted: Option<u64>,
    /// Writes that have failed in a request that has not.
    pub write_errors: u64,
    /// The statement that waits for a key, as lists of operations show it.
    pub waiting_statement: Option<RawDocumentBuf>,
    /// Damage on the device that the request met, as its error says it.
    pub damage: Option<String>,
    /// The execution of the plan, where the profiler wants it.
    pub execution: Option<Box<ProfiledExecution>>,
}

/// The execution of a plan, as the profiler shows it.
#[derive(Clone, Debug)]
pub(crate) struct ProfiledExecution {
    /// The stages without figures.
    pub stages: Arc<Document>,
    /// The figures of the executor; `None` where those of the operation and of the notes have to do.
    pub figures: Option<ExecutionFigures>,
}

impl RequestNotes {
    /// The notes of a find of one document by its `_id`.
    pub fn of_point_lookup() -> RequestNotes {
        RequestNotes { plan: PlanSummary::Id, is_cursor_exhausted: true, ..RequestNotes::default() }
    }

    /// Notes the figures of a profiled execution.
    pub fn note_figures(&mut self, figures: Option<ExecutionFigures>) {
        if let Some(execution) = &mut self.execution {
            execution.figures = figures;
        }
    }

    /// Notes the plan; the last one counts.
    pub fn note_plan(&mut self, plan: &Plan, purpose: Purpose) {
        self.plan = PlanSummary::of(plan, purpose);
        self.has_sort_stage = plan.sort.is_some();
    }
}
