//! Reading the stored users and roles. All of it blocks.

use std::sync::Arc;

use pando_access::{RoleName, UserName};
use pando_catalog::{Begin, BlockingMode, Catalog, Collection, Direction, KeyRange};
use pando_document::{RawDocument, RawDocumentBuf, RawValue};

use super::{RoleRecord, UserRecord};
use crate::CommandError;

/// The database of both collections.
pub(crate) const DATABASE: &str = "admin";
/// The users.
pub(crate) const USERS: &str = "system.users";
/// The roles that are not built in.
pub(crate) const ROLES: &str = "system.roles";

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
