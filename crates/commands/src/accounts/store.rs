//! Reading the stored users and roles. All of it blocks.

use std::sync::Arc;

use pando_access::{RoleName, UserName};
use pando_catalog::{Begin, BlockingMode, Catalog, Collection, Direction, KeyRange, Operation};
use pando_document::{RawDocument, RawDocumentBuf, RawValue};
use pando_query::QueryError;

use super::{RoleRecord, UserRecord};
use crate::CommandError;

/// The database of both collections.
pub(crate) const DATABASE: &str = "admin";
/// The users.
pub(crate) const USERS: &str = "system.users";
/// The roles that are not built in.
pub(crate) const ROLES: &str = "system.roles";

/// The version of their schema, which tools read before they carry users and roles.
pub(crate) const VERSIONS: &str = "system.version";
/// The document with the version.
pub(crate) const SCHEMA_KEY: &str = "authSchema";
/// The version: that of MongoDB since 3.0.
pub(crate) const SCHEMA_VERSION: i32 = 5;

/// Whether a collection is one of the two.
pub(crate) fn has(database: &str, collection: &str) -> bool {
    database == DATABASE && matches!(collection, USERS | ROLES)
}

fn collection(catalog: &Catalog, name: &str) -> Option<Arc<Collection>> {
    catalog.collection(DATABASE, name)
}

/// The document with this `_id`.
pub(crate) fn document(
    catalog: &Catalog,
    name: &str,
    key: &str,
) -> Result<Option<RawDocumentBuf>, CommandError> {
    let Some(collection) = collection(catalog, name) else { return Ok(None) };
    let reader = catalog.begin(Begin::READ)?;
    let key = collection.id_key(RawValue::String(key));
    let found = collection.fetch_by_id(&*reader, &key, BlockingMode::MayBlock)?;
    reader.rollback();
    Ok(found.map(|found| RawDocument::from_bytes(&found).map(RawDocument::to_owned)).transpose()?)
}

/// A user. A document that is none of a user counts as none.
pub(crate) fn user(catalog: &Catalog, name: &UserName) -> Result<Option<UserRecord>, CommandError> {
    let Some(found) = document(catalog, USERS, &UserRecord::key(name))? else { return Ok(None) };
    Ok(UserRecord::read(&found)?.filter(|record| record.name == *name))
}

/// A role that is not built in.
pub(crate) fn role(catalog: &Catalog, name: &RoleName) -> Result<Option<RoleRecord>, CommandError> {
    let Some(found) = document(catalog, ROLES, &RoleRecord::key(name))? else { return Ok(None) };
    Ok(RoleRecord::read(&found)?.filter(|record| record.name == *name))
}

/// All documents of one of the two collections, in the order of their `_id`, which stands before each.
pub(crate) fn all(
    catalog: &Catalog,
    name: &str,
    operation: &Operation,
) -> Result<Vec<(String, RawDocumentBuf)>, CommandError> {
    let mut found = Vec::new();
    for document in documents_of(catalog, DATABASE, name, operation)? {
        if let Some(RawValue::String(key)) = document.get("_id")? {
            found.push((key.to_owned(), document.clone()));
        }
    }
    Ok(found)
}

/// All documents of any collection, in the order of its keys.
pub(crate) fn documents_of(
    catalog: &Catalog,
    database: &str,
    name: &str,
    operation: &Operation,
) -> Result<Vec<RawDocumentBuf>, CommandError> {
    let Some(collection) = catalog.collection(database, name) else { return Ok(Vec::new()) };
    let account = catalog.query_memory().account();
    let mut held = account.reserve();
    let (mut found, mut bytes) = (Vec::new(), 0);
    let reader = catalog.begin(Begin::READ)?;
    let mut scan = collection.scan_documents(KeyRange::all(), Direction::Forward);
    while let Some((_, document)) = scan.next(&*reader, BlockingMode::MayBlock)? {
        operation.check().map_err(QueryError::from)?;
        bytes += document.len();
        held.hold(bytes);
        found.push(RawDocument::from_bytes(document)?.to_owned());
    }
    drop(scan);
    reader.rollback();
    Ok(found)
}

/// Whether the document of a user or a role is one of this database.
pub(crate) fn is_of_database(document: &RawDocument, database: &str) -> Result<bool, CommandError> {
    Ok(document.get("db")?.and_then(|value| value.as_str()) == Some(database))
}

/// Whether there are no users and no roles.
pub(crate) fn is_vacant(catalog: &Catalog) -> Result<bool, CommandError> {
    for name in [USERS, ROLES] {
        let Some(collection) = collection(catalog, name) else { continue };
        let reader = catalog.begin(Begin::READ)?;
        let mut scan = collection.scan_documents(KeyRange::all(), Direction::Forward);
        let is_empty = scan.next(&*reader, BlockingMode::MayBlock)?.is_none();
        drop(scan);
        reader.rollback();
        if !is_empty {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The number of the collection of users, if there is one.
pub(crate) fn number_of_users(catalog: &Catalog) -> Option<[u8; 16]> {
    collection(catalog, USERS).map(|collection| collection.uuid())
}
