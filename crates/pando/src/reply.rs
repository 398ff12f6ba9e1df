//! Replies of commands: counts, failed writes, documents.

use bson::{Bson, Document, RawDocument};
use serde::de::DeserializeOwned;

use crate::{Collection, Error, WriteErrorDetail};

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
            message: error.get_str("errmsg").unwrap_or_default().to_owned(),
        })
        .collect()
}

/// The reply, or the writes that failed as an error.
pub(crate) fn check_writes(reply: Document) -> Result<Document, Error> {
    let errors = write_errors(&reply, |place| place);
    if errors.is_empty() { Ok(reply) } else { Err(Error::Write(errors)) }
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
    bson::deserialize_from_slice(document.as_bytes()).map_err(|error| {
        let id = document.get("_id").ok().flatten().and_then(|id| Bson::try_from(id).ok());
        Error::Misfit {
            collection: collection(),
            id: id.map(Box::new),
            type_name: std::any::type_name::<T>(),
            source: Box::new(error),
        }
    })
}
