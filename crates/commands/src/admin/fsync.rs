//! `fsync`, `fsyncUnlock` and `checkpoint`: everything that was committed is written to its final place.
//!
//! Acknowledged writes do not need them: the log keeps those. They are for sizes of a store without buffered
//! writes, and for a start without log replay. `fsync` is MongoDB's, `checkpoint` TokuMX's.
//!
//! `fsync` with `lock` stops all writes until `fsyncUnlock`. The engine still reorganises its files:
//! `pandoBackup` copies them, with writes or without. Where several servers share a store, each has a gate of
//! its own, so that the lock is refused, as a `mongos` of MongoDB 6.0 refuses it.

use pando_document::{DocumentWriter, RawValue};

use crate::context::Context;
use crate::{CommandError, ErrorCode, Request};

/// The page that MongoDB names in its answer, which scripts print.
const SEE_ALSO: &str = "http://dochub.mongodb.org/core/fsynccommand";

/// `fsync`. As MongoDB, it passes over fields that it does not know.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    context.require_may_block()?;
    // Whatever its type, as in MongoDB.
    let locks = matches!(request.body.get("lock")?, Some(value) if value.to_bool());
    if !locks {
        run_checkpoint(context, request, reply)?;
        reply.append("numFiles", RawValue::Int32(1));
        return Ok(());
    }
    if context.catalog().is_shared() {
        let reason = "can't do lock through mongos: it would stop the writes of this server alone, of several that share the \
                      store; stop the applications instead";
        return Err(CommandError::failed(ErrorCode::InvalidOptions, reason));
    }
    let gate = &context.shared.write_gate;
    let count = gate.close(context.operation)?;
    if let Err(error) = context.catalog().engine().checkpoint() {
        gate.open();
        return Err(error.into());
    }
    reply.append_str("info", "now locked against writes, use db.fsyncUnlock() to unlock");
    reply.append_i64("lockCount", whole(count));
    reply.append_str("seeAlso", SEE_ALSO);
    Ok(())
}

/// `fsyncUnlock`. It waits for nothing, so that it runs when all threads that may wait do.
pub(crate) fn run_unlock(
    context: &mut Context<'_>,
    _request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    let Some(left) = context.shared.write_gate.open() else {
        return Err(CommandError::failed(ErrorCode::Untold, "fsyncUnlock called when not locked"));
    };
    reply.append_str("info", "fsyncUnlock completed");
    reply.append_i64("lockCount", whole(left));
    Ok(())
}

/// `checkpoint`.
pub(crate) fn run_checkpoint(
    context: &mut Context<'_>,
    _request: &Request<'_>,
    _reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    context.require_may_block()?;
    Ok(context.catalog().engine().checkpoint()?)
}

fn whole(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
