//! Replies of commands: counts, failed writes, documents.

use std::ops::Range;

use bson::{Bson, Document, RawDocument, RawDocumentBuf};
use serde::de::DeserializeOwned;

use crate::{Collection, Error, WriteErrorDetail};

/// MongoDB's code for a call that the end of the store has interrupted.
pub(crate) const INTERRUPTED_AT_SHUTDOWN: i32 = 11_600;

/// A number of a reply; 0 where there is none.
pub(crate) fn number(reply: &Document, name: &str) -> u64 {
    match reply.get(name) {
        Some(Bson::Int32(number)) => u64::try_from(*number).unwrap_or(0),
        Some(Bson::Int64(number)) => u64::try_from(*number).unwrap_or(0),
        _ => 0,
    }
}

/// The writes that failed. `place` gives the place of a write in the caller's list from that in the command.
pub(crate) fn write_errors(reply: &Document, place: impl Fn(usize) -> usize) -> Vec<WriteErrorDetail> {
    let Ok(errors) = reply.get_array("writeErrors") else { return Vec::new() };
    errors
        .iter()
        .filter_map(Bson::as_document)
        .map(|error| WriteErrorDetail {
            index: place(usize::try_from(error.get_i32("index").unwrap_or(0)).unwrap_or(0)),
            code: error.get_i32("code").unwrap_or(0),
            message: write_message(error),
            details: write_details(error),
        })
        .collect()
}

/// The sentence of a write that failed, with the field that a validator does not like.
fn write_message(error: &Document) -> String {
    let message = error.get_str("errmsg").unwrap_or_default();
    match error.get_document("errInfo").ok().and_then(broken_rule) {
        Some(rule) => format!("{message}: {rule}"),
        None => message.to_owned(),
    }
}

/// The first rule of a `$jsonSchema` that a document breaks, in words.
fn broken_rule(info: &Document) -> Option<String> {
    let rules = info.get_document("details").ok()?.get_array("schemaRulesNotSatisfied").ok()?;
    let rule = rules.first()?.as_document()?;
    if let Ok(missing) = rule.get_array("missingProperties") {
        let names: Vec<&str> = missing.iter().filter_map(Bson::as_str).collect();
        return Some(format!("it lacks {}", names.join(", ")));
    }
    let property = rule.get_array("propertiesNotSatisfied").ok()?.first()?.as_document()?;
    let name = property.get_str("propertyName").ok()?;
    let first = property.get_array("details").ok().and_then(|details| details.first()?.as_document());
    match first.and_then(|detail| detail.get_str("reason").ok()) {
        Some(reason) => Some(format!("the field '{name}': {reason}")),
        None => Some(format!("the field '{name}'")),
    }
}

/// What the store tells of a failed write beside code and sentence.
fn write_details(error: &Document) -> Option<Document> {
    if let Ok(info) = error.get_document("errInfo") {
        return Some(info.clone());
    }
    let keys = ["keyPattern", "keyValue", "collation", "hexEncoded"].into_iter();
    let told: Document = keys.filter_map(|key| Some((key.to_owned(), error.get(key)?.clone()))).collect();
    (!told.is_empty()).then_some(told)
}

/// The reply, or the writes that failed as an error.
pub(crate) fn check_writes(reply: Document) -> Result<Document, Error> {
    let errors = write_errors(&reply, |place| place);
    if errors.is_empty() { Ok(reply) } else { Err(Error::Write(errors)) }
}

/// The refusal of a whole command, told as that of its writes at these places of the caller's list.
///
/// # Errors
/// The error itself, if it says more than that these writes were not carried out: a transaction that has
/// ended, a store that has stopped.
pub(crate) fn refused_writes(error: Error, places: Range<usize>) -> Result<Vec<WriteErrorDetail>, Error> {
    let (code, message) = match error {
        Error::Command { code, message, .. } => (code, message),
        Error::Closed => (INTERRUPTED_AT_SHUTDOWN, Error::Closed.to_string()),
        other => return Err(other),
    };
    let detail = |index| WriteErrorDetail { index, code, message: message.clone(), details: None };
    Ok(places.map(detail).collect())
}

/// The names in the first batch of a reply with a cursor.
pub(crate) fn names_of(reply: &Document) -> Vec<String> {
    let batch = reply.get_document("cursor").and_then(|cursor| cursor.get_array("firstBatch"));
    let batch = batch.map(Vec::as_slice).unwrap_or_default();
    batch.iter().filter_map(|one| one.as_document()?.get_str("name").ok().map(str::to_owned)).collect()
}

/// The document of a `findAndModify` reply as the caller's type.
pub(crate) fn value_of<T: DeserializeOwned>(
    reply: &[u8],
    collection: &Collection<T>,
) -> Result<Option<T>, Error> {
    match RawDocument::from_bytes(reply)?.get("value")? {
        Some(bson::RawBsonRef::Document(found)) => {
            into_type(found, || collection.namespace().to_string()).map(Some)
        }
        _ => Ok(None),
    }
}

/// A document of a collection as the caller's type.
pub(crate) fn into_type<T: DeserializeOwned>(
    document: &RawDocument,
    collection: impl Fn() -> String,
) -> Result<T, Error> {
    bson::deserialize_from_slice(document.as_bytes()).map_err(|error: bson::error::Error| {
        let id = document.get("_id").ok().flatten().and_then(|id| Bson::try_from(id).ok());
        Error::Misfit {
            collection: collection(),
            id: id.map(Box::new),
            field: misfit_field::<T>(document, &error.to_string()),
            type_name: std::any::type_name::<T>(),
            source: Box::new(error),
        }
    })
}

/// The field of a document that does not fit a type; `None` where that is not sure, and where a field is
/// missing, which serde names itself.
///
/// A type reads the fields in their order up to the first that does not fit. So that one is the last field of
/// the shortest beginning of the document that fails in the same way, and fails in that way alone, too. An
/// error that a type finds at the end of a document does not.
fn misfit_field<T: DeserializeOwned>(document: &RawDocument, message: &str) -> Option<String> {
    let fails_alike = |first: usize, end: usize| {
        let mut part = RawDocumentBuf::new();
        for field in document.iter().take(end).skip(first) {
            let (name, value) = field.ok()?;
            part.append(name, value);
        }
        let outcome = bson::deserialize_from_slice::<T>(part.as_bytes());
        Some(outcome.is_err_and(|error| error.to_string() == message))
    };
    // The beginning with `fits` fields fails in another way or not at all, that with `fails` fields alike.
    let (mut fits, mut fails) = (0, document.iter().count());
    if message.contains("missing field") || fails_alike(0, fits)? || !fails_alike(0, fails)? {
        return None;
    }
    while fails - fits > 1 {
        let middle = fits + (fails - fits) / 2;
        *(if fails_alike(0, middle)? { &mut fails } else { &mut fits }) = middle;
    }
    if !fails_alike(fits, fails)? {
        return None;
    }
    let (name, _) = document.iter().nth(fits)?.ok()?;
    Some(name.as_str().to_owned())
}
