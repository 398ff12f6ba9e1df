//! Read concern: how committed the data must be that the client reads.
//!
//! On one node everything that is read is committed, so `local`, `available` and `majority` mean the same.
//! `linearizable` and `snapshot` are refused as a server that is no member of a replica set refuses them.

use pando_document::{RawDocument, RawValue};

use super::{GenericSupport, ReadConcernSupport, ReadConcernWords};
use crate::arguments::wrong_type as wrong_field_type;
use crate::{CommandError, ErrorCode};

/// Checks the field `readConcern` of a command.
pub(super) fn check(
    command: &str,
    support: &GenericSupport,
    value: RawValue<'_>,
) -> Result<(), CommandError> {
    let RawValue::Document(concern) = value else {
        let is_absent = matches!(value, RawValue::Null | RawValue::Undefined);
        if support.read_words == ReadConcernWords::Own && !is_absent {
            return Err(wrong_field_type(&format!("{command}.readConcern"), value, "type 'object'"));
        }
        return Err(CommandError::failed(ErrorCode::FailedToParse, "readConcern field should be an object"));
    };
    let mut level = None;
    for field in concern.iter() {
        match field? {
            ("level", RawValue::String(word)) => level = Some(word),
            ("level", other) => return Err(wrong_type("level", "string", other)),
            ("afterOpTime", RawValue::Document(_)) => {}
            ("afterOpTime", other) => return Err(wrong_type("afterOpTime", "object", other)),
            ("afterClusterTime" | "atClusterTime", RawValue::Timestamp(_)) => {}
            (name @ ("afterClusterTime" | "atClusterTime"), other) => {
                return Err(wrong_type(name, "timestamp", other));
            }
            ("provenance", _) => {}
            (name, _) => {
                return Err(CommandError::failed(
                    ErrorCode::InvalidOptions,
                    format!("Unrecognized option in readConcern: {name}"),
                ));
            }
        }
    }
    check_level(command, support.reads, level)?;
    check_times(concern, level)
}

fn check_level(command: &str, support: ReadConcernSupport, level: Option<&str>) -> Result<(), CommandError> {
    let Some(level) = level else { return Ok(()) };
    if !["local", "majority", "linearizable", "available", "snapshot"].contains(&level) {
        return Err(CommandError::failed(
            ErrorCode::FailedToParse,
            "readConcern.level must be either 'local', 'majority', 'linearizable', 'available', or 'snapshot'",
        ));
    }
    let unsupported = |reason: &str| {
        let shown = format!("{{ readConcern: {{ level: \"{level}\", provenance: \"clientSupplied\" }} }}");
        Err(CommandError::failed(
            ErrorCode::InvalidOptions,
            format!("Command {command} does not support {shown} :: caused by :: {reason}"),
        ))
    };
    let not_a_member = |what: &str| {
        Err(CommandError::failed(
            ErrorCode::NotAReplicaSet,
            format!("node needs to be a replica set member to use {what}"),
        ))
    };
    match (support, level) {
        (_, "local") => Ok(()),
        (ReadConcernSupport::Local, _) => unsupported("read concern not supported"),
        (ReadConcernSupport::NoSnapshot, "snapshot") => unsupported("read concern snapshot not supported"),
        (_, "snapshot") => not_a_member("readConcern: snapshot"),
        (_, "linearizable") => not_a_member("read concern"),
        _ => Ok(()),
    }
}

/// Times of the log of a replica set, which a single server does not have.
fn check_times(concern: &RawDocument, level: Option<&str>) -> Result<(), CommandError> {
    if concern.get("atClusterTime")?.is_some() && level != Some("snapshot") {
        return Err(CommandError::failed(
            ErrorCode::InvalidOptions,
            "atClusterTime field can be set only if level is equal to snapshot",
        ));
    }
    for name in ["afterClusterTime", "afterOpTime"] {
        if concern.get(name)?.is_some() {
            return Err(CommandError::failed(
                ErrorCode::IllegalOperation,
                format!("Cannot specify {name} readConcern without replication enabled"),
            ));
        }
    }
    Ok(())
}

fn wrong_type(field: &str, expected: &str, value: RawValue<'_>) -> CommandError {
    let found = value.element_type().alias();
    CommandError::failed(
        ErrorCode::TypeMismatch,
        format!("\"{field}\" had the wrong type. Expected {expected}, found {found}"),
    )
}
