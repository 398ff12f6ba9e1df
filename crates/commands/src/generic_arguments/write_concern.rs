//! Write concern: how durable a write must be before the client is answered.

use pando_catalog::Durability;
use pando_document::{RawDocument, RawValue};

use crate::arguments::{Arguments, whole};
use crate::{CommandError, ErrorCode};

/// A write concern, read. On one node, `w: 1` means "in the kernel's hands", `majority` and `j: true` "on the
/// device".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteConcern {
    /// The durability that the log must have reached.
    pub durability: Durability,
    /// Whether the client wants an answer at all.
    pub acknowledged: Acknowledgement,
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
    pub const DEFAULT: WriteConcern =
        WriteConcern { durability: Durability::Logged, acknowledged: Acknowledgement::Wanted };

    /// The write concern that stands in a request's field of that name.
    pub fn read(value: RawValue<'_>) -> Result<WriteConcern, CommandError> {
        match value {
            RawValue::Document(concern) => WriteConcern::parse(concern),
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

    fn parse(concern: &RawDocument) -> Result<WriteConcern, CommandError> {
        let mut parsed = WriteConcern::DEFAULT;
        let (mut journal, mut fsync) = (None, None);
        for argument in Arguments::inside("WriteConcernOptions", concern) {
            let argument = argument?;
            match argument.name {
                "w" => parsed.set_w(argument.value)?,
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

    fn set_w(&mut self, value: RawValue<'_>) -> Result<(), CommandError> {
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
        WriteConcern::read(RawValue::Document(&concern.to_raw()))
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
}
