//! `connectionStatus`: the authenticated users of this connection. There are no users yet.

use pando_document::DocumentWriter;

use crate::arguments::Arguments;
use crate::context::Context;
use crate::{CommandError, Request};

/// Answers an empty list of users and roles.
pub(crate) fn run(
    _context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    let mut shows_privileges = false;
    for argument in Arguments::of_command("connectionStatus", request.body) {
        let argument = argument?;
        match argument.name {
            "showPrivileges" => shows_privileges = argument.lenient_boolean()? == Some(true),
            _ => argument.refuse_unless_generic()?,
        }
    }
    let mut auth = reply.document("authInfo");
    auth.array("authenticatedUsers").finish();
    auth.array("authenticatedUserRoles").finish();
    if shows_privileges {
        auth.array("authenticatedUserPrivileges").finish();
    }
    auth.finish();
    Ok(())
}
