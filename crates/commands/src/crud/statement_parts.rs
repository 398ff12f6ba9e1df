//! Fields that the statements of `update`, `delete` and `findAndModify` share, checked in MongoDB's words.

use pando_document::{RawArray, RawValue};
use pando_query::expression::ParseScope;
use pando_query::pipeline::PipelineFault;
use pando_query::update::Update;

use crate::arguments::Argument;
use crate::{CommandError, ErrorCode};

/// An index by name or by key.
pub(super) fn checked_hint(value: RawValue<'_>) -> Result<RawValue<'_>, CommandError> {
    match value {
        RawValue::String(_) | RawValue::Document(_) => Ok(value),
        _ => Err(CommandError::failed(ErrorCode::FailedToParse, "Hint must be a string or an object")),
    }
}

/// A list of documents, as a list.
pub(super) fn array_of_documents<'a>(argument: &Argument<'a>) -> Result<&'a RawArray, CommandError> {
    argument.documents()?;
    argument.array()
}

/// Checks the change of an update: operators, a replacement, or a pipeline.
pub(super) fn checked_modification(value: RawValue<'_>) -> Result<RawValue<'_>, CommandError> {
    match value {
        RawValue::Document(_) => Ok(value),
        RawValue::Array(stages) => {
            for stage in stages.iter() {
                if stage?.as_document().is_none() {
                    return Err(CommandError::failed(
                        ErrorCode::TypeMismatch,
                        "Each element of the 'pipeline' array must be an object",
                    ));
                }
            }
            Ok(value)
        }
        _ => Err(CommandError::failed(
            ErrorCode::FailedToParse,
            "Update argument must be either an object or an array",
        )),
    }
}

/// The errors of a stage that is none.
const STAGE_CODES: [ErrorCode; 2] =
    [PipelineFault::UnknownStage.code(), PipelineFault::StageNotOneField.code()];

/// Refuses the whole request for a pipeline with an unknown stage. Any other fault fails its own statement
/// only.
pub(super) fn check_stages(modification: RawValue<'_>) -> Result<(), CommandError> {
    if !matches!(modification, RawValue::Array(_)) {
        return Ok(());
    }
    match Update::parse(modification, None, &ParseScope::default()) {
        Err(error) if error.code().is_some_and(|code| STAGE_CODES.contains(&code)) => Err(error.into()),
        _ => Ok(()),
    }
}
