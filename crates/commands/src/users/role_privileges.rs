//! `grantPrivilegesToRole` and `revokePrivilegesFromRole`.

use pando_access::{PrivilegeList, RoleName};
use pando_document::DocumentWriter;

use super::account_names::own_name;
use super::role_edit::edit;
use super::role_fields::{check_privileges, privileges_value, read_privileges};
use crate::arguments::{Arguments, missing};
use crate::context::Context;
use crate::{CommandError, ErrorCode, Request};

/// `grantPrivilegesToRole`.
pub(crate) fn run_grant(
    context: &mut Context<'_>,
    request: &Request<'_>,
    _reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    const COMMAND: &str = "grantPrivilegesToRole";
    context.require_may_block()?;
    let name = RoleName::new(own_name(COMMAND, request)?, context.database);
    let given = read(COMMAND, request)?;
    edit(context, &name, |context, found, document| {
        check_privileges(&given, context.database)?;
        let mut privileges = found.role.privileges.clone();
        privileges.add_all(&given);
        document.insert("privileges", privileges_value(&privileges)?);
        Ok(())
    })
}

/// `revokePrivilegesFromRole`: takes actions from the privileges on the same resources.
pub(crate) fn run_revoke(
    context: &mut Context<'_>,
    request: &Request<'_>,
    _reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    const COMMAND: &str = "revokePrivilegesFromRole";
    context.require_may_block()?;
    let name = RoleName::new(own_name(COMMAND, request)?, context.database);
    let given = read(COMMAND, request)?;
    edit(context, &name, |_, found, document| {
        let mut privileges = found.role.privileges.clone();
        for privilege in given.iter() {
            privileges.remove(privilege);
        }
        document.insert("privileges", privileges_value(&privileges)?);
        Ok(())
    })
}

fn read(command: &'static str, request: &Request<'_>) -> Result<PrivilegeList, CommandError> {
    let mut given = None;
    for argument in Arguments::of_command(command, request.body) {
        let argument = argument?;
        match argument.name {
            "privileges" => given = Some(read_privileges(command, &argument)?),
            _ => argument.refuse_unless_generic()?,
        }
    }
    let given = given.ok_or_else(|| missing(command, "privileges"))?;
    if given.is_empty() {
        let sentence = format!("{command} command requires a non-empty \"privileges\" array");
        return Err(CommandError::failed(ErrorCode::BadValue, sentence));
    }
    Ok(given)
}
