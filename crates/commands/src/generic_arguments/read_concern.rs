//! Read concern: how committed the data must be that the client reads, and as of when.
//!
//! On one node everything that is read is committed, so `local`, `available` and `majority` mean the same.
//! Every read sees all that was answered before, so that `afterClusterTime` has nothing to wait for. Where
//! several servers have one store, a read that names no time may [lag](Recency::MayLag) if it asks for a
//! secondary or for `available`.
//! `linearizable` and `snapshot` are refused as a server that is no member of a replica set refuses them.
//! `serializable` is a level of our own, for transactions.

use pando_document::{RawDocument, RawValue, Timestamp};

use super::{ClusterTimes, GenericSupport, ReadConcernSupport, ReadConcernWords, Start};
use crate::arguments::wrong_type as wrong_field_type;
use crate::{CommandError, ErrorCode};

/// A level of read concern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadLevel {
    Local,
    Available,
    Majority,
    Linearizable,
    Snapshot,
    Serializable,
}

const LEVELS: [ReadLevel; 6] = [
    ReadLevel::Local,
    ReadLevel::Available,
    ReadLevel::Majority,
    ReadLevel::Linearizable,
    ReadLevel::Snapshot,
    ReadLevel::Serializable,
];

impl ReadLevel {
    /// The word of the level.
    pub const fn name(self) -> &'static str {
        match self {
            ReadLevel::Local => "local",
            ReadLevel::Available => "available",
            ReadLevel::Majority => "majority",
            ReadLevel::Linearizable => "linearizable",
            ReadLevel::Snapshot => "snapshot",
            ReadLevel::Serializable => "serializable",
        }
    }
}

/// The read concern of a request, checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReadConcern {
    pub level: ReadLevel,
    /// The time of the snapshot that is to be read.
    pub at: Option<Timestamp>,
    /// A time whose writes must be seen.
    pub after: Option<Timestamp>,
    pub recency: Recency,
}

/// How new the snapshot of a read must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recency {
    /// It has all that was committed before.
    Newest,
    /// It may lack what was committed in the last moments, as that of a secondary.
    MayLag,
}

impl Recency {
    /// That of a read outside of transactions.
    pub fn of(read: &ReadConcern, preference: Option<&RawDocument>) -> Recency {
        let ReadConcern { level, at: None, after: None, .. } = *read else { return Recency::Newest };
        let mode = preference.and_then(|preference| preference.get("mode").ok().flatten());
        let is_of_secondaries =
            matches!(mode, Some(RawValue::String("secondary" | "secondaryPreferred" | "nearest")));
        match level {
            ReadLevel::Available => Recency::MayLag,
            ReadLevel::Local | ReadLevel::Majority if is_of_secondaries => Recency::MayLag,
            _ => Recency::Newest,
        }
    }
}

impl ReadConcern {
    pub const DEFAULT: ReadConcern =
        ReadConcern { level: ReadLevel::Local, at: None, after: None, recency: Recency::Newest };
}

/// The fields as the client sent them.
#[derive(Default)]
struct Fields {
    level: Option<ReadLevel>,
    at: Option<Timestamp>,
    after: Option<Timestamp>,
    has_operation_time: bool,
}

/// Checks the field `readConcern` of a command.
pub(super) fn check(
    command: &str,
    support: &GenericSupport,
    value: RawValue<'_>,
    times: ClusterTimes,
) -> Result<ReadConcern, CommandError> {
    let RawValue::Document(concern) = value else {
        let is_absent = matches!(value, RawValue::Null | RawValue::Undefined);
        if support.read_words == ReadConcernWords::Own && !is_absent {
            return Err(wrong_field_type(&format!("{command}.readConcern"), value, "type 'object'"));
        }
        return Err(not_an_object());
    };
    let fields = read(concern)?;
    check_level(command, support.reads, fields.level, times)?;
    check_times(&fields, times)?;
    let Fields { level, at, after, .. } = fields;
    Ok(ReadConcern { level: level.unwrap_or(ReadLevel::Local), at, after, ..ReadConcern::DEFAULT })
}

/// Checks the field of a statement in a transaction.
pub(super) fn check_in_transaction(value: RawValue<'_>, start: Start) -> Result<ReadConcern, CommandError> {
    let RawValue::Document(concern) = value else { return Err(not_an_object()) };
    if start == Start::Continues && !concern.is_empty() {
        read(concern)?;
        return invalid("Only the first command in a transaction may specify a readConcern");
    }
    let Fields { level, at, after, .. } = read(concern)?;
    match level.unwrap_or(ReadLevel::Local) {
        ReadLevel::Linearizable | ReadLevel::Available => invalid(
            "The readConcern level must be either 'local' (default), 'majority' or 'snapshot' in order to run in a transaction",
        ),
        level => Ok(ReadConcern { level, at, after, ..ReadConcern::DEFAULT }),
    }
}

fn invalid<T>(reason: &str) -> Result<T, CommandError> {
    Err(CommandError::failed(ErrorCode::InvalidOptions, reason))
}

