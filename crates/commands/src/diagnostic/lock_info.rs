//! `lockInfo`: the locks that operations hold or wait for. There are no locks of databases or collections;
//! `currentOp` tells what an operation waits for.

use pando_document::DocumentWriter;

use crate::context::Context;
use crate::{CommandError, Request};

/// Answers that there are none.
pub(crate) fn run(
    _context: &mut Context<'_>,
    _request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    reply.array("lockInfo").finish();
    Ok(())
}
