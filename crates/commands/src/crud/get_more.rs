//! `getMore`: the next batch of an open cursor.

use pando_document::{DocumentWriter, RawValue};

use crate::arguments::{Arguments, missing, wrong_type};
use crate::context::Context;
use crate::cursor_reply::{self, BatchEnd};
use crate::cursors::{BatchPlace, OpenCursor};
use crate::{CommandError, ErrorCode, Request};

/// Answers the next batch; the cursor is gone when it is exhausted.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    let id = match request.command()?.1 {
        RawValue::Int64(id) => id,
        RawValue::Null | RawValue::Undefined => return Err(missing("getMore", "getMore")),
        other => return Err(wrong_type("getMore.getMore", other, "type 'long'")),
    };
    let mut collection = None;
    let mut batch_size = None;
    for argument in Arguments::of_command("getMore", request.body) {
        let argument = argument?;
        match argument.name {
            "collection" => collection = argument.string()?,
            "batchSize" => batch_size = argument.natural()?,
            "term" | "lastKnownCommittedOpTime" => {}
            _ => argument.refuse_unless_generic()?,
        }
    }
    let collection = collection.ok_or_else(|| missing("getMore", "collection"))?;
    check_name(collection)?;
    let mut cursor = context.cursors().take(id)?;
    let answer = answer(context, id, collection, batch_size, &mut cursor, reply);
    cursor.hold_memory(context.catalog().engine());
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

fn check_name(collection: &str) -> Result<(), CommandError> {
    let reason = match collection {
        "" => "Collection names cannot be empty".to_owned(),
        name if name.contains('\0') => "Collection names cannot have embedded null characters".to_owned(),
        name if name.starts_with('.') => format!("Collection names cannot start with '.': {name}"),
        _ => return Ok(()),
    };
    Err(CommandError::failed(ErrorCode::InvalidNamespace, reason))
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
    let (batch, end) = cursor_reply::fetch(cursor, count_max, BatchPlace::Later, context.caller())?;
    let id = if end == BatchEnd::Exhausted { 0 } else { id };
    cursor_reply::write(reply, "nextBatch", &batch, id, &namespace)?;
    Ok(end)
}
