//! `whatsmyuri`: the client's own address as the server sees it.

use pando_document::{DocumentWriter, RawValue};

use crate::context::Context;
use crate::{CommandError, Request};

/// Answers the address.
pub(crate) fn run(
    context: &mut Context<'_>,
    _request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    reply.append("you", RawValue::String(context.connection.peer()));
    Ok(())
}
