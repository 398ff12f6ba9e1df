//! Parts of translated commands, and of their replies.

use pando_document::{DocumentError, DocumentWriter, RawDocument};

use super::{Answer, LegacyBatch, LegacyOutcome, Reply, write_query_failure};
use crate::ErrorCode;
use crate::last_write::{WriteFailure, command_failure};

/// Writes a command for a database.
pub(super) fn command(database: &str, write: impl FnOnce(&mut DocumentWriter<'_>)) -> Vec<u8> {
    let mut body = Vec::new();
    let mut writer = DocumentWriter::begin(&mut body);
    write(&mut writer);
    writer.append_str("$db", database);
    writer.finish();
    body
}

/// Copies the fields of a document, but for those of these names.
pub(super) fn copy_fields(
    from: &RawDocument,
    without: &[&str],
    into: &mut DocumentWriter<'_>,
) -> Result<(), DocumentError> {
    for field in from.iter() {
        let (name, value) = field?;
        if !without.contains(&name) {
            into.append(name, value);
        }
    }
    Ok(())
}

/// The failure of a document that cannot be read.
pub(super) fn unreadable(error: &DocumentError) -> WriteFailure {
    WriteFailure { code: ErrorCode::InvalidBson.code(), message: error.to_string() }
}

/// A refusal with a code that has a name.
pub(super) fn refusal(code: ErrorCode, message: impl Into<String>) -> WriteFailure {
    WriteFailure { code: code.code(), message: message.into() }
}

/// Appends the documents of a batch (`firstBatch`, `nextBatch`) of a command's reply; or the failure, where
/// the command has failed.
pub(super) fn write_batch(answer: Answer, batch_name: &str, starting_from: i64, out: &mut Vec<u8>) -> Reply {
    if let Some(failure) = command_failure(answer.document()) {
        return Reply { batch: write_query_failure(&failure, out), wait: answer.wait };
    }
    let mut batch =
        LegacyBatch { outcome: LegacyOutcome::Documents, cursor_id: 0, starting_from, returned: 0 };
    let cursor = answer.document().get("cursor").ok().flatten();
    if let Some(cursor) = cursor.and_then(|cursor| cursor.as_document()) {
        let id = cursor.get("id").ok().flatten().and_then(|id| id.as_i64_exact());
        batch.cursor_id = id.unwrap_or_default();
        let documents = cursor.get(batch_name).ok().flatten().and_then(|batch| batch.as_array());
        for document in documents.into_iter().flatten().map_while(Result::ok) {
            if let Some(document) = document.as_document() {
                out.extend_from_slice(document.as_bytes());
                batch.returned += 1;
            }
        }
    }
    Reply { batch, wait: answer.wait }
}
