//! `invalidateUserCache`: has every connection make its login again.

use pando_document::DocumentWriter;

use crate::arguments::no_more;
use crate::context::Context;
use crate::{CommandError, Request};

/// Answers `ok`.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    _reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    no_more("invalidateUserCache", request.body)?;
    context.note_account_change();
    Ok(())
}
