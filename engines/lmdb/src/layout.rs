//! The layout of LMDB's one table, which all trees share: every key is preceded by its tree's number,
//! big-endian.
//!
//! A named database for each tree would not do. LMDB fixes the number of those when it opens, takes no empty
//! keys, and cannot drop one that a reader still uses. Tree 0 is the engine's own. It holds the store's
//! format, the next tree's number, and a record for each tree.

use std::ops::Bound;

use pando_storage::{Estimate, KeyRange, TreeId};

/// Bytes of a tree's number before each key.
pub(crate) const PREFIX_BYTES: usize = 4;

/// The format that this version writes, and the only one that it reads.
pub(crate) const FORMAT: u32 = 1;

/// Where the format's number lies.
pub(crate) const FORMAT_KEY: &[u8] = b"\0\0\0\0format";

/// Where the number of the next tree lies.
pub(crate) const NEXT_TREE_KEY: &[u8] = b"\0\0\0\0next-tree";

/// Every key of the engine's tree records begins with this.
pub(crate) const TREE_KEY_PREFIX: &[u8] = b"\0\0\0\0tree:";

/// A tree's key, as the table holds it.
pub(crate) fn table_key(tree: TreeId, key: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(PREFIX_BYTES + key.len());
    bytes.extend_from_slice(&tree.get().to_be_bytes());
    bytes.extend_from_slice(key);
    bytes
}

/// A tree's range, as the table holds it.
pub(crate) fn table_range(tree: TreeId, range: &KeyRange) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
    let place = |bound: &Bound<Vec<u8>>| bound.as_ref().map(|key| table_key(tree, key));
    let lower = match place(&range.lower) {
        Bound::Unbounded => Bound::Included(table_key(tree, b"")),
        bound => bound,
    };
    let upper = match (place(&range.upper), tree.get().checked_add(1)) {
        (Bound::Unbounded, Some(next)) => Bound::Excluded(table_key(TreeId::new(next), b"")),
        (bound, _) => bound,
    };
    (lower, upper)
}

/// Where a tree's record lies.
pub(crate) fn tree_record_key(tree: TreeId) -> Vec<u8> {
    [TREE_KEY_PREFIX, &tree.get().to_be_bytes()].concat()
}

/// The tree of a record's key; `None` where the key is none of ours.
pub(crate) fn tree_of_record_key(key: &[u8]) -> Option<TreeId> {
    read_u32(key.strip_prefix(TREE_KEY_PREFIX)?).map(TreeId::new)
}

/// A tree's record: how much lies in it, and its name.
pub(crate) fn tree_record(size: Estimate, name: &str) -> Vec<u8> {
    [&size.entries.to_be_bytes()[..], &size.bytes.to_be_bytes(), name.as_bytes()].concat()
}

/// The size and the name of a record; `None` where its bytes make no sense.
pub(crate) fn read_tree_record(bytes: &[u8]) -> Option<(Estimate, String)> {
    let (entries, rest) = bytes.split_first_chunk::<8>()?;
    let (size, name) = rest.split_first_chunk::<8>()?;
    let size = Estimate { entries: u64::from_be_bytes(*entries), bytes: u64::from_be_bytes(*size) };
    Some((size, String::from_utf8(name.to_vec()).ok()?))
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
        let size = Estimate { entries: 3, bytes: 700 };
        assert_eq!(read_tree_record(&tree_record(size, "ümlaut")), Some((size, "ümlaut".to_owned())));
        assert_eq!(read_tree_record(b"too short"), None);
        let tree = TreeId::new(77);
        assert_eq!(tree_of_record_key(&tree_record_key(tree)), Some(tree));
        assert_eq!(tree_of_record_key(b"tree:"), None);
    }

    #[test]
    fn an_open_range_covers_its_tree_and_nothing_else() {
        let (lower, upper) = table_range(TreeId::new(255), &KeyRange::all());
        assert_eq!(lower, Bound::Included(vec![0, 0, 0, 255]));
        assert_eq!(upper, Bound::Excluded(vec![0, 0, 1, 0]));
        assert_eq!(table_range(TreeId::new(u32::MAX), &KeyRange::all()).1, Bound::Unbounded);
    }
}
