//! `connectionStatus`: who this connection is authenticated as. Nobody: there are no users yet.

use pando_document::DocumentWriter;

use crate::context::Context;
use crate::{CommandError, Request};

/// Answers an empty list of users and roles.
pub(crate) fn run(
    _context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    let mut auth = reply.document("authInfo");
    auth.array("authenticatedUsers").finish();
    auth.array("authenticatedUserRoles").finish();
    if matches!(request.body.get("showPrivileges")?, Some(value) if value.to_bool()) {
        auth.array("authenticatedUserPrivileges").finish();
    }
    auth.finish();
    Ok(())
}
