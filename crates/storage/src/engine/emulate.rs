//! Emulations of the engine's optional methods, by the methods that every engine has.
//!
//! Each function is correct for every engine, and the default of a method of [`Engine`].

mod backup;
mod check;

use super::{Begin, Engine};
use crate::access::BlockingMode;
use crate::durability::Durability;
use crate::error::{ErrorKind, StorageError};
use crate::identifiers::TreeId;
use crate::key_range::{Direction, KeyRange};
use crate::load::{LoadDurability, SortedEntries};
use crate::transaction::{Cursor, Transaction};

pub use backup::{backup, restore_backup};
pub use check::check;

/// Entries that [`load`] puts into one transaction: enough to share a commit, little enough to stay in a
/// cache.
pub const LOAD_BATCH_ENTRIES: usize = 1_000;

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
