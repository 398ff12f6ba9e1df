//! The names of users and roles: a name within a database.

use std::fmt;

use ring::digest::{SHA256, digest};

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

    /// The digest by which the sessions of the user are told from those of others: SHA-256 of
    /// `name@database`, as in MongoDB.
    pub fn digest(&self) -> [u8; 32] {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest(&SHA256, self.to_string().as_bytes()).as_ref());
        bytes
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_of_a_user_is_that_of_mongodb() {
        let digest = UserName::new("p7", "admin").digest();
        assert_eq!(digest[..8], [0xe7, 0xf0, 0xc7, 0x53, 0x92, 0xd9, 0x51, 0x2b]);
    }
}
