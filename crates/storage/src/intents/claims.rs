//! The claims of one transaction: an intent for each key up to a number, filters for further keys, and whole
//! ranges.

use super::{Intent, Intents, TransactionId};
use crate::error::StorageError;
use crate::identifiers::{CommitTimestamp, SnapshotTimestamp, TreeId};
use crate::key_range::KeyRange;

/// Keys that a transaction claims one by one; further ones it claims widely. They take about 4 MB.
pub const CLAIMS_MAX: usize = 1 << 16;

/// See the module's head. Its owner ends it, by [`Claims::commit`] or [`Claims::release`].
#[derive(Debug)]
pub struct Claims {
    owner: TransactionId,
    snapshot: SnapshotTimestamp,
    intents: Vec<Intent>,
    intents_max: usize,
    is_wide: bool,
    has_ranges: bool,
}

impl Claims {
    /// No claims yet.
    pub const fn new(owner: TransactionId, snapshot: SnapshotTimestamp) -> Claims {
        Claims::with_intents_max(owner, snapshot, CLAIMS_MAX)
    }

    /// No claims yet; up to `intents_max` keys are to be claimed one by one.
    pub const fn with_intents_max(
        owner: TransactionId,
        snapshot: SnapshotTimestamp,
        intents_max: usize,
    ) -> Claims {
        Claims { owner, snapshot, intents: Vec::new(), intents_max, is_wide: false, has_ranges: false }
    }

    /// Claims a key, or [`Conflict`](crate::ErrorKind::Conflict).
    pub fn claim(&mut self, intents: &Intents, tree: TreeId, key: &[u8]) -> Result<(), StorageError> {
        if self.intents.len() < self.intents_max {
            self.intents.push(intents.acquire(self.owner, self.snapshot, tree, key)?);
            return Ok(());
        }
        self.is_wide = true;
        intents.acquire_wide(self.owner, self.snapshot, tree, key)
    }

    /// Claims all keys of a range, or [`Conflict`](crate::ErrorKind::Conflict). False if there are too many
    /// claims of ranges: then the keys are to be claimed one by one.
    pub fn claim_range(
        &mut self,
        intents: &Intents,
        tree: TreeId,
        range: &KeyRange,
    ) -> Result<bool, StorageError> {
        let is_claimed = intents.acquire_range(self.owner, self.snapshot, tree, range)?;
        self.has_ranges |= is_claimed;
        Ok(is_claimed)
    }

    /// Settles them at the transaction's commit.
    pub fn commit(&self, intents: &Intents, timestamp: CommitTimestamp) {
        intents.commit(&self.intents, timestamp);
        if self.is_wide {
            intents.commit_wide(self.owner, timestamp);
        }
        if self.has_ranges {
            intents.commit_ranges(self.owner, timestamp);
        }
    }

    /// Gives them back as if the transaction had never been; after a commit there is nothing to give back.
    pub fn release(&self, intents: &Intents) {
        intents.release(&self.intents);
        if self.is_wide {
            intents.release_wide(self.owner);
        }
        if self.has_ranges {
            intents.release_ranges(self.owner);
        }
    }
}
