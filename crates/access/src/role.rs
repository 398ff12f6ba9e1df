//! Roles: privileges of their own, and roles that they inherit. [`resolve`] follows the inheritance.

use std::collections::BTreeSet;

use crate::{PrivilegeList, RoleName, built_in_roles};

/// The definition of a role.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Role {
    /// Its own privileges.
    pub privileges: PrivilegeList,
    /// The roles that it inherits directly.
    pub roles: Vec<RoleName>,
}

/// The roles that a list of roles leads to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResolvedRoles {
    /// The roles of the list and all that they inherit.
    pub roles: BTreeSet<RoleName>,
    /// The privileges of all of these roles.
    pub privileges: PrivilegeList,
    /// Roles that are named and not defined. They give no rights.
    pub unknown: BTreeSet<RoleName>,
}

/// Follows the inheritance of roles. `defined` finds the roles that are not built in.
///
/// Each role is asked for once, so that a circle in the stored documents does no harm. A role would introduce
/// a circle if it is among the [`ResolvedRoles::roles`] of those that it is to inherit.
///
/// # Errors
/// Those of `defined`.
pub fn resolve<E>(
    roles: &[RoleName],
    mut defined: impl FnMut(&RoleName) -> Result<Option<Role>, E>,
) -> Result<ResolvedRoles, E> {
    let mut resolved = ResolvedRoles::default();
    let mut waiting: Vec<RoleName> = roles.iter().rev().cloned().collect();
    while let Some(name) = waiting.pop() {
        if resolved.roles.contains(&name) || resolved.unknown.contains(&name) {
            continue;
        }
        let role = match built_in_roles::role(&name) {
            Some(role) => Some(role),
            None => defined(&name)?,
        };
        let Some(role) = role else {
            resolved.unknown.insert(name);
            continue;
        };
        resolved.privileges.add_all(&role.privileges);
        waiting.extend(role.roles.into_iter().rev());
        resolved.roles.insert(name);
    }
    Ok(resolved)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;
    use crate::{Action, ActionSet, Privilege, Resource};

    fn of(names: &[&str]) -> Vec<RoleName> {
        names.iter().map(|name| RoleName::new(*name, "test")).collect()
    }

    /// `a` inherits `b` and `read`, `b` inherits `c`, and `c` inherits `a`.
    fn defined(name: &RoleName) -> Result<Option<Role>, Infallible> {
        let (inherited, action): (&[&str], Action) = match name.name.as_str() {
            "a" => (&["b", "read"], Action::Insert),
            "b" => (&["c"], Action::Update),
            "c" => (&["a", "gone"], Action::Remove),
            _ => return Ok(None),
        };
        let own =
            Privilege { resource: Resource::Database("test".to_owned()), actions: ActionSet::of(&[action]) };
        Ok(Some(Role { privileges: [own].into_iter().collect(), roles: of(inherited) }))
    }

    #[test]
    fn a_role_has_the_privileges_of_all_that_it_inherits_and_a_circle_ends() {
        let Ok(resolved) = resolve(&of(&["b"]), defined);
        assert_eq!(resolved.roles, of(&["a", "b", "c", "read"]).into_iter().collect());
        assert_eq!(resolved.unknown, of(&["gone"]).into_iter().collect());
        let on_database =
            resolved.privileges.iter().find(|one| one.resource == Resource::Database("test".to_owned()));
        let wanted = [Action::Insert, Action::Update, Action::Remove, Action::Find];
        assert!(on_database.unwrap().actions.contains_all(&ActionSet::of(&wanted)));
    }
}
