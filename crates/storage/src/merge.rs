//! Merges: operators that change a value without a read before them.
//!
//! # Terms
//! - *Merge*: an operator with its operand. All but a patch leave a value behind in any case.
//! - *Merges*: one or more of them for one key, in the order in which they apply, as bytes.
//!
//! # Operators
//! | operator | on a value | on an absent key |
//! |---|---|---|
//! | add | of 8 bytes: the sum of both as little-endian integers, modulo 2⁶⁴; of another length: unchanged | the number |
//! | max | the greater of value and operand, compared as bytes | the operand |
//! | min | the smaller of value and operand, compared as bytes | the operand |
//! | patch | a document: with the [patch](pando_document::patch); where that fails: unchanged | absent |
//!
//! Signed and unsigned counters are therefore the same, an overflow wraps around, and a value that is no
//! counter survives. There is no error: a merge is applied long after the call, when its caller is gone.
//!
//! # Why these
//! Each is *associative*: applied one after the other, or first to one another and then to the value, they
//! give the same. An engine may therefore keep the merges of a key as one, and apply them when it meets the
//! value. A saturating sum is not associative (take 2⁶³ − 1, 1 and −1), nor is an operator that fails for
//! some values. Two patches stay one behind the other, so a patch may leave a document alone.
//!
//! # Encoding
//! ```text
//! per merge:    u8 operator (1 add, 2 max, 3 min, 4 patch), operand
//! add:          i64, little-endian
//! the others:   u32 length, little-endian, and the bytes
//! ```
//! Engines may store it as it stands.

use std::borrow::Cow;

use pando_document::patch::Patch;

use crate::error::{ErrorKind, StorageError};
use crate::limits::KEY_BYTES_MAX;

/// Longest operand of max and min, in bytes: as a key.
pub const MERGE_OPERAND_BYTES_MAX: usize = KEY_BYTES_MAX;

/// Longest encoding of merges that are kept as one. Those of one operator take as much as one; only a key to
/// which different operators, or patches, are applied in turn comes near it.
pub const MERGES_BYTES_MAX: usize = 64 << 10;

/// Patches of one key that may wait, as far as the engine can tell without a read. The next one is emulated.
/// So many of the longest are shorter than [`MERGES_BYTES_MAX`] together.
pub const PENDING_PATCHES_MAX: usize = 32;

/// Length of the encoding of an addition.
pub const ADDITION_BYTES: usize = 1 + size_of::<i64>();

const ADD: u8 = 1;
const MAX: u8 = 2;
const MIN: u8 = 3;
const PATCH: u8 = 4;

