//! The stage `$currentOp`: one document about each operation instead of documents of a collection. It stands
//! first in a pipeline on `{aggregate: 1}` of the database `admin`.
//!
//! There are no users yet, so `allUsers` changes nothing. `idleSessions` are those with an open transaction.

use pando_catalog::Bytes;
use pando_document::{RawArray, RawDocument, RawDocumentBuf, RawValue};

use super::coll_stats_stage::{first_stage, stages_behind_first};
use crate::context::Context;
use crate::diagnostic::current_op::WantedOperations;
use crate::{CommandError, ErrorCode};

/// The collection in the place of none.
pub(crate) const COLLECTIONLESS: &str = "$cmd.aggregate";

const NAME: &str = "$currentOp";

/// Whether a pipeline begins with the stage.
pub(super) fn begins(pipeline: &RawArray) -> Result<bool, CommandError> {
    Ok(first_stage(pipeline, NAME)?.is_some())
}

/// The argument of the stage, and the stages behind it, where a pipeline begins with it.
pub(super) fn split(pipeline: &RawArray) -> Result<Option<(&RawDocument, RawDocumentBuf)>, CommandError> {
    let Some(argument) = first_stage(pipeline, NAME)? else {
        for stage in pipeline.iter().skip(1) {
            if let RawValue::Document(stage) = stage?
                && stage.get(NAME)?.is_some()
            {
                return Err(misplaced());
            }
        }
        return Ok(None);
    };
    let RawValue::Document(argument) = argument else {
        let found = argument.element_type().alias();
        return Err(CommandError::failed(
            ErrorCode::TypeMismatch,
            format!("$currentOp options must be specified in an object, but found: {found}"),
        ));
    };
    Ok(Some((argument, stages_behind_first(pipeline)?)))
}

/// The documents that the stage gives.
pub(super) fn documents(
    context: &Context<'_>,
    collection: &str,
    argument: &RawDocument,
) -> Result<Vec<Bytes>, CommandError> {
    let wanted = read(argument)?;
    if context.database != "admin" || collection != COLLECTIONLESS {
        return Err(misplaced());
    }
    Ok(wanted.list(context).into_iter().map(|document| Bytes::from(document.into_vec())).collect())
}

fn misplaced() -> CommandError {
    CommandError::failed(
        ErrorCode::InvalidNamespace,
        "$currentOp must be run against the 'admin' database with {aggregate: 1}",
    )
}

/// Reads the fields of the stage.
fn read(argument: &RawDocument) -> Result<WantedOperations, CommandError> {
    let mut wanted = WantedOperations::default();
    for field in argument.iter() {
        let (name, value) = field?;
        match name {
            "idleConnections" => wanted.idle_connections = flag(name, value, ErrorCode::FailedToParse)?,
            "idleCursors" => wanted.idle_cursors = flag(name, value, ErrorCode::FailedToParse)?,
            "idleSessions" => wanted.idle_sessions = flag(name, value, ErrorCode::FailedToParse)?,
            "truncateOps" | "backtrace" => {
                flag(name, value, ErrorCode::FailedToParse)?;
            }
            "allUsers" | "localOps" => {
                flag(name, value, ErrorCode::TypeMismatch)?;
            }
            _ => {
                return Err(CommandError::failed(
                    ErrorCode::FailedToParse,
                    format!("Unrecognized option '{name}' in $currentOp stage."),
                ));
            }
        }
    }
    Ok(wanted)
}

fn flag(name: &str, value: RawValue<'_>, code: ErrorCode) -> Result<bool, CommandError> {
    match value {
        RawValue::Boolean(flag) => Ok(flag),
        other => {
            let found = other.element_type().alias();
            Err(CommandError::failed(
                code,
                format!(
                    "The '{name}' parameter of the $currentOp stage must be a boolean value, but found: {found}"
                ),
            ))
        }
    }
}
