//! `logout`: answered without effect, because there are no users.

use pando_document::DocumentWriter;

use crate::arguments::no_more;
use crate::context::Context;
use crate::{CommandError, Request};

/// Answers `ok`.
pub(crate) fn run(
    _context: &mut Context<'_>,
    request: &Request<'_>,
    _reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    no_more("logout", request.body)
}
