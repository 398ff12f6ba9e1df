//! `shutdown`: the server stops, as at SIGTERM. The request is answered first, where MongoDB closes the
//! connection.
//!
//! The fields `force` and `timeoutSecs` are of members of a replica set that wait for others. They are read,
//! and change nothing: `--stop-grace` says how long requests under way may take.

use pando_document::DocumentWriter;

use crate::arguments::Arguments;
use crate::context::Context;
use crate::{CommandError, ErrorCode, Request};

/// Asks the process to stop. Without access control only clients on this machine may.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    _reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    for argument in Arguments::of_command("shutdown", request.body) {
        let argument = argument?;
        match argument.name {
            "force" => {
                argument.boolean()?;
            }
            "timeoutSecs" => {
                argument.integer()?;
            }
            _ => argument.refuse_unless_generic()?,
        }
    }
    let Some(stop) = &context.shared.options.stop else {
        let sentence = "the store is open within an application: it closes it by itself";
        return Err(CommandError::failed(ErrorCode::IllegalOperation, sentence));
    };
    if !context.shared.access.is_on() && !context.connection.ends().is_this_machine() {
        let sentence = "without access control (--auth) a server is shut down from its own machine alone";
        return Err(CommandError::failed(ErrorCode::Unauthorized, sentence));
    }
    tracing::info!("{} asks the server to stop", context.connection.peer());
    stop.ask();
    Ok(())
}
