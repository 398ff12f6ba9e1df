//! A document of `admin.system.roles`.
//!
//! ```text
//! {_id: "test.r", role: "r", db: "test", privileges: [{resource, actions}], roles: [{role, db}],
//!  authenticationRestrictions: [...]}
//! ```

use pando_access::{Privilege, Role, RoleName};
use pando_document::{RawDocument, RawValue};

use super::account_name::read_stored_roles;
use super::restriction::Restriction;
use crate::CommandError;

/// The fields that the server works with.
#[derive(Clone, Debug)]
pub(crate) struct RoleRecord {
    pub name: RoleName,
    pub role: Role,
    pub restrictions: Vec<Restriction>,
}

impl RoleRecord {
    /// The `_id` of the document of a role.
    pub fn key(name: &RoleName) -> String {
        format!("{}.{}", name.database, name.name)
    }

    /// Reads a document. `None` if it is none of a role. A privilege that this server does not know gives no
    /// right.
    pub fn read(document: &RawDocument) -> Result<Option<RoleRecord>, CommandError> {
        let (
            Some(RawValue::String(role)),
            Some(RawValue::String(database)),
            Some(RawValue::Array(privileges)),
        ) = (document.get("role")?, document.get("db")?, document.get("privileges")?)
        else {
            return Ok(None);
        };
        let name = RoleName::new(role, database);
        let mut own = Role::default();
        for privilege in privileges.iter() {
            let RawValue::Document(privilege) = privilege? else { continue };
            match Privilege::read(privilege) {
                Ok(privilege) => own.privileges.add(&privilege),
                Err(fault) => tracing::warn!(role = %name, %fault, "a stored privilege gives no right"),
            }
        }
        let Some(roles) = read_stored_roles(document)? else { return Ok(None) };
        own.roles = roles;
        let restrictions = match document.get("authenticationRestrictions")? {
            None => Vec::new(),
            Some(RawValue::Array(list)) => Restriction::read_list("authenticationRestrictions", list)?,
            Some(_) => return Ok(None),
        };
        Ok(Some(RoleRecord { name, role: own, restrictions }))
    }
}

#[cfg(test)]
mod tests {
    use pando_document::doc;

    use super::*;

    #[test]
    fn a_role_is_read_and_what_it_names_wrongly_gives_no_right() {
        let document = doc! {
            "_id": "test.r", "role": "r", "db": "test",
            "privileges": [
                { "resource": { "db": "test", "collection": "c" }, "actions": ["find"] },
                { "resource": { "db": "test", "collection": "c" }, "actions": ["unheardOf"] }
            ],
            "roles": [{ "role": "read", "db": "test" }]
        };
        let record = RoleRecord::read(&document.to_raw()).unwrap().unwrap();
        assert_eq!(record.name, RoleName::new("r", "test"));
        assert_eq!(record.role.privileges.iter().count(), 1);
        assert_eq!(record.role.roles, [RoleName::new("read", "test")]);
        assert!(RoleRecord::read(&doc! { "_id": "admin.z", "a": 1 }.to_raw()).unwrap().is_none());
    }
}
