//! Write concern: what the client wants to have happened before it is answered.

use pando_catalog::Durability;
use pando_document::{RawDocument, RawValue};

use crate::error::Failure;
use crate::{CommandError, ErrorCode};

/// A write concern, read. On one node, `w: 1` means "in the kernel's hands", `majority` and `j: true` "on the device".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteConcern {
    /// How far the log must have got.
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
    /// What holds where the client says nothing: `w: 1`.
    pub const DEFAULT: WriteConcern =
        WriteConcern { durability: Durability::Logged, acknowledged: Acknowledgement::Wanted };

    /// The write concern of a request.
    pub fn of(body: &RawDocument) -> Result<WriteConcern, CommandError> {
        match body.get("writeConcern")? {
            None => Ok(WriteConcern::DEFAULT),
            Some(RawValue::Document(concern)) => WriteConcern::parse(concern),
            Some(other) => Err(Failure::new(
                ErrorCode::TypeMismatch,
                format!(
                    "\"writeConcern\" had the wrong type. Expected object, found {}",
                    other.element_type().alias()
                ),
            )
            .into()),
        }
    }

    fn parse(concern: &RawDocument) -> Result<WriteConcern, CommandError> {
        let mut parsed = WriteConcern::DEFAULT;
        let mut journal = None;
        for field in concern.iter() {
            match field? {
                ("w", value) => parsed.set_w(value)?,
                ("j", value) => journal = Some(("j", value)),
                ("fsync", value) => journal = Some(("fsync", value)),
                ("wtimeout", value) if value.is_number() => {}
                ("wtimeout" | "getLastError" | "provenance", _) => {}
                (name, _) => {
                    return Err(Failure::new(
                        ErrorCode::IdlUnknownField,
                        format!("BSON field 'writeConcern.{name}' is an unknown field."),
                    )
                    .into());
                }
            }
        }
        match journal {
            Some((
                _,
                RawValue::Boolean(_) | RawValue::Int32(_) | RawValue::Int64(_) | RawValue::Double(_),
            )) if journal.is_some_and(|(_, value)| value.to_bool()) => {
                parsed.durability = Durability::Synced;
            }
            Some((
                _,
                RawValue::Boolean(_) | RawValue::Int32(_) | RawValue::Int64(_) | RawValue::Double(_),
            ))
            | None => {}
            Some((name, other)) => {
                return Err(Failure::new(
                    ErrorCode::TypeMismatch,
                    format!(
                        "BSON field 'writeConcern.{name}' is the wrong type '{}', expected types '[bool, long, int, decimal, double']",
                        other.element_type().alias()
                    ),
                )
                .into());
            }
        }
        Ok(parsed)
    }

    fn set_w(&mut self, value: RawValue<'_>) -> Result<(), CommandError> {
        match value {
            RawValue::String("majority") => self.durability = Durability::Synced,
            RawValue::String(mode) => {
                return Err(Failure::new(
                    ErrorCode::BadValue,
                    format!("cannot use non-majority 'w' mode \"{mode}\" when a host is not a member of a replica set"),
                )
                .into());
            }
            value if value.is_number() => match value.as_i64_exact() {
                Some(0) => {
                    self.acknowledged = Acknowledgement::Unwanted;
                    self.durability = self.durability.min(Durability::None);
                }
                Some(1) => {}
                Some(number) if (0..=50).contains(&number) => {
                    return Err(Failure::new(
                        ErrorCode::BadValue,
                        "cannot use 'w' > 1 when a host is not replicated",
                    )
                    .into());
                }
                _ => {
                    return Err(Failure::new(
                        ErrorCode::FailedToParse,
                        "w has to be a non-negative number and not greater than 50",
                    )
                    .into());
                }
            },
            _ => {
                return Err(Failure::new(
                    ErrorCode::FailedToParse,
                    "w has to be a number, string, or object",
                )
                .into());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use pando_document::doc;

    use super::*;

    fn parse(concern: pando_document::Document) -> Result<WriteConcern, CommandError> {
        WriteConcern::of(&doc! { "writeConcern": concern }.to_raw())
    }

    #[test]
    fn journal_and_majority_wait_for_the_device_and_one_for_the_kernel() {
        assert_eq!(parse(doc! { "w": 1 }).unwrap().durability, Durability::Logged);
        assert_eq!(parse(doc! { "w": 1, "j": true }).unwrap().durability, Durability::Synced);
        assert_eq!(parse(doc! { "w": "majority" }).unwrap().durability, Durability::Synced);
        assert_eq!(parse(doc! { "w": 0 }).unwrap().acknowledged, Acknowledgement::Unwanted);
        assert_eq!(WriteConcern::of(&doc! {}.to_raw()).unwrap(), WriteConcern::DEFAULT);
    }

    #[test]
    fn what_one_node_cannot_promise_is_refused() {
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
