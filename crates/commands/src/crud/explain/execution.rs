//! The execution of a command for `explain`, with its figures.

use std::sync::Arc;

use pando_catalog::{Collection, DeviceReads};
use pando_document::{Document, Value};
use pando_query::execute::{ExecutionFigures, Executor};
use pando_query::explain::{Answer, ExecutionFault, ExecutionStatistics};
use pando_query::memory::StageMemory;
use pando_query::pipeline::PipelineRun;

use super::super::aggregate::{MeasuredPipeline, Subject, measure};
use super::Explained;
use crate::context::Context;
use crate::reader::Reader;
use crate::{CommandError, ErrorCode, Failure};

/// An execution that is over.
pub(super) struct Executed {
    figures: ExecutionFigures,
    answer: Answer,
    milliseconds: i64,
    reads: DeviceReads,
    /// The error that ended it: that of a search is shown with the figures until then, as MongoDB shows it.
    failure: Option<Failure>,
    /// The stages behind the plan, at their end.
    pub stages: Option<PipelineRun>,
}

impl Executed {
    pub fn statistics(&self) -> ExecutionStatistics<'_> {
        let fault = self.failure.as_ref();
        let fault =
            fault.map(|failure| ExecutionFault { code: failure.code.code(), message: &failure.message });
        let Executed { figures, answer, milliseconds, reads, .. } = *self;
        ExecutionStatistics { fault, figures, answer, milliseconds, reads }
    }
}

/// Carries the plan out and counts.
pub(super) fn execute(
    context: &Context<'_>,
    explained: &Explained,
    collection: Option<&Arc<Collection>>,
    reader: &Reader,
) -> Result<Executed, CommandError> {
    let began = context.shared.now_ms();
    let held = reader.hold()?;
    let memory = StageMemory::new(context.query_account(), explained.disk_use);
    let plan = explained.carried_out();
    let subject = collection.map(|collection| Subject { collection: Arc::clone(collection), plan });
    let (figures, stages, outcome) = match subject {
        subject if !explained.stages.is_empty() => {
            let scope = context.parse_scope().collated_by(&explained.order);
            let MeasuredPipeline { figures, run } =
                measure(context, &held, subject, &explained.stages, &scope, &memory)?;
            (figures, Some(run), Ok(()))
        }
        Some(Subject { collection, plan }) => {
            let mut executor = Executor::new(collection, plan, &memory)?;
            let outcome = executor.count(held.transaction(), context.caller());
            memory.account.report(context.operation);
            (executor.figures(), None, outcome.map(drop))
        }
        None => (ExecutionFigures::default(), None, Ok(())),
    };
    let failure = match outcome.map_err(CommandError::from) {
        Ok(()) => None,
        Err(CommandError::Failed(failure)) if is_shown(failure.code) => Some(*failure),
        Err(other) => return Err(other),
    };
    Ok(Executed {
        figures,
        answer: explained.answer,
        milliseconds: context.shared.now_ms() - began,
        reads: context.operation.device().reads(),
        failure,
        stages,
    })
}

/// What an update does where no document matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OnNoMatch {
    Inserts,
    ChangesNothing,
}

/// Adds to the stage of an update the effect that it would have. As in MongoDB, each document that matches
/// counts as one that would be changed, and no document is inserted where one matches.
pub(super) fn add_effect(section: &mut Document, on_no_match: OnNoMatch) {
    let Some(Value::Document(stage)) = section.get_mut("executionStages") else { return };
    let Some(matched) = stage.get("nMatched").cloned() else { return };
    let matches = matched.as_i64_exact().unwrap_or(0) > 0;
    stage.push("nWouldModify", matched);
    stage.push("nWouldUpsert", i32::from(on_no_match == OnNoMatch::Inserts && !matches));
}

/// Whether a search that ends so is explained. Where the server or its data are at fault there is nothing to
/// explain.
fn is_shown(code: ErrorCode) -> bool {
    !matches!(
        code,
        ErrorCode::DataCorruptionDetected
            | ErrorCode::ShutdownInProgress
            | ErrorCode::InterruptedAtShutdown
            | ErrorCode::ClientDisconnect
    )
}