/// An operator with its operand. See the module's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merge<'m> {
    /// Adds to a little-endian integer of 8 bytes, wrapping around.
    Add(i64),
    /// The greater of both, compared as bytes.
    Max(&'m [u8]),
    /// The smaller of both, compared as bytes.
    Min(&'m [u8]),
    /// A document with an encoded patch; an absent key stays absent.
    Patch(&'m [u8]),
}

impl<'m> Merge<'m> {
    /// The value that it leaves behind; `None` stands for an absent key.
    pub fn apply<'v>(&self, value: Option<&'v [u8]>) -> Option<Cow<'v, [u8]>>
    where
        'm: 'v,
    {
        Some(match (*self, value) {
            (Merge::Add(number), None) => Cow::Owned(number.to_le_bytes().to_vec()),
            (Merge::Add(number), Some(value)) => match <[u8; 8]>::try_from(value) {
                Ok(counter) => {
                    Cow::Owned(i64::from_le_bytes(counter).wrapping_add(number).to_le_bytes().to_vec())
                }
                Err(_) => Cow::Borrowed(value),
            },
            (Merge::Max(operand) | Merge::Min(operand), None) => Cow::Borrowed(operand),
            (Merge::Max(operand), Some(value)) => Cow::Borrowed(value.max(operand)),
            (Merge::Min(operand), Some(value)) => Cow::Borrowed(value.min(operand)),
            (Merge::Patch(_), None) => return None,
            (Merge::Patch(patch), Some(value)) => {
                let after = Patch::decode(patch).and_then(|patch| patch.apply(value));
                after.map_or(Cow::Borrowed(value), Cow::Owned)
            }
        })
    }

    /// Bytes of the operand.
    pub fn operand_bytes(&self) -> usize {
        match self {
            Merge::Add(number) => size_of_val(number),
            Merge::Max(operand) | Merge::Min(operand) | Merge::Patch(operand) => operand.len(),
        }
    }

    /// Refuses an operand that is longer than [`MERGE_OPERAND_BYTES_MAX`], and a patch that is none.
    pub fn check(&self) -> Result<(), StorageError> {
        match self {
            Merge::Max(operand) | Merge::Min(operand) | Merge::Patch(operand)
                if operand.len() > MERGE_OPERAND_BYTES_MAX =>
            {
                let length = operand.len();
                let message = format!(
                    "an operand of {length} bytes is longer than the {MERGE_OPERAND_BYTES_MAX} that a merge may have"
                );
                Err(StorageError::new(ErrorKind::InvalidInput, message))
            }
            Merge::Patch(patch) if Patch::decode(patch).is_none() => {
                Err(StorageError::new(ErrorKind::InvalidInput, "the operand of a patch is no patch"))
            }
            Merge::Add(_) | Merge::Max(_) | Merge::Min(_) | Merge::Patch(_) => Ok(()),
        }
    }

    /// This and a newer one as one; `None` where they have different operators, or are patches.
    fn then(self, newer: Merge<'m>) -> Option<Merge<'m>> {
        match (self, newer) {
            (Merge::Add(older), Merge::Add(newer)) => Some(Merge::Add(older.wrapping_add(newer))),
            (Merge::Max(older), Merge::Max(newer)) => Some(Merge::Max(older.max(newer))),
            (Merge::Min(older), Merge::Min(newer)) => Some(Merge::Min(older.min(newer))),
            (Merge::Add(_) | Merge::Max(_) | Merge::Min(_) | Merge::Patch(_), _) => None,
        }
    }

    /// The encoding of an addition alone.
    pub fn addition_bytes(number: i64) -> [u8; ADDITION_BYTES] {
        let mut bytes = [ADD; ADDITION_BYTES];
        bytes[1..].copy_from_slice(&number.to_le_bytes());
        bytes
    }

    /// The encoding of this merge alone.
    pub fn to_bytes(self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(9);
        self.encode(&mut bytes);
        bytes
    }

    fn encode(self, out: &mut Vec<u8>) {
        let (code, operand) = match self {
            Merge::Add(number) => {
                out.push(ADD);
                out.extend_from_slice(&number.to_le_bytes());
                return;
            }
            Merge::Max(operand) => (MAX, operand),
            Merge::Min(operand) => (MIN, operand),
            Merge::Patch(operand) => (PATCH, operand),
        };
        out.push(code);
        let length = u32::try_from(operand.len()).expect("an operand is far below 4 GiB");
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(operand);
    }
}

/// The first merge of an encoding, and the bytes after it.
fn decode_first(bytes: &[u8]) -> Option<(Merge<'_>, &[u8])> {
    let (code, rest) = bytes.split_first()?;
    if *code == ADD {
        let (number, rest) = rest.split_first_chunk::<8>()?;
        return Some((Merge::Add(i64::from_le_bytes(*number)), rest));
    }
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let (operand, rest) = rest.split_at_checked(usize::try_from(u32::from_le_bytes(*length)).ok()?)?;
    match *code {
        MAX => Some((Merge::Max(operand), rest)),
        MIN => Some((Merge::Min(operand), rest)),
        PATCH => Some((Merge::Patch(operand), rest)),
        _ => None,
    }
}

/// One or more merges, the oldest first, encoded and known to be whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Merges<'m>(&'m [u8]);

impl<'m> Merges<'m> {
    /// The merges of an encoding; `None` if it is none, or of no merge.
    pub fn decode(bytes: &'m [u8]) -> Option<Merges<'m>> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let (merge, after) = decode_first(rest)?;
            if let Merge::Patch(patch) = merge {
                Patch::decode(patch)?;
            }
            rest = after;
        }
        (!bytes.is_empty()).then_some(Merges(bytes))
    }

    /// The encoding.
    pub const fn as_bytes(self) -> &'m [u8] {
        self.0
    }

    /// The number, if they are one addition and nothing else.
    pub fn as_addition(self) -> Option<i64> {
        match self.0.split_first_chunk::<ADDITION_BYTES>()? {
            ([ADD, number @ ..], []) => Some(i64::from_le_bytes(*number)),
            _ => None,
        }
    }

    /// Each of them, the oldest first.
    pub fn iter(self) -> impl Iterator<Item = Merge<'m>> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let (merge, after) = decode_first(rest)?;
            rest = after;
            Some(merge)
        })
    }

    /// The value that all of them leave behind; `None` stands for an absent key.
    pub fn apply<'v>(self, value: Option<&'v [u8]>) -> Option<Cow<'v, [u8]>>
    where
        'm: 'v,
    {
        self.iter().fold(value.map(Cow::Borrowed), |value, merge| match value {
            None => merge.apply(None),
            Some(Cow::Borrowed(value)) => merge.apply(Some(value)),
            Some(Cow::Owned(value)) => merge.apply(Some(&value)).map(|value| Cow::Owned(value.into_owned())),
        })
    }

    /// The number of patches among them.
    pub fn patches(self) -> usize {
        match self.as_addition() {
            Some(_) => 0,
            None => self.iter().filter(|merge| matches!(merge, Merge::Patch(_))).count(),
        }
    }

    /// Whether they leave every value of this many bytes as it is.
    pub fn pass_over(self, value_bytes: u64) -> bool {
        value_bytes != size_of::<i64>() as u64 && self.iter().all(|merge| matches!(merge, Merge::Add(_)))
    }

    /// The encoding of older merges and these behind them, as few as can be.
    pub fn after(self, older: Merges<'_>) -> Vec<u8> {
        if let (Some(older), Some(newer)) = (older.as_addition(), self.as_addition()) {
            return Merge::addition_bytes(older.wrapping_add(newer)).to_vec();
        }
        let mut all: Vec<Merge<'_>> = older.iter().collect();
        for merge in self.iter() {
            match all.last_mut().and_then(|last| last.then(merge).map(|joined| (last, joined))) {
                Some((last, joined)) => *last = joined,
                None => all.push(merge),
            }
        }
        let mut bytes = Vec::with_capacity(older.0.len().max(self.0.len()));
        all.into_iter().for_each(|merge| merge.encode(&mut bytes));
        bytes
    }
}

#[cfg(test)]
mod tests;
