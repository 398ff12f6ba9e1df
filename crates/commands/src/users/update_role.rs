//! `updateRole`.

use pando_access::RoleName;
use pando_document::{Document, DocumentWriter, RawValue, Value};

use super::account_change::{AccountChange, carry_out};
use super::account_names::{own_name, roles_value};
use super::role_edit::{check_inherited, find};
use super::role_fields::{RoleFields, check_privileges, privileges_value};
use crate::accounts::RoleRecord;
use crate::context::Context;
use crate::{CommandError, ErrorCode, Request};

/// Replaces the fields that the request has.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    _reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    const COMMAND: &str = "updateRole";
    context.require_may_block()?;
    let name = RoleName::new(own_name(COMMAND, request)?, context.database);
    let fields = RoleFields::read(COMMAND, request.body, context.database)?;
    if fields.privileges.is_none() && fields.roles.is_none() && fields.restrictions.is_none() {
        return Err(CommandError::failed(
            ErrorCode::BadValue,
            "Must specify at least one field to update in updateRole",
        ));
    }
    carry_out(context, |context| {
        // As in MongoDB, a built-in role is one that is not there.
        let Some(found) = find(context, &name)? else {
            let sentence = format!("Could not find role: {name}");
            return Err(CommandError::failed(ErrorCode::RoleNotFound, sentence));
        };
        let mut after = Document::from_raw(&found.document)?;
        if let Some(privileges) = &fields.privileges {
            check_privileges(privileges, context.database)?;
            after.insert("privileges", privileges_value(privileges)?);
        }
        if let Some(roles) = &fields.roles {
            check_inherited(context, &name, roles)?;
            after.insert("roles", roles_value(roles));
        }
        match fields.restrictions {
            Some(list) if list.iter().next().is_some() => {
                after.insert("authenticationRestrictions", Value::from(RawValue::Array(list)));
            }
            Some(_) => drop(after.remove("authenticationRestrictions")),
            None => {}
        }
        Ok((vec![AccountChange::of_role(RoleRecord::key(&name), found.document, after)], ()))
    })
}
