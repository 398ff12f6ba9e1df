//! Slice indexes: round trip, announced length, golden bytes, hostile bytes.

use pando_environment::{Random, SeededRandom};
use pando_storage::CommitTimestamp;

use super::SliceIndex;
use crate::base::{BlockAddress, BlockKind, Codec, FileId, Generation, Pointer, PointerFields};
use crate::format::directory::{Directory, PageEntry, PageSketch};
use crate::format::filter::{Filter, KeyHash};

const SEPARATORS: [&[u8]; 3] = [b"", b"b", b"cc"];

fn page(kind: BlockKind, grain: u64) -> PageEntry {
    let pointer = Pointer::new(PointerFields {
        file: FileId::FIRST,
        kind,
        codec: Codec::Zstd,
        address: BlockAddress::new(grain),
        disk_length: 1000,
        raw_length: 4000,
        birth: Generation::new(5),
        checksum: 0x1122_3344_5566_7788,
    });
    let (pointer, newest) = (pointer.unwrap(), CommitTimestamp::new(1 << 40));
    PageEntry { pointer, entries: 300, newest, large_bytes: 1 << 20 }
}

fn example() -> SliceIndex {
    let pages = [16, 18, 20].map(|grain| page(BlockKind::RunPage, grain));
    let pages = Directory::new(SEPARATORS.into_iter(), pages.into(), 999);
    let keys: Vec<KeyHash> = (0..300_u32).map(|number| KeyHash::of(&number.to_le_bytes())).collect();
    SliceIndex { pages, filter: Filter::new(&keys, 10) }
}

#[test]
fn an_index_comes_back() {
    let bytes = example().encode();
    let index = SliceIndex::decode(&bytes).unwrap();
    assert_eq!((index.pages.entries(), index.pages.pages().len()), (900, 3));
    assert_eq!(index.filter, example().filter);
    assert_eq!(index.encode(), bytes);
}

#[test]
fn its_length_is_known_before_its_pointers_are() {
    let index = example();
    let sketches: Vec<PageSketch<'_>> = SEPARATORS
        .into_iter()
        .zip(index.pages.pages())
        .map(|(separator, page)| PageSketch {
            separator,
            entries: page.entries,
            newest: page.newest,
            large_bytes: page.large_bytes,
            raw_bytes: page.pointer.raw_length() as usize,
        })
        .collect();
    let pages = Directory::encoded_bytes(&sketches, 999);
    assert_eq!(SliceIndex::encoded_bytes(&index.filter, pages), index.encode().len());
}

/// The bytes of docs/data-file.md: a change here is a change of the format.
#[test]
fn golden_an_index_of_one_page_without_a_filter() {
    let page = page(BlockKind::RunPage, 16);
    let pages = Directory::new([&b""[..]].into_iter(), vec![page], 999);
    let index = SliceIndex { pages, filter: Filter::default() };
    let expected = [
        &[1_u8, 0][..],                                    // version, blocks of the filter
        &[1, 0, 1, 0xAC, 0x02, 0xA0, 0x1F, 0xE7, 0x07, 0], // as a leaf directory
        &[0],                                              // empty separator
        &page.pointer.encode(),
        &[0xAC, 0x02, 0x80, 0x80, 0x80, 0x80, 0x80, 0x20], // entries, newest
        &[0x80, 0x80, 0x40],                               // bytes of large values
    ]
    .concat();
    assert_eq!(index.encode(), expected);
}

#[test]
fn pages_of_leaves_are_refused() {
    let pages = Directory::new([&b""[..]].into_iter(), vec![page(BlockKind::Page, 16)], 999);
    let index = SliceIndex { pages, filter: Filter::default() };
    assert!(SliceIndex::decode(&index.encode()).is_err());
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
        if let Ok(index) = SliceIndex::decode(&changed) {
            let _page = index.pages.page_of(b"c");
            let _passes = index.filter.may_contain(KeyHash::of(b"c"));
        }
    }
}
