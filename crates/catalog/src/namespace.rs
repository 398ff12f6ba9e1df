//! `database.collection`: the name of a collection, and what may stand in it.

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
    /// Checks both names.
    pub fn new(database: &str, collection: &str) -> Result<Namespace, NameError> {
        check_database(database)?;
        check_collection(database, collection)?;
        Ok(Namespace { database: database.to_owned(), collection: collection.to_owned() })
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

/// What a database may be called.
pub fn check_database(database: &str) -> Result<(), NameError> {
    let bad = database.is_empty()
        || database.len() > DATABASE_BYTES_MAX
        || database.bytes().any(|byte| matches!(byte, 0 | b'/' | b'\\' | b'.' | b' ' | b'"' | b'$'));
    if bad { Err(NameError::Database { name: database.to_owned() }) } else { Ok(()) }
}

/// What a collection may be called.
fn check_collection(database: &str, collection: &str) -> Result<(), NameError> {
    let bad = collection.is_empty()
        || collection.starts_with('.')
        || collection.bytes().any(|byte| byte == 0)
        || (collection.contains('$') && collection != "$cmd");
    if bad {
        return Err(NameError::Collection { namespace: format!("{database}.{collection}") });
    }
    let bytes = database.len() + 1 + collection.len();
    if bytes > NAMESPACE_BYTES_MAX {
        return Err(NameError::TooLong { namespace: format!("{database}.{collection}"), bytes });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_mongodb_refuses_are_refused() {
        for (database, collection) in [
            ("", "c"),
            ("a b", "c"),
            ("a.b", "c"),
            ("a$", "c"),
            ("a", ""),
            ("a", ".c"),
            ("a", "c\0"),
            ("a", "c$d"),
        ] {
            assert!(Namespace::new(database, collection).is_err(), "{database:?} {collection:?}");
        }
        assert!(Namespace::new("a", &"c".repeat(254)).is_err());
        assert!(Namespace::new(&"d".repeat(64), "c").is_err());
    }

    #[test]
    fn dots_inside_a_collection_name_are_part_of_it() {
        let namespace = Namespace::new("test", "fs.chunks").unwrap();
        assert_eq!(namespace.to_string(), "test.fs.chunks");
    }
}
