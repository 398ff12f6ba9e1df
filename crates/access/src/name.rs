//! The names of users and roles: a name within a database.

use std::fmt;

/// The name of a user.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UserName {
    /// The database in which it is defined.
    pub database: String,
    /// The name within the database.
    pub name: String,
}

/// The name of a role.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RoleName {
    /// The database in which it is defined.
    pub database: String,
    /// The name within the database.
    pub name: String,
}

impl UserName {
    /// The user of this name in a database.
    pub fn new(name: impl Into<String>, database: impl Into<String>) -> UserName {
        UserName { database: database.into(), name: name.into() }
    }
}

impl RoleName {
    /// The role of this name in a database.
    pub fn new(name: impl Into<String>, database: impl Into<String>) -> RoleName {
        RoleName { database: database.into(), name: name.into() }
    }
}

impl fmt::Display for UserName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.name, self.database)
    }
}

impl fmt::Display for RoleName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.name, self.database)
    }
}
