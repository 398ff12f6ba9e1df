//! A change of the catalog tree: entries and counters in one commit, which other servers of a shared store
//! notice.

use std::sync::Arc;

use pando_storage::{Begin, CommitTimestamp, Durability, StorageError, Transaction};

use super::put_entry;
use crate::catalog_entry;
use crate::collection::Collection;
use crate::counters::CounterChange;
use crate::namespace::Namespace;
use crate::store::Store;

/// A change of the catalog tree, and of counters with it.
#[derive(Clone, Copy)]
pub(super) struct EntryChange<'c> {
    /// Collections that lose their entries.
    pub gone: &'c [&'c Namespace],
    /// Collections with new entries.
    pub come: &'c [&'c Arc<Collection>],
    pub counters: &'c [CounterChange],
}

/// Makes a change in one transaction. Blocks until it is durable.
pub(super) fn commit_entries(
    store: &Store,
    change: EntryChange<'_>,
) -> Result<CommitTimestamp, StorageError> {
    let mut transaction = store.engine.begin(Begin::WRITE)?;
    for namespace in change.gone {
        transaction.delete(store.tree, &catalog_entry::key_of(&namespace.to_string()))?;
    }
    for collection in change.come {
        put_entry(store, &mut *transaction, collection)?;
    }
    for counter in change.counters {
        counter.make(&mut *transaction, store.counters)?;
    }
    let namespaces = change.gone.iter().copied().chain(change.come.iter().map(|come| come.namespace()));
    let version = count_change(store, &mut *transaction, namespaces)?;
    let receipt = transaction.commit(Durability::Logged)?;
    has_changed(store, version);
    store.engine.wait_durable(receipt, Durability::Synced)?;
    Ok(receipt.timestamp)
}

/// Prepares the commit of a change of the catalog tree for other servers of a shared store: it conflicts with
/// their changes, and with the removal of the barriers before these collections. Gives the version that it
/// makes. The caller holds the catalog's mutex.
pub(crate) fn count_change<'n>(
    store: &Store,
    transaction: &mut dyn Transaction,
    namespaces: impl Iterator<Item = &'n Namespace>,
) -> Result<Option<u64>, StorageError> {
    let Some(sharing) = &store.sharing else { return Ok(None) };
    let version = sharing.count_change_of_seen(transaction)?;
    for namespace in namespaces {
        sharing.hold(transaction, &namespace.to_string())?;
    }
    Ok(Some(version))
}

/// The change has committed. The caller shows it before it lets go of the catalog's mutex.
pub(crate) fn has_changed(store: &Store, version: Option<u64>) {
    if let (Some(sharing), Some(version)) = (&store.sharing, version) {
        sharing.set_seen(version);
    }
}
