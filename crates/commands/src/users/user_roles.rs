//! `grantRolesToUser` and `revokeRolesFromUser`.

use pando_access::{RoleName, UserName};
use pando_document::{Document, DocumentWriter};

use super::account_change::{AccountChange, carry_out};
use super::account_names::{check_roles, own_name, role_names, roles_value};
use crate::accounts::store::{self, USERS};
use crate::accounts::{UserRecord, stored_roles};
use crate::arguments::{Arguments, missing};
use crate::context::Context;
use crate::{CommandError, ErrorCode, Request};

/// `grantRolesToUser`.
pub(crate) fn run_grant(
    context: &mut Context<'_>,
    request: &Request<'_>,
    _reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    change(context, request, "grantRolesToUser", |have, given| {
        for role in given {
            if !have.contains(role) {
                have.push(role.clone());
            }
        }
    })
}

/// `revokeRolesFromUser`.
pub(crate) fn run_revoke(
    context: &mut Context<'_>,
    request: &Request<'_>,
    _reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    change(context, request, "revokeRolesFromUser", |have, given| have.retain(|role| !given.contains(role)))
}

fn change(
    context: &mut Context<'_>,
    request: &Request<'_>,
    command: &'static str,
    edit: impl Fn(&mut Vec<RoleName>, &[RoleName]),
) -> Result<(), CommandError> {
    context.require_may_block()?;
    let name = UserName::new(own_name(command, request)?, context.database);
    let given = read_roles(command, request, context.database)?;
    let key = UserRecord::key(&name);
    carry_out(context, |context| {
        let Some(before) = store::document(context.catalog(), USERS, &key)? else {
            let sentence = format!("Could not find user \"{}\" for db \"{}\"", name.name, name.database);
            return Err(CommandError::failed(ErrorCode::UserNotFound, sentence));
        };
        check_roles(context.catalog(), &given)?;
        let mut roles = stored_roles(&before)?;
        edit(&mut roles, &given);
        let mut after = Document::from_raw(&before)?;
        after.insert("roles", roles_value(&roles));
        Ok((vec![AccountChange::of_user(key.clone(), before, after)], ()))
    })
}

/// The roles of a command that has no other fields.
pub(super) fn read_roles(
    command: &'static str,
    request: &Request<'_>,
    database: &str,
) -> Result<Vec<RoleName>, CommandError> {
    let mut given = None;
    for argument in Arguments::of_command(command, request.body) {
        let argument = argument?;
        match argument.name {
            "roles" => given = Some(role_names(&argument, database)?),
            _ => argument.refuse_unless_generic()?,
        }
    }
    let given = given.ok_or_else(|| missing(command, "roles"))?;
    if given.is_empty() {
        let sentence = format!("{command} command requires a non-empty \"roles\" array");
        return Err(CommandError::failed(ErrorCode::BadValue, sentence));
    }
    Ok(given)
}
