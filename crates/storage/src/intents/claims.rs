//! The claims of one transaction: an intent for each key up to a number, filters for further keys, and whole
//! ranges.

use std::sync::atomic::{AtomicBool, Ordering};

use super::{Claimant, Intent, Intents, Ticket, TransactionId};
use crate::error::StorageError;
use crate::identifiers::{CommitTimestamp, SnapshotTimestamp, TreeId};
use crate::key_range::KeyRange;

/// Keys that a transaction claims one by one; further ones it claims widely. They take about 4 MB.
pub const CLAIMS_MAX: usize = 1 << 16;

/// See the module's head. Its owner ends it, by [`Claims::commit`] or [`Claims::release`].
#[derive(Debug)]
pub struct Claims {
    claimant: Claimant,
    intents: Vec<Intent>,
    intents_max: usize,
    is_wide: bool,
    has_ranges: bool,
    /// They are settled: there is nothing to give back.
    is_settled: AtomicBool,
    /// Statements may wait for a settled key.
    is_awaited: AtomicBool,
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
        Claims {
            claimant: Claimant { owner, snapshot, ticket: None },
            intents: Vec::new(),
            intents_max,
            is_wide: false,
            has_ranges: false,
            is_settled: AtomicBool::new(false),
            is_awaited: AtomicBool::new(false),
        }
    }

    /// The transaction.
    pub fn owner(&self) -> TransactionId {
        self.claimant.owner
    }

    /// Claims further keys with the ticket of a statement that has waited.
    pub fn present(&mut self, ticket: Option<Ticket>) {
        self.claimant.ticket = ticket;
    }

    /// Claims a key, or [`Conflict`](crate::ErrorKind::Conflict).
    pub fn claim(&mut self, intents: &Intents, tree: TreeId, key: &[u8]) -> Result<(), StorageError> {
        if self.intents.len() < self.intents_max {
            self.intents.push(intents.acquire_as(self.claimant, tree, key)?);
            return Ok(());
        }
        self.is_wide = true;
        intents.acquire_wide(self.claimant, tree, key)
    }

    /// Claims all keys of a range, or [`Conflict`](crate::ErrorKind::Conflict). False if there are too many
    /// claims of ranges: then the keys are to be claimed one by one.
    pub fn claim_range(
        &mut self,
        intents: &Intents,
        tree: TreeId,
        range: &KeyRange,
    ) -> Result<bool, StorageError> {
        let is_claimed = intents.acquire_range(self.claimant.owner, self.claimant.snapshot, tree, range)?;
        self.has_ranges |= is_claimed;
        Ok(is_claimed)
    }

    /// Settles them at the transaction's commit. Statements that wait for them get them at the release.
    pub fn commit(&self, intents: &Intents, timestamp: CommitTimestamp) {
        let is_awaited = intents.commit(&self.intents, timestamp);
        if self.is_wide {
            intents.commit_wide(self.claimant.owner, timestamp);
        }
        if self.has_ranges {
            intents.commit_ranges(self.claimant.owner, timestamp);
        }
        self.is_awaited.store(is_awaited, Ordering::Relaxed);
        self.is_settled.store(true, Ordering::Release);
    }

    /// Gives them back as if the transaction had never been. After a commit that snapshots see, hands them
    /// over to the statements that wait for them.
    pub fn release(&self, intents: &Intents) {
        let owner = self.claimant.owner;
        // All keys are free before the first of those who wait runs: it may need several of them.
        let is_awaited = if self.is_settled.load(Ordering::Acquire) {
            self.is_awaited.load(Ordering::Relaxed)
        } else {
            if self.is_wide {
                intents.release_wide(owner);
            }
            if self.has_ranges {
                intents.release_ranges(owner);
            }
            intents.free(&self.intents)
        };
        if is_awaited {
            intents.hand_over(&self.intents);
        }
        if self.is_wide || self.has_ranges {
            intents.hand_over_all();
        }
    }
}
