//! The definitions of views: documents of the collection `system.views` of each database.
//!
//! ```text
//! { _id: "database.view", viewOn: "collection", pipeline: [ … ] }
//! ```
//!
//! MongoDB keeps its views in the same form, so that tools which read `system.views` find them.
//!
//! # Invariants
//! A name belongs to a collection or to a view. A view is written under the catalog's mutex. Each change that
//! gives a name to a collection looks for a view under the same mutex.
//!
//! # Not here
//! The meaning of a definition, and the search for cycles (`commands`).

use pando_document::{RawDocument, RawDocumentBuf, RawValue};
use pando_storage::{Begin, BlockingMode, Bytes, Caller, CommitReceipt, Durability, Operation, Transaction};

use super::{Catalog, Lease, count_change, has_changed};
use crate::collection::Collection;
use crate::error::{CatalogError, WriteError};
use crate::namespace::Namespace;

/// The name of the collection of definitions.
pub const VIEWS_COLLECTION: &str = "system.views";

/// The definition of a view in a collection of definitions.
///
/// # Errors
/// Repeatable after `WouldBlock`.
pub fn view_definition(
    definitions: &Collection,
    view: &str,
    transaction: &dyn Transaction,
    blocking: BlockingMode,
) -> Result<Option<Bytes>, pando_storage::StorageError> {
    let name = format!("{}.{view}", definitions.namespace().database());
    definitions.fetch_by_id(transaction, &definitions.id_key(RawValue::String(&name)), blocking)
}

/// A write of a definition.
pub struct ViewChange<'a> {
    /// The name of the view.
    pub view: &'a Namespace,
    /// Its new definition; `None` removes it.
    pub definition: Option<&'a RawDocument>,
    /// The identity of the collection of definitions, where there is none yet.
    pub new_uuid: [u8; 16],
    /// How durable the commit is.
    pub durability: Durability,
}

impl Catalog {
    /// Whether there is a view of this name now. Blocks.
    pub(crate) fn has_view(&self, namespace: &Namespace) -> Result<bool, CatalogError> {
        let Some(definitions) = self.collection(namespace.database(), VIEWS_COLLECTION) else {
            return Ok(false);
        };
        let reader = self.begin(Begin::READ)?;
        let found = view_definition(&definitions, namespace.collection(), &*reader, BlockingMode::MayBlock)?;
        reader.rollback();
        Ok(found.is_some())
    }

    /// Writes or removes the definition of a view. Gives `None` where there was none to remove. Blocks.
    ///
    /// # Errors
    /// `CollectionExists` where a collection has the name.
    pub fn change_view(
        &self,
        change: &ViewChange<'_>,
        operation: &Operation,
    ) -> Result<Option<CommitReceipt>, CatalogError> {
        let ViewChange { view, definition, .. } = change;
        if definition.is_some() {
            view.check_writable()?;
            self.create_definitions(view.database(), change.new_uuid)?;
        }
        let caller = Caller::may_block(operation);
        let Some(lease) = self.lease(view.database(), VIEWS_COLLECTION, caller)? else { return Ok(None) };
        self.changing(|| self.commit_view(change, &lease))
    }

    /// Writes or removes a definition. The caller holds the catalog's mutex.
    fn commit_view(
        &self,
        change: &ViewChange<'_>,
        lease: &Lease,
    ) -> Result<Option<CommitReceipt>, CatalogError> {
        let ViewChange { view, definition, .. } = change;
        if definition.is_some() && self.collection(view.database(), view.collection()).is_some() {
            return Err(CatalogError::CollectionExists { namespace: view.to_string() });
        }
        let mut transaction = self.begin_write()?;
        let blocking = BlockingMode::MayBlock;
        let id = lease.id_key(RawValue::String(&view.to_string()));
        let key = lease.locate(&*transaction, &id, blocking)?;
        let old = match &key {
            Some(key) => lease.fetch(&*transaction, key, blocking)?,
            None => None,
        };
        match (key.zip(old), definition) {
            (Some((key, old)), Some(new)) => {
                let old = RawDocument::from_bytes(&old).map_err(WriteError::from)?;
                lease.replace(&mut transaction, &key, old, new, blocking)?;
            }
            (None, Some(new)) => lease.insert(&mut transaction, new, blocking)?,
            (Some((key, old)), None) => {
                let old = RawDocument::from_bytes(&old).map_err(WriteError::from)?;
                lease.remove(&mut transaction, &key, old, blocking)?;
            }
            (None, None) => return Ok(None),
        }
        // A collection of the same name that another server creates conflicts with this.
        let version = count_change(self.store(), transaction.engine(), std::iter::empty())?;
        let receipt = transaction.commit(change.durability)?;
        has_changed(self.store(), version);
        Ok(Some(receipt))
    }

