//! Emulations of the transaction's optional methods, by the methods that every engine has.
//!
//! Each function is correct for every engine. It is the default of a method of [`Transaction`], or the body
//! of one.

use super::Transaction;
use crate::access::BlockingMode;
use crate::batch::{Batch, BatchLimits, ScanEnd};
use crate::error::StorageError;
use crate::identifiers::TreeId;
use crate::key_range::{Direction, KeyRange};
use crate::merge::Merge;
use crate::statistics::Estimate;
use crate::transaction::Cursor;

/// Entries that [`estimate`] counts before it guesses: one batch of a scan.
pub const ESTIMATE_ENTRIES_MAX: usize = 1_024;

/// [`Transaction::delete_range`] by a scan that deletes what it finds. Costs a read and a write per entry.
///
/// A `WouldBlock` on the way undoes the deletions so far, so that the call may be repeated with `MayBlock`.
pub fn delete_range(
    transaction: &mut dyn Transaction,
    tree: TreeId,
    range: &KeyRange,
    blocking: BlockingMode,
) -> Result<(), StorageError> {
    let before = transaction.savepoint();
    let outcome = delete_found(transaction, tree, range, blocking);
    if matches!(&outcome, Err(error) if error.is_would_block()) {
        transaction.rollback_to(before);
    }
    outcome
}

fn delete_found(
    transaction: &mut dyn Transaction,
    tree: TreeId,
    range: &KeyRange,
    blocking: BlockingMode,
) -> Result<(), StorageError> {
    let mut cursor = Cursor::new(tree, range.clone(), Direction::Forward);
    while let Some((key, _)) = cursor.next(transaction, blocking)? {
        transaction.delete(tree, key)?;
    }
    Ok(())
}

/// [`Transaction::estimate`] for an engine that keeps no counts within its trees. It is exact up to
/// [`ESTIMATE_ENTRIES_MAX`] entries. A longer range is taken for a third of the `whole` tree, as Selinger and
/// others did in System R (1979).
pub fn estimate(
    transaction: &dyn Transaction,
    tree: TreeId,
    range: &KeyRange,
    whole: Estimate,
    blocking: BlockingMode,
) -> Result<Estimate, StorageError> {
    if *range == KeyRange::all() {
        return Ok(whole);
    }
    let limits = BatchLimits { entries_max: ESTIMATE_ENTRIES_MAX, bytes_max: BatchLimits::LARGEST.bytes_max };
    let mut batch = Batch::new();
    let end = transaction.scan(tree, range, Direction::Forward, limits, blocking, &mut batch)?;
    let bytes: usize = batch.iter().map(|(key, value)| key.len() + value.len()).sum();
    let counted = Estimate { entries: batch.len() as u64, bytes: bytes as u64 };
    Ok(match end {
        ScanEnd::Done => counted,
        ScanEnd::More => Estimate {
            entries: counted.entries.max(whole.entries / 3),
            bytes: counted.bytes.max(whole.bytes / 3),
        },
    })
}

/// [`Transaction::merge`] by a `get` and a `put`, whose intent keeps other merges away until the commit. A
/// patch of an absent key deletes it, which changes nothing and takes the intent.
pub fn merge(
    transaction: &mut dyn Transaction,
    tree: TreeId,
    key: &[u8],
    merge: Merge<'_>,
    blocking: BlockingMode,
) -> Result<(), StorageError> {
    merge.check()?;
    let old = transaction.get(tree, key, blocking)?;
    match merge.apply(old.as_deref()) {
        Some(new) => transaction.put(tree, key, &new),
        None => transaction.delete(tree, key),
    }
}
