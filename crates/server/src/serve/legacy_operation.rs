//! The way from an older operation of the wire to an operation of the commands, and back.

use pando_commands::{
    BlockingMode, Commands, ConnectionState, Handled, LegacyBatch, LegacyDelete, LegacyGetMore, LegacyInsert,
    LegacyOperation, LegacyOutcome, LegacyQuery, LegacyQueryFlags, LegacyUpdate,
};
use pando_document::RawDocument;
use pando_wire::{LegacyRequest, QueryFlags, ReplyFields};

use crate::network::LegacyAnswer;

/// Handles one request.
pub(super) fn handle(
    commands: &Commands,
    connection: &mut ConnectionState,
    request: &LegacyRequest<'_>,
    blocking: BlockingMode,
    reply: &mut Vec<u8>,
) -> LegacyAnswer {
    let Some(operation) = operation_of(request, commands, connection) else {
        return LegacyAnswer { handled: Handled::Reply, fields: ReplyFields::ONE_DOCUMENT };
    };
    let outcome = commands.handle_legacy(connection, &operation, blocking, reply);
    LegacyAnswer { handled: outcome.handled, fields: fields_of(&outcome.batch) }
}

/// The operation; `None` where it is done already.
fn operation_of<'a>(
    request: &LegacyRequest<'a>,
    commands: &Commands,
    connection: &ConnectionState,
) -> Option<LegacyOperation<'a>> {
    Some(match request {
        LegacyRequest::Query(query) => LegacyOperation::Query(LegacyQuery {
            namespace: query.namespace,
            skip: query.skip,
            number_to_return: query.number_to_return,
            query: framed(query.query),
            projection: query.projection.map(framed),
            flags: LegacyQueryFlags {
                tailable: query.flags.contains(QueryFlags::TAILABLE),
                awaits_data: query.flags.contains(QueryFlags::AWAIT_DATA),
                no_cursor_timeout: query.flags.contains(QueryFlags::NO_CURSOR_TIMEOUT),
                exhaust: query.flags.contains(QueryFlags::EXHAUST),
            },
        }),
        LegacyRequest::GetMore(more) => LegacyOperation::GetMore(LegacyGetMore {
            namespace: more.namespace,
            number_to_return: more.number_to_return,
            cursor_id: more.cursor_id,
        }),
        LegacyRequest::KillCursors(kill) => {
            commands.kill_cursors(connection, kill.cursors());
            return None;
        }
        LegacyRequest::Insert(insert) => LegacyOperation::Insert(LegacyInsert {
            namespace: insert.namespace,
            continues_on_error: insert.continues_on_error,
            documents: insert.bytes(),
        }),
        LegacyRequest::Update(update) => LegacyOperation::Update(LegacyUpdate {
            namespace: update.namespace,
            is_upsert: update.is_upsert,
            is_multi: update.is_multi,
            selector: framed(update.selector),
            update: framed(update.update),
        }),
        LegacyRequest::Delete(delete) => LegacyOperation::Delete(LegacyDelete {
            namespace: delete.namespace,
            is_single: delete.is_single,
            selector: framed(delete.selector),
        }),
    })
}

fn framed(document: &[u8]) -> &RawDocument {
    RawDocument::from_bytes(document)
        .expect("the network side takes only messages whose documents are framed")
}

fn fields_of(batch: &LegacyBatch) -> ReplyFields {
    let outcome = match batch.outcome {
        LegacyOutcome::Documents => 0,
        LegacyOutcome::Failed => ReplyFields::QUERY_FAILURE,
        LegacyOutcome::CursorNotFound => ReplyFields::CURSOR_NOT_FOUND,
    };
    ReplyFields {
        flags: ReplyFields::AWAIT_CAPABLE | outcome,
        cursor_id: batch.cursor_id,
        // The field is too short for long cursors. Clients that compare it count with as few bits.
        starting_from: batch.starting_from as i32,
        returned: i32::try_from(batch.returned).unwrap_or(i32::MAX),
    }
}
