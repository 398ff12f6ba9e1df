//! A random change of a key, for models that compute the value it leaves.

use pando_environment::{Random, SeededRandom};
use pando_storage::{BlockingMode, Claim, Merge, StorageError, Transaction, TreeId};

/// See the module's head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Sets the value.
    Put(Vec<u8>),
    /// Takes the key away.
    Delete,
    /// Adds to the value.
    Add(i64),
    /// The greater of the value and this.
    Max(Vec<u8>),
    /// The smaller of both.
    Min(Vec<u8>),
}

impl Change {
    /// A merge, of an operand of this many bytes at most.
    pub fn random_merge(random: &SeededRandom, operand_bytes: u64) -> Change {
        let operand = || vec![random.next_u64() as u8; random.below(operand_bytes + 1) as usize];
        match random.below(4) {
            0 => Change::Max(operand()),
            1 => Change::Min(operand()),
            _ => Change::Add(random.below(1_000) as i64 - 300),
        }
    }

    /// The merge that this is, if it is one.
    pub fn merge(&self) -> Option<Merge<'_>> {
        match self {
            Change::Put(_) | Change::Delete => None,
            Change::Add(number) => Some(Merge::Add(*number)),
            Change::Max(operand) => Some(Merge::Max(operand)),
            Change::Min(operand) => Some(Merge::Min(operand)),
        }
    }

    /// The value that the change leaves behind; `None` where there is none.
    pub fn over(&self, value: Option<&[u8]>) -> Option<Vec<u8>> {
        match (self, self.merge()) {
            (_, Some(merge)) => Some(merge.apply(value).into_owned()),
            (Change::Put(value), None) => Some(value.clone()),
            (_, None) => None,
        }
    }

    /// Has a transaction do it; merges with this claim, all else with an intent.
    pub fn write(
        &self,
        transaction: &mut dyn Transaction,
        tree: TreeId,
        key: &[u8],
        claim: Claim,
    ) -> Result<(), StorageError> {
        match (self, self.merge()) {
            (_, Some(merge)) => transaction.merge(tree, key, merge, claim, BlockingMode::MayBlock),
            (Change::Put(value), None) => transaction.put(tree, key, value),
            (_, None) => transaction.delete(tree, key),
        }
    }
}
