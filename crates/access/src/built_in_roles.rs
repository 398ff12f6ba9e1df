//! The built-in roles, read from the list beside this file (`built_in_roles.txt`).

use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::resource::is_database_name;
use crate::{Action, ActionSet, Privilege, PrivilegeList, Resource, Role, RoleName};

const LIST: &str = include_str!("built_in_roles.txt");

/// The database whose users have no roles of their own.
const EXTERNAL: &str = "$external";

/// The databases that have a role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    EveryDatabase,
    Admin,
}

#[derive(Debug)]
struct BuiltIn {
    scope: Scope,
    privileges: Vec<Template>,
}

/// A privilege whose database may be that of its role.
#[derive(Debug)]
struct Template {
    /// As the list shows it.
    resource: &'static str,
    actions: ActionSet,
}

static ROLES: LazyLock<BTreeMap<&'static str, BuiltIn>> = LazyLock::new(|| {
    let mut roles: BTreeMap<&'static str, BuiltIn> = BTreeMap::new();
    let mut last = None;
    for line in LIST.lines() {
        if let Some(privilege) = line.strip_prefix("  ") {
            let (resource, actions) = privilege.split_once(": ").expect("a resource and its actions");
            let mut set = ActionSet::EMPTY;
            for action in actions.split(' ') {
                set.insert(Action::of_name(action).expect("an action"));
            }
            let role: Option<&mut BuiltIn> = last.and_then(|last| roles.get_mut(last));
            role.expect("a role above").privileges.push(Template { resource, actions: set });
            continue;
        }
        let (scope, name) = line.split_once(' ').expect("where the role is, and its name");
        let scope = match scope {
            "database" => Scope::EveryDatabase,
            "admin" => Scope::Admin,
            other => unreachable!("{other} is no place of a role"),
        };
        roles.insert(name, BuiltIn { scope, privileges: Vec::new() });
        last = Some(name);
    }
    roles
});

impl Template {
    fn of_database(&self, database: &str) -> Privilege {
        Privilege { resource: resource(self.resource, database), actions: self.actions }
    }
}

/// A resource of the list, for a role of this database.
fn resource(listed: &str, own: &str) -> Resource {
    match listed {
        "cluster" => return Resource::Cluster,
        "any" => return Resource::Any,
        "buckets" => return Resource::Buckets { database: None, collection: None },
        _ => {}
    }
    let (database, collection) = listed.split_once(' ').expect("a database and a collection");
    let database = match database {
        "own" => own,
        other => other,
    };
    match (database, collection) {
        ("*", "*") => Resource::Normal,
        (database, "*") => Resource::Database(database.to_owned()),
        ("*", collection) => Resource::CollectionName(collection.to_owned()),
        (database, collection) => {
            Resource::Collection { database: database.to_owned(), collection: collection.to_owned() }
        }
    }
}

fn built_in(name: &RoleName) -> Option<&'static BuiltIn> {
    let found = ROLES.get(name.name.as_str())?;
    let is_there = match found.scope {
        Scope::EveryDatabase => {
            let database = name.database.as_str();
            database != EXTERNAL && !database.is_empty() && is_database_name(database)
        }
        Scope::Admin => name.database == "admin",
    };
    is_there.then_some(found)
}

/// The built-in role of this name. It inherits no other.
pub fn role(name: &RoleName) -> Option<Role> {
    let templates = &built_in(name)?.privileges;
    let privileges: PrivilegeList =
        templates.iter().map(|template| template.of_database(&name.database)).collect();
    Some(Role { privileges, roles: Vec::new() })
}

/// Whether there is a built-in role of this name.
pub fn is_built_in(name: &RoleName) -> bool {
    built_in(name).is_some()
}

/// The built-in roles of a database.
pub fn of_database(database: &str) -> impl Iterator<Item = RoleName> {
    let all = ROLES.keys().map(move |name| RoleName::new(*name, database));
    all.filter(is_built_in)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The list as the parsed roles give it, with the database of the role as `own`.
    fn shown() -> String {
        let mut lines = Vec::new();
        for line in LIST.lines().filter(|line| !line.starts_with("  ")) {
            let (scope, name) = line.split_once(' ').unwrap();
            lines.push(line.to_owned());
            let database = if scope == "admin" { "admin" } else { "own" };
            for privilege in role(&RoleName::new(name, database)).unwrap().privileges.iter() {
                let resource = match &privilege.resource {
                    Resource::Cluster => "cluster".to_owned(),
                    Resource::Any => "any".to_owned(),
                    Resource::Normal => "* *".to_owned(),
                    Resource::Database(database) => format!("{database} *"),
                    Resource::CollectionName(name) => format!("* {name}"),
                    Resource::Collection { database, collection } => format!("{database} {collection}"),
                    Resource::Buckets { database: None, collection: None } => "buckets".to_owned(),
                    other => panic!("{other:?}"),
                };
                let mut actions: Vec<&str> = privilege.actions.shown().map(Action::name).collect();
                actions.sort_unstable();
                lines.push(format!("  {resource}: {}", actions.join(" ")));
            }
        }
        lines.join("\n")
    }

    #[test]
    fn the_roles_are_those_of_the_list() {
        let listed: Vec<String> = LIST
            .lines()
            .map(|line| match line.split_once(": ") {
                Some((resource, actions)) => {
                    let mut actions: Vec<&str> = actions.split(' ').collect();
                    actions.sort_unstable();
                    format!("{resource}: {}", actions.join(" "))
                }
                None => line.to_owned(),
            })
            .collect();
        assert_eq!(shown(), listed.join("\n"));
        assert_eq!(ROLES.len(), 20);
    }

    #[test]
    fn roles_of_admin_are_nowhere_else() {
        let names = |database: &str| of_database(database).count();
        assert_eq!((names("test"), names("config"), names("admin"), names("$external")), (6, 6, 20, 0));
        assert!(is_built_in(&RoleName::new("root", "admin")) && !is_built_in(&RoleName::new("root", "test")));
        assert!(role(&RoleName::new("read", "$external")).is_none());
        assert!(role(&RoleName::new("Read", "test")).is_none());
    }

    #[test]
    fn a_database_that_cannot_be_there_has_no_roles() {
        let of = |database: &str| role(&RoleName::new("read", database)).is_some();
        let long = "d".repeat(64);
        for database in ["", "a b", "a.b", "a/b", "a\\b", "a\"b", "a\0b", &long] {
            assert!(!of(database), "{database:?}");
        }
        for database in ["a$b", "$x", "local", "a*b", &long[..63]] {
            assert!(of(database), "{database:?}");
        }
    }
}
