//! The rights for the commands of users and roles.
//!
//! To give or take a role or a privilege, a client needs the right for that on the database of the role, or
//! on the database that the privilege is for.

use pando_access::{Action, Privilege, Resource, Target};
use pando_document::{RawArray, RawDocument, RawValue};

use super::{Claim, Denial};
use crate::arguments::check_name_once;

/// `createUser`.
pub(crate) fn create_user(claim: &Claim<'_>) -> Result<(), Denial> {
    need_in(claim, Action::CreateUser)?;
    for field in claim.fields() {
        match field? {
            ("roles", RawValue::Array(roles)) => need_roles(claim, roles, Action::GrantRole)?,
            ("authenticationRestrictions", _) => need_in(claim, Action::SetAuthenticationRestriction)?,
            _ => {}
        }
    }
    Ok(())
}

/// `updateUser`. A user may have the right to change the own password and the own data. New roles take the
/// earlier ones away, which may be of any database. Fewer mechanisms take keys of the password away.
pub(crate) fn update_user(claim: &Claim<'_>) -> Result<(), Denial> {
    let is_own =
        claim.user.is_some_and(|user| user.name == claim.collection() && user.database == claim.database);
    let need = |any: Action, own: Action| match is_own && need_in(claim, own).is_ok() {
        true => Ok(()),
        false => need_in(claim, any),
    };
    for field in claim.fields() {
        match field? {
            ("pwd" | "mechanisms", _) => need(Action::ChangePassword, Action::ChangeOwnPassword)?,
            ("customData", _) => need(Action::ChangeCustomData, Action::ChangeOwnCustomData)?,
            ("roles", roles) => {
                claim.need(Action::RevokeRole, Target::Normal)?;
                if let RawValue::Array(roles) = roles {
                    need_roles(claim, roles, Action::GrantRole)?;
                }
            }
            ("authenticationRestrictions", _) => need_in(claim, Action::SetAuthenticationRestriction)?,
            _ => {}
        }
    }
    Ok(())
}

/// `usersInfo`. The own user may be seen without a right.
pub(crate) fn users_info(claim: &Claim<'_>) -> Result<(), Denial> {
    let need = |named: Named<'_>| match named {
        Named::Of { name, database } => {
            let is_own = claim.user.is_some_and(|user| user.name == name && user.database == database);
            match is_own {
                true => Ok(()),
                false => claim.need(Action::ViewUser, Target::Database(database)),
            }
        }
        Named::AllOf(database) => claim.need(Action::ViewUser, Target::Database(database)),
        Named::All => claim.need(Action::ViewUser, Target::Cluster),
    };
    for_each_named(claim, "user", need)
}

/// `rolesInfo`.
pub(crate) fn roles_info(claim: &Claim<'_>) -> Result<(), Denial> {
    let need = |named: Named<'_>| match named {
        Named::Of { name, database } => {
            let is_own = claim.roles.iter().any(|role| role.name == name && role.database == database);
            match is_own {
                true => Ok(()),
                false => claim.need(Action::ViewRole, Target::Database(database)),
            }
        }
        Named::AllOf(database) => claim.need(Action::ViewRole, Target::Database(database)),
        Named::All => claim.need(Action::ViewRole, Target::Cluster),
    };
    for_each_named(claim, "role", need)
}

/// `createRole`.
pub(crate) fn create_role(claim: &Claim<'_>) -> Result<(), Denial> {
    need_in(claim, Action::CreateRole)?;
    need_contents(claim)
}

/// `updateRole`, which takes away what the role had before.
pub(crate) fn update_role(claim: &Claim<'_>) -> Result<(), Denial> {
    claim.need(Action::RevokeRole, Target::Normal)?;
    need_contents(claim)
}

/// `grantRolesToUser` and `grantRolesToRole`.
pub(crate) fn grant_roles(claim: &Claim<'_>) -> Result<(), Denial> {
    need_listed_roles(claim, Action::GrantRole)
}

/// `revokeRolesFromUser` and `revokeRolesFromRole`.
pub(crate) fn revoke_roles(claim: &Claim<'_>) -> Result<(), Denial> {
    need_listed_roles(claim, Action::RevokeRole)
}

/// `grantPrivilegesToRole`.
pub(crate) fn grant_privileges(claim: &Claim<'_>) -> Result<(), Denial> {
    need_listed_privileges(claim, Action::GrantRole)
}

/// `revokePrivilegesFromRole`.
pub(crate) fn revoke_privileges(claim: &Claim<'_>) -> Result<(), Denial> {
    need_listed_privileges(claim, Action::RevokeRole)
}

