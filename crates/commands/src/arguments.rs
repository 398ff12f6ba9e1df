//! The fields of a command document: which there may be, of which types, and what MongoDB says of the others.
//!
//! A command goes through its fields once: `for field in Arguments::new("FindCommandRequest", body)`; the fields that every
//! command may have (`$db`, `lsid`, `comment`, …) are taken out on the way, and transaction numbers are refused as a
//! standalone refuses them.

use pando_document::{RawArray, RawDocument, RawValue};

use crate::error::Failure;
use crate::{CommandError, ErrorCode};

/// The fields of a command that are its own.
pub struct Arguments<'a> {
    command: &'static str,
    fields: pando_document::RawIter<'a>,
    /// The first field is the command itself.
    at_first: Position,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Position {
    First,
    Later,
}

/// One field of a command.
#[derive(Clone, Copy, Debug)]
pub struct Argument<'a> {
    command: &'static str,
    /// Its name.
    pub name: &'a str,
    /// Its value.
    pub value: RawValue<'a>,
}

impl<'a> Arguments<'a> {
    /// The fields of `body`; `command` is the name that MongoDB's messages give the command.
    pub fn new(command: &'static str, body: &'a RawDocument) -> Arguments<'a> {
        Arguments { command, fields: body.iter(), at_first: Position::First }
    }
}

impl<'a> Iterator for Arguments<'a> {
    type Item = Result<Argument<'a>, CommandError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (name, value) = match self.fields.next()? {
                Ok(field) => field,
                Err(error) => return Some(Err(error.into())),
            };
            if self.at_first == Position::First {
                self.at_first = Position::Later;
                continue;
            }
            match generic(name, value) {
                Ok(Generic::Taken) => continue,
                Ok(Generic::Own) => return Some(Ok(Argument { command: self.command, name, value })),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

/// Whether a field belongs to every command or to this one.
enum Generic {
    Taken,
    Own,
}

/// The fields that every command may have.
fn generic(name: &str, value: RawValue<'_>) -> Result<Generic, CommandError> {
    Ok(match name {
        "$db"
        | "lsid"
        | "$clusterTime"
        | "$readPreference"
        | "readConcern"
        | "writeConcern"
        | "apiVersion"
        | "apiStrict"
        | "apiDeprecationErrors"
        | "$audit"
        | "$client"
        | "$configServerState"
        | "$oplogQueryData"
        | "$tenant"
        | "$queryOptions"
        | "$replData"
        | "$configTime"
        | "$topologyTime"
        | "mayBypassWriteBlocking"
        | "databaseVersion"
        | "shardVersion"
        | "tracking_info"
        | "clientOperationKey"
        | "usesDefaultMaxTimeMS"
        | "serialization_context"
        | "rawData"
        | "versionContext" => Generic::Taken,
        "maxTimeMS" | "maxTimeMSOpOnly" => {
            check_max_time(value)?;
            Generic::Taken
        }
        "comment" => Generic::Taken,
        "txnNumber" | "startTransaction" | "autocommit" | "stmtId" | "stmtIds" => {
            if name == "stmtId" || name == "stmtIds" {
                return Ok(Generic::Taken);
            }
            return Err(Failure::new(
                ErrorCode::IllegalOperation,
                "Transaction numbers are only allowed on a replica set member or mongos",
            )
            .into());
        }
        _ => Generic::Own,
    })
}

fn check_max_time(value: RawValue<'_>) -> Result<(), CommandError> {
    if !value.is_number() {
        return Err(Failure::new(ErrorCode::BadValue, "maxTimeMS must be a number").into());
    }
    match value.as_i64_exact() {
        Some(millis) if (0..=i64::from(i32::MAX)).contains(&millis) => Ok(()),
        Some(millis) => Err(Failure::new(
            ErrorCode::BadValue,
            format!("{millis} value for maxTimeMS is out of range [0, 2147483647]"),
        )
        .into()),
        None => Err(Failure::new(ErrorCode::BadValue, "maxTimeMS has non-integral value").into()),
    }
}

impl<'a> Argument<'a> {
    /// A string.
    pub fn string(&self) -> Result<&'a str, CommandError> {
        match self.value {
            RawValue::String(text) => Ok(text),
            _ => Err(self.wrong_type("type 'string'")),
        }
    }

    /// A document.
    pub fn document(&self) -> Result<&'a RawDocument, CommandError> {
        match self.value {
            RawValue::Document(document) => Ok(document),
            _ => Err(self.wrong_type("type 'object'")),
        }
    }

    /// An array.
    pub fn array(&self) -> Result<&'a RawArray, CommandError> {
        match self.value {
            RawValue::Array(array) => Ok(array),
            _ => Err(self.wrong_type("type 'array'")),
        }
    }

    /// A boolean, and nothing that counts as one.
    pub fn boolean(&self) -> Result<bool, CommandError> {
        match self.value {
            RawValue::Boolean(value) => Ok(value),
            _ => Err(self.wrong_type("type 'bool'")),
        }
    }

    /// A boolean or a number that counts as one.
    pub fn lenient_boolean(&self) -> Result<bool, CommandError> {
        match self.value {
            RawValue::Boolean(value) => Ok(value),
            value if value.is_number() => Ok(value.to_bool()),
            _ => Err(self.wrong_type("types '[bool, long, int, decimal, double']")),
        }
    }

    /// A whole number of any numeric type; a fraction is cut off, as MongoDB does.
    pub fn integer(&self) -> Result<i64, CommandError> {
        if !self.value.is_number() {
            return Err(self.wrong_type("types '[long, int, decimal, double']"));
        }
        Ok(match self.value {
            // Saturates, as the conversion of a double does in Rust.
            RawValue::Double(number) => number as i64,
            value => value.as_i64_exact().unwrap_or(i64::MAX),
        })
    }

    /// A whole number that is not negative.
    pub fn natural(&self) -> Result<u64, CommandError> {
        let number = self.integer()?;
        u64::try_from(number).map_err(|_| {
            Failure::new(
                ErrorCode::Location(51024),
                format!("BSON field '{}' value must be >= 0, actual value '{number}'", self.name),
            )
            .into()
        })
    }

    /// `Err`: this command has no such field.
    pub fn unknown(&self) -> CommandError {
        Failure::new(
            ErrorCode::IdlUnknownField,
            format!("BSON field '{}.{}' is an unknown field.", self.command, self.name),
        )
        .into()
    }

    fn wrong_type(&self, expected: &str) -> CommandError {
        Failure::new(
            ErrorCode::TypeMismatch,
            format!(
                "BSON field '{}.{}' is the wrong type '{}', expected {expected}",
                self.command,
                self.name,
                self.value.element_type().alias()
            ),
        )
        .into()
    }
}

/// Checks that a command has no fields of its own beside its name.
pub fn no_more(command: &'static str, body: &RawDocument) -> Result<(), CommandError> {
    match Arguments::new(command, body).next() {
        None => Ok(()),
        Some(argument) => Err(argument?.unknown()),
    }
}

/// The error of a required field that is not there.
pub fn missing(command: &str, field: &str) -> CommandError {
    Failure::new(
        ErrorCode::IdlFailedToParse,
        format!("BSON field '{command}.{field}' is missing but a required field"),
    )
    .into()
}

/// The collection that a command names as its own value.
pub fn collection_name<'a>(value: RawValue<'a>) -> Result<&'a str, CommandError> {
    match value {
        RawValue::String(name) => Ok(name),
        other => Err(Failure::new(
            ErrorCode::BadValue,
            format!("collection name has invalid type {}", other.element_type().alias()),
        )
        .into()),
    }
}
