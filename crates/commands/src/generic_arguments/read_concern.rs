//! Read concern: how committed the data must be that the client reads.
//!
//! On one node everything that is read is committed, so `local`, `available` and `majority` mean the same.
//! `linearizable` and `snapshot` are refused as a server that is no member of a replica set refuses them.

use pando_document::{RawDocument, RawValue};

use super::{ClusterTimes, GenericSupport, ReadConcernSupport, ReadConcernWords, Start};
use crate::arguments::wrong_type as wrong_field_type;
use crate::{CommandError, ErrorCode};

/// The levels that the commands know.
const LEVELS: [&str; 5] = ["local", "majority", "linearizable", "available", "snapshot"];
/// The levels of a transaction.
const TRANSACTION_LEVELS: [&str; 3] = ["local", "majority", "snapshot"];

/// Checks the field `readConcern` of a command.
pub(super) fn check(
    command: &str,
    support: &GenericSupport,
    value: RawValue<'_>,
    times: ClusterTimes,
) -> Result<(), CommandError> {
    let RawValue::Document(concern) = value else {
        let is_absent = matches!(value, RawValue::Null | RawValue::Undefined);
        if support.read_words == ReadConcernWords::Own && !is_absent {
            return Err(wrong_field_type(&format!("{command}.readConcern"), value, "type 'object'"));
        }
        return Err(not_an_object());
    };
    let level = read(concern)?;
    check_level(command, support.reads, level)?;
    check_times(concern, level, times)
}

/// Checks the field of a statement in a transaction; gives the level. One node has one order of commits, so
/// all levels read the newest snapshot, which is behind every `afterClusterTime`.
pub(super) fn check_in_transaction(value: RawValue<'_>, start: Start) -> Result<&'static str, CommandError> {
    let RawValue::Document(concern) = value else { return Err(not_an_object()) };
    let level = read(concern)?;
    let invalid = |reason: &str| Err(CommandError::failed(ErrorCode::InvalidOptions, reason));
    if start == Start::Continues && !concern.is_empty() {
        return invalid("Only the first command in a transaction may specify a readConcern");
    }
    if level.is_some_and(|level| !LEVELS.contains(&level)) {
        return Err(unknown_level());
    }
    if concern.get("atClusterTime")?.is_some() {
        return invalid("readConcern.atClusterTime is not supported yet");
    }
    let level = TRANSACTION_LEVELS.iter().find(|known| **known == level.unwrap_or("local"));
    level.copied().ok_or_else(|| {
        CommandError::failed(
            ErrorCode::InvalidOptions,
            "The readConcern level must be either 'local' (default), 'majority' or 'snapshot' in order to run in a transaction",
        )
    })
}

fn not_an_object() -> CommandError {
    CommandError::failed(ErrorCode::FailedToParse, "readConcern field should be an object")
}

/// The level that a read concern names, checked.
pub(crate) fn level_of(concern: &RawDocument) -> Result<Option<&str>, CommandError> {
    match read(concern)? {
        Some(level) if !LEVELS.contains(&level) => Err(unknown_level()),
        level => Ok(level),
    }
}

/// Checks the types of all fields; gives the level.
fn read(concern: &RawDocument) -> Result<Option<&str>, CommandError> {
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
    Ok(level)
}

fn unknown_level() -> CommandError {
    CommandError::failed(
        ErrorCode::FailedToParse,
        "readConcern.level must be either 'local', 'majority', 'linearizable', 'available', or 'snapshot'",
    )
}

fn check_level(command: &str, support: ReadConcernSupport, level: Option<&str>) -> Result<(), CommandError> {
    let Some(level) = level else { return Ok(()) };
    if !LEVELS.contains(&level) {
        return Err(unknown_level());
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

/// Times of the log of a replica set, which a standalone server does not have. A replica set of one node is
/// behind none of its own times, and every read sees all that was answered before.
fn check_times(concern: &RawDocument, level: Option<&str>, times: ClusterTimes) -> Result<(), CommandError> {
    if concern.get("atClusterTime")?.is_some() && level != Some("snapshot") {
        return Err(CommandError::failed(
            ErrorCode::InvalidOptions,
            "atClusterTime field can be set only if level is equal to snapshot",
        ));
    }
    for name in ["afterClusterTime", "afterOpTime"] {
        if times == ClusterTimes::Unknown && concern.get(name)?.is_some() {
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
