//! `fsync` and `checkpoint`: everything that was committed is written to its final place.
//!
//! Acknowledged writes do not need them: the log keeps those. They are for sizes of a store without buffered
//! writes, and for a start without log replay. `fsync` is MongoDB's, `checkpoint` TokuMX's.
//!
//! Not here: `fsync` with `lock`, which stops writes while the files are copied. `pandoBackup` copies them
//! while writes go on.

use pando_document::{DocumentWriter, RawValue};

use crate::context::Context;
use crate::{CommandError, ErrorCode, Request};

/// `fsync`. As MongoDB, it passes over fields that it does not know.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    for field in request.body.iter() {
        let (name, value) = field?;
        // Whatever its type, as in MongoDB.
        if name == "lock" && value.to_bool() {
            return Err(CommandError::failed(
                ErrorCode::CommandNotSupported,
                "fsync does not lock the server: pandoBackup copies its data while writes go on",
            ));
        }
    }
    run_checkpoint(context, request, reply)?;
    reply.append("numFiles", RawValue::Int32(1));
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
