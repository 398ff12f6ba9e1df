//! A request as the wire brought it: a body document and, beside it, sequences of documents.

use pando_document::{RawDocument, RawValue};

use crate::error::Failure;
use crate::{CommandError, ErrorCode};

/// Documents that an OP_MSG brought outside the body (`documents`, `updates`, `deletes`), one after the other.
#[derive(Clone, Copy, Debug)]
pub struct DocumentSequence<'a> {
    /// The field that they belong to.
    pub identifier: &'a str,
    /// Whole BSON documents, back to back.
    pub documents: &'a [u8],
}

/// A request.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The command document.
    pub body: &'a RawDocument,
    /// The sequences beside it.
    pub sequences: &'a [DocumentSequence<'a>],
}

impl<'a> Request<'a> {
    /// A request that is its body alone.
    pub fn of(body: &'a RawDocument) -> Request<'a> {
        Request { body, sequences: &[] }
    }

    /// The name of the command and its value.
    pub fn command(&self) -> Result<(&'a str, RawValue<'a>), CommandError> {
        match self.body.iter().next() {
            Some(first) => Ok(first?),
            None => Err(Failure::new(ErrorCode::CommandNotFound, "no such command: ''").into()),
        }
    }

    /// The database that the request is for.
    pub fn database(&self) -> Result<&'a str, CommandError> {
        match self.body.get("$db")? {
            Some(RawValue::String(database)) => Ok(database),
            Some(_) => Err(Failure::new(ErrorCode::TypeMismatch, "$db must be a string").into()),
            None => {
                Err(Failure::new(ErrorCode::IdlFailedToParse, "OP_MSG requests require a $db argument")
                    .into())
            }
        }
    }

    /// The documents of a field, from a sequence of that name or from the array in the body. `None` where there are none of
    /// either; an error where there are both.
    pub fn documents(
        &self,
        command: &str,
        field: &str,
    ) -> Result<Option<Vec<&'a RawDocument>>, CommandError> {
        let sequence = self.sequences.iter().find(|sequence| sequence.identifier == field);
        match (sequence, self.body.get(field)?) {
            (Some(_), Some(_)) => Err(Failure::new(
                ErrorCode::IdlDuplicateField,
                format!("BSON field '{command}.{field}' is a duplicate field"),
            )
            .into()),
            (Some(sequence), None) => split(sequence.documents).map(Some),
            (None, Some(RawValue::Array(array))) => {
                let mut documents = Vec::new();
                for (at, value) in array.iter().enumerate() {
                    match value? {
                        RawValue::Document(document) => documents.push(document),
                        other => {
                            return Err(Failure::new(
                                ErrorCode::TypeMismatch,
                                format!(
                                    "BSON field '{command}.{field}.{at}' is the wrong type '{}', expected type 'object'",
                                    other.element_type().alias()
                                ),
                            )
                            .into());
                        }
                    }
                }
                Ok(Some(documents))
            }
            (None, Some(other)) => Err(Failure::new(
                ErrorCode::TypeMismatch,
                format!(
                    "BSON field '{command}.{field}' is the wrong type '{}', expected type 'array'",
                    other.element_type().alias()
                ),
            )
            .into()),
            (None, None) => Ok(None),
        }
    }
}

/// Takes a run of documents apart.
fn split(mut bytes: &[u8]) -> Result<Vec<&RawDocument>, CommandError> {
    let mut documents = Vec::new();
    while let Some(prefix) = bytes.first_chunk::<4>() {
        let length = usize::try_from(i32::from_le_bytes(*prefix)).unwrap_or(usize::MAX);
        let Some((document, rest)) = bytes.split_at_checked(length) else { break };
        documents.push(RawDocument::from_bytes(document)?);
        bytes = rest;
    }
    if bytes.is_empty() {
        return Ok(documents);
    }
    Err(Failure::new(ErrorCode::InvalidBson, "a document sequence ends inside a document").into())
}
