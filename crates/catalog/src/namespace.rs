//! The name of a collection, `database.collection`, and the rules for it.
//!
//! MongoDB checks names in three steps, each stricter than the one before:
//!
//! 1. A name can be asked for ([`Namespace::new`]): a drop of `a$b` finds no such
//!    collection, which is an answer.
//! 2. A name can be read ([`Namespace::check_readable`]): it has no `$`.
//! 3. A name can be written to, and so created ([`Namespace::check_writable`]): it is not too long. If it
//!    begins with `system.`, it is one of the names that MongoDB gives a meaning.

use std::fmt;

use crate::NameError;

/// Longest `database.collection` in bytes, as MongoDB 6.0 has it.
pub const NAMESPACE_BYTES_MAX: usize = 255;
/// Longest database name in bytes, as MongoDB 6.0 has it.
pub const DATABASE_BYTES_MAX: usize = 63;

/// The name of a collection: its database and its own name, both checked.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Namespace {
    database: String,
    collection: String,
}

impl Namespace {
    /// Checks that both names can be asked for.
    pub fn new(database: &str, collection: &str) -> Result<Namespace, NameError> {
        check_database(database)?;
        if collection.is_empty() {
            return Err(NameError::Empty { namespace: format!("{database}.") });
        }
        if collection.starts_with('.') {
            return Err(NameError::LeadingDot { collection: collection.to_owned() });
        }
        if collection.contains('\0') {
            return Err(NameError::Nul);
        }
        Ok(Namespace { database: database.to_owned(), collection: collection.to_owned() })
    }

    /// Checks that the name can be that of a collection which is read.
    pub fn check_readable(&self) -> Result<(), NameError> {
        if self.database.contains('$') || self.collection.contains('$') {
            return Err(NameError::NotReadable { namespace: self.to_string() });
        }
        Ok(())
    }

    /// Checks that the name can be that of a collection which is written to or created.
    pub fn check_writable(&self) -> Result<(), NameError> {
        if self.database.contains('$') {
            return Err(NameError::DollarInDatabase { namespace: self.to_string() });
        }
        if self.collection.contains('$') {
            return Err(NameError::DollarInCollection { collection: self.collection.clone() });
        }
        let is_of_sessions = self.database == "config" && self.collection == "transactions";
        if is_of_sessions || matches!(self.collection.as_str(), "system.views" | "system.profile") {
            return Err(NameError::KeptByServer { namespace: self.to_string() });
        }
        if self.is_system() && !self.has_meaning() {
            return Err(NameError::System { namespace: self.to_string() });
        }
        let bytes = self.database.len() + 1 + self.collection.len();
        if bytes > NAMESPACE_BYTES_MAX {
            return Err(NameError::TooLong { namespace: self.to_string(), bytes });
        }
        Ok(())
    }

    /// Whether the name begins with `system.`.
    pub fn is_system(&self) -> bool {
        self.collection.starts_with("system.")
    }

    /// Whether it is one of the names beginning with `system.` that MongoDB 6.0 gives a meaning.
    fn has_meaning(&self) -> bool {
        let of_this_database: &[&str] = match self.database.as_str() {
            "admin" => {
                &["system.roles", "system.version", "system.keys", "system.backup_users", "system.new_users"]
            }
            "config" => &["system.sessions", "system.indexBuilds", "system.preimages"],
            "local" => &["system.replset", "system.healthlog"],
            _ => &[],
        };
        let name = self.collection.as_str();
        of_this_database.contains(&name)
            || matches!(name, "system.users" | "system.js")
            || name.starts_with("system.buckets.")
    }

    /// The database.
    pub fn database(&self) -> &str {
        &self.database
    }

    /// The collection's own name.
    pub fn collection(&self) -> &str {
        &self.collection
    }
}

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.database, self.collection)
    }
}

/// Checks the name of a database. A `$` is allowed as far as no collection is written.
pub fn check_database(database: &str) -> Result<(), NameError> {
    let bad = database.is_empty()
        || database.len() > DATABASE_BYTES_MAX
        || database.bytes().any(|byte| matches!(byte, 0 | b'/' | b'\\' | b'.' | b' ' | b'"'));
    if bad { Err(NameError::Database { name: database.to_owned() }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_nobody_can_ask_for_are_refused() {
        for (database, collection) in
            [("", "c"), ("a b", "c"), ("a.b", "c"), ("a", ""), ("a", ".c"), ("a", "c\0")]
        {
            assert!(Namespace::new(database, collection).is_err(), "{database:?} {collection:?}");
        }
        assert!(Namespace::new(&"d".repeat(64), "c").is_err());
    }

    #[test]
    fn a_name_that_may_be_asked_for_cannot_always_be_read_or_written() {
        let named = |collection: &str| Namespace::new("a", collection).unwrap();
        assert!(named("c$d").check_readable().is_err());
        assert!(named("c$d").check_writable().is_err());
        assert!(named("system.x").check_readable().is_ok());
        assert!(named("system.x").check_writable().is_err());
        assert!(named("system.js").check_writable().is_ok());
        assert!(named(&"c".repeat(253)).check_writable().is_ok());
        assert!(named(&"c".repeat(254)).check_writable().is_err());
        assert!(Namespace::new("a$", "c").unwrap().check_writable().is_err());
    }

    #[test]
    fn dots_inside_a_collection_name_are_part_of_it() {
        let namespace = Namespace::new("test", "fs.chunks").unwrap();
        assert_eq!(namespace.to_string(), "test.fs.chunks");
    }
}
