//! `getnonce`: a number to log in with, which clients from before SCRAM ask for on every connection, users or
//! not.

use pando_document::DocumentWriter;

use crate::context::Context;
use crate::{CommandError, Request};

/// Answers a random number in hexadecimal digits. No mechanism of this server uses it.
pub(crate) fn run(
    context: &mut Context<'_>,
    _request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    let number = context.shared.environment.random().next_u64();
    reply.append_str("nonce", &format!("{number:016x}"));
    Ok(())
}
