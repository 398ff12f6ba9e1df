//! `profile`: the recording of slow operations. There is none: asking and switching off are answered,
//! switching on is refused.

use pando_document::DocumentWriter;

use crate::arguments::{Argument, Arguments, missing};
use crate::context::Context;
use crate::{CommandError, ErrorCode, Request};

/// The default threshold of a slow operation, in milliseconds.
const SLOW_MS: i32 = 100;

/// Answers the level, which is 0.
pub(crate) fn run(
    _context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    let level = Argument::of_value("profile", "profile", request.command()?.1).integer()?;
    let level = level.ok_or_else(|| missing("profile", "profile"))?;
    for argument in Arguments::of_command("profile", request.body) {
        let argument = argument?;
        match argument.name {
            "slowms" => {
                argument.integer()?;
            }
            "sampleRate" | "filter" => {}
            _ => argument.refuse_unless_generic()?,
        }
    }
    if matches!(level, 1 | 2) {
        return Err(CommandError::failed(
            ErrorCode::CommandNotSupported,
            "recording slow operations is not supported yet",
        ));
    }
    reply.append_i32("was", 0);
    reply.append_i32("slowms", SLOW_MS);
    reply.append_f64("sampleRate", 1.0);
    Ok(())
}
