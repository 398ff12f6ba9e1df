//! OP_DELETE: `delete`.

use super::translation::command;
use super::{Exchange, LegacyBatch, LegacyDelete, Reply, WouldBlock, split_namespace};
use crate::last_write::{LastWrite, WriteKind};

/// Removes one document or several.
pub(super) fn run(exchange: &mut Exchange<'_>, delete: &LegacyDelete<'_>) -> Result<Reply, WouldBlock> {
    let (database, collection) = match split_namespace(delete.namespace) {
        Ok(names) => names,
        Err(failure) => {
            exchange.note_refusal(WriteKind::Delete, failure);
            return Ok(LegacyBatch::COMMAND.into());
        }
    };
    let body = command(database, |writer| {
        writer.append_str("delete", collection);
        let mut deletes = writer.array("deletes");
        let mut statement = deletes.document();
        statement.append_raw_document("q", delete.selector);
        statement.append_i32("limit", i32::from(delete.is_single));
        statement.finish();
        deletes.finish();
    });
    let answer = exchange.ask_body(&body)?;
    exchange.note(LastWrite::of_reply(WriteKind::Delete, answer.document()));
    Ok(LegacyBatch::COMMAND.into())
}
