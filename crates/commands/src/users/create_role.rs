//! `createRole`.

use pando_access::{RoleName, built_in_roles};
use pando_document::{DocumentWriter, RawValue, Value, doc};

use super::account_change::{AccountChange, carry_out};
use super::account_names::{own_name, roles_value};
use super::role_edit::{check_inherited, find};
use super::role_fields::{RoleFields, check_privileges, privileges_value};
use crate::accounts::RoleRecord;
use crate::accounts::store::ROLES;
use crate::arguments::missing;
use crate::context::Context;
use crate::{CommandError, ErrorCode, Request};

/// Creates the role.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    _reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    const COMMAND: &str = "createRole";
    context.require_may_block()?;
    let name = RoleName::new(own_name(COMMAND, request)?, context.database);
    let fields = RoleFields::read(COMMAND, request.body, context.database)?;
    let privileges = fields.privileges.ok_or_else(|| missing(COMMAND, "privileges"))?;
    let roles = fields.roles.ok_or_else(|| missing(COMMAND, "roles"))?;
    check_name(&name)?;
    let key = RoleRecord::key(&name);
    let mut document = doc! {
        "_id": key.as_str(), "role": name.name.as_str(), "db": name.database.as_str(),
        "privileges": privileges_value(&privileges)?, "roles": roles_value(&roles)
    };
    if let Some(list) = fields.restrictions.filter(|list| list.iter().next().is_some()) {
        document.push("authenticationRestrictions", Value::from(RawValue::Array(list)));
    }
    carry_out(context, |context| {
        check_inherited(context, &name, &roles)?;
        check_privileges(&privileges, context.database)?;
        if find(context, &name)?.is_some() {
            let sentence = format!("Role \"{name}\" already exists");
            return Err(CommandError::failed(ErrorCode::Location(51_002), sentence));
        }
        let after = Some(document.clone());
        let change = AccountChange { collection: ROLES, key: key.clone(), before: None, after };
        Ok((vec![change], ()))
    })
}

fn check_name(name: &RoleName) -> Result<(), CommandError> {
    let refused = |sentence: &str| Err(CommandError::failed(ErrorCode::BadValue, sentence));
    match name.database.as_str() {
        _ if name.name.is_empty() => refused("Role name must be non-empty"),
        "local" => refused("Cannot create roles in the local database"),
        "$external" => refused("Cannot create roles in the $external database"),
        _ if built_in_roles::is_built_in(name) => {
            refused("Cannot create roles with the same name as a built-in role")
        }
        _ => Ok(()),
    }
}
