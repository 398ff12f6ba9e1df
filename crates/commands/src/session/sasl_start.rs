//! `saslStart`: the first message of a login.

use pando_document::DocumentWriter;

use crate::access::Place;
use crate::context::Context;
use crate::sasl::Start;
use crate::{CommandError, Request};

/// Begins a login.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    let start = Start::read(request.body, Place::Command)?;
    let outcome = start.begin(context, context.database)?;
    outcome.write(reply);
    Ok(())
}
