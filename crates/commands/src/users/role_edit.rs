//! The change of a role that is there, and the rules of inheritance.

use pando_access::{RoleName, built_in_roles};
use pando_document::{Document, RawDocumentBuf, Value};

use super::account_change::{AccountChange, carry_out};
use super::account_names::unknown_roles;
use crate::accounts::store::{self, ROLES};
use crate::accounts::{RoleRecord, resolve_roles};
use crate::context::Context;
use crate::{CommandError, ErrorCode};

/// A role as it was read.
pub(super) struct Found {
    pub record: RoleRecord,
    pub document: RawDocumentBuf,
}

/// The role of a name, if there is one that is not built in. Blocks.
pub(super) fn find(context: &Context<'_>, name: &RoleName) -> Result<Option<Found>, CommandError> {
    let found = store::document(context.catalog(), ROLES, &RoleRecord::key(name))?;
    let Some(document) = found else { return Ok(None) };
    Ok(RoleRecord::read(&document)?.map(|record| Found { record, document }))
}

/// Changes the document of a role that is there. `edit` is given the role and the document to change.
pub(super) fn edit(
    context: &mut Context<'_>,
    name: &RoleName,
    edit: impl Fn(&Context<'_>, &RoleRecord, &mut Document) -> Result<(), CommandError>,
) -> Result<(), CommandError> {
    refuse_built_in(name)?;
    carry_out(context, |context| {
        let Some(found) = find(context, name)? else {
            let sentence = format!("Role {name} not found");
            return Err(CommandError::failed(ErrorCode::RoleNotFound, sentence));
        };
        let mut after = Document::from_raw(&found.document)?;
        edit(context, &found.record, &mut after)?;
        Ok((vec![AccountChange::of_role(RoleRecord::key(name), found.document, after)], ()))
    })
}

/// Refuses the name of a built-in role.
pub(super) fn refuse_built_in(name: &RoleName) -> Result<(), CommandError> {
    if built_in_roles::is_built_in(name) {
        let sentence = format!("{name} is a built-in role and cannot be modified");
        return Err(CommandError::failed(ErrorCode::BadValue, sentence));
    }
    Ok(())
}

/// Refuses roles that a role cannot inherit: itself, those of other databases, those that there are not, and
/// those that inherit it. Blocks.
pub(super) fn check_inherited(
    context: &Context<'_>,
    role: &RoleName,
    inherited: &[RoleName],
) -> Result<(), CommandError> {
    let refused = |sentence: String| Err(CommandError::failed(ErrorCode::InvalidRoleModification, sentence));
    if inherited.contains(role) {
        return refused(format!("Cannot grant role {role} to itself."));
    }
    if role.database != "admin" && inherited.iter().any(|one| one.database != role.database) {
        let database = &role.database;
        return refused(format!(
            "Roles on the '{database}' database cannot be granted roles from other databases"
        ));
    }
    if let Some(sentence) = unknown_roles(context.catalog(), inherited)? {
        let sentence = format!("Cannot grant roles to '{role}': {sentence}");
        return Err(CommandError::failed(ErrorCode::RoleNotFound, sentence));
    }
    if resolve_roles(context.catalog(), inherited)?.granted.roles.contains(role) {
        return refused(format!("Granting roles to {role} would introduce a cycle in the role graph"));
    }
    Ok(())
}

/// The changes of all users and roles that have one of the roles which `is_gone` names. Blocks.
pub(super) fn revocations(
    context: &Context<'_>,
    is_gone: impl Fn(&RoleName) -> bool,
) -> Result<Vec<AccountChange>, CommandError> {
    let mut changes = Vec::new();
    for collection in [store::USERS, store::ROLES] {
        for (key, before) in store::all(context.catalog(), collection, context.operation)? {
            let mut after = Document::from_raw(&before)?;
            let Some(Value::Array(roles)) = after.get_mut("roles") else { continue };
            let number = roles.len();
            roles.retain(|role| !role_name(role).is_some_and(|name| is_gone(&name)));
            if roles.len() < number {
                changes.push(AccountChange { collection, key, before: Some(before), after: Some(after) });
            }
        }
    }
    Ok(changes)
}

fn role_name(value: &Value) -> Option<RoleName> {
    let Value::Document(document) = value else { return None };
    match (document.get("role"), document.get("db")) {
        (Some(Value::String(role)), Some(Value::String(database))) => {
            Some(RoleName::new(role.as_str(), database.as_str()))
        }
        _ => None,
    }
}
