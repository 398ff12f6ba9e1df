//! The fields of a command document and of the documents inside it, read with MongoDB's types and refused in
//! its words.
//!
//! A command goes through its fields once:
//!
//! ```text
//! for argument in Arguments::of_command("FindCommandRequest", body) {
//!     let argument = argument?;
//!     match argument.name {
//!         "skip" => skip = argument.natural()?,
//!         _ => argument.refuse_unless_generic()?,
//!     }
//! }
//! ```
//!
//! Rules that hold for all of them, as they do in MongoDB:
//!
//! 1. `null` and `undefined` count as a field that is not there, so that every conversion gives an `Option`.
//!    A list is the exception: `null` is refused in its place, and skipped among its elements.
//! 2. Fields are checked in the order in which they stand; an unknown field ends the command at once, and a
//!    missing required one is noticed at the end (see [`missing`]).
//! 3. Fields that every command may have are checked by [`crate::generic_arguments`] before the command runs,
//!    and passed over here.

use pando_document::{Number, RawArray, RawDocument, RawIter, RawValue};

use crate::error::Failure;
use crate::{CommandError, ErrorCode};

/// Whether every command may have a field of this name.
pub(crate) fn is_generic(name: &str) -> bool {
    matches!(
        name,
        "$db"
            | "lsid"
            | "$clusterTime"
            | "$readPreference"
            | "readConcern"
            | "writeConcern"
            | "maxTimeMS"
            | "maxTimeMSOpOnly"
            | "comment"
            | "apiVersion"
            | "apiStrict"
            | "apiDeprecationErrors"
            | "txnNumber"
            | "autocommit"
            | "startTransaction"
            | "stmtId"
            | "stmtIds"
            | "$audit"
            | "$client"
            | "$configServerState"
            | "$oplogQueryData"
            | "$queryOptions"
            | "$replData"
            | "$configTime"
            | "$topologyTime"
            | "$tenant"
            | "mayBypassWriteBlocking"
            | "databaseVersion"
            | "shardVersion"
            | "coordinator"
            | "tracking_info"
            | "clientOperationKey"
            | "usesDefaultMaxTimeMS"
            | "serialization_context"
            | "rawData"
            | "versionContext"
    )
}

/// The fields of a document that stands in a command, or of the command itself.
pub struct Arguments<'a> {
    owner: &'static str,
    fields: RawIter<'a>,
}

/// One field.
#[derive(Clone, Copy, Debug)]
pub struct Argument<'a> {
    owner: &'static str,
    /// Its name.
    pub name: &'a str,
    /// Its value.
    pub value: RawValue<'a>,
}

impl<'a> Arguments<'a> {
    /// The fields of the command document `body`, without the first, which names the command. `command` is
    /// what MongoDB's messages call it.
    pub fn of_command(command: &'static str, body: &'a RawDocument) -> Arguments<'a> {
        let mut fields = body.iter();
        fields.next();
        Arguments { owner: command, fields }
    }

    /// The fields of a document inside a command; `owner` is its place: `update.updates`.
    pub fn inside(owner: &'static str, document: &'a RawDocument) -> Arguments<'a> {
        Arguments { owner, fields: document.iter() }
    }
}

impl<'a> Iterator for Arguments<'a> {
    type Item = Result<Argument<'a>, CommandError>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(match self.fields.next()? {
            Ok((name, value)) => Ok(Argument { owner: self.owner, name, value }),
            Err(error) => Err(error.into()),
        })
    }
}

impl<'a> Argument<'a> {
    /// The command's own value as a field of it: `getMore.getMore`.
    pub fn of_value(command: &'static str, name: &'a str, value: RawValue<'a>) -> Argument<'a> {
        Argument { owner: command, name, value }
    }

    /// Whether the field counts as one that is not there.
    pub fn is_absent(&self) -> bool {
        matches!(self.value, RawValue::Null | RawValue::Undefined)
    }

    /// A string.
    pub fn string(&self) -> Result<Option<&'a str>, CommandError> {
        match self.value {
            RawValue::String(text) => Ok(Some(text)),
            _ => self.absent_or("type 'string'"),
        }
    }

