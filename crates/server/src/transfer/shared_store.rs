//! A store that several parts of a copy use in turn: the thread that reads, and the one that plans and
//! compares.
//!
//! A data folder can be opened only once, so that the handle is shared and not the name.

use std::fmt;
use std::sync::Arc;

use bson::{Document, RawDocumentBuf};
use parking_lot::Mutex;

use super::error::TransferError;
use super::target::{Beside, Target};

/// A handle of an open store; clones are the same store.
#[derive(Clone)]
pub(super) struct SharedStore {
    /// `None` once the store is closed.
    open: Arc<Mutex<Option<Box<dyn Target>>>>,
    /// The name for people.
    place: Arc<str>,
}

impl SharedStore {
    pub(super) fn over(store: Box<dyn Target>, place: &str) -> SharedStore {
        SharedStore { open: Arc::new(Mutex::new(Some(store))), place: place.into() }
    }

    pub(super) fn place(&self) -> &str {
        &self.place
    }

    /// Closes the store for all handles.
    pub(super) fn end(self) -> Result<(), TransferError> {
        let store = self.open.lock().take();
        store.map_or(Ok(()), Target::close)
    }
}

impl Target for SharedStore {
    fn run_raw(
        &mut self,
        database: &str,
        command: Document,
        beside: Option<Beside<'_>>,
    ) -> Result<RawDocumentBuf, TransferError> {
        let mut store = self.open.lock();
        store.as_mut().ok_or(TransferError::Stopped)?.run_raw(database, command, beside)
    }

    /// Gives back this handle. The store stays open for the others until [`SharedStore::end`].
    fn close(self: Box<Self>) -> Result<(), TransferError> {
        Ok(())
    }
}

impl fmt::Debug for SharedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SharedStore").field(&self.place).finish()
    }
}
