//! `connectionStatus`: the user of this connection, his roles and his privileges.

use pando_document::DocumentWriter;

use crate::arguments::Arguments;
use crate::context::Context;
use crate::{CommandError, Request};

/// Answers lists of one user, or empty ones.
pub(crate) fn run(
    context: &mut Context<'_>,
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
    let login = context.connection.login();
    let mut auth = reply.document("authInfo");
    let mut users = auth.array("authenticatedUsers");
    if let Some(login) = login {
        let mut user = users.document();
        user.append_str("user", &login.user.name);
        user.append_str("db", &login.user.database);
        user.finish();
    }
    users.finish();
    let mut roles = auth.array("authenticatedUserRoles");
    for name in login.iter().flat_map(|login| &login.granted.roles) {
        let mut role = roles.document();
        role.append_str("role", &name.name);
        role.append_str("db", &name.database);
        role.finish();
    }
    roles.finish();
    if shows_privileges {
        let mut privileges = auth.array("authenticatedUserPrivileges");
        if let Some(login) = login {
            login.granted.privileges.write(&mut privileges);
        }
        privileges.finish();
    }
    auth.finish();
    Ok(())
}
