//! Flags of a collection and of its indexes, logged before they are raised.
//!
//! A flag says that an index met an array, or that a key was too long and was cut. Plans depend on it, so it
//! must be in the catalog tree before the document that raises it.
//!
//! 1. Take the catalog's mutex, and look whether another statement has raised the flag meanwhile.
//! 2. Commit the entry with the flag, in a transaction of its own and without waiting for the device.
//! 3. Raise the flag in memory.
//!
//! A collection that an open transaction creates has no entry yet. The commit of that transaction writes the
//! entry with the flags that are raised by then.
//!
//! In a store that several servers share, the entry in the tree is read first: it may have flags of others.
//! The statement goes on when all of them have seen the flag (`sharing`), because their readers plan by it as
//! well. A statement that finds the flag raised waits for the same.
//!
//! Invariant: commits survive a crash in their order, so the entry survives if the document does.

use std::sync::atomic::Ordering;

use pando_storage::{Begin, BlockingMode, Durability, ErrorKind, StorageError};

use crate::catalog_entry::{self, Raising};
use crate::collection::Collection;
use crate::index::Index;
use crate::index_description::{RaisedFlags, Truncation};

impl Collection {
    /// Logs flags that a document is about to raise in an index, then raises them.
    pub(crate) fn log_index_flags(&self, index: &Index, flags: &RaisedFlags) -> Result<(), StorageError> {
        {
            let _changing = self.store.changing.lock();
            if index.lacks(flags) {
                self.log_entry(self.primary_truncation(), Some((index.name(), flags)))?;
                index.raise(flags);
            }
        }
        self.wait_for_flags()
    }

    /// Logs that a primary key was too long and is cut, then remembers it.
    pub(crate) fn log_primary_truncated(&self) -> Result<(), StorageError> {
        if !self.is_primary_truncated() {
            let _changing = self.store.changing.lock();
            if !self.is_primary_truncated() {
                self.log_entry(Truncation::Truncated, None)?;
                self.raise_primary_truncated();
            }
        }
        self.wait_for_flags()
    }

    /// Waits, in a shared store, until all servers have seen the flags that are raised here.
    pub(crate) fn wait_for_flags(&self) -> Result<(), StorageError> {
        match self.sharing() {
            None => Ok(()),
            Some(sharing) => sharing.wait_until_seen(self.flags_version().load(Ordering::Acquire)),
        }
    }

    /// Commits the collection's entry as it will be when the flags are raised.
    fn log_entry(&self, id_truncated: Truncation, raising: Raising<'_>) -> Result<(), StorageError> {
        if self.is_entry_pending() {
            return Ok(());
        }
        if self.sharing().is_some() {
            return self.log_shared_entry(id_truncated, raising);
        }
        let entry = catalog_entry::encode(self, id_truncated, raising);
        let mut transaction = self.store.engine.begin(Begin::WRITE)?;
        transaction.put(self.store.tree, &catalog_entry::key_of(self.full_name()), entry.as_bytes())?;
        transaction.commit(Durability::None)?;
        Ok(())
    }

    /// The same in a shared store, over the flags that others have logged.
    ///
    /// # Errors
    /// A conflict where another server has changed the collection: this one has been held for dead.
    fn log_shared_entry(&self, id_truncated: Truncation, raising: Raising<'_>) -> Result<(), StorageError> {
        let Some(sharing) = self.sharing() else { return Ok(()) };
        let (tree, key) = (self.store.tree, catalog_entry::key_of(self.full_name()));
        let version = sharing.change(|transaction| {
            let stored = transaction.get(tree, &key, BlockingMode::MayBlock)?;
            let Some(stored) = stored else { return Ok(None) };
            let stored = catalog_entry::decode(self.full_name(), &stored, &*self.store.factory);
            let stored = stored.map_err(|error| StorageError::new(ErrorKind::Corrupt, error.to_string()))?;
            if !self.is_described_by(&stored) {
                return Ok(None);
            }
            self.raise_flags_of(&stored);
            let id_truncated = if self.is_primary_truncated() { Truncation::Truncated } else { id_truncated };
            let entry = catalog_entry::encode(self, id_truncated, raising);
            transaction.put(tree, &key, entry.as_bytes())?;
            sharing.count_change(transaction).map(Some)
        })?;
        self.flags_logged(version.ok_or_else(StorageError::conflict)?);
        Ok(())
    }
}
