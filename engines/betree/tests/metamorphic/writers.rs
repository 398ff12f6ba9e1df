//! Writers whose transactions last several steps while others commit. With little memory for transactions
//! they spill, and their commits are large ones.
//!
//! Conflicts follow from keys and the order of steps alone, so they are answers like all others. But a range
//! delete claims the whole range in some configurations, and only the existing keys in others. So a writer
//! deletes ranges of its own region only. A commit beside a writer deletes only ranges that no writer writes
//! to.

use std::ops::Bound;

use pando_betree::Betree;
use pando_storage::{Begin, BlockingMode, KeyRange, StorageError, Transaction, TreeId};

use super::stream::{ASCENDING, Ending, OwnWrite, WRITERS, Writes};
use super::trees::{Begun, Trees};

#[derive(Default)]
pub struct Writers {
    under_way: [Option<Begun>; WRITERS],
}

impl Writers {
    pub fn get(&self, number: usize) -> Option<&Begun> {
        self.under_way[number].as_ref()
    }

    /// All are rolled back.
    pub fn end_all(&mut self) {
        self.under_way = Default::default();
    }

    /// Writes of a writer, which begins where it is not under way, and is rolled back where one is refused.
    pub fn write(
        &mut self,
        engine: &Betree,
        trees: &Trees,
        number: usize,
        tree: usize,
        writes: &Writes,
    ) -> String {
        let begun = self.under_way[number].take();
        let mut begun = begun.unwrap_or_else(|| trees.begin(engine, Begin::WRITE));
        let tree = trees.readable(tree, &begun);
        match write_all(&mut *begun.transaction, tree, writes) {
            Ok(()) => {
                self.under_way[number] = Some(begun);
                format!("writer {number} has written")
            }
            Err((at, error)) => {
                begun.transaction.rollback();
                format!("write {at} of writer {number}: {:?}", error.kind())
            }
        }
    }

    /// Ends a writer that is under way.
    pub fn end(&mut self, number: usize, ending: Ending) -> Option<String> {
        let begun = self.under_way[number].take()?;
        let outcome = match ending {
            Ending::Commit(durability) => begun.transaction.commit(durability).map(|_| "has committed"),
            Ending::Rollback => {
                begun.transaction.rollback();
                Ok("was rolled back")
            }
        };
        Some(format!("writer {number}: {:?}", outcome.map_err(|error| error.kind())))
    }

    /// The part of a range that a commit may delete now.
    pub fn leave(&self, range: &KeyRange) -> KeyRange {
        let mut left = range.clone();
        if self.under_way.iter().any(Option::is_some) && left.is_above_lower(ASCENDING) {
            left.lower = Bound::Included(ASCENDING.to_vec());
        }
        left
    }
}

/// All writes, or the first that is refused.
fn write_all(
    writer: &mut dyn Transaction,
    tree: TreeId,
    writes: &Writes,
) -> Result<(), (usize, StorageError)> {
    let before = writer.savepoint();
    for (at, write) in writes.writes.iter().enumerate() {
        let outcome = match write {
            OwnWrite::Change(key, change, claim) => change.write(writer, tree, key, *claim),
            OwnWrite::DeleteRange(range) => writer.delete_range(tree, range, BlockingMode::MayBlock),
        };
        outcome.map_err(|error| (at, error))?;
    }
    if writes.is_undone {
        writer.rollback_to(before);
    }
    Ok(())
}
