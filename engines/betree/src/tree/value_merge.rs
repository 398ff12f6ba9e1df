//! Value merge: applies merge operators to the version below them. The one place where they are applied.
//!
//! # Callers
//! - A buffer, below the oldest snapshot, and a flush, where no snapshot lies between two versions
//!   ([`version_retention`](crate::tree::version_retention)). They read nothing for it.
//! - A leaf, which is the lowest level: all operators are applied there, and large values are read for it if
//!   needed ([`leaf_merge`](crate::tree::leaf_merge)).
//! - A reader of the key ([`MergeOperands`]), for itself.
//!
//! # The rules
//! Operators over operators become operators. Over a value or a deletion they become a value. If the value
//! stays the same, or a patch finds none, the version below stays as it is. No reader can tell the
//! difference, and a large value need not be read for a sum that leaves it alone. Two versions stay apart
//! where a large value would have to be read, and where the operators would become too long as one.

use bytes::Bytes;
use pando_storage::{MERGES_BYTES_MAX, Merges};

use crate::format::content::{Content, merges_of};

/// The result for merge operators and the version below them, if no snapshot lies between the two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MergeOutcome {
    /// They become one version with this content.
    One(Content<Bytes>),
    /// The operators change nothing: the version below stays as it is.
    Below,
    /// They stay two versions.
    Apart,
}

/// Combines merge operators with the version below them, without reading a large value.
pub(crate) fn combine(merges: Merges<'_>, below: &Content<&[u8]>) -> MergeOutcome {
    match below {
        Content::Deleted => match merges.apply(None) {
            Some(value) => MergeOutcome::One(Content::Value(value.into_owned().into())),
            None => MergeOutcome::Below,
        },
        Content::Value(value) => apply(merges, value),
        Content::Merge(older) => {
            let both = merges.after(merges_of(older));
            if both.len() > MERGES_BYTES_MAX {
                MergeOutcome::Apart
            } else {
                MergeOutcome::One(Content::Merge(both.into()))
            }
        }
        Content::Large(reference) if merges.pass_over(reference.length()) => MergeOutcome::Below,
        Content::Large(_) => MergeOutcome::Apart,
    }
}

/// Combines merge operators with a value below them.
pub(crate) fn apply(merges: Merges<'_>, value: &[u8]) -> MergeOutcome {
    match merges.apply(Some(value)) {
        Some(after) if *after != *value => MergeOutcome::One(Content::Value(after.into_owned().into())),
        _ => MergeOutcome::Below,
    }
}

/// The merge operators that a reader has met on the way down to the value that they apply to.
#[derive(Debug, Default)]
pub(crate) struct MergeOperands {
    /// The newest first.
    merges: Vec<Bytes>,
}

impl MergeOperands {
    /// Takes merge operators in. Any other content ends the search and is returned.
    pub(crate) fn take(&mut self, content: Content<Bytes>) -> Option<Content<Bytes>> {
        match content {
            Content::Merge(merges) => {
                self.merges.push(merges);
                None
            }
            content => Some(content),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.merges.is_empty()
    }

    /// Whether all of them leave every value of this length as it is.
    pub(crate) fn pass_over(&self, value_bytes: u64) -> bool {
        self.merges.iter().all(|merges| merges_of(merges).pass_over(value_bytes))
    }

    /// The result of the operators over the value below; `None` stands for no value.
    pub(crate) fn over(&self, below: Option<Bytes>) -> Option<Bytes> {
        self.merges.iter().rev().fold(below, |below, merges| {
            let value = merges_of(merges).apply(below.as_deref())?;
            Some(Bytes::copy_from_slice(&value))
        })
    }
}

#[cfg(test)]
mod tests {
    use pando_environment::{Random, SeededRandom};
    use pando_storage::Merge;

    use crate::tree::value_merge::*;

    fn add(number: i64) -> Vec<u8> {
        Merge::Add(number).to_bytes()
    }

