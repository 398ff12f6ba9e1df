//! The layout of a store: its folder, the table of each tree, keys, and the engine's own records.
//!
//! ```text
//! DIR/LOCK                     this process has the store open
//! DIR/wiredtiger/              WiredTiger's own folder
//!     pando.wt                 the engine's records: format, numbers, trees
//!     tree-00000007.wt         the B-tree of tree 7
//!     tree-00000008-000001.lsm a chunk of the LSM tree 8
//! ```
//! A folder of its own keeps the store from being taken for one of MongoDB, and the reverse.
//!
//! # Keys
//! WiredTiger takes no empty key. A key of zero bytes alone (none of them, too) is stored with one more;
//! every other is stored as it is. That keeps the order, and costs nothing for keys that occur.

use std::borrow::Cow;
use std::ffi::CString;

use pando_storage::{Estimate, TreeId};

use crate::library::c_text;
use crate::options::TableType;

/// WiredTiger's folder within the store's.
pub(crate) const FOLDER: &str = "wiredtiger";

/// The format that this version writes, and the only one that it reads.
pub(crate) const FORMAT: u32 = 1;

/// The table of the engine's records.
pub(crate) const RECORDS_URI: &std::ffi::CStr = c"table:pando";
/// Its number as a table; no tree has it.
pub(crate) const RECORDS_NUMBER: u32 = 0;

/// The key of the format's number.
pub(crate) const FORMAT_KEY: &[u8] = b"format";
/// The key of the number of the next tree.
pub(crate) const NEXT_TREE_KEY: &[u8] = b"next-tree";
/// The key of the number that all commits stay below.
pub(crate) const NUMBER_LIMIT_KEY: &[u8] = b"number-limit";
/// Every key of a tree's record begins with this.
const TREE_KEY_PREFIX: &[u8] = b"tree:";

const TABLE_PREFIX: &str = "table:tree-";
const FILE_PREFIX: &str = "tree-";

/// A key as a table holds it.
pub(crate) fn stored_key(key: &[u8]) -> Cow<'_, [u8]> {
    if key.iter().all(|byte| *byte == 0) { Cow::Owned(vec![0; key.len() + 1]) } else { Cow::Borrowed(key) }
}

/// A key out of a table.
pub(crate) fn key_of_stored(stored: &[u8]) -> &[u8] {
    if stored.iter().all(|byte| *byte == 0) { &stored[..stored.len().saturating_sub(1)] } else { stored }
}

/// The name of a tree's table.
pub(crate) fn table_uri(tree: TreeId) -> CString {
    c_text(&format!("{TABLE_PREFIX}{:08}", tree.get()))
}

/// The tree of an object in WiredTiger's metadata; `None` if it is no tree's table.
pub(crate) fn tree_of_uri(uri: &str) -> Option<TreeId> {
    uri.strip_prefix(TABLE_PREFIX)?.parse().ok().map(TreeId::new)
}

/// The tree of a file in WiredTiger's folder; `None` if it is no tree's.
pub(crate) fn tree_of_file(name: &str) -> Option<TreeId> {
    let number = name.strip_prefix(FILE_PREFIX)?;
    let digits = number.find(|letter: char| !letter.is_ascii_digit())?;
    number[..digits].parse().ok().map(TreeId::new)
}

/// Where a tree's record lies.
pub(crate) fn tree_record_key(tree: TreeId) -> Vec<u8> {
    [TREE_KEY_PREFIX, &tree.get().to_be_bytes()].concat()
}

/// The tree of a record's key; `None` where the key is none of a tree.
pub(crate) fn tree_of_record_key(key: &[u8]) -> Option<TreeId> {
    let number = key.strip_prefix(TREE_KEY_PREFIX)?.try_into().ok()?;
    Some(TreeId::new(u32::from_be_bytes(number)))
}

/// A tree's record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TreeRecord {
    pub(crate) size: Estimate,
    pub(crate) table_type: TableType,
    pub(crate) name: String,
}

impl TreeRecord {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let table_type = match self.table_type {
            TableType::Btree => 0,
            TableType::Lsm => 1,
        };
        let size = [self.size.entries.to_be_bytes(), self.size.bytes.to_be_bytes()].concat();
        [&size, &[table_type][..], self.name.as_bytes()].concat()
    }

    /// `None` where the bytes make no sense.
    pub(crate) fn decode(bytes: &[u8]) -> Option<TreeRecord> {
        let (entries, rest) = bytes.split_first_chunk::<8>()?;
        let (size, rest) = rest.split_first_chunk::<8>()?;
        let (table_type, name) = rest.split_first()?;
        let table_type = match table_type {
            0 => TableType::Btree,
            1 => TableType::Lsm,
            _ => return None,
        };
        let size = Estimate { entries: u64::from_be_bytes(*entries), bytes: u64::from_be_bytes(*size) };
        Some(TreeRecord { size, table_type, name: String::from_utf8(name.to_vec()).ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_keep_their_order_and_read_back() {
        let bytes = [0_u8, 1, 255];
        let mut keys: Vec<Vec<u8>> = vec![vec![]];
        for length in 1..4_u32 {
            for number in 0..3_usize.pow(length) {
                keys.push((0..length).map(|at| bytes[number / 3_usize.pow(at) % 3]).collect());
            }
        }
        keys.sort();
        let stored: Vec<Vec<u8>> = keys.iter().map(|key| stored_key(key).into_owned()).collect();
        assert!(stored.is_sorted_by(|one, other| one < other) && stored.iter().all(|key| !key.is_empty()));
        assert!(keys.iter().zip(&stored).all(|(key, stored)| key_of_stored(stored) == key.as_slice()));
    }

    #[test]
    fn records_and_names_read_back() {
        let size = Estimate { entries: 3, bytes: 700 };
        let record = TreeRecord { size, table_type: TableType::Lsm, name: "ümlaut".to_owned() };
        assert_eq!(TreeRecord::decode(&record.encode()), Some(record));
        assert_eq!(TreeRecord::decode(b"too short"), None);
        let tree = TreeId::new(77);
        assert_eq!(tree_of_record_key(&tree_record_key(tree)), Some(tree));
        assert_eq!(tree_of_record_key(FORMAT_KEY), None);
        assert_eq!(table_uri(tree).to_str(), Ok("table:tree-00000077"));
        assert_eq!(tree_of_uri("table:tree-00000077"), Some(tree));
        assert_eq!(tree_of_file("tree-00000077.wt"), Some(tree));
        assert_eq!(tree_of_file("tree-00000077-000002.lsm"), Some(tree));
        assert!(tree_of_uri("table:pando").is_none() && tree_of_file("WiredTiger.wt").is_none());
    }
}
