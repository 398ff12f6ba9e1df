//! The stage `$currentOp`: one document about each operation instead of documents of a collection. It stands
//! first in a pipeline on `{aggregate: 1}` of the database `admin`.
//!
//! With access control it shows the operations of the own user, unless `allUsers` is true. `idleSessions` are
//! those with an open transaction.

use pando_catalog::Bytes;
use pando_document::{RawArray, RawDocument, RawDocumentBuf, RawValue};

use super::coll_stats_stage::{first_stage, stages_behind_first};
use crate::context::Context;
use crate::diagnostic::current_op::{UsersOfOperations, WantedOperations, WantedServers};
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
        return if has_current_op(pipeline)? { Err(misplaced()) } else { Ok(None) };
    };
    for stage in pipeline.iter().skip(1) {
        if stage?.as_document().is_some_and(|stage| stage.get(NAME).is_ok_and(|found| found.is_some())) {
            return Err(CommandError::failed(
                ErrorCode::Location(40602),
                "$currentOp is only valid as the first stage in a pipeline",
            ));
        }
    }
    let RawValue::Document(argument) = argument else {
        let found = argument.element_type().alias();
        return Err(CommandError::failed(
            ErrorCode::TypeMismatch,
            format!("$currentOp options must be specified in an object, but found: {found}"),
        ));
    };
    Ok(Some((argument, stages_behind_first(pipeline)?)))
}

/// Whether the stage stands anywhere in a pipeline, or in a pipeline within it.
pub(super) fn has_current_op(pipeline: &RawArray) -> Result<bool, CommandError> {
    for stage in pipeline.iter() {
        let RawValue::Document(stage) = stage? else { continue };
        let found = match stage.iter().next().transpose()? {
            Some((NAME, _)) => true,
            Some(("$facet", RawValue::Document(facets))) => any_within(facets, |_| true)?,
            Some(("$lookup", RawValue::Document(options))) => any_within(options, |name| name == "pipeline")?,
            _ => false,
        };
        if found {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether the stage stands in a pipeline that is a field of a document, among the fields that are wanted.
fn any_within(fields: &RawDocument, is_wanted: impl Fn(&str) -> bool) -> Result<bool, CommandError> {
    for field in fields.iter() {
        if let (name, RawValue::Array(pipeline)) = field?
            && is_wanted(name)
            && has_current_op(pipeline)?
        {
            return Ok(true);
        }
    }
    Ok(false)
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
    Ok(wanted.list(context)?.into_iter().map(|document| Bytes::from(document.into_vec())).collect())
}

fn misplaced() -> CommandError {
    CommandError::failed(
        ErrorCode::InvalidNamespace,
        "$currentOp must be run against the 'admin' database with {aggregate: 1}",
    )
}

/// Reads the fields of the stage.
fn read(argument: &RawDocument) -> Result<WantedOperations, CommandError> {
    let mut wanted = WantedOperations { of_users: UsersOfOperations::Own, ..WantedOperations::default() };
    for field in argument.iter() {
        let (name, value) = field?;
        match name {
            "idleConnections" => wanted.idle_connections = flag(name, value, ErrorCode::FailedToParse)?,
            "idleCursors" => wanted.idle_cursors = flag(name, value, ErrorCode::FailedToParse)?,
            "idleSessions" => wanted.idle_sessions = flag(name, value, ErrorCode::FailedToParse)?,
            "truncateOps" | "backtrace" => {
                flag(name, value, ErrorCode::FailedToParse)?;
            }
            "allUsers" => {
                let all_users = flag(name, value, ErrorCode::TypeMismatch)?;
                wanted.of_users = if all_users { UsersOfOperations::All } else { UsersOfOperations::Own };
            }
            "localOps" => {
                let is_local = flag(name, value, ErrorCode::TypeMismatch)?;
                wanted.servers = if is_local { WantedServers::This } else { WantedServers::All };
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