    /// A document.
    pub fn document(&self) -> Result<Option<&'a RawDocument>, CommandError> {
        match self.value {
            RawValue::Document(document) => Ok(Some(document)),
            _ => self.absent_or("type 'object'"),
        }
    }

    /// A list.
    pub fn array(&self) -> Result<&'a RawArray, CommandError> {
        match self.value {
            RawValue::Array(array) => Ok(array),
            _ if self.is_absent() => Err(CommandError::failed(
                ErrorCode::Location(10_065),
                format!("invalid parameter: expected an object ({})", self.name),
            )),
            _ => Err(self.wrong_type("type 'array'")),
        }
    }

    /// A list of documents.
    pub fn documents(&self) -> Result<Vec<&'a RawDocument>, CommandError> {
        let mut documents = Vec::new();
        for (at, element) in self.array()?.iter().enumerate() {
            match element? {
                RawValue::Document(document) => documents.push(document),
                RawValue::Null | RawValue::Undefined => {}
                other => return Err(self.wrong_element(at, other, "type 'object'")),
            }
        }
        Ok(documents)
    }

    /// A list of numbers of 64 bits.
    pub fn longs(&self) -> Result<Vec<i64>, CommandError> {
        let mut numbers = Vec::new();
        for (at, element) in self.array()?.iter().enumerate() {
            match element? {
                RawValue::Int64(number) => numbers.push(number),
                RawValue::Null | RawValue::Undefined => {}
                other => return Err(self.wrong_element(at, other, "type 'long'")),
            }
        }
        Ok(numbers)
    }

    /// A boolean, and nothing that counts as one.
    pub fn boolean(&self) -> Result<Option<bool>, CommandError> {
        match self.value {
            RawValue::Boolean(value) => Ok(Some(value)),
            _ => self.absent_or("type 'bool'"),
        }
    }

    /// A boolean or a number that counts as one.
    pub fn lenient_boolean(&self) -> Result<Option<bool>, CommandError> {
        match self.value {
            RawValue::Boolean(value) => Ok(Some(value)),
            value if value.is_number() => Ok(Some(value.to_bool())),
            _ => self.absent_or("types '[bool, long, int, decimal, double']"),
        }
    }

    /// A boolean in the words of an older parser, for which `null` is none.
    pub fn flag(&self) -> Result<bool, CommandError> {
        match self.value {
            RawValue::Boolean(value) => Ok(value),
            other => Err(CommandError::failed(
                ErrorCode::TypeMismatch,
                format!(
                    "Field '{}' should be a boolean value, but found: {}",
                    self.name,
                    other.element_type().alias()
                ),
            )),
        }
    }

    /// A document in the words of an older parser, for which `null` is none.
    pub fn object(&self) -> Result<&'a RawDocument, CommandError> {
        match self.value {
            RawValue::Document(document) => Ok(document),
            _ => Err(self.expected_object()),
        }
    }

    /// `Err`: the value is no document, in the words of an older parser.
    pub fn expected_object(&self) -> CommandError {
        CommandError::failed(
            ErrorCode::TypeMismatch,
            format!("Expected field {}to be of type object", self.name),
        )
    }

    /// A number of any type as a whole one. A fraction is cut off, a number that is too large becomes the
    /// largest, and NaN becomes zero.
    pub fn integer(&self) -> Result<Option<i64>, CommandError> {
        match self.value {
            value if value.is_number() => Ok(Some(whole(value))),
            _ => self.absent_or("types '[long, int, decimal, double']"),
        }
    }

    /// A whole number that is not negative.
    pub fn natural(&self) -> Result<Option<u64>, CommandError> {
        Ok(self.at_least(0)?.map(i64::unsigned_abs))
    }

    /// A whole number that is not below a bound.
    pub fn at_least(&self, least: i64) -> Result<Option<i64>, CommandError> {
        match self.integer()? {
            Some(number) if number < least => Err(self.out_of_range(format_args!(">= {least}"), number)),
            other => Ok(other),
        }
    }

    /// `Err`: the number has to be `wanted` (`>= 0`).
    pub fn out_of_range(&self, wanted: std::fmt::Arguments<'_>, number: i64) -> CommandError {
        CommandError::failed(
            ErrorCode::Location(51_024),
            format!("BSON field '{}' value must be {wanted}, actual value '{number}'", self.name),
        )
    }

    /// One of some words.
    pub fn one_of(&self, words: &[&'static str]) -> Result<Option<&'static str>, CommandError> {
        let Some(text) = self.string()? else { return Ok(None) };
        match words.iter().find(|word| **word == text) {
            Some(word) => Ok(Some(word)),
            None => Err(CommandError::failed(
                ErrorCode::BadValue,
                format!(
                    "Enumeration value '{text}' for field '{}.{}' is not a valid value.",
                    self.owner, self.name
                ),
            )),
        }
    }

    /// `Err` unless every command may have this field.
    pub fn refuse_unless_generic(&self) -> Result<(), CommandError> {
        if is_generic(self.name) { Ok(()) } else { Err(self.unknown()) }
    }

    /// `Err`: there is no such field.
    pub fn unknown(&self) -> CommandError {
        unknown_field(self.owner, self.name)
    }

    /// `Err`: the value is of a wrong type; `expected` is `type 'x'` or `types '[x, y']`.
    pub fn wrong_type(&self, expected: &str) -> CommandError {
        wrong_type(&format!("{}.{}", self.owner, self.name), self.value, expected)
    }

    /// `Err`: an element of the list is of a wrong type.
    pub fn wrong_element(&self, at: usize, element: RawValue<'_>, expected: &str) -> CommandError {
        wrong_type(&format!("{}.{}.{at}", self.owner, self.name), element, expected)
    }

    fn absent_or<T>(&self, expected: &str) -> Result<Option<T>, CommandError> {
        if self.is_absent() { Ok(None) } else { Err(self.wrong_type(expected)) }
    }
}

/// A number of any type as a whole one. A fraction is cut off, a number that is too large becomes the
/// largest, and NaN becomes zero.
pub fn whole(number: RawValue<'_>) -> i64 {
    match number {
        // This conversion saturates in Rust; NaN gives 0.
        RawValue::Double(number) => number as i64,
        value => match value.as_i64_exact() {
            Some(number) => number,
            None => Number::from_value(value).map_or(0, |number| number.to_f64() as i64),
        },
    }
}

/// `Err`: the field at `place` has a value of a wrong type; `expected` is `type 'x'` or `types '[x, y']`.
pub fn wrong_type(place: &str, value: RawValue<'_>, expected: &str) -> CommandError {
    let found = value.element_type().alias();
    Failure::new(
        ErrorCode::TypeMismatch,
        format!("BSON field '{place}' is the wrong type '{found}', expected {expected}"),
    )
    .into()
}

/// `Err`: `owner` has no such field.
pub fn unknown_field(owner: &str, name: &str) -> CommandError {
    CommandError::failed(
        ErrorCode::IdlUnknownField,
        format!("BSON field '{owner}.{name}' is an unknown field."),
    )
}

/// Checks that a command has no fields of its own beside its name.
pub fn no_more(command: &'static str, body: &RawDocument) -> Result<(), CommandError> {
    for argument in Arguments::of_command(command, body) {
        argument?.refuse_unless_generic()?;
    }
    Ok(())
}

/// The error of a required field that is not there.
pub fn missing(owner: &str, field: &str) -> CommandError {
    Failure::new(
        ErrorCode::IdlFailedToParse,
        format!("BSON field '{owner}.{field}' is missing but a required field"),
    )
    .into()
}

/// The collection that a command names as its own value.
pub fn collection_name<'a>(value: RawValue<'a>) -> Result<&'a str, CommandError> {
    collection_name_or(value, ErrorCode::BadValue)
}

