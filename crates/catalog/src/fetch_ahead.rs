//! The documents of many keys, which an engine behind a network reads with few requests.
//!
//! Statements and scans of indexes fetch their documents one by one. Before each part of its keys such a
//! caller tells the engine of them all, which may [read them at once](Transaction::expect_gets). The first
//! part is short. Each later one has about [`PART_BYTES`], by the documents so far, since the engine keeps
//! those that it has read until they are fetched.

use pando_storage::{BlockingMode, Bytes, StorageError, Transaction};

use crate::Collection;

/// The keys of the first part.
const FIRST_PART: usize = 64;
/// The most keys of a part.
const PART_MAX: usize = 1_000;
/// The bytes of the documents of a later part, if they are like the ones before.
const PART_BYTES: usize = 4 << 20;

/// Primary keys in the order in which their documents are fetched.
pub trait FetchedKeys {
    /// Their number.
    fn count(&self) -> usize;

    /// The key at a place below the number.
    fn key(&self, place: usize) -> &[u8];
}

impl FetchedKeys for [Vec<u8>] {
    fn count(&self) -> usize {
        self.len()
    }

    fn key(&self, place: usize) -> &[u8] {
        &self[place]
    }
}

/// A walk through the documents of keys, in one transaction.
#[derive(Debug, Default)]
pub struct FetchAhead {
    /// The keys of which the engine was told, or that are fetched.
    told: usize,
    /// The documents so far, and their bytes.
    documents: usize,
    bytes: usize,
}

impl FetchAhead {
    /// The document of the key at a place. A later call names a later place.
    pub fn fetch(
        &mut self,
        keys: &(impl FetchedKeys + ?Sized),
        place: usize,
        collection: &Collection,
        transaction: &dyn Transaction,
        blocking: BlockingMode,
    ) -> Result<Option<Bytes>, StorageError> {
        if place >= self.told {
            let end = keys.count().min(place + self.part());
            let part = (place..end).map(|place| keys.key(place));
            collection.expect_fetches(transaction, part, blocking)?;
            self.told = end;
        }
        let found = collection.fetch(transaction, keys.key(place), blocking)?;
        self.documents += 1;
        self.bytes += found.as_ref().map_or(0, |document| document.len());
        Ok(found)
    }

    /// The same walk goes on with a new list of keys, whose documents are like the ones before.
    pub fn restart(&mut self) {
        self.told = 0;
    }

    /// The number of keys of the next part.
    pub fn part(&self) -> usize {
        match self.bytes {
            0 => FIRST_PART,
            bytes => (PART_BYTES.saturating_mul(self.documents) / bytes).clamp(1, PART_MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_has_few_keys_where_documents_are_large() {
        let part = |documents, bytes| FetchAhead { documents, bytes, ..FetchAhead::default() }.part();
        assert_eq!([part(0, 0), part(64, 64 * 100), part(64, 64 << 16)], [FIRST_PART, PART_MAX, 64]);
        assert_eq!([part(64, 64 << 24), part(usize::MAX, usize::MAX)], [1, 1]);
    }
}
