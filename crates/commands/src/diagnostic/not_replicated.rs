//! Commands about replica sets, answered as a server that is no member of one. Drivers and tools ask to find
//! that out.

use pando_document::DocumentWriter;

use crate::arguments::no_more;
use crate::context::Context;
use crate::{CommandError, ErrorCode, Request};

/// `replSetGetStatus` and `replSetGetConfig`.
pub(crate) fn run_status(
    _context: &mut Context<'_>,
    _request: &Request<'_>,
    _reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    Err(CommandError::failed(ErrorCode::NoReplicationEnabled, "not running with --replSet"))
}

/// `getDefaultRWConcern`.
pub(crate) fn run_default_concern(
    _context: &mut Context<'_>,
    request: &Request<'_>,
    _reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    no_more("getDefaultRWConcern", request.body)?;
    Err(CommandError::failed(
        ErrorCode::Location(51_300),
        "'getDefaultRWConcern' is not supported on standalone nodes.",
    ))
}