    /// Creates the collection of definitions, unless it is there.
    fn create_definitions(&self, database: &str, uuid: [u8; 16]) -> Result<(), CatalogError> {
        if self.collection(database, VIEWS_COLLECTION).is_some() {
            return Ok(());
        }
        let namespace = Namespace::new(database, VIEWS_COLLECTION)?;
        match self.create_collection_of_server(&namespace, RawDocumentBuf::new(), uuid) {
            Ok(_) | Err(CatalogError::CollectionExists { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pando_document::doc;
    use pando_environment::Environment;
    use pando_storage::SharedEngine;

    use super::*;

    fn catalog() -> Catalog {
        let engine: SharedEngine = Arc::new(pando_memory::MemoryEngine::new(&Environment::real()));
        Catalog::open(engine).unwrap()
    }

    fn change(catalog: &Catalog, view: &str, definition: Option<&RawDocument>) -> Result<bool, CatalogError> {
        let view = Namespace::new("d", view).unwrap();
        let change =
            ViewChange { view: &view, definition, new_uuid: [1; 16], durability: Durability::Logged };
        catalog.change_view(&change, &Operation::default()).map(|receipt| receipt.is_some())
    }

    #[test]
    fn a_name_belongs_to_a_view_or_to_a_collection() {
        let catalog = catalog();
        let definition = doc! { "_id": "d.v", "viewOn": "c", "pipeline": [] }.to_raw();
        assert!(change(&catalog, "v", Some(&definition)).unwrap());
        let namespace = Namespace::new("d", "v").unwrap();
        assert!(catalog.has_view(&namespace).unwrap());
        let refused = catalog.create_collection(&namespace, RawDocumentBuf::new(), [2; 16]);
        assert!(matches!(refused, Err(CatalogError::CollectionExists { .. })));
        assert!(change(&catalog, "v", None).unwrap());
        assert!(!change(&catalog, "v", None).unwrap());
        catalog.create_collection(&namespace, RawDocumentBuf::new(), [2; 16]).unwrap();
        let refused = change(&catalog, "v", Some(&definition));
        assert!(matches!(refused, Err(CatalogError::CollectionExists { .. })));
    }

    #[test]
    fn a_view_that_comes_first_keeps_its_name() {
        let catalog = catalog();
        let operation = Operation::default();
        let (view, other) = (Namespace::new("d", "v").unwrap(), Namespace::new("d", "c").unwrap());
        catalog.create_collection(&other, RawDocumentBuf::new(), [2; 16]).unwrap();
        let mut transaction = catalog.begin_session_transaction().unwrap();
        transaction.create_collection(&catalog, &view, RawDocumentBuf::new(), [3; 16]).unwrap();
        let replacement = catalog.begin_replacement(&view, None, [4; 16]).unwrap();

        let definition = doc! { "_id": "d.v", "viewOn": "c", "pipeline": [] }.to_raw();
        assert!(change(&catalog, "v", Some(&definition)).unwrap());

        let renamed = catalog.rename_collection(&other, &view, &operation);
        assert!(matches!(renamed, Err(CatalogError::CollectionExists { .. })));
        let loaded = replacement.finish(&catalog, &operation).unwrap();
        let replaced = catalog.publish_replacement(loaded, None, &operation, &|_| {});
        assert!(matches!(replaced, Err(CatalogError::CollectionChanged { .. })));
        let leases = transaction.commit_leases(&catalog, Caller::may_block(&operation)).unwrap();
        let committed = transaction.commit(&catalog, leases, Durability::Logged);
        assert!(matches!(committed, Err(CatalogError::Storage(error)) if error.is_conflict()));
        assert!(catalog.collection("d", "v").is_none() && catalog.has_view(&view).unwrap());
    }

    #[test]
    fn a_definition_is_replaced() {
        let catalog = catalog();
        for on in ["c", "e"] {
            let definition = doc! { "_id": "d.v", "viewOn": on, "pipeline": [] }.to_raw();
            assert!(change(&catalog, "v", Some(&definition)).unwrap());
            let definitions = catalog.collection("d", VIEWS_COLLECTION).unwrap();
            let reader = catalog.begin(Begin::READ).unwrap();
            let found = view_definition(&definitions, "v", &*reader, BlockingMode::MayBlock).unwrap();
            assert_eq!(found.as_deref(), Some(definition.as_bytes()));
        }
    }
}
