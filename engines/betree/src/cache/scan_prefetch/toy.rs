//! Chunks of toy pages, read without a device.

use super::*;
use crate::cache::toy::{self, ToyPage};

/// Bytes of a page before compression.
pub(super) const PAGE_BYTES: usize = 128 << 10;

pub(super) type ToyPrefetch = ScanPrefetch<ToyPage>;

pub(super) fn pointers(numbers: std::ops::Range<u64>) -> Vec<Pointer> {
    numbers.map(|number| toy::pointer(number, PAGE_BYTES as u32)).collect()
}

pub(super) fn keys(numbers: std::ops::Range<u64>) -> Vec<BlockKey> {
    pointers(numbers).iter().map(BlockKey::of).collect()
}

/// Reads all pages of a chunk.
pub(super) fn read(pages: &[Pointer]) -> ReadyPages<ToyPage> {
    let page = |pointer: &Pointer| ToyPage::new(pointer.checksum(), 8);
    pages.iter().map(|pointer| (BlockKey::of(pointer), page(pointer))).collect()
}

/// Chunks, each from a page up to another; the number of the page behind it is the frontier.
pub(super) fn requests<const COUNT: usize>(chunks: [(u64, u64); COUNT]) -> Vec<ChunkRequest> {
    let request = |(from, to): (u64, u64)| ChunkRequest {
        pages: pointers(from..to),
        raw_bytes: (to - from) * PAGE_BYTES as u64,
        frontier: Some([to as u8].into()),
    };
    chunks.map(request).into()
}

/// The time this many milliseconds after the beginning.
pub(super) fn at(milliseconds: u64) -> Monotonic {
    Monotonic::new(Duration::from_millis(milliseconds))
}

/// A scan that visits its stream this many milliseconds after the beginning.
pub(super) fn visit(scan: ScanId, milliseconds: u64, limits: PrefetchLimits) -> ScanVisit {
    ScanVisit { scan, now: at(milliseconds), limits }
}