    fn combined(merges: &[u8], below: Content<&[u8]>) -> MergeOutcome {
        combine(merges_of(merges), &below)
    }

    fn value(bytes: &[u8]) -> MergeOutcome {
        MergeOutcome::One(Content::Value(Bytes::copy_from_slice(bytes)))
    }

    #[test]
    fn operators_over_a_value_or_a_delete_become_a_value_and_over_operators_operators() {
        assert_eq!(combined(&add(2), Content::Deleted), value(&2_i64.to_le_bytes()));
        assert_eq!(combined(&add(2), Content::Value(&40_i64.to_le_bytes())), value(&42_i64.to_le_bytes()));
        let both = MergeOutcome::One(Content::Merge(add(5).into()));
        assert_eq!(combined(&add(2), Content::Merge(&add(3))), both);
    }

    #[test]
    fn operators_that_leave_the_value_alone_leave_its_version_as_it_is() {
        assert_eq!(combined(&add(2), Content::Value(b"no counter")), MergeOutcome::Below);
        assert_eq!(combined(&Merge::Max(b"a").to_bytes(), Content::Value(b"b")), MergeOutcome::Below);
        assert_eq!(combined(&add(0), Content::Value(&1_i64.to_le_bytes())), MergeOutcome::Below);
        // Without the key a reader would see no value.
        assert_eq!(combined(&add(0), Content::Deleted), value(&0_i64.to_le_bytes()));
    }

    #[test]
    fn operators_that_would_be_too_long_as_one_stay_apart() {
        let long = |byte: u8| {
            let operand = vec![byte; 1_900];
            let mut merges = add(1);
            while merges.len() < MERGES_BYTES_MAX - 4_000 {
                for merge in [Merge::Max(&operand).to_bytes(), add(1)] {
                    merges = merges_of(&merge).after(merges_of(&merges));
                }
            }
            merges
        };
        assert_eq!(combined(&long(1), Content::Merge(&long(2))), MergeOutcome::Apart);
    }

    /// Operators that were combined in any order give a reader the value that they give one by one.
    #[test]
    fn a_reader_has_the_same_value_in_whatever_order_operators_were_combined() {
        let random = SeededRandom::new(3);
        for round in 0..2_000 {
            let mut versions: Vec<Content<Bytes>> = vec![match random.below(3) {
                0 => Content::Deleted,
                1 => Content::Value(Bytes::copy_from_slice(&round.to_string().into_bytes())),
                _ => Content::Value(Bytes::copy_from_slice(&random.next_u64().to_le_bytes())),
            }];
            for _ in 0..random.below(6) {
                let operand = random.next_u64().to_le_bytes();
                let merge = match random.below(3) {
                    0 => Merge::Add(random.below(300) as i64 - 150),
                    1 => Merge::Max(&operand[..random.below(9) as usize]),
                    _ => Merge::Min(&operand[..random.below(9) as usize]),
                };
                versions.insert(0, Content::Merge(merge.to_bytes().into()));
            }
            let seen = |versions: &[Content<Bytes>]| {
                let mut operands = MergeOperands::default();
                let found = versions.iter().find_map(|content| operands.take(content.clone()));
                operands.over(match found {
                    Some(Content::Value(value)) => Some(value),
                    _ => None,
                })
            };
            let before = seen(&versions);
            while versions.len() > 1 {
                let at = random.below(versions.len() as u64 - 1) as usize;
                let Content::Merge(merges) = &versions[at] else { panic!("only the last is none") };
                let combined = combine(merges_of(merges), &versions[at + 1].as_ref());
                match combined {
                    MergeOutcome::One(content) => versions[at + 1] = content,
                    MergeOutcome::Below => {}
                    MergeOutcome::Apart => panic!("nothing is that long"),
                }
                versions.remove(at);
                assert_eq!(seen(&versions), before);
            }
        }
    }
}
