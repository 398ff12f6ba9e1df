//! The engine's half of a transaction: the snapshot that it reads, and the place where it commits.
//!
//! [`SnapshotTransaction`](super::SnapshotTransaction) is the other half. It has the transaction's own writes
//! and claims, lays the writes over what the snapshot holds, and checks keys, values and modes. An
//! implementation therefore never looks at uncommitted writes, except in [`EngineSnapshot::commit`].
//!
//! # Order of the calls
//! 1. Any number of reads and checks, on `&self`.
//! 2. At most one [`EngineSnapshot::commit`].
//! 3. [`EngineSnapshot::end`], once, after every claim has been settled or given back.

use bytes::Bytes;

use super::own_ranges::{DeletedRange, OwnRanges};
use crate::access::BlockingMode;
use crate::batch::{Batch, BatchLimits, ScanEnd};
use crate::durability::{CommitReceipt, Durability};
use crate::error::StorageError;
use crate::identifiers::{SnapshotTimestamp, TreeId};
use crate::intents::{Claims, Intents};
use crate::key_range::{Direction, KeyRange};
use crate::read_claims::ReadClaims;
use crate::spill::SpillingWrites;
use crate::statistics::Estimate;
use crate::transaction::Transaction;

/// The engine's part of one transaction. See the module's head.
///
/// Every engine has its own type for it, so that the compiler sees through the calls: a read costs no dynamic
/// dispatch.
pub trait EngineSnapshot: Send {
    /// The newest commit that the snapshot sees.
    fn timestamp(&self) -> SnapshotTimestamp;

    /// The table of intents that all transactions of the engine share.
    fn intents(&self) -> &Intents;

    /// The claims of serializable transactions; `None` for an engine that has no such transactions.
    fn read_claims(&self) -> Option<&ReadClaims> {
        None
    }

    /// Refuses a closed engine. Comes before all other checks of a call.
    fn check_open(&self) -> Result<(), StorageError>;

    /// Refuses a tree that takes no writes: one that is not there, or has been dropped.
    fn check_writable(&self, tree: TreeId) -> Result<(), StorageError>;

    /// Makes the first merges in a tree possible, before one is written. May wait for other servers.
    fn prepare_merge(&self, tree: TreeId) -> Result<(), StorageError> {
        let _is_ready = tree;
        Ok(())
    }

    /// Refuses more writes where the transaction has some and would grow to this many bytes of keys and
    /// values.
    fn check_size(&self, bytes: usize) -> Result<(), StorageError> {
        let _unlimited = bytes;
        Ok(())
    }

    /// As [`Transaction::is_large`], with this many bytes of keys and values.
    fn is_large(&self, bytes: usize) -> bool {
        let _as_quick = bytes;
        false
    }

    /// The value that the snapshot has for a key. The key is not too long, and the engine is open.
    fn get(&self, tree: TreeId, key: &[u8], blocking: BlockingMode) -> Result<Option<Bytes>, StorageError>;

    /// As [`Transaction::expect_gets`].
    fn expect_gets(
        &self,
        tree: TreeId,
        keys: &mut dyn Iterator<Item = Vec<u8>>,
        blocking: BlockingMode,
    ) -> Result<(), StorageError> {
        let _not_needed = (tree, keys, blocking);
        Ok(())
    }

    /// As [`Transaction::sends_gets`].
    fn sends_gets(&self) -> bool {
        false
    }

    /// Makes the checks of [`get`](EngineSnapshot::get), and reads nothing: the transaction's own writes have
    /// the answer.
    fn check_get(&self, tree: TreeId, blocking: BlockingMode) -> Result<(), StorageError>;

