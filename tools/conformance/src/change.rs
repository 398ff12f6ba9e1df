//! A random change of a key, for models that compute the value it leaves.

use std::borrow::Cow;

use pando_document::patch::{PatchChange, PatchOperator, encode};
use pando_document::{DocumentWriter, RawValue};
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
    /// A patch of a document.
    Patch(Vec<u8>),
}

/// Fields of random documents and patches.
const FIELDS: [&str; 4] = ["a", "b", "c", "d"];

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

    /// A patch, which the [documents](Change::random_document) of these tests mostly take.
    pub fn random_patch(random: &SeededRandom) -> Change {
        let text = "t".repeat(random.below(200) as usize);
        let number = random.below(1_000) as i32;
        let changes = FIELDS.iter().filter(|_| random.below(2) == 0);
        let changes = changes.map(|path| match random.below(5) {
            0 => (PatchOperator::Set, *path, RawValue::String(&text)),
            1 => (PatchOperator::Unset, *path, RawValue::Null),
            2 => (PatchOperator::Greatest, *path, RawValue::Int32(number)),
            _ => (PatchOperator::Add, *path, RawValue::Int32(number)),
        });
        let last = (PatchOperator::Push, "list", RawValue::Int32(number));
        let changes = changes.chain([last]);
        let changes = changes.map(|(operator, path, operand)| PatchChange { operator, path, operand });
        Change::Patch(encode(changes.collect()).expect("it is a patch"))
    }

    /// A put of a document.
    pub fn random_document(random: &SeededRandom) -> Change {
        let text = "t".repeat(random.below(300) as usize);
        let mut bytes = Vec::new();
        let mut writer = DocumentWriter::begin(&mut bytes);
        for name in FIELDS {
            match random.below(4) {
                0 => {}
                1 => writer.append_str(name, &text),
                _ => writer.append_i64(name, random.next_u64() as i64),
            }
        }
        writer.finish();
        Change::Put(bytes)
    }

    /// The merge that this is, if it is one.
    pub fn merge(&self) -> Option<Merge<'_>> {
        match self {
            Change::Put(_) | Change::Delete => None,
            Change::Add(number) => Some(Merge::Add(*number)),
            Change::Max(operand) => Some(Merge::Max(operand)),
            Change::Min(operand) => Some(Merge::Min(operand)),
            Change::Patch(patch) => Some(Merge::Patch(patch)),
        }
    }

    /// The value that the change leaves behind; `None` where there is none.
    pub fn over(&self, value: Option<&[u8]>) -> Option<Vec<u8>> {
        match (self, self.merge()) {
            (_, Some(merge)) => merge.apply(value).map(Cow::into_owned),
            (Change::Put(value), None) => Some(value.clone()),
            (_, None) => None,
        }
    }

    /// Has a transaction do it; merges but patches with this claim, all else with an intent.
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
