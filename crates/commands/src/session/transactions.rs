//! `commitTransaction` and `abortTransaction` on a server that has no multi-statement transactions: refused
//! as a standalone MongoDB refuses them.

use pando_document::DocumentWriter;

use crate::arguments::no_more;
use crate::context::Context;
use crate::{CommandError, ErrorCode, Request};

/// `commitTransaction`.
pub(crate) fn run_commit(
    _context: &mut Context<'_>,
    request: &Request<'_>,
    _reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    refuse("commitTransaction", request)
}

/// `abortTransaction`.
pub(crate) fn run_abort(
    _context: &mut Context<'_>,
    request: &Request<'_>,
    _reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    refuse("abortTransaction", request)
}

fn refuse(command: &'static str, request: &Request<'_>) -> Result<(), CommandError> {
    no_more(command, request.body)?;
    Err(CommandError::failed(ErrorCode::CommandFailed, format!("{command} must be run within a transaction")))
}
