//! The record ids of a heap: the keys of its documents, in the order of inserts.
//!
//! A record id is the number of an insert, in eight bytes, the most significant first. Each collection hands
//! them out by a counter in memory, so that concurrent inserts share no key.
//!
//! # Invariants
//! - No two documents of a collection have one record id at one time. The counter begins above the last
//!   document that is there when it is first asked, and no document comes before that.
//! - An insert that is rolled back leaves a gap. Ids above the last document are given again after a restart.

use std::sync::atomic::{AtomicU64, Ordering};

use pando_storage::StorageError;

/// The counter of a collection.
#[derive(Debug)]
pub(crate) struct RecordIds {
    /// The next one; 0 as long as it is unknown.
    next: AtomicU64,
}

/// The first record id.
const FIRST: u64 = 1;

impl Default for RecordIds {
    /// That of a collection that is there: it has to be looked what was given.
    fn default() -> RecordIds {
        RecordIds { next: AtomicU64::new(0) }
    }
}

impl RecordIds {
    /// That of a new collection.
    pub(crate) fn of_new_collection() -> RecordIds {
        RecordIds { next: AtomicU64::new(FIRST) }
    }

    /// The next record id. `last_key` gives the key of the last document, if there is one.
    pub(crate) fn next(
        &self,
        last_key: impl FnOnce() -> Result<Option<Vec<u8>>, StorageError>,
    ) -> Result<u64, StorageError> {
        if self.next.load(Ordering::Acquire) == 0 {
            let last = last_key()?.and_then(|key| record_id_of(&key)).unwrap_or(FIRST - 1);
            // Another insert may have begun meanwhile. It has seen the same last document.
            let _begun = self.next.compare_exchange(0, last + 1, Ordering::AcqRel, Ordering::Acquire);
        }
        Ok(self.next.fetch_add(1, Ordering::Relaxed))
    }
}

/// The record id of a key of a heap; `None` if it is none.
pub(crate) fn record_id_of(key: &[u8]) -> Option<u64> {
    key.try_into().ok().map(u64::from_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_go_on_behind_the_last_document_and_the_tree_is_looked_at_once() {
        let ids = RecordIds::default();
        assert_eq!(ids.next(|| Ok(Some(41_u64.to_be_bytes().to_vec()))).unwrap(), 42);
        assert_eq!(ids.next(|| panic!("the counter is known")).unwrap(), 43);
        assert_eq!(RecordIds::default().next(|| Ok(None)).unwrap(), 1);
        assert_eq!(RecordIds::of_new_collection().next(|| panic!("it is new")).unwrap(), 1);
    }

    #[test]
    fn a_failed_look_is_repeated() {
        let ids = RecordIds::default();
        assert!(ids.next(|| Err(StorageError::would_block())).is_err());
        assert_eq!(ids.next(|| Ok(None)).unwrap(), 1);
    }
}
