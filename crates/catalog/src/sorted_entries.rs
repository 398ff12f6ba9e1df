//! Sorted entries on their way from a sorter into a new tree: those of an index, in the form of the finished
//! index, or the documents of a collection. A duplicate of a unique key ends them with an error.

use pando_collation::TextOrder;
use pando_document::{RawDocument, RawValue};
use pando_storage::{Engine, ErrorKind, LoadDurability, SortedEntries, Sorter, StorageError, TreeId};

use crate::building::UniqueParts;
use crate::documents::{damaged, duplicate_id, duplicate_key};
use crate::{CatalogError, Index, WriteError};

/// Entries between two checks.
pub(crate) const CHECK_EVERY: u64 = 256;

/// The tree that entries are for.
#[derive(Clone, Copy)]
pub(crate) enum Destination<'d> {
    /// The primary tree of a collection: primary keys and documents. The order is that of strings in the
    /// keys.
    Documents(TreeId, &'d TextOrder),
    /// The tree of an index: entries under construction.
    Index(&'d Index),
}

impl Destination<'_> {
    fn tree(&self) -> TreeId {
        match self {
            Destination::Documents(tree, _) => *tree,
            Destination::Index(index) => index.tree(),
        }
    }
}

/// Fills the empty tree of a destination from a sorter whose input has ended. `check` is called once for
/// every [`CHECK_EVERY`] entries, and its error ends the load.
pub(crate) fn load(
    engine: &dyn Engine,
    destination: Destination<'_>,
    sorter: &mut Sorter,
    check: &mut dyn FnMut() -> Result<(), CatalogError>,
) -> Result<(), CatalogError> {
    let mut entries = Entries::new(destination, sorter, check);
    let loaded = engine.load(destination.tree(), &mut entries, LoadDurability::Durable);
    match (entries.failure, loaded) {
        (Some(failure), _) => Err(failure),
        (None, loaded) => Ok(loaded.map(|_| ())?),
    }
}

/// The entries of a destination in order, from a sorter, as they stand in the finished tree.
struct Entries<'e> {
    destination: Destination<'e>,
    sorter: &'e mut Sorter,
    check: &'e mut dyn FnMut() -> Result<(), CatalogError>,
    count: u64,
    key: Vec<u8>,
    value: Vec<u8>,
    /// The key of the entry before, where keys are unique.
    last_key: Option<Vec<u8>>,
    /// Why there are no more.
    failure: Option<CatalogError>,
}

impl<'e> Entries<'e> {
    fn new(
        destination: Destination<'e>,
        sorter: &'e mut Sorter,
        check: &'e mut dyn FnMut() -> Result<(), CatalogError>,
    ) -> Entries<'e> {
        let (key, value) = (Vec::new(), Vec::new());
        Entries { destination, sorter, check, count: 0, key, value, last_key: None, failure: None }
    }

    fn fail(&mut self, failure: CatalogError) -> StorageError {
        let error = StorageError::new(ErrorKind::InvalidInput, failure.to_string());
        self.failure = Some(failure);
        error
    }

    /// Moves to the next entry of a tree whose keys are unique; false at the end.
    fn step(&mut self) -> Result<bool, CatalogError> {
        let Some((key, value)) = self.sorter.next(&mut no_check)? else { return Ok(false) };
        self.key.clear();
        self.value.clear();
        match self.destination {
            Destination::Documents(_, order) => {
                if self.last_key.as_deref() == Some(key) {
                    return Err(id_twice(value, order).into());
                }
                self.key.extend_from_slice(key);
                self.value.extend_from_slice(value);
            }
            Destination::Index(index) => {
                let parts =
                    UniqueParts::of(index.contents(), key, value).map_err(|reason| damaged(index, reason))?;
                if self.last_key.as_deref() == Some(parts.fields) {
                    return Err(duplicate_key(index, &parts.key()).into());
                }
                self.key.extend_from_slice(parts.fields);
                parts.value_into(&mut self.value);
            }
        }
        self.last_key.get_or_insert_default().clone_from(&self.key);
        Ok(true)
    }
}

/// The error of a document whose `_id` another one has.
fn id_twice(document: &[u8], order: &TextOrder) -> WriteError {
    let id = RawDocument::from_bytes(document).and_then(|document| document.get("_id"));
    match id {
        Ok(id) => duplicate_id(id.unwrap_or(RawValue::Null), order),
        Err(error) => error.into(),
    }
}

/// The entries check by their number.
fn no_check() -> Result<(), StorageError> {
    Ok(())
}

impl SortedEntries for Entries<'_> {
    fn next(&mut self) -> Result<Option<(&[u8], &[u8])>, StorageError> {
        self.count += 1;
        if self.count.is_multiple_of(CHECK_EVERY)
            && let Err(ended) = (self.check)()
        {
            return Err(self.fail(ended));
        }
        if let Destination::Index(index) = self.destination
            && index.uniqueness().has_primary_key_in_key()
        {
            return self.sorter.next(&mut no_check);
        }
        match self.step() {
            Ok(true) => Ok(Some((&self.key, &self.value))),
            Ok(false) => Ok(None),
            Err(failure) => Err(self.fail(failure)),
        }
    }
}
