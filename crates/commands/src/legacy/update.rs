//! OP_UPDATE: `update`.

use super::translation::command;
use super::{Exchange, LegacyBatch, LegacyUpdate, Reply, WouldBlock, split_namespace};
use crate::last_write::{LastWrite, WriteKind};

/// Changes one document or several.
pub(super) fn run(exchange: &mut Exchange<'_>, update: &LegacyUpdate<'_>) -> Result<Reply, WouldBlock> {
    let (database, collection) = match split_namespace(update.namespace) {
        Ok(names) => names,
        Err(failure) => {
            exchange.note_refusal(WriteKind::Update, failure);
            return Ok(LegacyBatch::COMMAND.into());
        }
    };
    let body = command(database, |writer| {
        writer.append_str("update", collection);
        let mut updates = writer.array("updates");
        let mut statement = updates.document();
        statement.append_raw_document("q", update.selector);
        statement.append_raw_document("u", update.update);
        statement.append_bool("multi", update.is_multi);
        statement.append_bool("upsert", update.is_upsert);
        statement.finish();
        updates.finish();
    });
    let answer = exchange.ask_body(&body)?;
    exchange.note(LastWrite::of_reply(WriteKind::Update, answer.document()));
    Ok(LegacyBatch::COMMAND.into())
}
