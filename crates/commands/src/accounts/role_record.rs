//! A document of `admin.system.roles`.
//!
//! ```text
//! {_id: "test.r", role: "r", db: "test", privileges: [{resource, actions}], roles: [{role, db}],
//!  authenticationRestrictions: [...]}
//! ```

use pando_access::{Privilege, Role, RoleName};
use pando_document::{RawDocument, RawValue, Value};

use super::restriction::Restriction;
use super::stored_names::stored_roles;
use crate::CommandError;

/// The fields that the server works with.
#[derive(Clone, Debug)]
pub(crate) struct RoleRecord {
    pub name: RoleName,
    pub role: Role,
    pub restrictions: Vec<Restriction>,
    /// The same as they are stored, if there are some.
    pub shown_restrictions: Option<Value>,
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
        own.roles = stored_roles(document)?;
        let Some(restrictions) = Restriction::read_stored(document)? else { return Ok(None) };
        let stored = document.get("authenticationRestrictions")?;
        let shown_restrictions = stored.filter(|_| !restrictions.is_empty()).map(Value::from);
        Ok(Some(RoleRecord { name, role: own, restrictions, shown_restrictions }))
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
