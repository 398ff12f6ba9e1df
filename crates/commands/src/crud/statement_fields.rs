//! The fields of one statement of a batch (`updates`, `deletes`), by name, with MongoDB's words for what is wrong.

use pando_document::{RawArray, RawDocument, RawValue};

use crate::error::Failure;
use crate::{CommandError, ErrorCode};

/// The fields of a statement.
pub(super) struct StatementFields<'a> {
    /// The name that messages give the statement: `update.updates`.
    statement: &'static str,
    document: &'a RawDocument,
}

impl<'a> StatementFields<'a> {
    pub fn new(statement: &'static str, document: &'a RawDocument) -> StatementFields<'a> {
        StatementFields { statement, document }
    }

    /// A field that must be there.
    pub fn required(&self, name: &str) -> Result<RawValue<'a>, CommandError> {
        self.document.get(name)?.ok_or_else(|| {
            Failure::new(
                ErrorCode::IdlFailedToParse,
                format!("BSON field '{}.{name}' is missing but a required field", self.statement),
            )
            .into()
        })
    }

    /// A value that must be a document.
    pub fn as_document(&self, name: &str, value: RawValue<'a>) -> Result<&'a RawDocument, CommandError> {
        match value {
            RawValue::Document(document) => Ok(document),
            other => Err(self.wrong_type(name, other, "type 'object'")),
        }
    }

    /// A document that need not be there.
    pub fn document(&self, name: &str) -> Result<Option<&'a RawDocument>, CommandError> {
        match self.document.get(name)? {
            Some(value) => self.as_document(name, value).map(Some),
            None => Ok(None),
        }
    }

    /// An array that need not be there.
    pub fn array(&self, name: &str) -> Result<Option<&'a RawArray>, CommandError> {
        match self.document.get(name)? {
            Some(RawValue::Array(array)) => Ok(Some(array)),
            Some(other) => Err(self.wrong_type(name, other, "type 'array'")),
            None => Ok(None),
        }
    }

    /// A boolean, false where it is not there.
    pub fn boolean(&self, name: &str) -> Result<bool, CommandError> {
        match self.document.get(name)? {
            Some(RawValue::Boolean(flag)) => Ok(flag),
            Some(other) => Err(self.wrong_type(name, other, "type 'bool'")),
            None => Ok(false),
        }
    }

    /// An index by name or key.
    pub fn hint(&self) -> Result<Option<RawValue<'a>>, CommandError> {
        match self.document.get("hint")? {
            Some(hint @ (RawValue::String(_) | RawValue::Document(_))) => Ok(Some(hint)),
            Some(_) => {
                Err(Failure::new(ErrorCode::FailedToParse, "Hint must be a string or an object").into())
            }
            None => Ok(None),
        }
    }

    /// Collations other than the simple one are not carried out yet.
    pub fn refuse_collation(&self) -> Result<(), CommandError> {
        match self.document("collation")? {
            Some(collation) => refuse_collation(collation),
            None => Ok(()),
        }
    }

    /// Refuses every field that is not known.
    pub fn finish(&self, known: &[&str]) -> Result<(), CommandError> {
        for field in self.document.iter() {
            let (name, _) = field?;
            if !known.contains(&name) {
                return Err(Failure::new(
                    ErrorCode::IdlUnknownField,
                    format!("BSON field '{}.{name}' is an unknown field.", self.statement),
                )
                .into());
            }
        }
        Ok(())
    }

    fn wrong_type(&self, name: &str, value: RawValue<'_>, expected: &str) -> CommandError {
        Failure::new(
            ErrorCode::TypeMismatch,
            format!(
                "BSON field '{}.{name}' is the wrong type '{}', expected {expected}",
                self.statement,
                value.element_type().alias()
            ),
        )
        .into()
    }
}

/// Refuses a collation that would change an answer.
pub(super) fn refuse_collation(collation: &RawDocument) -> Result<(), CommandError> {
    if collation.is_empty() || matches!(collation.get("locale")?, Some(RawValue::String("simple"))) {
        return Ok(());
    }
    Err(Failure::new(ErrorCode::CommandNotSupported, "collations other than 'simple' are not supported yet")
        .into())
}
