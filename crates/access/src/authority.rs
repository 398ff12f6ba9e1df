//! The authority of a connection: the privileges of its users, merged and indexed for the check that each
//! request makes.
//!
//! # Algorithm
//! An action on a target is allowed if one of the resources that cover the target has it:
//!
//! | target | covered by |
//! |---|---|
//! | the cluster | `Any`, `Cluster` |
//! | all normal databases | `Any`, `Normal` |
//! | a database | `Any`, `Database`; `Normal` unless it is `local` or `config` |
//! | a collection | `Any`, `CollectionName`, `Collection`; if it is no system collection, as its database |
//! | `system.buckets.x` | as a system collection, and the `Buckets` of its database and of `x` |
//!
//! A check allocates nothing. It asks a few bit sets, and halves the sorted lists of names.

use std::cmp::Ordering;

use crate::{Action, ActionSet, PrivilegeList, Resource};

const BUCKETS_PREFIX: &str = "system.buckets.";

/// The target of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target<'a> {
    /// The whole deployment.
    Cluster,
    /// All normal databases: for changes that may reach into any of them.
    Normal,
    /// A database.
    Database(&'a str),
    /// A collection, which may or may not be there.
    Collection {
        /// Its database.
        database: &'a str,
        /// Its name.
        collection: &'a str,
    },
}

/// See the module's head.
#[derive(Clone, Debug, Default)]
pub struct Authority {
    any: ActionSet,
    cluster: ActionSet,
    normal: ActionSet,
    databases: Named,
    collection_names: Named,
    collections: Vec<OfCollection>,
    all_buckets: ActionSet,
    /// Buckets of a database.
    databases_buckets: Named,
    /// Buckets of a collection of time series in any database.
    names_buckets: Named,
    /// Buckets of one collection of time series.
    buckets: Vec<OfCollection>,
}

/// Actions by name, sorted by name.
#[derive(Clone, Debug, Default)]
struct Named {
    rows: Vec<(String, ActionSet)>,
}

/// The actions on one collection.
#[derive(Clone, Debug)]
struct OfCollection {
    database: String,
    collection: String,
    actions: ActionSet,
}

impl Named {
    fn get(&self, name: &str) -> Option<&ActionSet> {
        let at = self.rows.binary_search_by(|(have, _)| have.as_str().cmp(name)).ok()?;
        Some(&self.rows[at].1)
    }

    fn allows(&self, action: Action, name: &str) -> bool {
        self.get(name).is_some_and(|actions| actions.contains(action))
    }

    fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    fn add(&mut self, name: &str, actions: &ActionSet) {
        match self.rows.binary_search_by(|(have, _)| have.as_str().cmp(name)) {
            Ok(at) => self.rows[at].1.insert_all(actions),
            Err(at) => self.rows.insert(at, (name.to_owned(), *actions)),
        }
    }
}

impl OfCollection {
    fn order(&self, database: &str, collection: &str) -> Ordering {
        self.collection.as_str().cmp(collection).then_with(|| self.database.as_str().cmp(database))
    }
}

fn find<'r>(rows: &'r [OfCollection], database: &str, collection: &str) -> Option<&'r ActionSet> {
    let at = rows.binary_search_by(|row| row.order(database, collection)).ok()?;
    Some(&rows[at].actions)
}

fn add(rows: &mut Vec<OfCollection>, database: &str, collection: &str, actions: &ActionSet) {
    match rows.binary_search_by(|row| row.order(database, collection)) {
        Ok(at) => rows[at].actions.insert_all(actions),
        Err(at) => {
            let (database, collection) = (database.to_owned(), collection.to_owned());
            rows.insert(at, OfCollection { database, collection, actions: *actions });
        }
    }
}

/// Whether `Normal` covers a database.
fn is_normal(database: &str) -> bool {
    database != "local" && database != "config"
}

/// Whether privileges on a database do not cover a collection of it.
fn is_system(database: &str, collection: &str) -> bool {
    collection.starts_with("system.") || (database == "local" && collection.starts_with("replset."))
}

impl Authority {
    /// The authority of these privileges.
    pub fn new(privileges: &PrivilegeList) -> Authority {
        let mut authority = Authority::default();
        for privilege in privileges.iter() {
            authority.add(&privilege.resource, &privilege.actions);
        }
        authority
    }