fn not_an_object() -> CommandError {
    CommandError::failed(ErrorCode::FailedToParse, "readConcern field should be an object")
}

/// The level that a read concern names, checked, where it is one of MongoDB's.
pub(crate) fn level_of(concern: &RawDocument) -> Result<Option<ReadLevel>, CommandError> {
    match read(concern)?.level {
        Some(ReadLevel::Serializable) => Err(unknown_level()),
        level => Ok(level),
    }
}

/// Reads all fields, and checks them against each other.
fn read(concern: &RawDocument) -> Result<Fields, CommandError> {
    let mut fields = Fields::default();
    for field in concern.iter() {
        match field? {
            ("level", RawValue::String(word)) => {
                let level = LEVELS.into_iter().find(|level| level.name() == word);
                fields.level = Some(level.ok_or_else(unknown_level)?);
            }
            ("level", other) => return Err(wrong_type("level", "string", other)),
            ("afterOpTime", RawValue::Document(_)) => fields.has_operation_time = true,
            ("afterOpTime", other) => return Err(wrong_type("afterOpTime", "object", other)),
            ("afterClusterTime", RawValue::Timestamp(time)) => fields.after = Some(time),
            ("atClusterTime", RawValue::Timestamp(time)) => fields.at = Some(time),
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
    check_together(&fields)?;
    Ok(fields)
}

/// Checks the fields against each other.
fn check_together(fields: &Fields) -> Result<(), CommandError> {
    let Fields { level, at, after, has_operation_time } = fields;
    if after.is_some() && *has_operation_time {
        return invalid("Can not specify both afterClusterTime and afterOpTime");
    }
    if after.is_some() && at.is_some() {
        return invalid(
            "Specifying a timestamp for readConcern snapshot in a causally consistent session is not allowed. See \
             https://docs.mongodb.com/manual/core/read-isolation-consistency-recency/#causal-consistency",
        );
    }
    let waits = matches!(
        level.unwrap_or(ReadLevel::Local),
        ReadLevel::Local | ReadLevel::Majority | ReadLevel::Snapshot | ReadLevel::Serializable
    );
    if after.is_some() && !waits {
        return invalid(
            "afterClusterTime field can be set only if level is equal to majority, local, or snapshot",
        );
    }
    if at.is_some() && *level != Some(ReadLevel::Snapshot) {
        return invalid("atClusterTime field can be set only if level is equal to snapshot");
    }
    for (name, time) in [("afterClusterTime", after), ("atClusterTime", at)] {
        if time.is_some_and(|time| time.to_u64() == 0) {
            return invalid(&format!("{name} cannot be a null timestamp"));
        }
    }
    Ok(())
}

fn unknown_level() -> CommandError {
    CommandError::failed(
        ErrorCode::FailedToParse,
        "readConcern.level must be either 'local', 'majority', 'linearizable', 'available', or 'snapshot'",
    )
}

/// The error of a command that does not take a level.
pub(crate) fn unsupported(command: &str, level: ReadLevel, reason: &str) -> CommandError {
    let level = level.name();
    let shown = format!("{{ readConcern: {{ level: \"{level}\", provenance: \"clientSupplied\" }} }}");
    CommandError::failed(
        ErrorCode::InvalidOptions,
        format!("Command {command} does not support {shown} :: caused by :: {reason}"),
    )
}

fn check_level(
    command: &str,
    support: ReadConcernSupport,
    level: Option<ReadLevel>,
    times: ClusterTimes,
) -> Result<(), CommandError> {
    let Some(level) = level else { return Ok(()) };
    let not_a_member = |what: &str| {
        Err(CommandError::failed(
            ErrorCode::NotAReplicaSet,
            format!("node needs to be a replica set member to use {what}"),
        ))
    };
    match (support, level) {
        (_, ReadLevel::Local) => Ok(()),
        (_, ReadLevel::Serializable) => invalid(
            "the read concern level 'serializable' is for transactions: give it to the first statement of one",
        ),
        (ReadConcernSupport::Local, _) => Err(unsupported(command, level, "read concern not supported")),
        (ReadConcernSupport::NoSnapshot, ReadLevel::Snapshot) => {
            Err(unsupported(command, level, "read concern snapshot not supported"))
        }
        (_, ReadLevel::Snapshot) if times == ClusterTimes::Unknown => not_a_member("readConcern: snapshot"),
        (_, ReadLevel::Linearizable) if times == ClusterTimes::Unknown => not_a_member("read concern"),
        _ => Ok(()),
    }
}

/// Times of the log of a replica set, which a standalone server does not have.
fn check_times(fields: &Fields, times: ClusterTimes) -> Result<(), CommandError> {
    let given = [("afterClusterTime", fields.after.is_some()), ("afterOpTime", fields.has_operation_time)];
    for (name, _) in given.into_iter().filter(|(_, is_given)| *is_given) {
        if times == ClusterTimes::Unknown {
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
