//! What an engine does not do itself, done with what every engine does.
//!
//! Each function is correct for every engine and the default of a method of the contract, or a step above it that an
//! engine may one day do better. Callers use the method where there is one, and never ask which engine they have.

mod backup;
mod check;

use bytes::Bytes;

use crate::{
    Batch, BatchLimits, Begin, BlockingMode, Cursor, Direction, Durability, Engine, ErrorKind, Estimate,
    KeyRange, LoadDurability, Merge, ScanEnd, SortedEntries, StorageError, Transaction, TreeId,
};

pub use backup::{backup, restore_backup};
pub use check::check;

/// Entries that [`estimate`] counts before it guesses: one batch of a scan.
pub const ESTIMATE_ENTRIES_MAX: usize = 1_024;

/// Entries that [`load`] puts into one transaction: enough to share a commit, little enough to stay in a cache.
pub const LOAD_BATCH_ENTRIES: usize = 1_000;

/// [`Transaction::get_many`] by one `get` per key.
pub fn get_many(
    transaction: &dyn Transaction,
    tree: TreeId,
    keys: &[&[u8]],
    blocking: BlockingMode,
) -> Result<Vec<Option<Bytes>>, StorageError> {
    keys.iter().map(|key| transaction.get(tree, key, blocking)).collect()
}

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

/// [`Transaction::estimate`] for an engine that keeps no counts within its trees: exact up to [`ESTIMATE_ENTRIES_MAX`]
/// entries; a longer range is taken for a third of the `whole` tree, as Selinger and others did in System R (1979).
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

/// [`Transaction::merge`] by a `get` and a `put`, whose intent keeps other merges away until the commit.
pub fn merge(
    transaction: &mut dyn Transaction,
    tree: TreeId,
    key: &[u8],
    merge: Merge<'_>,
    blocking: BlockingMode,
) -> Result<(), StorageError> {
    merge.check()?;
    let old = transaction.get(tree, key, blocking)?;
    transaction.put(tree, key, &merge.apply(old.as_deref()))
}

/// [`Engine::load`] by transactions of [`LOAD_BATCH_ENTRIES`] puts.
///
/// Not atomic: after an error or a crash the batches before it stay.
pub fn load<E: Engine + ?Sized>(
    engine: &E,
    tree: TreeId,
    entries: &mut dyn SortedEntries,
    durability: LoadDurability,
) -> Result<u64, StorageError> {
    check_empty(&*engine.begin(Begin::READ)?, tree)?;
    let mut load = Load { tree, last: None, count: 0 };
    let mut receipt = None;
    loop {
        let mut transaction = engine.begin(Begin::WRITE)?;
        let before = load.count;
        for _ in 0..LOAD_BATCH_ENTRIES {
            let Some((key, value)) = entries.next()? else { break };
            load.check_order(key)?;
            transaction.put_blind(tree, key, value)?;
        }
        if load.count == before {
            break;
        }
        receipt = Some(transaction.commit(Durability::None)?);
    }
    if let (Some(receipt), LoadDurability::Durable) = (receipt, durability) {
        engine.wait_durable(receipt, Durability::Synced)?;
    }
    Ok(load.count)
}

struct Load {
    tree: TreeId,
    last: Option<Vec<u8>>,
    count: u64,
}

/// Refuses a tree that has entries.
fn check_empty(reader: &dyn Transaction, tree: TreeId) -> Result<(), StorageError> {
    let mut cursor = Cursor::new(tree, KeyRange::all(), Direction::Forward);
    match cursor.next(reader, BlockingMode::MayBlock)? {
        None => Ok(()),
        Some(_) => {
            let message = format!("{tree} has entries already and cannot be loaded");
            Err(StorageError::new(ErrorKind::InvalidInput, message))
        }
    }
}

impl Load {
    fn check_order(&mut self, key: &[u8]) -> Result<(), StorageError> {
        if self.last.as_deref().is_some_and(|last| last >= key) {
            let message = format!("entry {} of a load of {} does not ascend", self.count, self.tree);
            return Err(StorageError::new(ErrorKind::InvalidInput, message));
        }
        let last = self.last.get_or_insert_default();
        last.clear();
        last.extend_from_slice(key);
        self.count += 1;
        Ok(())
    }
}
