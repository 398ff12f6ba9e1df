//! An insert into `system.indexes`: the way to create indexes before `createIndexes`.

use pando_document::{RawDocument, RawValue};

use super::insert::first_document;
use super::translation::{command, copy_fields, refusal, unreadable};
use super::{Exchange, LegacyInsert, WouldBlock};
use crate::ErrorCode;
use crate::last_write::{LastWrite, WriteFailure, WriteKind};

/// Fields of a description that are not fields of a specification of today. `dropDups` removed documents;
/// since MongoDB 3.0 it means nothing.
const DROPPED: [&str; 3] = ["ns", "_id", "dropDups"];

/// Creates an index for each document.
pub(super) fn run(
    exchange: &mut Exchange<'_>,
    database: &str,
    insert: &LegacyInsert<'_>,
) -> Result<(), WouldBlock> {
    exchange.require_may_block()?;
    let mut rest = insert.documents;
    let mut last_failure = None;
    while !rest.is_empty() {
        let created = first_document(rest).and_then(|document| {
            rest = &rest[document.as_bytes().len()..];
            translated(database, document)
        });
        let failure = match created {
            Ok(body) => {
                let answer = exchange.ask_body(&body)?;
                LastWrite::of_reply(WriteKind::Insert, answer.document()).failure
            }
            Err(failure) => {
                exchange.note_refusal(WriteKind::Insert, failure);
                return Ok(());
            }
        };
        last_failure = failure.or(last_failure);
        if last_failure.is_some() && !insert.continues_on_error {
            break;
        }
    }
    let write = LastWrite { kind: WriteKind::Insert, documents: 0, upserted: None, failure: last_failure };
    exchange.note(write);
    Ok(())
}

/// The command that creates the index of a description.
fn translated(database: &str, description: &RawDocument) -> Result<Vec<u8>, WriteFailure> {
    let namespace = description.get("ns").map_err(|error| unreadable(&error))?;
    let Some(RawValue::String(namespace)) = namespace else {
        return Err(refusal(ErrorCode::CannotCreateIndex, "an index needs its collection in the field ns"));
    };
    let collection = namespace.strip_prefix(database).and_then(|rest| rest.strip_prefix('.'));
    let Some(collection) = collection.filter(|collection| !collection.is_empty()) else {
        let sentence = format!("the index is for {namespace}, which is not in the database {database}");
        return Err(refusal(ErrorCode::CannotCreateIndex, sentence));
    };
    let mut outcome = Ok(());
    let body = command(database, |writer| {
        writer.append_str("createIndexes", collection);
        let mut indexes = writer.array("indexes");
        let mut index = indexes.document();
        outcome = copy_fields(description, &DROPPED, &mut index);
        index.finish();
        indexes.finish();
    });
    outcome.map(|()| body).map_err(|error| unreadable(&error))
}
