//! Write concern: how durable a write must be before the client is answered.
//!
//! A member of a replica set answers a concern that its set cannot keep with the outcome of the write and a
//! `writeConcernError`. A standalone server refuses it.

use pando_catalog::Durability;
use pando_document::{Document, RawDocument, RawValue, Value};

use super::ClusterTimes;
use crate::arguments::{Arguments, whole};
use crate::error::Failure;
use crate::{CommandError, ErrorCode};

/// A write concern, read. On one node, `w: 1` means "in the kernel's hands", `majority` and `j: true` "on the
/// device".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteConcern {
    /// The durability that the log must have reached.
    pub durability: Durability,
    /// Whether the client wants an answer at all.
    pub acknowledged: Acknowledgement,
    pub(crate) promise: Promise,
}

/// Whether a replica set of one node can keep a write concern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Promise {
    /// It can.
    Kept,
    /// The write is to be on more nodes than there are.
    TooManyNodes,
    /// The concern names a mode that the set has not.
    UnknownMode,
    /// The concern names a tag that the set has not.
    UnknownTag,
}

impl Promise {
    /// The failure of a concern whose promise cannot be kept.
    pub fn failure(self, concern: &RawDocument) -> Failure {
        let w = concern.get("w").ok().flatten();
        match self {
            Promise::Kept | Promise::TooManyNodes => {
                Failure::new(ErrorCode::UnsatisfiableWriteConcern, "Not enough data-bearing nodes")
            }
            Promise::UnknownMode => {
                let mode = w.and_then(|w| w.as_str()).unwrap_or_default();
                Failure::new(
                    ErrorCode::UnknownReplWriteConcern,
                    format!("No write concern mode named '{mode}' found in replica set configuration"),
                )
            }
            Promise::UnknownTag => {
                let tags = w.and_then(|w| w.as_document());
                let tag = tags.and_then(|tags| tags.iter().next()?.ok()).map_or("", |(name, _)| name);
                Failure::new(ErrorCode::NoSuchKey, format!("No replica set tag key {tag} in config"))
            }
        }
    }
}

/// The `writeConcernError` of a failure; `concern` is the write concern, `provenance` its source.
pub(crate) fn write_concern_error(failure: &Failure, concern: &RawDocument, provenance: &str) -> Document {
    let field = |name: &str| concern.get(name).ok().flatten();
    let mut shown = Document::new();
    match field("w") {
        None => shown.push("w", Value::Int32(1)),
        Some(RawValue::Null | RawValue::Undefined) => shown.push("w", Value::from("")),
        Some(w) => shown.push("w", w.to_owned()),
    }
    if let Some(journal) = field("j") {
        shown.push("j", Value::Boolean(journal.to_bool()));
    }
    let timeout = field("wtimeout").map_or(0, whole);
    shown.push("wtimeout", Value::Int32(i32::try_from(timeout).unwrap_or(0)));
    shown.push("provenance", Value::from(provenance));
    let mut info = Document::new();
    info.push("writeConcern", shown);
    let mut error = Document::new();
    error.push("code", Value::Int32(failure.code.code()));
    error.push("codeName", Value::from(&*failure.code.name()));
    error.push("errmsg", Value::from(failure.message.as_str()));
    error.push("errInfo", info);
    error
}

/// Whether the client waits for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acknowledgement {
    /// It does.
    Wanted,
    /// `w: 0`: it does not.
    Unwanted,
}

impl WriteConcern {
    /// The default: `w: 1`.
    pub const DEFAULT: WriteConcern = WriteConcern {
        durability: Durability::Logged,
        acknowledged: Acknowledgement::Wanted,
        promise: Promise::Kept,
    };

    /// `w: 1` with `j: true`.
    pub const SYNCED: WriteConcern = WriteConcern { durability: Durability::Synced, ..WriteConcern::DEFAULT };

    /// The write concern that stands in a request's field of that name.
    pub fn read(value: RawValue<'_>, times: ClusterTimes) -> Result<WriteConcern, CommandError> {
        match value {
            RawValue::Document(concern) => WriteConcern::parse(concern, times),
            other => {
                let found = other.element_type().alias();
                Err(CommandError::failed(
                    ErrorCode::TypeMismatch,
                    format!("\"writeConcern\" had the wrong type. Expected object, found {found}"),
                ))
            }
        }
    }

    /// Whether the client is told what its writes did: a client that waits for the journal is, even with `w:
    /// 0`.
    pub fn wants_answer(self) -> bool {
        self.acknowledged == Acknowledgement::Wanted || self.durability == Durability::Synced
    }

    /// Whether it is `w: 0`.
    pub fn is_unacknowledged(self) -> bool {
        self.acknowledged == Acknowledgement::Unwanted
    }

    fn parse(concern: &RawDocument, times: ClusterTimes) -> Result<WriteConcern, CommandError> {
        let mut parsed = WriteConcern::DEFAULT;
        let (mut journal, mut fsync) = (None, None);
        for argument in Arguments::inside("WriteConcernOptions", concern) {
            let argument = argument?;
            match argument.name {
                "w" => parsed.set_w(argument.value, times)?,
                "j" => journal = argument.lenient_boolean()?,
                "fsync" => fsync = argument.lenient_boolean()?,
                "wtimeout" => check_timeout(argument.value)?,
                "provenance" => {
                    argument.one_of(&PROVENANCES)?;
                }
                // Fields of drivers from before OP_MSG.
                "getLastError" | "wElectionId" | "wOpTime" => {}
                _ => return Err(argument.unknown()),
            }
        }
        if journal == Some(true) && fsync == Some(true) {
            return Err(CommandError::failed(
                ErrorCode::FailedToParse,
                "fsync and j options cannot be used together",
            ));
        }
        if journal == Some(true) || fsync == Some(true) {
            parsed.durability = Durability::Synced;
        }
        Ok(parsed)
    }

