//! `getCmdLineOpts`: how the server was started.

use pando_document::{DocumentWriter, RawValue};

use crate::context::Context;
use crate::{CommandError, Request};

/// Answers the command line.
pub(crate) fn run(
    context: &mut Context<'_>,
    _request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    let mut words = reply.array("argv");
    for word in &context.shared.options.command_line {
        words.push(RawValue::String(word));
    }
    words.finish();
    reply.document("parsed").finish();
    Ok(())
}
