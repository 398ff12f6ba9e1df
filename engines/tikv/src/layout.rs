//! The layout of a store's keys in the cluster.
//!
//! Every key begins with `pando/`, the name of the keyspace, and a zero byte. So one cluster holds many
//! stores, and the stores of other programs beside them. Behind it:
//!
//! Beside them, `pando!` and the name of the keyspace lead to the oldest snapshot that a store needs.
//!
//! | byte | then | holds |
//! |---|---|---|
//! | `a` | | the format of the store |
//! | `b` | | the next tree's number |
//! | `c` | tree, 4 bytes big-endian | the name of a tree, behind its state |
//! | `d` | | the owner of the store, and its lease |
//! | `f` | server, 8 bytes big-endian | one of several servers ([`crate::servers`]) |
//! | `e` | tree, 4 bytes big-endian | figures of a tree |
//! | `g` | tree, 4 bytes big-endian | that all servers know of the merges of a tree |
//! | `m` | tree, escaped key, number | a pending merge of a key ([`crate::pending_merges`]) |
//! | `p` | group, number | a piece of a large value ([`crate::large_values`]) |
//! | `q` | group | the tree and the key of a large value |
//! | `t` | tree, key | an entry |
//!
//! Invariant: a key of one table is never a prefix of the range of another, because the tables differ in the
//! byte behind the keyspace.

use std::ops::{Bound, Range};

use pando_storage::{KeyRange, TreeId};

/// The format that this version writes, and the only one that it reads.
pub(crate) const FORMAT: &[u8] = b"1";

/// The first bytes of the keys of all stores.
const STORES: &str = "pando/";

/// The first bytes of the keys by which the stores tell each other their oldest snapshots.
const SNAPSHOTS: &str = "pando!";

/// The longest name of a keyspace.
pub(crate) const KEYSPACE_BYTES_MAX: usize = 64;

/// The bytes of a number behind a key.
const NUMBER_BYTES: usize = 8;

/// The keys of one store.
#[derive(Clone, Debug)]
pub(crate) struct Keyspace {
    prefix: Vec<u8>,
    oldest_snapshot: Vec<u8>,
}

impl Keyspace {
    /// The keys of the store of this name.
    pub(crate) fn new(name: &str) -> Keyspace {
        Keyspace {
            prefix: [STORES.as_bytes(), name.as_bytes(), b"\0"].concat(),
            oldest_snapshot: [SNAPSHOTS.as_bytes(), name.as_bytes()].concat(),
        }
    }

    fn key(&self, table: u8, parts: &[&[u8]]) -> Vec<u8> {
        let bytes = parts.iter().map(|part| part.len()).sum::<usize>();
        let mut key = Vec::with_capacity(self.prefix.len() + 1 + bytes);
        key.extend_from_slice(&self.prefix);
        key.push(table);
        parts.iter().for_each(|part| key.extend_from_slice(part));
        key
    }

    /// Where the format lies.
    pub(crate) fn format(&self) -> Vec<u8> {
        self.key(b'a', &[])
    }

    /// Where the next tree's number lies.
    pub(crate) fn next_tree(&self) -> Vec<u8> {
        self.key(b'b', &[])
    }

    /// Where the record of a tree lies.
    pub(crate) fn tree_record(&self, tree: TreeId) -> Vec<u8> {
        self.key(b'c', &[&tree.get().to_be_bytes()])
    }

    /// The records of all trees.
    pub(crate) fn tree_records(&self) -> Range<Vec<u8>> {
        self.table(b'c')
    }

    /// Where the lease lies.
    pub(crate) fn lease(&self) -> Vec<u8> {
        self.key(b'd', &[])
    }

    /// Where one of several servers is noted.
    pub(crate) fn server(&self, number: u64) -> Vec<u8> {
        self.key(b'f', &[&number.to_be_bytes()])
    }

    /// Where all of them are.
    pub(crate) fn servers(&self) -> Range<Vec<u8>> {
        self.table(b'f')
    }

    /// The number of a key in [`Keyspace::servers`].
    pub(crate) fn server_of(&self, key: &[u8]) -> Option<u64> {
        key.get(self.prefix.len() + 1..)?.try_into().ok().map(u64::from_be_bytes)
    }

