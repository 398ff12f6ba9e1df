//! OP_INSERT: `insert`, or `createIndexes` where the collection is `system.indexes`.

use super::translation::{command, refusal, unreadable};
use super::{Exchange, LegacyBatch, LegacyInsert, Reply, WouldBlock, index_insert, split_namespace};
use crate::identity::WRITE_BATCH_MAX;
use crate::last_write::{LastWrite, WriteFailure, WriteKind};
use crate::{DocumentSequence, ErrorCode};

use pando_document::RawDocument;

/// Inserts the documents.
pub(super) fn run(exchange: &mut Exchange<'_>, insert: &LegacyInsert<'_>) -> Result<Reply, WouldBlock> {
    match split_namespace(insert.namespace) {
        Ok((database, "system.indexes")) => index_insert::run(exchange, database, insert)?,
        Ok(names) => insert_documents(exchange, names, insert)?,
        Err(failure) => exchange.note_refusal(WriteKind::Insert, failure),
    }
    Ok(LegacyBatch::COMMAND.into())
}

/// Inserts the documents in batches as large as a command may have.
fn insert_documents(
    exchange: &mut Exchange<'_>,
    (database, collection): (&str, &str),
    insert: &LegacyInsert<'_>,
) -> Result<(), WouldBlock> {
    let batches = match batches(insert.documents) {
        Ok(batches) => batches,
        Err(failure) => {
            exchange.note_refusal(WriteKind::Insert, failure);
            return Ok(());
        }
    };
    if batches.len() > 1 {
        exchange.require_may_block()?;
    }
    let body = command(database, |writer| {
        writer.append_str("insert", collection);
        writer.append_bool("ordered", !insert.continues_on_error);
    });
    let body = RawDocument::from_bytes(&body).expect("a translation writes whole documents");
    let mut last_failure = None;
    for documents in batches {
        let sequence = DocumentSequence { identifier: "documents", documents };
        let answer = exchange.ask(body, &[sequence])?;
        let write = LastWrite::of_reply(WriteKind::Insert, answer.document());
        last_failure = write.failure.or(last_failure);
        if last_failure.is_some() && !insert.continues_on_error {
            break;
        }
    }
    let write = LastWrite { kind: WriteKind::Insert, documents: 0, upserted: None, failure: last_failure };
    exchange.note(write);
    Ok(())
}

/// Cuts documents, back to back, into batches.
fn batches(documents: &[u8]) -> Result<Vec<&[u8]>, WriteFailure> {
    let mut batches = Vec::new();
    let (mut start, mut end, mut count) = (0, 0, 0);
    while end < documents.len() {
        let document = first_document(&documents[end..])?;
        end += document.as_bytes().len();
        count += 1;
        if count == WRITE_BATCH_MAX {
            batches.push(&documents[start..end]);
            (start, count) = (end, 0);
        }
    }
    if count > 0 {
        batches.push(&documents[start..end]);
    }
    if batches.is_empty() {
        return Err(refusal(ErrorCode::InvalidLength, "an OP_INSERT needs a document"));
    }
    Ok(batches)
}

/// The first of documents that stand back to back.
pub(super) fn first_document(documents: &[u8]) -> Result<&RawDocument, WriteFailure> {
    let length = documents.first_chunk::<4>().map(|length| i32::from_le_bytes(*length));
    let length = length.and_then(|length| usize::try_from(length).ok()).unwrap_or(usize::MAX);
    let bytes = documents.get(..length).unwrap_or(documents);
    RawDocument::from_bytes(bytes).map_err(|error| unreadable(&error))
}
