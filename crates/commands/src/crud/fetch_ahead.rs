//! The documents of many keys, which an engine behind a network reads with few requests.
//!
//! A statement that writes reads its documents one by one. Before each part of its keys it tells the engine
//! of them all, which may [read them at once](Collection::expect_fetches). The first part is short. Each
//! later one has some [`PART_BYTES`] by the documents so far, since the engine keeps a part until the next.

use pando_catalog::{BlockingMode, Bytes, Collection, StorageError, Transaction};

/// The keys of the first part.
const FIRST_PART: usize = 64;
/// The most keys of a part.
const PART_MAX: usize = 1_000;
/// What the documents of a later part have in bytes, if they are like the ones before.
const PART_BYTES: usize = 4 << 20;

/// A walk through the documents of keys, in one transaction.
pub(super) struct FetchAhead<'k> {
    keys: &'k [Vec<u8>],
    /// The keys of which the engine was told, or that are fetched.
    told: usize,
    /// The documents so far, and their bytes.
    documents: usize,
    bytes: usize,
}

impl<'k> FetchAhead<'k> {
    /// The walk through these keys.
    pub fn new(keys: &'k [Vec<u8>]) -> FetchAhead<'k> {
        FetchAhead { keys, told: 0, documents: 0, bytes: 0 }
    }

    /// The document of the key at a place. A later call names a later place.
    pub fn fetch(
        &mut self,
        place: usize,
        collection: &Collection,
        transaction: &dyn Transaction,
        blocking: BlockingMode,
    ) -> Result<Option<Bytes>, StorageError> {
        if place >= self.told {
            let part = &self.keys[place..self.keys.len().min(place + self.part())];
            collection.expect_fetches(transaction, part, blocking)?;
            self.told = place + part.len();
        }
        let found = collection.fetch(transaction, &self.keys[place], blocking)?;
        self.documents += 1;
        self.bytes += found.as_ref().map_or(0, |document| document.len());
        Ok(found)
    }

    /// The number of keys of the next part.
    fn part(&self) -> usize {
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
        let part = |documents, bytes| FetchAhead { documents, bytes, ..FetchAhead::new(&[]) }.part();
        assert_eq!([part(0, 0), part(64, 64 * 100), part(64, 64 << 16)], [FIRST_PART, PART_MAX, 64]);
        assert_eq!([part(64, 64 << 24), part(usize::MAX, usize::MAX)], [1, 1]);
    }
}