    /// Adds the privileges of a further user.
    pub fn add_all(&mut self, privileges: &PrivilegeList) {
        for privilege in privileges.iter() {
            self.add(&privilege.resource, &privilege.actions);
        }
    }

    fn add(&mut self, resource: &Resource, actions: &ActionSet) {
        match resource {
            Resource::Any => self.any.insert_all(actions),
            Resource::Cluster => self.cluster.insert_all(actions),
            Resource::Normal => self.normal.insert_all(actions),
            Resource::Database(database) => self.databases.add(database, actions),
            Resource::CollectionName(name) => self.collection_names.add(name, actions),
            Resource::Collection { database, collection } => {
                add(&mut self.collections, database, collection, actions);
            }
            Resource::Buckets { database, collection } => match (database, collection) {
                (None, None) => self.all_buckets.insert_all(actions),
                (Some(database), None) => self.databases_buckets.add(database, actions),
                (None, Some(name)) => self.names_buckets.add(name, actions),
                (Some(database), Some(name)) => add(&mut self.buckets, database, name, actions),
            },
        }
    }

    /// Whether an action on a target is allowed.
    #[inline]
    pub fn allows(&self, action: Action, target: Target<'_>) -> bool {
        let allows = |actions: &ActionSet| actions.contains(action);
        match target {
            Target::Cluster => allows(&self.cluster) || allows(&self.any),
            Target::Normal => allows(&self.normal) || allows(&self.any),
            Target::Database(database) => self.covering_database(database).any(allows),
            Target::Collection { database, collection } => {
                // By far the most common answer first.
                let is_plain = !is_system(database, collection);
                (is_plain && self.databases.allows(action, database))
                    || self.covering_collection(database, collection).any(allows)
            }
        }
    }

    /// Whether all actions of a set are allowed on a target, each by any resource that covers it.
    pub fn allows_all(&self, actions: &ActionSet, target: Target<'_>) -> bool {
        self.actions_on(target).contains_all(actions)
    }

    /// Whether any action on a target is allowed.
    pub fn allows_any_action(&self, target: Target<'_>) -> bool {
        !self.actions_on(target).is_empty()
    }

    /// All actions that are allowed on a target.
    pub fn actions_on(&self, target: Target<'_>) -> ActionSet {
        let mut all = self.any;
        let mut add = |actions: &ActionSet| all.insert_all(actions);
        match target {
            Target::Cluster => add(&self.cluster),
            Target::Normal => add(&self.normal),
            Target::Database(database) => self.covering_database(database).for_each(add),
            Target::Collection { database, collection } => {
                self.covering_collection(database, collection).for_each(add);
            }
        }
        all
    }

    /// Whether any action is allowed on anything in a database: such a database may be known to the client.
    pub fn reaches_database(&self, database: &str) -> bool {
        let is_in = |row: &OfCollection| row.database == database;
        !self.any.is_empty()
            || !self.all_buckets.is_empty()
            || (is_normal(database) && !self.normal.is_empty())
            || self.databases.has(database)
            || self.databases_buckets.has(database)
            || !self.collection_names.rows.is_empty()
            || !self.names_buckets.rows.is_empty()
            || self.collections.iter().any(is_in)
            || self.buckets.iter().any(is_in)
    }

