//! The sorted entries of an index under construction, in the form of the finished index. A duplicate of a
//! unique key ends them with an error.

use pando_storage::{ErrorKind, SortedEntries, Sorter, StorageError};

use super::CHECK_EVERY;
use crate::building::UniqueParts;
use crate::documents::{damaged, duplicate_key};
use crate::index_description::Uniqueness;
use crate::{CatalogError, Index};

/// The entries of an index in order, from a sorter, as they stand in the finished index.
pub(super) struct Entries<'e> {
    index: &'e Index,
    sorter: &'e mut Sorter,
    /// Called once for every [`CHECK_EVERY`] entries. Its error ends the load.
    check: &'e mut dyn FnMut() -> Result<(), CatalogError>,
    count: u64,
    key: Vec<u8>,
    value: Vec<u8>,
    /// Of the entry before, in a unique index.
    last_fields: Option<Vec<u8>>,
    /// Why there are no more.
    failure: Option<CatalogError>,
}

impl<'e> Entries<'e> {
    /// The entries of a sorter whose input has ended.
    pub(super) fn new(
        index: &'e Index,
        sorter: &'e mut Sorter,
        check: &'e mut dyn FnMut() -> Result<(), CatalogError>,
    ) -> Entries<'e> {
        let (key, value) = (Vec::new(), Vec::new());
        Entries { index, sorter, check, count: 0, key, value, last_fields: None, failure: None }
    }

    /// Why the load failed, unless the engine or the sorter did.
    pub(super) fn into_failure(self) -> Option<CatalogError> {
        self.failure
    }

    fn fail(&mut self, failure: CatalogError) -> StorageError {
        let error = StorageError::new(ErrorKind::InvalidInput, failure.to_string());
        self.failure = Some(failure);
        error
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
        if self.index.uniqueness() == Uniqueness::NotUnique {
            return self.sorter.next(&mut no_check);
        }
        let Some((key, value)) = self.sorter.next(&mut no_check)? else { return Ok(None) };
        let outcome =
            UniqueParts::of(key, value).map_err(|reason| damaged(self.index, reason)).and_then(|parts| {
                if self.last_fields.as_deref() == Some(parts.fields) {
                    return Err(duplicate_key(self.index, &parts.key()));
                }
                self.key.clear();
                self.key.extend_from_slice(parts.fields);
                self.value.clear();
                parts.value_into(&mut self.value);
                Ok(())
            });
        if let Err(failure) = outcome {
            return Err(self.fail(failure.into()));
        }
        self.last_fields.get_or_insert_default().clone_from(&self.key);
        Ok(Some((&self.key, &self.value)))
    }
}
