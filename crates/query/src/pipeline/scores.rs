//! The scores of a search in a pipeline: documents carry theirs in a field of the server's own.
//!
//! A pipeline whose first stage searches, and which asks for scores, ends with a stage that removes the
//! field. A pipeline within a stage of such a one, and one that reads another collection, do so in any case.

use std::sync::Arc;

use pando_document::{RawArray, RawDocument, RawDocumentBuf, RawValue};

use super::{ParsedStage, PipelineFault, stage};
use crate::error::QueryError;
use crate::expression::ParseScope;
use crate::filter::has_text;
use crate::plan::Scores;
use crate::projection::Projection;

/// Levels of a stage in which `$meta` is looked for.
const DEPTH_MAX: usize = 200;

/// Whether the stages of a pipeline look at scores.
pub(super) fn of(stages: &RawArray, scope: &ParseScope) -> Result<Scores, QueryError> {
    if scope.has_scores() {
        return Ok(Scores::Wanted);
    }
    let searches = match stages.iter().next() {
        Some(first) => match first?.as_document().and_then(|stage| stage.iter().next()) {
            Some(field) => {
                let (name, argument) = field?;
                name == "$match" && argument.as_document().is_some_and(has_text)
            }
            None => false,
        },
        None => false,
    };
    let is_wanted = searches && (scope.is_within_stage() || asks(stages.as_document(), 0));
    Ok(if is_wanted { Scores::Wanted } else { Scores::Unneeded })
}

fn asks(document: &RawDocument, depth: usize) -> bool {
    depth < DEPTH_MAX
        && document.iter().filter_map(Result::ok).any(|(name, value)| match (name, value) {
            ("$meta", RawValue::String("textScore")) => true,
            (_, RawValue::Document(inner)) => asks(inner, depth + 1),
            (_, RawValue::Array(inner)) => asks(inner.as_document(), depth + 1),
            _ => false,
        })
}

/// Refuses a search that is not in the first stage.
pub(super) fn check_place(name: &str, argument: RawValue<'_>, at: usize) -> Result<(), QueryError> {
    if at > 0 && name == "$match" && argument.as_document().is_some_and(has_text) {
        return Err(PipelineFault::SearchNotFirst
            .error("$match with $text is only allowed as the first pipeline stage"));
    }
    Ok(())
}

/// The stage that removes the field. It has no text, for nobody wrote it.
pub(super) fn removal() -> Result<ParsedStage, QueryError> {
    let definition = stage::of_projection(Projection::without_score());
    Ok(ParsedStage { text: RawDocumentBuf::new(), definition: Arc::clone(&definition) })
}