    fn covering_database<'a>(&'a self, database: &str) -> impl Iterator<Item = &'a ActionSet> + use<'a> {
        let normal = is_normal(database).then_some(&self.normal);
        [self.databases.get(database), normal, Some(&self.any)].into_iter().flatten()
    }

    fn covering_collection<'a>(
        &'a self,
        database: &str,
        collection: &str,
    ) -> impl Iterator<Item = &'a ActionSet> + use<'a> {
        let is_plain = !is_system(database, collection);
        let series = collection.strip_prefix(BUCKETS_PREFIX);
        [
            if is_plain { self.databases.get(database) } else { None },
            (is_plain && is_normal(database)).then_some(&self.normal),
            Some(&self.any),
            find(&self.collections, database, collection),
            self.collection_names.get(collection),
            series.map(|_| &self.all_buckets),
            series.and_then(|_| self.databases_buckets.get(database)),
            series.and_then(|series| self.names_buckets.get(series)),
            series.and_then(|series| find(&self.buckets, database, series)),
        ]
        .into_iter()
        .flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Privilege, RoleName, role};

    fn of_roles(roles: &[(&str, &str)]) -> Authority {
        let names: Vec<RoleName> =
            roles.iter().map(|(name, database)| RoleName::new(*name, *database)).collect();
        let resolved = role::resolve(&names, |_| Ok::<_, std::convert::Infallible>(None));
        let Ok(resolved) = resolved;
        Authority::new(&resolved.privileges)
    }

    fn collection<'a>(database: &'a str, collection: &'a str) -> Target<'a> {
        Target::Collection { database, collection }
    }

    #[test]
    fn a_reader_reads_its_database_and_no_system_collection() {
        let reader = of_roles(&[("read", "test")]);
        assert!(reader.allows(Action::Find, collection("test", "c")));
        assert!(reader.allows(Action::Find, collection("test", "system.js")));
        assert!(!reader.allows(Action::Find, collection("test", "system.profile")));
        assert!(!reader.allows(Action::Find, collection("test2", "c")));
        assert!(!reader.allows(Action::Find, collection("tes", "c")));
        assert!(!reader.allows(Action::Insert, collection("test", "c")));
        assert!(reader.allows(Action::ListCollections, Target::Database("test")));
        assert!(!reader.allows(Action::ListDatabases, Target::Cluster));
        assert!(reader.reaches_database("test") && !reader.reaches_database("x"));
    }

    #[test]
    fn normal_databases_are_all_but_local_and_config() {
        let reader = of_roles(&[("readAnyDatabase", "admin")]);
        assert!(reader.allows(Action::Find, collection("admin", "c")));
        assert!(!reader.allows(Action::Find, collection("config", "c")));
        assert!(!reader.allows(Action::Find, collection("admin", "system.users")));
        assert!(!reader.allows(Action::DbStats, Target::Database("local")));
        assert!(reader.allows(Action::DbStats, Target::Database("admin")));
        assert!(reader.allows(Action::Find, collection("x", "system.buckets.c")));
        assert!(reader.allows(Action::ListDatabases, Target::Cluster));
        assert!(
            reader.allows(Action::Find, Target::Normal) && !reader.allows(Action::Insert, Target::Normal)
        );
        let of_local = of_roles(&[("readWrite", "local")]);
        assert!(of_local.allows(Action::Insert, collection("local", "c")));
        assert!(!of_local.allows(Action::Insert, collection("local", "replset.minvalid")));
        assert!(of_roles(&[("__system", "admin")]).allows(Action::Internal, Target::Cluster));
    }

    #[test]
    fn the_rights_of_several_resources_come_together() {
        let privileges = [
            (Resource::Cluster, Action::Inprog),
            (Resource::CollectionName("c".to_owned()), Action::Insert),
            (Resource::Collection { database: "d".to_owned(), collection: "c".to_owned() }, Action::Update),
            (Resource::Buckets { database: None, collection: Some("s".to_owned()) }, Action::Find),
            (Resource::Buckets { database: Some("d".to_owned()), collection: None }, Action::Insert),
        ];
        let list: PrivilegeList = privileges
            .map(|(resource, action)| Privilege { resource, actions: ActionSet::of(&[action]) })
            .into_iter()
            .collect();
        let authority = Authority::new(&list);
        let both = ActionSet::of(&[Action::Insert, Action::Update]);
        assert!(authority.allows_all(&both, collection("d", "c")));
        assert!(!authority.allows_all(&both, collection("e", "c")));
        assert!(authority.allows_any_action(collection("e", "c")));
        assert!(!authority.allows_any_action(collection("d", "x")));
        assert!(authority.allows(Action::Inprog, Target::Cluster));
        assert!(!authority.allows(Action::Find, collection("d", "system.buckets.c")));
        assert!(authority.allows(Action::Find, collection("e", "system.buckets.s")));
        let both = ActionSet::of(&[Action::Insert, Action::Find]);
        assert!(authority.allows_all(&both, collection("d", "system.buckets.s")));
        assert!(!authority.allows(Action::Find, collection("d", "s")));
    }
}
