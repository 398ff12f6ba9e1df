//! `grantRolesToRole` and `revokeRolesFromRole`.

use pando_access::RoleName;
use pando_document::DocumentWriter;

use super::account_names::{own_name, roles_value};
use super::role_edit::{check_inherited, edit};
use super::user_roles::read_roles;
use crate::context::Context;
use crate::{CommandError, Request};

/// `grantRolesToRole`.
pub(crate) fn run_grant(
    context: &mut Context<'_>,
    request: &Request<'_>,
    _reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    const COMMAND: &str = "grantRolesToRole";
    context.require_may_block()?;
    let name = RoleName::new(own_name(COMMAND, request)?, context.database);
    let given = read_roles(COMMAND, request, context.database)?;
    edit(context, &name, |context, found, document| {
        check_inherited(context, &name, &given)?;
        let mut roles = found.role.roles.clone();
        roles.extend(given.iter().filter(|role| !found.role.roles.contains(role)).cloned());
        document.insert("roles", roles_value(&roles));
        Ok(())
    })
}

/// `revokeRolesFromRole`. Roles that it does not have, and those that there are not, are no error.
pub(crate) fn run_revoke(
    context: &mut Context<'_>,
    request: &Request<'_>,
    _reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    const COMMAND: &str = "revokeRolesFromRole";
    context.require_may_block()?;
    let name = RoleName::new(own_name(COMMAND, request)?, context.database);
    let given = read_roles(COMMAND, request, context.database)?;
    edit(context, &name, |_, found, document| {
        let mut roles = found.role.roles.clone();
        roles.retain(|role| !given.contains(role));
        document.insert("roles", roles_value(&roles));
        Ok(())
    })
}
