//! A request: a body document and, beside it, sequences of documents.

use pando_document::{NESTING_MAX, RawDocument, RawValue, is_nested_beyond};

use crate::arguments::{Argument, unknown_field};
use crate::error::Failure;
use crate::{CommandError, ErrorCode};

/// Documents that an OP_MSG brought outside the body (`documents`, `updates`, `deletes`), one after the
/// other.
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

    /// Refuses a request whose levels nobody should follow by recursion.
    pub(crate) fn check_nesting(&self) -> Result<(), CommandError> {
        let too_deep = |document: &RawDocument| is_nested_beyond(document, NESTING_MAX);
        let in_sequence = |sequence: &DocumentSequence<'_>| whole_documents(sequence.documents).any(too_deep);
        if too_deep(self.body) || self.sequences.iter().any(in_sequence) {
            let sentence = format!("BSONObj exceeds maximum nested object depth: {NESTING_MAX}");
            return Err(CommandError::failed(ErrorCode::Overflow, sentence));
        }
        Ok(())
    }

    /// The documents of a field, from a sequence of that name or from the list in the body. `None` where
    /// there is neither. A request with both is refused before a command runs.
    pub fn documents(
        &self,
        command: &'static str,
        field: &'static str,
    ) -> Result<Option<Vec<&'a RawDocument>>, CommandError> {
        self.documents_beside(command, field, &[field])
    }

    /// The same of a command whose fields `all` may each come as a sequence.
    pub fn documents_beside(
        &self,
        command: &'static str,
        field: &'static str,
        all: &[&'static str],
    ) -> Result<Option<Vec<&'a RawDocument>>, CommandError> {
        if let Some(foreign) = self.sequences.iter().find(|sequence| !all.contains(&sequence.identifier)) {
            return Err(unknown_field(command, foreign.identifier));
        }
        let sequence = self.sequences.iter().find(|sequence| sequence.identifier == field);
        match (sequence, self.body.get(field)?) {
            (Some(sequence), _) => split(sequence.documents).map(Some),
            (None, Some(list)) => Argument::of_value(command, field, list).documents().map(Some),
            (None, None) => Ok(None),
        }
    }
}

/// The documents of a run up to the first that is none.
fn whole_documents(mut bytes: &[u8]) -> impl Iterator<Item = &RawDocument> {
    std::iter::from_fn(move || {
        let length = usize::try_from(i32::from_le_bytes(*bytes.first_chunk()?)).ok()?;
        let (document, rest) = bytes.split_at_checked(length)?;
        bytes = rest;
        RawDocument::from_bytes(document).ok()
    })
}

/// Splits a run of documents.
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
