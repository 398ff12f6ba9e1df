//! `getMore`: the next batch of an open cursor.

use pando_document::{DocumentWriter, RawValue};

use crate::arguments::{Arguments, missing};
use crate::context::Context;
use crate::cursor_reply::{self, BatchEnd};
use crate::cursors::OpenCursor;
use crate::{CommandError, ErrorCode, Request};

/// Answers the next batch; the cursor is gone when it is exhausted.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    let RawValue::Int64(id) = request.command()?.1 else {
        return Err(CommandError::failed(
            ErrorCode::TypeMismatch,
            format!(
                "BSON field 'getMore.getMore' is the wrong type '{}', expected type 'long'",
                request.command()?.1.element_type().alias()
            ),
        ));
    };
    let mut collection = None;
    let mut batch_size = None;
    for argument in Arguments::new("getMore", request.body) {
        let argument = argument?;
        match argument.name {
            "collection" => collection = Some(argument.string()?),
            "batchSize" => batch_size = Some(argument.natural()?),
            "term" | "lastKnownCommittedOpTime" => {}
            _ => return Err(argument.unknown()),
        }
    }
    let collection = collection.ok_or_else(|| missing("getMore", "collection"))?;
    let mut cursor = context.cursors().take(id)?;
    let answer = answer(context, id, collection, batch_size, &mut cursor, reply);
    match answer {
        Ok(BatchEnd::Exhausted) => {
            context.cursors().close(id);
            Ok(())
        }
        Ok(BatchEnd::Full) | Err(CommandError::WouldBlock(_)) => {
            context.cursors().put_back(id, cursor, context.shared.now_ms());
            answer.map(|_| ())
        }
        Err(error) => {
            if error_keeps_cursor(&error) {
                context.cursors().put_back(id, cursor, context.shared.now_ms());
            } else {
                context.cursors().close(id);
            }
            Err(error)
        }
    }
}

/// A request that names the wrong collection does no harm to the cursor.
fn error_keeps_cursor(error: &CommandError) -> bool {
    matches!(error, CommandError::Failed(failure) if failure.code == ErrorCode::Unauthorized)
}

fn answer(
    context: &Context<'_>,
    id: i64,
    collection: &str,
    batch_size: Option<u64>,
    cursor: &mut OpenCursor,
    reply: &mut DocumentWriter<'_>,
) -> Result<BatchEnd, CommandError> {
    let namespace = format!("{}.{collection}", context.database);
    if namespace != cursor.namespace {
        return Err(CommandError::failed(
            ErrorCode::Unauthorized,
            format!(
                "Requested getMore on namespace '{namespace}', but cursor belongs to a different namespace {}",
                cursor.namespace
            ),
        ));
    }
    let count_max = batch_size.or(cursor.batch_size).filter(|size| *size > 0).unwrap_or(u64::MAX);
    let (batch, end) = cursor_reply::fetch(cursor, count_max, context.patience)?;
    let id = if end == BatchEnd::Exhausted { 0 } else { id };
    cursor_reply::write(reply, "nextBatch", &batch, id, &namespace)?;
    Ok(end)
}
