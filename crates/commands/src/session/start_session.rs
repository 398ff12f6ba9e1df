//! `startSession`: a fresh session number.

use pando_document::{DocumentWriter, RawBinary, RawValue};

use crate::context::Context;
use crate::identity::SESSION_TIMEOUT_MINUTES;
use crate::{CommandError, Request};

/// Answers a random identity.
pub(crate) fn run(
    context: &mut Context<'_>,
    _request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    let uuid = context.shared.new_uuid();
    let mut id = reply.document("id");
    id.append("id", RawValue::Binary(RawBinary { subtype: 4, bytes: &uuid }));
    id.finish();
    reply.append("timeoutMinutes", RawValue::Int32(SESSION_TIMEOUT_MINUTES));
    Ok(())
}
