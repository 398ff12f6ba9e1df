//! Ranges of primary keys with about the same number of documents, found by bisection of the engine's
//! estimates.

use std::ops::Bound;

use pando_catalog::{Caller, Collection, Direction, KeyRange, StorageError, Transaction};
use pando_query::QueryError;

/// Bytes of a key behind what all keys begin with that are bisected.
const BISECTED_BYTES: usize = 12;

/// A share of the documents of a range by which it may be larger or smaller than others.
const UNEVEN_SHARE: u64 = 64;

/// Parts of a range of about the same number of documents, in the order of the keys. The whole has about
/// `documents`.
pub(in crate::crud) fn ranges_within(
    whole: &KeyRange,
    collection: &Collection,
    transaction: &dyn Transaction,
    (wanted, documents): (usize, u64),
    caller: Caller<'_>,
) -> Result<Vec<KeyRange>, QueryError> {
    let Some(keys) = KeySpan::of(collection, whole, transaction, caller)? else { return Ok(Vec::new()) };
    let mut splits: Vec<Vec<u8>> = Vec::with_capacity(wanted);
    let each = documents / wanted as u64;
    let mut from = keys.first;
    for place in 1..wanted as u64 {
        let before = each * place;
        let (mut low, mut high) = (from, keys.last);
        while high - low > 1 {
            caller.operation.check()?;
            let middle = low + (high - low) / 2;
            let range = KeyRange { lower: whole.lower.clone(), upper: Bound::Excluded(keys.key(middle)) };
            let found = collection.estimate_documents(&range, transaction, caller.blocking)?.entries;
            match found < before {
                true => low = middle,
                false => high = middle,
            }
            if found.abs_diff(before) <= each / UNEVEN_SHARE {
                high = middle;
                break;
            }
        }
        splits.push(keys.key(high));
        from = high;
    }
    // Flushes between two bisections move the estimates.
    splits.sort_unstable();
    splits.dedup();
    splits.retain(|split| whole.contains(split));
    Ok(ranges_between(whole, splits))
}

fn ranges_between(whole: &KeyRange, splits: Vec<Vec<u8>>) -> Vec<KeyRange> {
    let mut lower = whole.lower.clone();
    let mut ranges = Vec::with_capacity(splits.len() + 1);
    for split in splits {
        let upper = Bound::Excluded(split.clone());
        ranges.push(KeyRange { lower: std::mem::replace(&mut lower, Bound::Included(split)), upper });
    }
    ranges.push(KeyRange { lower, upper: whole.upper.clone() });
    ranges
}

/// Keys as numbers: the bytes behind those that all keys begin with.
pub(in crate::crud) struct KeySpan {
    common: Vec<u8>,
    /// Not above the first key.
    pub first: u128,
    /// Not above the last key.
    pub last: u128,
}

impl KeySpan {
    /// The keys of a range's documents; `None` where it has none.
    pub fn of(
        collection: &Collection,
        range: &KeyRange,
        transaction: &dyn Transaction,
        caller: Caller<'_>,
    ) -> Result<Option<KeySpan>, StorageError> {
        let end = |direction| -> Result<Option<Vec<u8>>, StorageError> {
            let mut scan = collection.scan_documents(range.clone(), direction);
            Ok(scan.next(transaction, caller.blocking)?.map(|(key, _)| key.to_vec()))
        };
        let (first, last) = (end(Direction::Forward)?, end(Direction::Backward)?);
        Ok(first.zip(last).map(|(first, last)| KeySpan::between(&first, &last)))
    }

    fn between(first: &[u8], last: &[u8]) -> KeySpan {
        let length = first.iter().zip(last).take_while(|(a, b)| a == b).count();
        let (common, first) = first.split_at(length);
        KeySpan { common: common.to_vec(), first: number_of(first), last: number_of(&last[length..]) }
    }

    /// The key of a number.
    pub fn key(&self, number: u128) -> Vec<u8> {
        let bytes = number.to_be_bytes();
        [&self.common, &bytes[bytes.len() - BISECTED_BYTES..]].concat()
    }
}

fn number_of(bytes: &[u8]) -> u128 {
    let padded = bytes.iter().copied().chain(std::iter::repeat(0));
    padded.take(BISECTED_BYTES).fold(0, |number, byte| number << 8 | u128::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_cover_all_keys_once() {
        let keys = [&b""[..], b"a", b"b", b"c", b"d", b"e"];
        let (above_a, below_e) = (Bound::Excluded(b"a".to_vec()), Bound::Excluded(b"e".to_vec()));
        for whole in [KeyRange::all(), KeyRange { lower: above_a, upper: below_e }] {
            let ranges = ranges_between(&whole, vec![b"b".to_vec(), b"d".to_vec()]);
            let holding = |key: &[u8]| ranges.iter().filter(|range| range.contains(key)).count();
            assert_eq!(ranges.len(), 3);
            assert!(keys.into_iter().all(|key| holding(key) == usize::from(whole.contains(key))));
        }
    }

    #[test]
    fn a_key_in_the_middle_lies_between_the_ends() {
        let keys = KeySpan::between(b"\x10\x20abc", b"\x10\x20zz");
        let middle = keys.key(keys.first + (keys.last - keys.first) / 2);
        assert!((b"\x10\x20abc".to_vec()..b"\x10\x20zz".to_vec()).contains(&middle));
        let same = KeySpan::between(b"a", b"a");
        assert_eq!(same.first, same.last);
    }
}
