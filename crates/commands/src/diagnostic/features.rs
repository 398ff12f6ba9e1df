//! `features`: abilities of the server, as clients of old ask for them.

use pando_document::DocumentWriter;

use crate::context::Context;
use crate::{CommandError, Request};

/// Answers the features, and the part of every `_id` made here that tells machines apart.
pub(crate) fn run(
    context: &mut Context<'_>,
    _request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    let mut scripts = reply.document("js");
    scripts.append_bool("utf8", true);
    scripts.finish();
    let bytes = context.shared.process_id.bytes();
    let machine = u32::from_be_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]) >> 1;
    reply.append_i32("oidMachine", i32::try_from(machine).unwrap_or(i32::MAX));
    Ok(())
}
