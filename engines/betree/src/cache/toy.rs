//! Blocks of tests: a page is a number and some padding, and a directory is empty.

use bytes::Bytes;

use super::block_types::{BlockTypes, DecodedDirectory, DecodedPage};
use super::page_cache::PageCache;
use crate::base::{BlockAddress, BlockKind, Codec, FileId, FormatError, Generation, Pointer, PointerFields};
use crate::memory::page_memory;

/// A cache of toy blocks.
pub(super) type ToyCache = PageCache<ToyTypes>;

pub(super) struct ToyTypes;

impl BlockTypes for ToyTypes {
    type Page = ToyPage;
    type Directory = ToyDirectory;
}

/// A page that holds a number in its first eight bytes.
#[derive(Clone, Debug)]
pub(super) struct ToyPage(Bytes);

impl ToyPage {
    /// A page of `length` bytes, eight at least.
    pub(super) fn new(number: u64, length: usize) -> ToyPage {
        let mut raw = vec![7; length.max(8)];
        raw[..8].copy_from_slice(&number.to_le_bytes());
        ToyPage(page_memory::copy(&raw))
    }

    pub(super) fn number(&self) -> u64 {
        u64::from_le_bytes(self.0[..8].try_into().expect("eight bytes"))
    }
}

impl DecodedPage for ToyPage {
    fn from_block(raw: Bytes) -> Result<ToyPage, FormatError> {
        Ok(ToyPage(raw))
    }

    fn check_kind(&self, _: &Pointer) -> Result<(), FormatError> {
        Ok(())
    }

    fn heap_bytes(&self) -> usize {
        page_memory::footprint(self.0.len()) + size_of::<ToyPage>()
    }
}

#[derive(Debug)]
pub(super) struct ToyDirectory;

impl DecodedDirectory for ToyDirectory {
    fn from_block(_: &[u8]) -> Result<ToyDirectory, FormatError> {
        Ok(ToyDirectory)
    }

    fn heap_bytes(&self) -> usize {
        0
    }
}

/// A pointer to the page of this number, which takes `raw_length` bytes before compression.
pub(super) fn pointer(number: u64, raw_length: u32) -> Pointer {
    let fields = PointerFields {
        file: FileId::FIRST,
        kind: BlockKind::Page,
        codec: Codec::None,
        address: BlockAddress::new(256 + number * 8),
        disk_length: 200,
        raw_length,
        birth: Generation::new(1),
        checksum: number,
    };
    Pointer::new(fields).expect("the fields are good ones")
}
