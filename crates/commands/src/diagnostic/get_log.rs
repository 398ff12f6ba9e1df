//! `getLog`: shells ask it at their start for warnings. The log of this server goes to its standard error,
//! and the server keeps none of it.

use pando_document::{DocumentWriter, RawValue};

use crate::arguments::{Argument, missing, no_more};
use crate::context::Context;
use crate::{CommandError, ErrorCode, Request};

/// Answers the names of the logs, or an empty log.
pub(crate) fn run(
    _context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    no_more("getLog", request.body)?;
    let name = Argument::of_value("getLog", "getLog", request.command()?.1).string()?;
    match name.ok_or_else(|| missing("getLog", "getLog"))? {
        "*" => {
            let mut names = reply.array("names");
            names.push(RawValue::String("global"));
            names.push(RawValue::String("startupWarnings"));
            names.finish();
            Ok(())
        }
        "global" | "startupWarnings" => {
            reply.append("totalLinesWritten", RawValue::Int32(0));
            reply.array("log").finish();
            Ok(())
        }
        name => Err(CommandError::failed(ErrorCode::OperationFailed, format!("No log named '{name}'"))),
    }
}
