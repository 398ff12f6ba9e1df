//! Small types of arguments: names, hints, choices.

use std::fmt;

use bson::{Bson, Document};

/// The full name of a collection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Namespace {
    /// The name of its database.
    pub db: String,
    /// Its name in the database.
    pub coll: String,
}

impl Namespace {
    /// A full name of both parts.
    pub fn new(db: impl Into<String>, coll: impl Into<String>) -> Namespace {
        Namespace { db: db.into(), coll: coll.into() }
    }
}

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.db, self.coll)
    }
}

/// The index that a call shall use.
#[derive(Clone, Debug, PartialEq)]
pub enum Hint {
    /// The index with these keys.
    Keys(Document),
    /// The index of this name.
    Name(String),
}

impl From<Document> for Hint {
    fn from(keys: Document) -> Hint {
        Hint::Keys(keys)
    }
}

impl From<&str> for Hint {
    fn from(name: &str) -> Hint {
        Hint::Name(name.to_owned())
    }
}

impl From<String> for Hint {
    fn from(name: String) -> Hint {
        Hint::Name(name)
    }
}

impl From<Hint> for Bson {
    fn from(hint: Hint) -> Bson {
        match hint {
            Hint::Keys(keys) => Bson::Document(keys),
            Hint::Name(name) => Bson::String(name),
        }
    }
}

/// The form of a changed document that a call gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReturnDocument {
    /// As it is after the change.
    After,
    /// As it was before the change.
    Before,
}