    /// Where it is noted that all servers know of the merges of a tree.
    pub(crate) fn merges_known(&self, tree: TreeId) -> Vec<u8> {
        self.key(b'g', &[&tree.get().to_be_bytes()])
    }

    /// Where this store tells the others its oldest snapshot; each of several servers has a place of its own.
    pub(crate) fn oldest_snapshot(&self, server: Option<u64>) -> Vec<u8> {
        match server {
            None => self.oldest_snapshot.clone(),
            Some(server) => [&self.oldest_snapshot, &b"/"[..], &server.to_be_bytes()].concat(),
        }
    }

    /// Where all stores do.
    pub(crate) fn oldest_snapshots() -> Range<Vec<u8>> {
        SNAPSHOTS.as_bytes().to_vec()..after(SNAPSHOTS.as_bytes().to_vec())
    }

    /// Where the figures of a tree lie.
    pub(crate) fn figures(&self, tree: TreeId) -> Vec<u8> {
        self.key(b'e', &[&tree.get().to_be_bytes()])
    }

    /// The figures of all trees.
    pub(crate) fn all_figures(&self) -> Range<Vec<u8>> {
        self.table(b'e')
    }

    /// An entry.
    pub(crate) fn entry(&self, tree: TreeId, key: &[u8]) -> Vec<u8> {
        self.key(b't', &[&tree.get().to_be_bytes(), key])
    }

    /// The entries of a range; `None` if it has no keys.
    pub(crate) fn entries(&self, tree: TreeId, range: &KeyRange) -> Option<Range<Vec<u8>>> {
        let range = range.half_open()?;
        let start = match &range.lower {
            Bound::Included(key) | Bound::Excluded(key) => self.entry(tree, key),
            Bound::Unbounded => self.entry(tree, b""),
        };
        let end = match &range.upper {
            Bound::Included(key) | Bound::Excluded(key) => self.entry(tree, key),
            Bound::Unbounded => after(self.entry(tree, b"")),
        };
        Some(start..end)
    }

    /// The tree's own key of an entry in the cluster.
    pub(crate) fn own_key<'k>(&self, entry: &'k [u8]) -> &'k [u8] {
        &entry[self.prefix.len() + 1 + size_of::<u32>()..]
    }

    /// A pending merge of a key.
    pub(crate) fn merge(&self, tree: TreeId, key: &[u8], number: u64) -> Vec<u8> {
        self.key(b'm', &[&tree.get().to_be_bytes(), &escaped(key), &number.to_be_bytes()])
    }

    /// The pending merges of the keys of a range; `None` if it has no keys.
    pub(crate) fn merges(&self, tree: TreeId, range: &KeyRange) -> Option<Range<Vec<u8>>> {
        let range = range.half_open()?;
        let of = |key: &[u8]| self.key(b'm', &[&tree.get().to_be_bytes(), &escaped(key)]);
        let whole = self.key(b'm', &[&tree.get().to_be_bytes()]);
        let start = match &range.lower {
            Bound::Included(key) | Bound::Excluded(key) => of(key),
            Bound::Unbounded => whole.clone(),
        };
        let end = match &range.upper {
            Bound::Included(key) | Bound::Excluded(key) => of(key),
            Bound::Unbounded => after(whole),
        };
        Some(start..end)
    }

    /// The key that a pending merge is for; `None` where the bytes make no sense.
    pub(crate) fn key_of_merge(&self, merge: &[u8]) -> Option<Vec<u8>> {
        let rest = merge.get(self.prefix.len() + 1 + size_of::<u32>()..)?;
        unescaped(rest.get(..rest.len().checked_sub(NUMBER_BYTES)?)?)
    }

    /// A piece of a large value.
    pub(crate) fn piece(&self, group: u64, number: u32) -> Vec<u8> {
        self.key(b'p', &[&group.to_be_bytes(), &number.to_be_bytes()])
    }

    /// Where the owner of a large value is named.
    pub(crate) fn group(&self, group: u64) -> Vec<u8> {
        self.key(b'q', &[&group.to_be_bytes()])
    }

    /// The owners of all large values.
    pub(crate) fn groups(&self) -> Range<Vec<u8>> {
        self.table(b'q')
    }

    /// The group of a key in [`Keyspace::groups`].
    pub(crate) fn group_of(&self, key: &[u8]) -> Option<u64> {
        key.get(self.prefix.len() + 1..)?.try_into().ok().map(u64::from_be_bytes)
    }

    /// The tree of a key in [`Keyspace::tree_records`] or [`Keyspace::all_figures`].
    pub(crate) fn tree_of(&self, key: &[u8]) -> Option<TreeId> {
        key.get(self.prefix.len() + 1..)?.try_into().ok().map(u32::from_be_bytes).map(TreeId::new)
    }

    fn table(&self, table: u8) -> Range<Vec<u8>> {
        self.key(table, &[])..self.key(table + 1, &[])
    }
}

