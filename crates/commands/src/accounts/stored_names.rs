//! The names of roles in stored documents: `{role: "read", db: "admin"}`.

use pando_access::RoleName;
use pando_document::{RawDocument, RawValue};

use crate::CommandError;

/// The `roles` of a stored user or role. An element that names no role is passed over.
pub(crate) fn stored_roles(document: &RawDocument) -> Result<Vec<RoleName>, CommandError> {
    let Some(RawValue::Array(list)) = document.get("roles")? else { return Ok(Vec::new()) };
    let mut roles = Vec::new();
    for element in list.iter() {
        if let RawValue::Document(element) = element?
            && let (Some(RawValue::String(role)), Some(RawValue::String(database))) =
                (element.get("role")?, element.get("db")?)
        {
            roles.push(RoleName::new(role, database));
        }
    }
    Ok(roles)
}