/// The roles, the privileges and the restrictions that a command gives to a role.
fn need_contents(claim: &Claim<'_>) -> Result<(), Denial> {
    need_listed_roles(claim, Action::GrantRole)?;
    need_listed_privileges(claim, Action::GrantRole)?;
    for field in claim.fields() {
        if let ("authenticationRestrictions", _) = field? {
            need_in(claim, Action::SetAuthenticationRestriction)?;
        }
    }
    Ok(())
}

/// `_mergeAuthzCollections`, by which mongorestore takes users and roles over: it may make and drop any of
/// them.
pub(crate) fn merge(claim: &Claim<'_>) -> Result<(), Denial> {
    let actions = [
        Action::CreateUser,
        Action::CreateRole,
        Action::GrantRole,
        Action::RevokeRole,
        Action::DropUser,
        Action::DropRole,
    ];
    for action in actions {
        claim.need(action, Target::Normal)?;
    }
    for field in claim.fields() {
        let (name, value) = field?;
        if let ("tempUsersCollection" | "tempRolesCollection", Some(full_name)) = (name, value.as_str()) {
            let (database, collection) = full_name.split_once('.').unwrap_or((full_name, ""));
            claim.need(Action::Find, Target::Collection { database, collection })?;
        }
    }
    Ok(())
}

fn need_in(claim: &Claim<'_>, action: Action) -> Result<(), Denial> {
    claim.need(action, Target::Database(claim.database))
}

fn need_listed_roles(claim: &Claim<'_>, action: Action) -> Result<(), Denial> {
    for field in claim.fields() {
        if let ("roles", RawValue::Array(roles)) = field? {
            need_roles(claim, roles, action)?;
        }
    }
    Ok(())
}

fn need_roles(claim: &Claim<'_>, roles: &RawArray, action: Action) -> Result<(), Denial> {
    for role in roles.iter() {
        let database = match role? {
            RawValue::Document(role) => database_of(claim, role)?,
            _ => claim.database,
        };
        claim.need(action, Target::Database(database))?;
    }
    Ok(())
}

/// The database that the document of a role names; that of the request where it names none.
fn database_of<'v>(claim: &Claim<'v>, document: &'v RawDocument) -> Result<&'v str, Denial> {
    check_name_once("RoleName", document, &["role", "db"])?;
    let mut database = claim.database;
    for field in document.iter() {
        if let ("db", RawValue::String(name)) = field? {
            database = name;
        }
    }
    Ok(database)
}

fn need_listed_privileges(claim: &Claim<'_>, action: Action) -> Result<(), Denial> {
    for field in claim.fields() {
        let ("privileges", RawValue::Array(privileges)) = field? else { continue };
        for privilege in privileges.iter() {
            // One that is none is refused by the command.
            let Some(privilege) = privilege?.as_document() else { continue };
            let Ok(privilege) = Privilege::read(privilege) else { continue };
            let database = match &privilege.resource {
                Resource::Database(database) | Resource::Collection { database, .. } => database,
                // A privilege for many databases, or for the cluster.
                _ => "admin",
            };
            claim.need(action, Target::Database(database))?;
        }
    }
    Ok(())
}

/// The users or roles that an information is asked about.
#[derive(Clone, Copy)]
enum Named<'a> {
    Of { name: &'a str, database: &'a str },
    AllOf(&'a str),
    All,
}

/// Goes through the users or roles that `usersInfo` or `rolesInfo` names.
fn for_each_named(
    claim: &Claim<'_>,
    field: &str,
    mut need: impl FnMut(Named<'_>) -> Result<(), Denial>,
) -> Result<(), Denial> {
    let one = |value: RawValue<'_>, need: &mut dyn FnMut(Named<'_>) -> Result<(), Denial>| match value {
        RawValue::String(name) => need(Named::Of { name, database: claim.database }),
        RawValue::Document(document) => {
            let owner = if field == "user" { "UserName" } else { "RoleName" };
            check_name_once(owner, document, &[field, "db", "forAllDBs"])?;
            let mut name = None;
            for part in document.iter() {
                match part? {
                    ("forAllDBs", value) if value.to_bool() => need(Named::All)?,
                    (part, RawValue::String(text)) if part == field => name = Some(text),
                    _ => {}
                }
            }
            let mut database = claim.database;
            for part in document.iter() {
                if let ("db", RawValue::String(text)) = part? {
                    database = text;
                }
            }
            match name {
                Some(name) => need(Named::Of { name, database }),
                None => need(Named::AllOf(database)).or_else(|denial| match document.get("forAllDBs") {
                    Ok(Some(_)) => Ok(()),
                    _ => Err(denial),
                }),
            }
        }
        _ => need(Named::AllOf(claim.database)),
    };
    match claim.request.command() {
        Ok((_, RawValue::Array(list))) => {
            for value in list.iter() {
                one(value?, &mut need)?;
            }
            Ok(())
        }
        Ok((_, value)) => one(value, &mut need),
        Err(error) => Err(error.into()),
    }
}
