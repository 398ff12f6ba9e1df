//! `engineStatus`: TokuMX's command for every figure of the engine.

use pando_document::DocumentWriter;

use super::statistics_document::whole_number;
use crate::context::Context;
use crate::{CommandError, Request};

/// Answers the figures by their names.
pub(crate) fn run(
    context: &mut Context<'_>,
    _request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    context.require_may_block()?;
    let engine = context.catalog().engine();
    reply.append_str("engine", engine.name());
    for (name, value) in engine.statistics().iter() {
        reply.append_i64(name, whole_number(value));
    }
    Ok(())
}
