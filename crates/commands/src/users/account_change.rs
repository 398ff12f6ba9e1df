//! Changes of the documents of users and roles.

use pando_catalog::{BlockingMode, CatalogError, Lease, Namespace, StorageError, WriteTransaction};
use pando_document::{Document, RawDocument, RawDocumentBuf, RawValue, doc};

use crate::accounts::store::{self, DATABASE, ROLES, SCHEMA_KEY, SCHEMA_VERSION, USERS, VERSIONS};
use crate::context::Context;
use crate::error::write_failure;
use crate::{CommandError, unit_of_work};

/// The change of one document.
pub(super) struct AccountChange {
    /// The collection: users, roles, or the version of their schema.
    pub collection: &'static str,
    /// The `_id`.
    pub key: String,
    /// The document as it was read; `None` for a new one.
    pub before: Option<RawDocumentBuf>,
    /// The document afterwards; `None` removes it.
    pub after: Option<Document>,
}

impl AccountChange {
    /// The document of a user becomes another one.
    pub fn of_user(key: String, before: RawDocumentBuf, after: Document) -> AccountChange {
        AccountChange { collection: USERS, key, before: Some(before), after: Some(after) }
    }

    /// The document of a role becomes another one.
    pub fn of_role(key: String, before: RawDocumentBuf, after: Document) -> AccountChange {
        AccountChange { collection: ROLES, key, before: Some(before), after: Some(after) }
    }

    /// A document goes.
    pub fn removal(collection: &'static str, key: String, before: RawDocumentBuf) -> AccountChange {
        AccountChange { collection, key, before: Some(before), after: None }
    }
}

/// Has `decide` read users and roles, and writes the changes that it gives, all or none. One change of users
/// or roles at a time. Where a document has changed meanwhile all the same, because a client wrote to the
/// collection itself, `decide` is called again.
pub(super) fn carry_out<T>(
    context: &mut Context<'_>,
    mut decide: impl FnMut(&Context<'_>) -> Result<(Vec<AccountChange>, T), CommandError>,
) -> Result<T, CommandError> {
    context.require_may_block()?;
    context.note_account_change();
    let shared = context.shared;
    let _turn = shared.access.turn.lock();
    unit_of_work::run(context, |context| {
        let (mut changes, told) = decide(context)?;
        changes.extend(missing_version(context, &changes)?);
        write(context, &changes)?;
        Ok(told)
    })
}

/// The version of the schema, with the first change after which there are users or roles. Without it
/// mongorestore takes the accounts for those of an ancient server.
fn missing_version(
    context: &Context<'_>,
    changes: &[AccountChange],
) -> Result<Option<AccountChange>, CommandError> {
    if changes.is_empty() || store::document(context.catalog(), VERSIONS, SCHEMA_KEY)?.is_some() {
        return Ok(None);
    }
    let mut version = Document::new();
    version.push("_id", SCHEMA_KEY);
    version.push("currentVersion", SCHEMA_VERSION);
    Ok(Some(AccountChange {
        collection: VERSIONS,
        key: SCHEMA_KEY.to_owned(),
        before: None,
        after: Some(version),
    }))
}

fn write(context: &mut Context<'_>, changes: &[AccountChange]) -> Result<(), CommandError> {
    if changes.is_empty() {
        return Ok(());
    }
    let mut leases = Vec::new();
    for name in [USERS, ROLES, VERSIONS] {
        if changes.iter().any(|change| change.collection == name) {
            leases.push((name, lease(context, name)?));
        }
    }
    let mut transaction = context.catalog().begin_write()?;
    for change in changes {
        context.check()?;
        let lease = leases.iter().find(|(name, _)| *name == change.collection);
        let (_, lease) = lease.expect("all collections of the changes were leased");
        write_one(lease, &mut transaction, change)?;
    }
    context.commit(transaction)
}

fn write_one(
    lease: &Lease,
    transaction: &mut WriteTransaction,
    change: &AccountChange,
) -> Result<(), CommandError> {
    const MODE: BlockingMode = BlockingMode::MayBlock;
    let id = lease.id_key(RawValue::String(&change.key));
    let place = lease.locate(&**transaction, &id, MODE)?;
    let stored = match &place {
        Some(place) => lease.fetch(&**transaction, place, MODE)?,
        None => None,
    };
    if stored.as_deref() != change.before.as_ref().map(|before| before.as_bytes()) {
        return Err(StorageError::conflict().into());
    }
    let after = change.after.as_ref().map(Document::to_raw);
    let written = match (place, stored, after) {
        (_, None, None) => Ok(()),
        (_, None, Some(after)) => lease.insert(transaction, &after, MODE),
        (None, Some(_), _) => return Err(StorageError::conflict().into()),
        (Some(place), Some(stored), after) => {
            let stored = RawDocument::from_bytes(&stored)?;
            match after {
                Some(after) => lease.replace(transaction, &place, stored, &after, MODE),
                None => lease.remove(transaction, &place, stored, MODE),
            }
        }
    };
    written.map_err(|error| write_failure(error, lease.full_name()))
}

/// A collection of users, roles or versions. Created with its index if it is not there.
fn lease(context: &Context<'_>, name: &'static str) -> Result<Lease, CommandError> {
    let catalog = context.catalog();
    let namespace = Namespace::new(DATABASE, name)?;
    let leased = || catalog.lease(DATABASE, name, context.caller());
    if let Some(lease) = leased()? {
        return Ok(lease);
    }
    let uuid = context.shared.new_uuid();
    match catalog.create_collection_of_server(&namespace, RawDocumentBuf::new(), uuid) {
        Ok(_) | Err(CatalogError::CollectionExists { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    let field = match name {
        USERS => Some("user"),
        ROLES => Some("role"),
        _ => None,
    };
    if let Some(field) = field {
        let mut key = Document::new();
        key.push(field, 1);
        key.push("db", 1);
        let index = doc! { "v": 2, "key": key, "name": format!("{field}_1_db_1"), "unique": true };
        let description = catalog.describe_index(&index.to_raw())?;
        catalog.create_indexes(&namespace, vec![description], context.operation)?;
    }
    leased()?.ok_or_else(|| CatalogError::CollectionNotFound { namespace: namespace.to_string() }.into())
}
