//! `logout`: ends the login of the connection.

use pando_document::DocumentWriter;

use crate::arguments::no_more;
use crate::context::Context;
use crate::{CommandError, Request};

/// Logs the user out, if he is one of the database of the request.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    _reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    no_more("logout", request.body)?;
    match context.connection.login() {
        Some(login) if login.user.database == context.database => {
            context.connection.set_login(None);
            Ok(())
        }
        _ => Ok(()),
    }
}
