//! `getCmdLineOpts`: the command line of the server.

use pando_document::{DocumentWriter, RawValue};

use crate::arguments::no_more;
use crate::context::Context;
use crate::{CommandError, Request};

/// Answers the command line.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    no_more("getCmdLineOpts", request.body)?;
    let mut words = reply.array("argv");
    for word in &context.shared.options.command_line {
        words.push(RawValue::String(word));
    }
    words.finish();
    reply.document("parsed").finish();
    Ok(())
}
