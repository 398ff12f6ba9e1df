//! The layout of RocksDB's column families.
//!
//! | column family | holds |
//! |---|---|
//! | `default` | the engine's own records: the format, the next tree's number, a record for each tree |
//! | a text of tree options | all trees with these options, their number (4 bytes, big-endian) before each key |
//!
//! A column family for each tree would not do: each has a write buffer of its own, and is a line of every
//! manifest. Ten thousand trees with equal options are one column family here.

use std::ops::Bound;

use pando_storage::{KEY_BYTES_MAX, KeyRange, TreeId};

/// Bytes of a tree's number before each key.
pub(crate) const PREFIX_BYTES: usize = 4;

/// The format that this version writes, and the only one that it reads.
pub(crate) const FORMAT: u32 = 1;

/// Where the format's number lies.
pub(crate) const FORMAT_KEY: &[u8] = b"format";

/// Where the number of the next tree lies.
pub(crate) const NEXT_TREE_KEY: &[u8] = b"next-tree";

/// Every key of a tree record begins with this.
pub(crate) const TREE_KEY_PREFIX: &[u8] = b"tree:";

/// Keys from one that is included up to before another, as a column family holds them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FamilyRange {
    pub(crate) lower: Vec<u8>,
    pub(crate) upper: Vec<u8>,
}

/// A tree's key, as its column family holds it.
pub(crate) fn family_key(tree: TreeId, key: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(PREFIX_BYTES + key.len());
    bytes.extend_from_slice(&tree.get().to_be_bytes());
    bytes.extend_from_slice(key);
    bytes
}

/// A tree's range, as its column family holds it; `None` if it has no keys.
pub(crate) fn family_range(tree: TreeId, range: &KeyRange) -> Option<FamilyRange> {
    let range = range.half_open()?;
    let lower = match &range.lower {
        Bound::Included(key) | Bound::Excluded(key) => family_key(tree, key),
        Bound::Unbounded => family_key(tree, b""),
    };
    let upper = match (&range.upper, tree.get().checked_add(1)) {
        (Bound::Included(key) | Bound::Excluded(key), _) => family_key(tree, key),
        (Bound::Unbounded, Some(next)) => family_key(TreeId::new(next), b""),
        (Bound::Unbounded, None) => last_key(tree),
    };
    Some(FamilyRange { lower, upper })
}

/// All keys of a tree.
pub(crate) fn whole_tree(tree: TreeId) -> FamilyRange {
    family_range(tree, &KeyRange::all()).expect("the range of all keys is not empty")
}

/// A key above all that a tree can have, and below those of the next tree.
pub(crate) fn last_key(tree: TreeId) -> Vec<u8> {
    family_key(tree, &[0xFF; KEY_BYTES_MAX + 1])
}

/// Where a tree's record lies.
pub(crate) fn tree_record_key(tree: TreeId) -> Vec<u8> {
    [TREE_KEY_PREFIX, &tree.get().to_be_bytes()].concat()
}

/// The tree of a record's key; `None` where the key is none of ours.
pub(crate) fn tree_of_record_key(key: &[u8]) -> Option<TreeId> {
    read_u32(key.strip_prefix(TREE_KEY_PREFIX)?).map(TreeId::new)
}

/// A tree's record: the length of its column family's name, that name, and its own.
pub(crate) fn tree_record(family: &str, name: &str) -> Vec<u8> {
    let length = u16::try_from(family.len()).expect("the text of tree options is short");
    [&length.to_be_bytes()[..], family.as_bytes(), name.as_bytes()].concat()
}

/// The column family and the name of a record; `None` where its bytes make no sense.
pub(crate) fn read_tree_record(bytes: &[u8]) -> Option<(&str, &str)> {
    let (length, rest) = bytes.split_first_chunk::<2>()?;
    let (family, name) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
    Some((std::str::from_utf8(family).ok()?, std::str::from_utf8(name).ok()?))
}

/// Four bytes as a number, most significant first.
pub(crate) fn read_u32(bytes: &[u8]) -> Option<u32> {
    bytes.try_into().ok().map(u32::from_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_and_their_keys_read_back() {
        assert_eq!(
            read_tree_record(&tree_record("compression=lz4", "ümlaut")),
            Some(("compression=lz4", "ümlaut"))
        );
        assert_eq!(read_tree_record(&tree_record("", "")), Some(("", "")));
        assert_eq!(read_tree_record(b"\0\x09short"), None);
        let tree = TreeId::new(77);
        assert_eq!(tree_of_record_key(&tree_record_key(tree)), Some(tree));
        assert_eq!(tree_of_record_key(b"tree:"), None);
    }

    #[test]
    fn an_open_range_covers_its_tree_and_nothing_else() {
        let whole = whole_tree(TreeId::new(255));
        assert_eq!(whole, FamilyRange { lower: vec![0, 0, 0, 255], upper: vec![0, 0, 1, 0] });
        assert!(last_key(TreeId::new(255)) < whole.upper);
        let empty = KeyRange { lower: Bound::Excluded(b"b".to_vec()), upper: Bound::Excluded(b"b".to_vec()) };
        assert_eq!(family_range(TreeId::new(1), &empty), None);
        let range = KeyRange { lower: Bound::Excluded(b"a".to_vec()), upper: Bound::Included(b"b".to_vec()) };
        let expected = FamilyRange { lower: b"\0\0\0\x01a\0".to_vec(), upper: b"\0\0\0\x01b\0".to_vec() };
        assert_eq!(family_range(TreeId::new(1), &range), Some(expected));
    }
}
