//! `setClientLockTimeout`: the time in milliseconds that the statements of a connection wait for a key which
//! another transaction has claimed. 0 is no wait; below 0 the server's own times hold again.

use std::time::Duration;

use pando_document::{DocumentWriter, RawValue};

use crate::arguments::{no_more, whole};
use crate::connection::LockTimeout;
use crate::context::Context;
use crate::{CommandError, ErrorCode, Request};

/// The value for the server's own times.
const OF_SERVER: i64 = -1;

/// Changes the time, and answers the one before.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    no_more("setClientLockTimeout", request.body)?;
    let timeout = parse(request.command()?.1)?;
    let was = match context.connection.set_lock_timeout(timeout) {
        LockTimeout::OfServer => OF_SERVER,
        LockTimeout::Own(time) => i64::try_from(time.as_millis()).unwrap_or(i64::MAX),
    };
    reply.append_i64("was", was);
    Ok(())
}

fn parse(value: RawValue<'_>) -> Result<LockTimeout, CommandError> {
    let milliseconds = value.is_number().then(|| i32::try_from(whole(value)).ok()).flatten();
    match milliseconds {
        Some(milliseconds @ 0..) => {
            Ok(LockTimeout::Own(Duration::from_millis(u64::from(milliseconds.unsigned_abs()))))
        }
        Some(_) => Ok(LockTimeout::OfServer),
        None => Err(CommandError::failed(
            ErrorCode::BadValue,
            "setClientLockTimeout must be a number of milliseconds of 32 bits, or -1 for the server's own times",
        )),
    }
}