/// The collection that a command names as its own value; `code` is what the command has for values that are
/// no name.
pub fn collection_name_or<'a>(value: RawValue<'a>, code: ErrorCode) -> Result<&'a str, CommandError> {
    match value {
        RawValue::String(name) => Ok(name),
        other => {
            let found = other.element_type().alias();
            Err(Failure::new(code, format!("collection name has invalid type {found}")).into())
        }
    }
}

/// Refuses a document that has one of these fields twice; `place` is that of the document. One part of the
/// server would go by the first of them, and another part by the last.
pub(crate) fn check_named_once(
    place: &str,
    document: &RawDocument,
    names: &[&str],
) -> Result<(), CommandError> {
    match repeated_name(document, names)? {
        None => Ok(()),
        Some(name) => Err(CommandError::failed(
            ErrorCode::IdlDuplicateField,
            format!("BSON field '{place}.{name}' is a duplicate field"),
        )),
    }
}

/// The same for the name of a user or a role; `owner` is what MongoDB's messages call it: `RoleName`.
pub(crate) fn check_name_once(
    owner: &str,
    document: &RawDocument,
    names: &[&str],
) -> Result<(), CommandError> {
    match repeated_name(document, names)? {
        None => Ok(()),
        Some(name) => Err(CommandError::failed(
            ErrorCode::BadValue,
            format!("{owner} has more than one field named: {name}"),
        )),
    }
}

