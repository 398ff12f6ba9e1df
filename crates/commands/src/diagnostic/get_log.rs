//! `getLog`: the last lines of the log, or the warnings of the start, which shells print. All lines go to
//! standard error; the last ones stay in memory for this command.

use pando_document::{DocumentWriter, RawValue};

use crate::arguments::{Argument, missing, no_more};
use crate::context::Context;
use crate::{CommandError, ErrorCode, Request};

/// Answers the names of the logs, or an empty log.
pub(crate) fn run(
    context: &mut Context<'_>,
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
        "global" => {
            let (lines, ever) = context.shared.options.log_tail.lines();
            write_lines(&lines, ever, reply);
            Ok(())
        }
        "startupWarnings" => {
            let lines = context.shared.options.log_tail.startup_warnings();
            write_lines(&lines, lines.len() as u64, reply);
            Ok(())
        }
        name => Err(CommandError::failed(ErrorCode::OperationFailed, format!("No log named '{name}'"))),
    }
}

fn write_lines(lines: &[String], ever: u64, reply: &mut DocumentWriter<'_>) {
    reply.append_i32("totalLinesWritten", i32::try_from(ever).unwrap_or(i32::MAX));
    let mut log = reply.array("log");
    for line in lines {
        log.push(RawValue::String(line));
    }
    log.finish();
}