/// The first key that does not begin with these bytes.
fn after(mut prefix: Vec<u8>) -> Vec<u8> {
    while let Some(last) = prefix.pop() {
        if last < u8::MAX {
            prefix.push(last + 1);
            return prefix;
        }
    }
    unreachable!("a key begins with the name of its keyspace")
}

/// Bytes that sort as the key does, and of which none is the beginning of another's.
fn escaped(key: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(key.len() + 2);
    for byte in key {
        bytes.push(*byte);
        if *byte == 0 {
            bytes.push(0xFF);
        }
    }
    bytes.extend_from_slice(&[0, 1]);
    bytes
}

fn unescaped(bytes: &[u8]) -> Option<Vec<u8>> {
    let bytes = bytes.strip_suffix(&[0, 1])?;
    let (mut key, mut rest) = (Vec::with_capacity(bytes.len()), bytes.iter());
    while let Some(byte) = rest.next() {
        key.push(*byte);
        if *byte == 0 && rest.next() != Some(&0xFF) {
            return None;
        }
    }
    Some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_keys_sort_as_the_keys_do_and_read_back() {
        let mut keys: Vec<&[u8]> =
            vec![b"", b"\0", b"\0\0", b"\0\x01", b"\0\xFF", b"a", b"a\0", b"a\0b", b"b", b"\xFF"];
        keys.sort_unstable();
        let pairs: Vec<Vec<u8>> = keys.iter().map(|key| escaped(key)).collect();
        assert!(pairs.is_sorted());
        for (key, bytes) in keys.iter().zip(&pairs) {
            assert_eq!(unescaped(bytes).as_deref(), Some(*key));
        }
        for (one, other) in pairs.iter().zip(&pairs[1..]) {
            assert!(!other.starts_with(one));
        }
        assert_eq!(unescaped(b"a"), None);
        assert_eq!(unescaped(b"a\0b\0\x01"), None);
    }

    #[test]
    fn a_range_of_a_tree_holds_its_entries_and_no_others() {
        let keyspace = Keyspace::new("shop");
        let (tree, next) = (TreeId::new(255), TreeId::new(256));
        let whole = keyspace.entries(tree, &KeyRange::all()).expect("it has keys");
        assert!(
            whole.contains(&keyspace.entry(tree, b"")) && whole.contains(&keyspace.entry(tree, &[0xFF; 50]))
        );
        assert!(!whole.contains(&keyspace.entry(next, b"")));
        assert_eq!(keyspace.own_key(&keyspace.entry(tree, b"key")), b"key");
        let merge = keyspace.merge(tree, b"k\0", 7);
        assert_eq!(keyspace.key_of_merge(&merge).as_deref(), Some(&b"k\0"[..]));
        let point = keyspace.merges(tree, &KeyRange::point(b"k\0")).expect("it has a key");
        assert!(point.contains(&merge) && !point.contains(&keyspace.merge(tree, b"k\0\0", 7)));
        assert!(!point.contains(&keyspace.merge(tree, b"k", 7)));
    }

    #[test]
    fn stores_of_other_names_share_no_key() {
        let (one, other) = (Keyspace::new("a"), Keyspace::new("ab"));
        assert!(!other.entry(TreeId::new(1), b"k").starts_with(&one.prefix));
    }
}
