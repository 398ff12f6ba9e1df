//! The names of users and roles in documents: `{user: "ada", db: "admin"}`, `{role: "read", db: "admin"}`.

use pando_access::RoleName;
use pando_document::{RawDocument, RawValue};

use crate::CommandError;

/// The `roles` of a stored user or role. `None` if they are no list; an element that names no role is passed
/// over.
pub(super) fn read_stored_roles(document: &RawDocument) -> Result<Option<Vec<RoleName>>, CommandError> {
    let list = match document.get("roles")? {
        Some(RawValue::Array(list)) => list,
        None => return Ok(Some(Vec::new())),
        Some(_) => return Ok(None),
    };
    let mut roles = Vec::new();
    for element in list.iter() {
        if let RawValue::Document(element) = element?
            && let (Some(RawValue::String(role)), Some(RawValue::String(database))) =
                (element.get("role")?, element.get("db")?)
        {
            roles.push(RoleName::new(role, database));
        }
    }
    Ok(Some(roles))
}
