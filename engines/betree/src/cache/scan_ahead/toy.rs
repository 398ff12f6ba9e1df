//! Pages that say their number, and pointers to them, without a device.

use pando_storage::CommitTimestamp;

use super::*;
use crate::base::{BlockAddress, BlockKind, Codec, FileId, Generation, PointerFields};
use crate::format::content::Content;
use crate::format::page_builder::PageBuilder;
use crate::memory::page_memory;

/// Bytes of a page, before compression.
pub(super) const PAGE_BYTES: usize = 128 << 10;

pub(super) fn pointer(number: u64) -> Pointer {
    let fields = PointerFields {
        file: FileId::FIRST,
        kind: BlockKind::Page,
        codec: Codec::None,
        address: BlockAddress::new(256 + number * 8),
        disk_length: 200,
        raw_length: PAGE_BYTES as u32,
        birth: Generation::new(1),
        checksum: number,
    };
    Pointer::new(fields).expect("the fields are good ones")
}

pub(super) fn pointers(numbers: std::ops::Range<u64>) -> Vec<Pointer> {
    numbers.map(pointer).collect()
}

pub(super) fn keys(numbers: std::ops::Range<u64>) -> Vec<BlockKey> {
    numbers.map(|number| BlockKey::of(&pointer(number))).collect()
}

fn page(number: u64) -> Page {
    let mut builder = PageBuilder::new();
    builder.push(b"key", CommitTimestamp::ZERO, Content::Value(&number.to_le_bytes()));
    Page::decode(page_memory::copy(&builder.finish())).expect("it was written just now")
}

pub(super) fn number_of(page: &Page) -> u64 {
    let entry = page.entry(0);
    u64::from_le_bytes(page.content(&entry).in_page().try_into().expect("eight bytes"))
}

/// Brings all pages.
pub(super) fn bring(pages: &[Pointer]) -> Landed {
    pages.iter().map(|pointer| (BlockKey::of(pointer), page(pointer.checksum()))).collect()
}

/// Portions, each from a page up to another; the number of the page behind is the frontier.
pub(super) fn wanted<const COUNT: usize>(portions: [(u64, u64); COUNT]) -> Vec<WantedPages> {
    let portion = |(from, to): (u64, u64)| WantedPages {
        pages: pointers(from..to),
        reach: (to - from) * PAGE_BYTES as u64,
        frontier: Some([to as u8].into()),
    };
    portions.map(portion).into()
}

/// So many milliseconds after the beginning.
pub(super) fn at(milliseconds: u64) -> Monotonic {
    Monotonic::new(Duration::from_millis(milliseconds))
}
