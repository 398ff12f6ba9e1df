//! A page of a layer: writes in order of tree and key, those of one key newest first.
//!
//! # Layout, before compression
//! ```text
//! per write: varint tree, varint key length, the key, varint number, flags, varint value length,
//!            the value or the merges
//! flags: 1 deletion, 2 blind, 4 merges
//! ```
//! On the device a page is an LZ4 block, or its raw bytes where these are not longer. The layer's index in
//! memory has its place, lengths and checksum.

use std::cmp::Ordering;
use std::ops::Range;

use crate::access::Claim;
use crate::identifiers::TreeId;
use crate::merge::Merges;
use crate::write_set::{Change, Write};

const DELETION: u8 = 1;
const BLIND: u8 = 2;
const MERGES: u8 = 4;

/// A write with its number within the transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Numbered<'p> {
    pub(super) number: usize,
    pub(super) write: Write<'p>,
}

impl Numbered<'_> {
    /// The order within a layer.
    pub(super) fn order(&self, other: &Numbered<'_>) -> Ordering {
        let (one, two) = (&self.write, &other.write);
        (one.tree, one.key).cmp(&(two.tree, two.key)).then(other.number.cmp(&self.number))
    }
}

/// Appends a write to a page's raw bytes.
pub(super) fn encode(raw: &mut Vec<u8>, entry: &Numbered<'_>) {
    let write = &entry.write;
    write_varint(raw, u64::from(write.tree.get()));
    write_varint(raw, write.key.len() as u64);
    raw.extend_from_slice(write.key);
    write_varint(raw, entry.number as u64);
    let kind = match write.change {
        Change::Put(_) => 0,
        Change::Delete => DELETION,
        Change::Merge(_) => MERGES,
    };
    raw.push(kind | if write.claim == Claim::Blind { BLIND } else { 0 });
    let value = write.change.bytes();
    write_varint(raw, value.len() as u64);
    raw.extend_from_slice(value);
}

/// A page that was read.
pub(super) struct Page {
    raw: Vec<u8>,
    entries: Vec<Entry>,
}

struct Entry {
    tree: TreeId,
    key: Range<u32>,
    value: Range<u32>,
    number: usize,
    flags: u8,
}

impl Page {
    /// The page of these raw bytes; `None` if they are none.
    pub(super) fn decode(raw: Vec<u8>) -> Option<Page> {
        let mut entries = Vec::new();
        let mut at = 0;
        while at < raw.len() {
            let tree = TreeId::new(u32::try_from(read_varint(&raw, &mut at)?).ok()?);
            let key = read_bytes(&raw, &mut at)?;
            let number = usize::try_from(read_varint(&raw, &mut at)?).ok()?;
            let flags = *raw.get(at)?;
            at += 1;
            let value = read_bytes(&raw, &mut at)?;
            if flags & MERGES != 0 {
                Merges::decode(&raw[value.start as usize..value.end as usize])?;
            }
            entries.push(Entry { tree, key, value, number, flags });
        }
        Some(Page { raw, entries })
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn entry(&self, at: usize) -> Numbered<'_> {
        let entry = &self.entries[at];
        let bytes = |range: &Range<u32>| &self.raw[range.start as usize..range.end as usize];
        let write = Write {
            tree: entry.tree,
            key: bytes(&entry.key),
            change: match entry.flags {
                flags if flags & MERGES != 0 => {
                    let merges = Merges::decode(bytes(&entry.value));
                    Change::Merge(merges.expect("they were checked when the page was decoded"))
                }
                flags if flags & DELETION != 0 => Change::Delete,
                _ => Change::Put(bytes(&entry.value)),
            },
            claim: if entry.flags & BLIND == 0 { Claim::Intent } else { Claim::Blind },
        };
        Numbered { number: entry.number, write }
    }

    /// The first entry that is not before a key.
    pub(super) fn lower_bound(&self, tree: TreeId, key: &[u8]) -> usize {
        self.entries.partition_point(|entry| {
            let own = &self.raw[entry.key.start as usize..entry.key.end as usize];
            (entry.tree, own) < (tree, key)
        })
    }

    /// Bytes of memory, about.
    pub(super) fn memory(&self) -> usize {
        self.raw.capacity() + self.entries.capacity() * size_of::<Entry>()
    }
}

fn write_varint(raw: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        raw.push(number as u8 | 0x80);
        number >>= 7;
    }
    raw.push(number as u8);
}

fn read_varint(raw: &[u8], at: &mut usize) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = *raw.get(*at)?;
        *at += 1;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

fn read_bytes(raw: &[u8], at: &mut usize) -> Option<Range<u32>> {
    let length = usize::try_from(read_varint(raw, at)?).ok()?;
    let (start, end) = (*at, at.checked_add(length).filter(|end| *end <= raw.len())?);
    *at = end;
    Some(u32::try_from(start).ok()?..u32::try_from(end).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merge::Merge;

    #[test]
    fn a_page_gives_its_writes_back_and_every_cut_of_it_is_none() {
        let long = vec![7; 1_000];
        let add = Merge::Add(7).to_bytes();
        let merges = Merges::decode(&add).expect("it is one");
        let tree = TreeId::new(300);
        let writes = [
            (9, Write::put(tree, b"a", b"", Claim::Blind)),
            (700, Write::delete(tree, b"b", Claim::Intent)),
            (4, Write::put(tree, b"b", &long, Claim::Intent)),
            (5, Write { tree, key: b"c", change: Change::Merge(merges), claim: Claim::Blind }),
        ];
        let writes = writes.map(|(number, write)| Numbered { number, write });
        let mut raw = Vec::new();
        writes.iter().for_each(|entry| encode(&mut raw, entry));
        let page = Page::decode(raw.clone()).expect("it is one");
        assert_eq!((0..page.len()).map(|at| page.entry(at)).collect::<Vec<_>>(), writes);
        assert_eq!(page.lower_bound(tree, b"aa"), 1);
        let cuts = (1..raw.len()).filter(|cut| Page::decode(raw[..*cut].to_vec()).is_some());
        assert!(cuts.count() <= 3, "only between two writes");
        let operator = raw.len() - add.len();
        raw[operator] = 0xEE;
        assert!(Page::decode(raw).is_none(), "no such operator");
    }
}
