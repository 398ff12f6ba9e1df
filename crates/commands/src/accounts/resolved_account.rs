//! All that a list of roles leads to: roles, privileges, and restrictions of addresses.

use std::cell::RefCell;

use pando_access::role::resolve;
use pando_access::{ResolvedRoles, RoleName};
use pando_catalog::Catalog;
use pando_document::Value;

use super::{Ends, Restriction, store};
use crate::CommandError;

/// See the module's head.
pub(crate) struct ResolvedAccount {
    pub granted: ResolvedRoles,
    /// Those of each role that is not built in.
    restrictions: Vec<Vec<Restriction>>,
}

impl ResolvedAccount {
    /// Whether every role allows a connection.
    pub fn allows(&self, ends: Ends) -> bool {
        self.restrictions.iter().all(|list| Restriction::allow(list, ends))
    }

    /// The documents of the restrictions, one list for each role that has some.
    pub fn shown_restrictions(&self) -> Vec<Value> {
        let of_role = |list: &Vec<Restriction>| {
            Value::Array(list.iter().map(|one| Value::Document(one.to_document())).collect())
        };
        self.restrictions.iter().filter(|list| !list.is_empty()).map(of_role).collect()
    }
}

/// Follows the inheritance of roles. Blocks.
pub(crate) fn resolve_roles(catalog: &Catalog, roles: &[RoleName]) -> Result<ResolvedAccount, CommandError> {
    let restrictions = RefCell::new(Vec::new());
    let granted = resolve(roles, |name| -> Result<_, CommandError> {
        let Some(found) = store::role(catalog, name)? else { return Ok(None) };
        restrictions.borrow_mut().push(found.restrictions);
        Ok(Some(found.role))
    })?;
    Ok(ResolvedAccount { granted, restrictions: restrictions.into_inner() })
}
