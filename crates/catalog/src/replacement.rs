//! The replacement of a collection by a loaded one, in one commit: `$out` writes so.
//!
//! # Steps
//! 1. The old collection is taken alone: statements that write to it have ended, and none begins.
//! 2. One transaction writes the entry and the counters of the new collection over those of the old one.
//! 3. When that has committed, the name leads to the new collection. A snapshot taken before finds the old
//!    one, or a new one that is not published for it.
//! 4. When the commit is on the device, the trees of the old collection are dropped.
//!
//! # Invariants
//! - An error before step 3 leaves the old collection as it was, and drops the trees of the new one. Where
//!   the outcome of the commit is unknown, both keep their trees, and the next start drops those of one.
//! - A crash leaves one of the two. The next start drops the trees of the other.

use std::sync::Arc;

use pando_storage::{Durability, Operation};

use crate::bulk_load::LoadedCollection;
use crate::catalog::renaming::forgotten;
use crate::catalog::{Exclusive, count_change, has_changed, put_entry};
use crate::counters::CounterChange;
use crate::{Catalog, CatalogError, Collection};

impl Catalog {
    /// Publishes a load that began as a replacement of `replaced`, as the catalog had it then. Gives the
    /// collection whose place it took. `end_users` asks the statements that use that one to end, as in
    /// [`drop_collection`](Catalog::drop_collection). Blocks until the commit is on the device.
    ///
    /// # Errors
    /// [`CollectionChanged`](CatalogError::CollectionChanged) where the options or the indexes of the old
    /// collection have changed meanwhile; the engine refuses the commit; the operation has to end.
    pub fn publish_replacement(
        &self,
        loaded: LoadedCollection,
        replaced: Option<&Arc<Collection>>,
        operation: &Operation,
        end_users: &dyn Fn(&Collection),
    ) -> Result<Option<Arc<Collection>>, CatalogError> {
        let old = self.alone_for_replacement(&loaded, replaced, operation, end_users)?;
        self.commit_replacement(loaded, old.as_ref().map(|old| &old.collection))?;
        let Some(old) = old else { return Ok(None) };
        self.drop_replaced(&old.collection, end_users);
        Ok(Some(old.collection))
    }

    /// The collection that has the name now, alone, if it still is as it was.
    fn alone_for_replacement(
        &self,
        loaded: &LoadedCollection,
        replaced: Option<&Arc<Collection>>,
        operation: &Operation,
        end_users: &dyn Fn(&Collection),
    ) -> Result<Option<Exclusive>, CatalogError> {
        let changed = || CatalogError::CollectionChanged { namespace: loaded.namespace().to_string() };
        let old = match self.exclusive_after(loaded.namespace(), operation, end_users) {
            Ok(old) => Some(old),
            Err(CatalogError::CollectionNotFound { .. }) => None,
            Err(error) => return Err(error),
        };
        match (&old, replaced) {
            (None, None) => Ok(old),
            (Some(now), Some(then)) if has_shape_of(&now.collection, then) => Ok(old),
            _ => Err(changed()),
        }
    }

    /// Publishes a load in the place of a collection that the caller holds alone.
    pub(crate) fn commit_replacement(
        &self,
        loaded: LoadedCollection,
        old: Option<&Arc<Collection>>,
    ) -> Result<(), CatalogError> {
        let store = self.store();
        let collection = Arc::clone(loaded.collection());
        let receipt = self.changing(|| {
            let namespace = collection.namespace();
            if old.is_none() && (self.existing(namespace).is_ok() || self.has_view(namespace)?) {
                return Err(CatalogError::CollectionChanged { namespace: collection.full_name().to_owned() });
            }
            self.check_case(collection.namespace().database())?;
            let mut transaction = self.begin_write()?;
            loaded.count_in(&mut transaction);
            put_entry(store, transaction.engine(), &collection)?;
            CounterChange::Mark(collection.number()).make(transaction.engine(), store.counters)?;
            if let Some(old) = old {
                for change in forgotten(old) {
                    change.make(transaction.engine(), store.counters)?;
                }
            }
            let version = count_change(store, transaction.engine(), std::iter::once(namespace))?;
            let receipt = transaction.commit(Durability::Logged)?;
            has_changed(store, version);
            collection.entry_committed();
            if let Some(publication) = collection.publication() {
                publication.committed(receipt.timestamp);
            }
            self.swap(&[], &[&collection]);
            Ok(receipt)
        });
        if receipt.as_ref().err().is_none_or(CatalogError::is_undetermined) {
            loaded.into_unpublished().keep_trees();
        }
        let receipt = receipt?;
        store.engine.wait_durable(receipt, Durability::Synced)?;
        Ok(())
    }
}

/// Whether a collection has the options and the indexes that it had, and no index under construction.
fn has_shape_of(now: &Collection, then: &Collection) -> bool {
    let specifications = |collection: &Collection| -> Vec<Vec<u8>> {
        collection.indexes().iter().map(|index| index.specification().as_bytes().to_vec()).collect()
    };
    now.building().is_empty()
        && now.options().as_bytes() == then.options().as_bytes()
        && specifications(now) == specifications(then)
}
