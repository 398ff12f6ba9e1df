//! Leaf directories: round trip, golden bytes, hostile bytes.

use pando_environment::{Random, SeededRandom};
use pando_storage::CommitTimestamp;

use super::{Directory, PageEntry};
use crate::base::{BlockAddress, BlockKind, Codec, FileId, Generation, Pointer, PointerFields};
use crate::format::filter::{Filter, KeyHash};

pub(crate) fn pointer(kind: BlockKind, grain: u64) -> Pointer {
    Pointer::new(PointerFields {
        file: FileId::FIRST,
        kind,
        codec: Codec::Zstd,
        address: BlockAddress::new(grain),
        disk_length: 1000,
        raw_length: 4000,
        birth: Generation::new(5),
        checksum: 0x1122_3344_5566_7788,
    })
    .unwrap()
}

fn page(grain: u64, entries: u32) -> PageEntry {
    let pointer = pointer(BlockKind::Page, grain);
    PageEntry { pointer, entries, newest: CommitTimestamp::new(7), large_bytes: 300 }
}

fn example() -> Directory {
    let separators = [&b""[..], b"b", b"cc"];
    Directory::new(separators.into_iter(), vec![page(16, 10), page(18, 20), page(20, 30)], 999)
}

#[test]
fn a_directory_comes_back_and_finds_the_page_of_a_key() {
    let bytes = example().encode();
    let directory = Directory::decode(&bytes).unwrap();
    assert_eq!((directory.entries(), directory.content_bytes(), directory.pages().len()), (60, 999, 3));
    for (key, expected) in [(&b""[..], 0), (b"a", 0), (b"b", 1), (b"c", 1), (b"cc", 2), (b"zzz", 2)] {
        assert_eq!(directory.page_of(key), expected, "{key:?}");
    }
    assert_eq!(directory.encode(), bytes);
    assert!(bytes.len() <= Directory::encoded_bytes_max(3, 3, &Filter::default()));
}

/// The bytes of docs/data-file.md: a change here is a change of the format.
#[test]
fn golden_a_directory_of_one_page() {
    let directory = Directory::new([&b""[..]].into_iter(), vec![page(16, 10)], 999);
    let expected = [
        &[1_u8, 0][..],                         // version, flags
        &[1, 10, 0xA0, 0x1F, 0xE7, 0x07, 0],    // pages, entries, raw bytes 4000, content bytes 999, filters
        &[0],                                   // empty separator
        &pointer(BlockKind::Page, 16).encode(), // see "Pointer"
        &[10, 7, 0xAC, 0x02],                   // entries, newest, bytes of large values
    ]
    .concat();
    assert_eq!(directory.encode(), expected);
}

#[test]
fn a_directory_keeps_its_filter_and_says_how_long_it_is_at_most() {
    let keys: Vec<KeyHash> = [&b"a"[..], b"b", b"cc"].into_iter().map(KeyHash::of).collect();
    let filter = Filter::new(&keys, 10);
    let bytes = example().with_filter(filter.clone()).encode();
    let directory = Directory::decode(&bytes).unwrap();
    assert_eq!(directory.filter(), &filter);
    assert!(keys.iter().all(|key| directory.filter().may_contain(*key)));
    assert!(bytes.len() <= Directory::encoded_bytes_max(3, 3, &filter));
    assert_eq!(bytes.len(), example().encode().len() + 32);
    assert!(Directory::decode(&bytes[..bytes.len() - 1]).is_err());
}

#[test]
fn separators_out_of_order_are_refused() {
    let bytes = example().encode();
    let at = bytes.windows(3).position(|window| window == b"\x02cc").unwrap();
    let mut changed = bytes;
    changed[at + 1] = b'a';
    assert!(Directory::decode(&changed).is_err());
}

#[test]
fn changed_bytes_never_panic() {
    let random = SeededRandom::new(3);
    let bytes = example().encode();
    for _ in 0..5_000 {
        let mut changed = bytes.clone();
        for _ in 0..1 + random.next_u64() % 3 {
            let at = random.next_u64() as usize % changed.len();
            changed[at] = random.next_u64() as u8;
        }
        changed.truncate(1 + random.next_u64() as usize % changed.len());
        if let Ok(directory) = Directory::decode(&changed) {
            let _page = directory.page_of(b"c");
        }
    }
}