    /// One batch of a scan. The call takes its lock and the tree, then has [`OverlaidScan::over`] fill the
    /// batch from a closure that scans the snapshot alone. Must refuse a missing tree also for an empty
    /// range.
    fn scan(&self, scan: OverlaidScan<'_>, batch: &mut Batch) -> Result<ScanEnd, StorageError>;

    /// As [`Transaction::estimate`]. `transaction` is the whole transaction, for
    /// [`emulate::estimate`](crate::emulate::estimate).
    fn estimate(
        &self,
        transaction: &dyn Transaction,
        tree: TreeId,
        range: &KeyRange,
        blocking: BlockingMode,
    ) -> Result<Estimate, StorageError>;

    /// Whether the engine would delete this range by one message, of which the commit is told, rather than
    /// key by key.
    fn deletes_by_message(
        &self,
        tree: TreeId,
        range: &KeyRange,
        blocking: BlockingMode,
    ) -> Result<bool, StorageError> {
        let _key_by_key = (tree, range, blocking);
        Ok(false)
    }

    /// Whether the commit may have a [patch](crate::Merge::Patch) of this key. If not, the transaction
    /// emulates it: it reads, and puts the result. An engine also refuses where
    /// [`PENDING_PATCHES_MAX`](crate::PENDING_PATCHES_MAX) patches of the key wait already.
    fn takes_patch(&self, tree: TreeId, key: &[u8]) -> Result<bool, StorageError> {
        let _emulated = (tree, key);
        Ok(false)
    }

    /// How many keys and ranges the transaction has written so far, for
    /// [`Engine::live_transactions`](crate::Engine::live_transactions).
    fn show_writes(&self, count: usize);

    /// Another transaction has the key: counted by engines that keep such a figure.
    fn count_conflict(&self) {}

    /// Commits the writes, of which there are some, as [`Transaction::commit`] says. Settles the claims
    /// before any snapshot can see the commit.
    fn commit(&mut self, own: OwnChanges<'_>, durability: Durability) -> Result<CommitReceipt, StorageError>;

    /// The transaction is over, and lets its snapshot go.
    fn end(&mut self);
}

/// All that a transaction has changed, for its commit.
#[derive(Clone, Copy)]
pub struct OwnChanges<'t> {
    /// The writes; they lie over the ranges.
    pub writes: &'t SpillingWrites,
    /// The ranges that are deleted by one message each.
    pub ranges: &'t [DeletedRange],
    /// The claims, to be settled by [`Claims::commit`] at the commit's timestamp.
    pub claims: &'t Claims,
}

/// One batch of a scan, with the transaction's own writes that belong over it.
#[derive(Clone, Copy)]
pub struct OverlaidScan<'t> {
    /// The tree.
    pub tree: TreeId,
    /// The keys.
    pub range: &'t KeyRange,
    /// The order.
    pub direction: Direction,
    /// When the batch is full.
    pub limits: BatchLimits,
    /// Whether the snapshot may be read from the device.
    pub blocking: BlockingMode,
    pub(super) writes: &'t SpillingWrites,
    pub(super) ranges: &'t OwnRanges,
}

impl OverlaidScan<'_> {
    /// The same scan with other limits, for an engine that has less memory than the caller hopes for.
    #[must_use]
    pub fn with_limits(self, limits: BatchLimits) -> Self {
        OverlaidScan { limits, ..self }
    }

    /// Fills the batch with the snapshot's entries and the own writes over them.
    ///
    /// `below` scans the snapshot alone, for this direction, these limits and this blocking mode. It empties
    /// the batch that it is given, and leaves it empty only at the end of its range. It may be called several
    /// times.
    pub fn over(
        &self,
        batch: &mut Batch,
        mut below: impl FnMut(&KeyRange, &mut Batch) -> Result<ScanEnd, StorageError>,
    ) -> Result<ScanEnd, StorageError> {
        let OverlaidScan { tree, range, direction, limits, blocking, writes, ranges } = *self;
        writes.scan_over(tree, range, direction, limits, blocking, batch, &mut |range, batch| {
            ranges.scan_beside(tree, range, direction, batch, &mut below)
        })
    }
}
