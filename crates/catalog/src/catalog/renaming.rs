//! Renames: a collection gets another name in one commit, and takes the place of the one that has it.
//!
//! # Steps
//! 1. Both collections are taken alone, in the order of their names.
//! 2. One transaction removes the old entry and writes the new one over that of the replaced collection.
//! 3. The trees of the replaced collection are dropped.
//!
//! A crash leaves either both collections as they were or the rename done.

use std::sync::Arc;

use pando_storage::Operation;

use super::{Catalog, EntryChange, Exclusive, commit_entries};
use crate::collection::{Collection, Parts};
use crate::counters::{CounterChange, partition_number};
use crate::error::CatalogError;
use crate::namespace::Namespace;

/// A rename.
pub struct Renaming<'r> {
    /// The name now.
    pub from: &'r Namespace,
    /// The name afterwards.
    pub to: &'r Namespace,
    /// A new identity, where it does not keep its own.
    pub uuid: Option<[u8; 16]>,
    /// The treatment of a collection that has the new name.
    pub taken: TakenName,
}

/// The treatment of a collection that has the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakenName {
    /// It stays, and the rename is refused.
    Refused,
    /// It is dropped in the same commit.
    Replaced,
}

impl Catalog {
    /// Gives a collection another name. `CollectionExists` where that is taken.
    pub fn rename_collection(
        &self,
        from: &Namespace,
        to: &Namespace,
        operation: &Operation,
    ) -> Result<(), CatalogError> {
        let renaming = Renaming { from, to, uuid: None, taken: TakenName::Refused };
        self.rename(&renaming, operation, &|_| {}).map(|_| ())
    }

    /// Renames a collection. Gives the one that it has replaced. `end_users` asks the statements that use
    /// that one to end, as in [`drop_collection`](Catalog::drop_collection). Blocks.
    ///
    /// # Errors
    /// Among others, the new name is taken, and the other collection stays.
    pub fn rename(
        &self,
        renaming: &Renaming<'_>,
        operation: &Operation,
        end_users: &dyn Fn(&Collection),
    ) -> Result<Option<Arc<Collection>>, CatalogError> {
        let Renaming { from, to, uuid, taken } = renaming;
        to.check_writable()?;
        let target = |catalog: &Catalog| match catalog.exclusive_after(to, operation, end_users) {
            Ok(alone) => Ok(Some(alone)),
            Err(CatalogError::CollectionNotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        };
        let is_first = *taken == TakenName::Replaced && to.to_string() < from.to_string();
        let before = if is_first { target(self)? } else { None };
        let alone = self.exclusive(from, operation)?;
        let replaced = match (*taken, is_first) {
            (TakenName::Refused, _) => None,
            (TakenName::Replaced, true) => before,
            (TakenName::Replaced, false) => target(self)?,
        };
        let busy = [Some(&alone), replaced.as_ref()];
        if let Some(busy) = busy.into_iter().flatten().find(|alone| !alone.collection.building().is_empty()) {
            let namespace = busy.collection.full_name().to_owned();
            return Err(CatalogError::IndexBuildRunning { namespace });
        }
        let parts = Parts { namespace: (*to).clone(), ..alone.collection.parts() };
        let parts = Parts { uuid: uuid.unwrap_or(parts.uuid), ..parts };
        self.commit_rename(from, parts, replaced.as_ref())?;
        let Some(replaced) = replaced else { return Ok(None) };
        self.drop_replaced(&replaced.collection, end_users);
        Ok(Some(replaced.collection))
    }

    fn commit_rename(
        &self,
        from: &Namespace,
        parts: Parts,
        replaced: Option<&Exclusive>,
    ) -> Result<(), CatalogError> {
        let to = parts.namespace.clone();
        let renamed = Arc::new(Collection::new(parts, Arc::clone(&self.store)));
        let counters = replaced.map(|replaced| forgotten(&replaced.collection)).unwrap_or_default();
        self.changing(|| {
            self.check_case(to.database())?;
            let now = self.collection(to.database(), to.collection());
            let is_as_taken = match (&now, replaced) {
                (None, None) => true,
                (Some(now), Some(replaced)) => Arc::ptr_eq(now, &replaced.collection),
                _ => false,
            };
            if !is_as_taken || self.has_view(&to)? {
                return Err(CatalogError::CollectionExists { namespace: to.to_string() });
            }
            let change = EntryChange { gone: &[from], come: &[&renamed], counters: &counters };
            commit_entries(&self.store, change)?;
            self.swap(&[from], &[&renamed]);
            Ok(())
        })
    }

    /// Ends the users of a collection whose entry is gone, and drops its trees. A tree that cannot be dropped
    /// is left until the next start.
    pub(crate) fn drop_replaced(&self, replaced: &Collection, end_users: &dyn Fn(&Collection)) {
        end_users(replaced);
        for tree in replaced.trees() {
            if let Err(error) = self.drop_tree(tree) {
                tracing::warn!(%tree, %error, "a tree of a replaced collection is left until the next start");
            }
        }
    }
}

/// The end of the counters of a collection.
pub(crate) fn forgotten(collection: &Collection) -> Vec<CounterChange> {
    let indexes = collection.indexes().iter();
    let mut changes: Vec<_> = indexes.map(|index| CounterChange::ForgetIndex(index.number())).collect();
    changes.push(CounterChange::ForgetCollection(collection.number()));
    let partitions = collection.partitions().unwrap_or_default().into_iter();
    changes.extend(partitions.map(|partition| {
        CounterChange::ForgetPartition(partition_number(collection.number(), partition.id))
    }));
    changes
}
