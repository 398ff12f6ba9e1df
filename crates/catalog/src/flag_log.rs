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
//! Invariant: commits survive a crash in their order, so the entry survives if the document does.

use pando_storage::{Begin, Durability, StorageError};

use crate::catalog_entry::{self, Raising};
use crate::collection::Collection;
use crate::index::Index;
use crate::index_description::{RaisedFlags, Truncation};

impl Collection {
    /// Logs flags that a document is about to raise in an index, then raises them.
    pub(crate) fn log_index_flags(&self, index: &Index, flags: &RaisedFlags) -> Result<(), StorageError> {
        let _changing = self.store.changing.lock();
        if index.lacks(flags) {
            self.log_entry(self.primary_truncation(), Some((index.name(), flags)))?;
            index.raise(flags);
        }
        Ok(())
    }

    /// Logs that a primary key was too long and is cut, then remembers it.
    pub(crate) fn log_primary_truncated(&self) -> Result<(), StorageError> {
        let _changing = self.store.changing.lock();
        if !self.is_primary_truncated() {
            self.log_entry(Truncation::Truncated, None)?;
            self.raise_primary_truncated();
        }
        Ok(())
    }

    /// Commits the collection's entry as it will be when the flags are raised.
    fn log_entry(&self, id_truncated: Truncation, raising: Raising<'_>) -> Result<(), StorageError> {
        if self.is_entry_pending() {
            return Ok(());
        }
        let entry = catalog_entry::encode(self, id_truncated, raising);
        let mut transaction = self.store.engine.begin(Begin::WRITE)?;
        transaction.put(self.store.tree, &catalog_entry::key_of(self.full_name()), entry.as_bytes())?;
        transaction.commit(Durability::None)?;
        Ok(())
    }
}
