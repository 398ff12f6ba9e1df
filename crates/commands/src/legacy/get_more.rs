//! OP_GET_MORE: `getMore`.

use super::translation::{command, write_batch};
use super::{Exchange, LegacyBatch, LegacyGetMore, LegacyOutcome, Reply, WouldBlock};
use super::{split_namespace, write_query_failure};
use crate::ErrorCode;
use crate::last_write::command_failure;

use pando_document::RawValue;

/// Answers the next batch.
pub(super) fn run(
    exchange: &mut Exchange<'_>,
    more: &LegacyGetMore<'_>,
    out: &mut Vec<u8>,
) -> Result<Reply, WouldBlock> {
    let (database, collection) = match split_namespace(more.namespace) {
        Ok(names) => names,
        Err(failure) => return Ok(write_query_failure(&failure, out).into()),
    };
    // The client compares it with its own count.
    let starting_from = exchange.commands.shared.cursors.returned(more.cursor_id).unwrap_or_default();
    let body = command(database, |writer| {
        writer.append("getMore", RawValue::Int64(more.cursor_id));
        writer.append_str("collection", collection);
        // A negative number means nothing here.
        if more.number_to_return > 0 {
            writer.append_i32("batchSize", more.number_to_return);
        }
    });
    let answer = exchange.ask_body(&body)?;
    let is_gone = command_failure(answer.document())
        .is_some_and(|failure| failure.code == ErrorCode::CursorNotFound.code());
    if is_gone {
        return Ok(LegacyBatch::CURSOR_NOT_FOUND.into());
    }
    let reply = write_batch(answer, "nextBatch", starting_from, out);
    debug_assert!(reply.batch.outcome != LegacyOutcome::CursorNotFound);
    Ok(reply)
}