    fn set_w(&mut self, value: RawValue<'_>, times: ClusterTimes) -> Result<(), CommandError> {
        let is_member = times == ClusterTimes::Known;
        match value {
            RawValue::String("majority") => {}
            RawValue::String(_) | RawValue::Null | RawValue::Undefined if is_member => {
                self.promise = Promise::UnknownMode;
            }
            RawValue::Document(tags) if is_member => {
                check_tags(tags)?;
                self.promise = Promise::UnknownTag;
            }
            value if is_member && value.is_number() && (2..=50).contains(&whole(value)) => {
                self.promise = Promise::TooManyNodes;
            }
            _ => {}
        }
        if self.promise != Promise::Kept {
            return Ok(());
        }
        match value {
            RawValue::String("majority") => self.durability = Durability::Synced,
            RawValue::String(mode) => return Err(no_such_mode(mode)),
            RawValue::Null | RawValue::Undefined => return Err(no_such_mode("")),
            RawValue::Document(tags) => check_tags(tags)?,
            value if value.is_number() => match whole(value) {
                0 => {
                    self.acknowledged = Acknowledgement::Unwanted;
                    self.durability = self.durability.min(Durability::None);
                }
                1 => {}
                2..=50 => {
                    return Err(CommandError::failed(
                        ErrorCode::BadValue,
                        "cannot use 'w' > 1 when a host is not replicated",
                    ));
                }
                number => {
                    let reason =
                        format!("w has to be a non-negative number and not greater than 50; found: {number}");
                    return Err(CommandError::failed(ErrorCode::FailedToParse, reason));
                }
            },
            other => {
                let found = other.element_type().alias();
                return Err(CommandError::failed(
                    ErrorCode::FailedToParse,
                    format!("w has to be a number, string, or object; found: {found}"),
                ));
            }
        }
        Ok(())
    }
}

/// The sources that a write concern may name.
const PROVENANCES: [&str; 6] = [
    "clientSupplied",
    "implicitDefault",
    "customDefault",
    "getLastErrorDefaults",
    "internalWriteDefault",
    "unset",
];

fn no_such_mode(mode: &str) -> CommandError {
    CommandError::failed(
        ErrorCode::BadValue,
        format!("cannot use non-majority 'w' mode \"{mode}\" when a host is not a member of a replica set"),
    )
}

/// A value that is no number counts as no time-out.
fn check_timeout(value: RawValue<'_>) -> Result<(), CommandError> {
    if !value.is_number() || i32::try_from(whole(value)).is_ok() {
        return Ok(());
    }
    Err(CommandError::failed(ErrorCode::FailedToParse, "wtimeout must be a 32-bit integer"))
}

/// Tags name members of a replica set; there is one member here, which has every write.
fn check_tags(tags: &RawDocument) -> Result<(), CommandError> {
    if tags.is_empty() {
        return Err(CommandError::failed(ErrorCode::FailedToParse, "tagged write concern requires tags"));
    }
    for tag in tags.iter() {
        let (name, value) = tag?;
        if !value.is_number() {
            let shown = pando_query::shell_text::value_text(value);
            return Err(CommandError::failed(
                ErrorCode::FailedToParse,
                format!(
                    "tags must be a single level document with only number values; found: {name}: {shown}"
                ),
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use pando_document::doc;

    use super::*;

    fn parse(concern: pando_document::Document) -> Result<WriteConcern, CommandError> {
        WriteConcern::read(RawValue::Document(&concern.to_raw()), ClusterTimes::Unknown)
    }

    #[test]
    fn journal_and_majority_wait_for_the_device_and_one_for_the_kernel() {
        assert_eq!(parse(doc! { "w": 1 }).unwrap().durability, Durability::Logged);
        assert_eq!(parse(doc! { "w": 1, "j": true }).unwrap().durability, Durability::Synced);
        assert_eq!(parse(doc! { "w": "majority" }).unwrap().durability, Durability::Synced);
        assert_eq!(parse(doc! { "w": 0 }).unwrap().acknowledged, Acknowledgement::Unwanted);
        assert_eq!(parse(doc! {}).unwrap(), WriteConcern::DEFAULT);
    }

    #[test]
    fn a_promise_that_one_node_cannot_keep_is_refused() {
        for concern in [
            doc! { "w": 2 },
            doc! { "w": "x" },
            doc! { "w": -1 },
            doc! { "w": 51 },
            doc! { "q": 1 },
            doc! { "j": "x" },
        ] {
            assert!(parse(concern.clone()).is_err(), "{concern:?}");
        }
    }

    #[test]
    fn a_replica_set_of_one_node_tells_which_promise_it_cannot_keep() {
        let promise = |concern: pando_document::Document| {
            let concern = concern.to_raw();
            WriteConcern::read(RawValue::Document(&concern), ClusterTimes::Known).unwrap().promise
        };
        assert_eq!(promise(doc! { "w": 1 }), Promise::Kept);
        assert_eq!(promise(doc! { "w": "majority", "wtimeout": 1 }), Promise::Kept);
        assert_eq!(promise(doc! { "w": 2, "j": true }), Promise::TooManyNodes);
        assert_eq!(promise(doc! { "w": "x" }), Promise::UnknownMode);
        assert_eq!(promise(doc! { "w": { "a": 1 } }), Promise::UnknownTag);
        let concern = doc! { "w": { "a": 1 } }.to_raw();
        assert_eq!(Promise::UnknownTag.failure(&concern).message, "No replica set tag key a in config");
    }
}
