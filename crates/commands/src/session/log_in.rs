//! `saslStart`, `saslContinue` and `authenticate`: the login of a client that gives a user name. There are no
//! users yet, and the answer says so: a driver shows it in place of its own words.

use pando_document::DocumentWriter;

use crate::context::Context;
use crate::{CommandError, ErrorCode, Request};

/// Refuses the login, with MongoDB's code for that.
pub(crate) fn run(
    context: &mut Context<'_>,
    _request: &Request<'_>,
    _reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    tracing::info!(
        "refused a login from {}: this server has no users and passwords yet; connect without a user name",
        context.connection.peer()
    );
    Err(CommandError::failed(
        ErrorCode::AuthenticationFailed,
        "Authentication failed: this server has no users and passwords yet, and every client that reaches it has full \
         access. Connect without a user name and a password",
    ))
}
