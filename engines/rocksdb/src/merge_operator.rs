//! RocksDB's merge operator: the operators of the contract, on their encoding.
//!
//! RocksDB calls it when it meets merges of a key: with the value below them for a read or a compaction down
//! to the value, without it to keep several merges as one. The operators are associative, so both give the
//! same. Merges that make no sense fail the read as corruption; only damage brings them about.

use pando_storage::{MERGES_BYTES_MAX, Merges};
use rocksdb::{MergeOperands, Options};

/// The operator's name, which RocksDB keeps with the data and compares.
const NAME: &str = "pando.merges.1";

/// Makes the operator that of a column family.
pub(crate) fn install(options: &mut Options) {
    options.set_merge_operator(
        NAME,
        |_key: &[u8], value: Option<&[u8]>, merges: &MergeOperands| applied(value, merges.iter()),
        |_key: &[u8], _value: Option<&[u8]>, merges: &MergeOperands| joined(merges.iter()),
    );
}

/// The value that all of them leave behind, the oldest first.
fn applied<'m>(value: Option<&[u8]>, merges: impl Iterator<Item = &'m [u8]>) -> Option<Vec<u8>> {
    let mut value = value.map(<[u8]>::to_vec);
    for bytes in merges {
        let after = Merges::decode(bytes)?.apply(value.as_deref())?.into_owned();
        value = Some(after);
    }
    value
}

/// All of them as one; `None` where that would be too long.
fn joined<'m>(mut merges: impl Iterator<Item = &'m [u8]>) -> Option<Vec<u8>> {
    let mut all = merges.next()?.to_vec();
    for bytes in merges {
        all = Merges::decode(bytes)?.after(Merges::decode(&all)?);
    }
    (all.len() <= MERGES_BYTES_MAX).then_some(all)
}

#[cfg(test)]
mod tests {
    use pando_storage::Merge;

    use super::*;

    #[test]
    fn merges_are_applied_in_their_order_and_joined_without_a_change_of_meaning() {
        let merges = [Merge::Add(5).to_bytes(), Merge::Add(-2).to_bytes(), Merge::Max(b"x").to_bytes()];
        let all = || merges.iter().map(Vec::as_slice);
        let joined = joined(all()).expect("they are short");
        assert!(joined.len() < merges.iter().map(Vec::len).sum());
        let counter = 40_i64.to_le_bytes();
        for value in [None, Some(&b"y"[..]), Some(&counter[..])] {
            assert_eq!(applied(value, all()), applied(value, [&joined[..]].into_iter()), "{value:?}");
        }
        assert_eq!(applied(None, all().take(2)), Some(3_i64.to_le_bytes().to_vec()));
    }

    #[test]
    fn damaged_merges_are_no_value() {
        assert_eq!(applied(Some(b"v"), [&b"\x09"[..]].into_iter()), None);
        assert_eq!(joined([&b"\x09"[..], &b"\x09"[..]].into_iter()), None);
    }
}
