//! `getLastError`: gone since MongoDB 5.1, and refused in its words.

use pando_document::DocumentWriter;

use crate::context::Context;
use crate::{CommandError, ErrorCode, Request};

/// Refuses.
pub(crate) fn run(
    _context: &mut Context<'_>,
    _request: &Request<'_>,
    _reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    Err(CommandError::failed(ErrorCode::Location(5_739_000), "getLastError command is not supported"))
}