fn repeated_name<'d>(document: &'d RawDocument, names: &[&str]) -> Result<Option<&'d str>, CommandError> {
    let mut seen = 0_u32;
    for field in document.iter() {
        let (name, _) = field?;
        let Some(place) = names.iter().position(|known| *known == name) else { continue };
        if seen & (1 << place) != 0 {
            return Ok(Some(name));
        }
        seen |= 1 << place;
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use pando_document::doc;

    use super::*;

    fn code_of<T: std::fmt::Debug>(outcome: Result<T, CommandError>) -> i32 {
        match outcome {
            Err(CommandError::Failed(failure)) => failure.code.code(),
            other => panic!("not refused: {other:?}"),
        }
    }

    #[test]
    fn null_is_a_field_that_is_not_there_but_not_for_lists() {
        let body = doc! { "find": "c", "x": null }.to_raw();
        let argument = Arguments::of_command("find", &body).next().unwrap().unwrap();
        assert_eq!(argument.string().unwrap(), None);
        assert_eq!(argument.natural().unwrap(), None);
        assert_eq!(argument.lenient_boolean().unwrap(), None);
        assert_eq!(code_of(argument.array()), 10_065);
        assert_eq!(code_of(argument.flag()), 14);
    }

    #[test]
    fn numbers_of_every_type_are_whole_ones() {
        for (number, wanted) in [
            (RawValue::Double(2.9), 2),
            (RawValue::Double(f64::NAN), 0),
            (RawValue::Double(f64::INFINITY), i64::MAX),
            (RawValue::Int32(-3), -3),
        ] {
            assert_eq!(whole(number), wanted);
        }
        let negative = Argument::of_value("find", "skip", RawValue::Int32(-1));
        assert_eq!(code_of(negative.natural()), 51_024);
    }

    #[test]
    fn unknown_fields_are_refused_and_generic_ones_passed_over() {
        let body = doc! { "ping": 1, "comment": 1, "$db": "admin" }.to_raw();
        assert!(no_more("ping", &body).is_ok());
        let body = doc! { "ping": 1, "bogus": 1 }.to_raw();
        assert_eq!(code_of(no_more("ping", &body)), 40_415);
    }
}
