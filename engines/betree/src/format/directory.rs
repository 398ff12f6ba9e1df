//! A leaf directory: the pages of a leaf, and the keys that each of them covers.
//!
//! # Layout
//! ```text
//! u8      format version
//! u8      flags, 0
//! varint  pages
//! varint  entries of the whole leaf, varint bytes of its pages before compression
//! varint  bytes of keys and values of the leaf
//! varint  blocks of the leaf's filter, 0 for none, then 32 B each (eight u32): see `filter`
//! per page:
//!   varint  length of the separator, then its bytes; empty for the first page
//!   40 B    pointer of the page
//!   varint  entries, varint newest timestamp among them (0 if none carries one)
//!   varint  bytes of the large values that its entries refer to
//! ```
//! A *separator* is the shortest byte string above every key of the page before and not above any key of its
//! own page. Page `i` covers the keys from its separator up to the next one.
//!
//! ```text
//!  page        0                  1                2
//!  keys        apple .. avocado   banana .. bread  cherry .. citron
//!  separator   ""                 "b"              "c"
//! ```
//!
//! The filter covers the keys of the leaf, for trees that ask for it (`leafFilterBits`). A lookup of an
//! absent key then ends at the directory, which is usually in memory, and reads no page. The directory inside
//! a slice index has no filter here.

use pando_storage::CommitTimestamp;

use super::filter::Filter;
use crate::base::SortedKeys;
use crate::base::{BlockKind, Pointer};
use crate::base::{FORMAT_VERSION, Fields, FormatError, varint_len, write_bytes, write_varint};

const BLOCK: &str = "leaf directory";

/// A page, as its directory describes it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageEntry {
    pub(crate) pointer: Pointer,
    pub(crate) entries: u32,
    pub(crate) newest: CommitTimestamp,
    /// Bytes of the large values that its entries refer to.
    pub(crate) large_bytes: u64,
}

impl AsRef<Pointer> for PageEntry {
    fn as_ref(&self) -> &Pointer {
        &self.pointer
    }
}

/// A page whose pointer is not known yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageSketch<'p> {
    pub(crate) separator: &'p [u8],
    pub(crate) entries: u32,
    pub(crate) newest: CommitTimestamp,
    pub(crate) large_bytes: u64,
    pub(crate) raw_bytes: usize,
}

/// A leaf directory in memory.
#[derive(Clone, Debug)]
pub(crate) struct Directory {
    separators: SortedKeys,
    pages: Vec<PageEntry>,
    entries: u64,
    content_bytes: u64,
    filter: Filter,
}

impl Directory {
    /// A directory of these pages. Each has a separator; the first one is empty.
    ///
    /// # Panics
    /// If separators do not ascend, or there is no page.
    pub(crate) fn new<'k>(
        separators: impl Iterator<Item = &'k [u8]>,
        pages: Vec<PageEntry>,
        content_bytes: u64,
    ) -> Directory {
        let separators = SortedKeys::new(separators).expect("separators of a directory ascend");
        assert!(separators.len() == pages.len() && !pages.is_empty(), "each page has a separator");
        let entries = pages.iter().map(|page| u64::from(page.entries)).sum();
        Directory { separators, pages, entries, content_bytes, filter: Filter::default() }
    }

    /// This directory with a filter of the leaf's keys.
    pub(crate) fn with_filter(self, filter: Filter) -> Directory {
        Directory { filter, ..self }
    }

    /// The filter of the leaf's keys; without blocks where the tree has no leaf filters.
    pub(crate) fn filter(&self) -> &Filter {
        &self.filter
    }

    pub(crate) fn pages(&self) -> &[PageEntry] {
        &self.pages
    }

    /// Entries of all pages.
    pub(crate) fn entries(&self) -> u64 {
        self.entries
    }

    /// Bytes of keys and values of all pages.
    pub(crate) fn content_bytes(&self) -> u64 {
        self.content_bytes
    }

    pub(crate) fn separator(&self, page: usize) -> &[u8] {
        self.separators.get(page)
    }

    /// The page that covers a key.
    pub(crate) fn page_of(&self, key: &[u8]) -> usize {
        self.separators.covering(key)
    }

    /// Heap memory in bytes.
    pub(crate) fn heap_bytes(&self) -> usize {
        size_of::<Directory>()
            + self.separators.heap_bytes()
            + self.pages.capacity() * size_of::<PageEntry>()
            + self.filter.heap_bytes()
    }

    /// An upper bound of the encoded length, for this many pages and bytes of separators, and this filter.
    pub(crate) fn encoded_bytes_max(pages: usize, separator_bytes: usize, filter: &Filter) -> usize {
        64 + separator_bytes + pages * (3 + Pointer::ENCODED_BYTES + 5 + 10 + 10) + filter.encoded_bytes()
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let (pages, separators) = (self.pages.len(), self.separators.heap_bytes());
        let mut out = Vec::with_capacity(Directory::encoded_bytes_max(pages, separators, &self.filter));
        out.extend_from_slice(&[FORMAT_VERSION, 0]);
        write_varint(&mut out, self.pages.len() as u64);
        write_varint(&mut out, self.entries);
        write_varint(&mut out, self.pages.iter().map(|page| u64::from(page.pointer.raw_length())).sum());
        write_varint(&mut out, self.content_bytes);
        self.filter.encode(&mut out);
        for (at, page) in self.pages.iter().enumerate() {
            write_bytes(&mut out, self.separator(at));
            out.extend_from_slice(&page.pointer.encode());
            write_varint(&mut out, u64::from(page.entries));
            write_varint(&mut out, page.newest.get());
            write_varint(&mut out, page.large_bytes);
        }
        out
    }

    /// The exact length that [`encode`](Directory::encode) writes for pages whose pointers are not known yet,
    /// without a filter.
    pub(crate) fn encoded_bytes(pages: &[PageSketch<'_>], content_bytes: u64) -> usize {
        let entries: u64 = pages.iter().map(|page| u64::from(page.entries)).sum();
        let raw: u64 = pages.iter().map(|page| page.raw_bytes as u64).sum();
        let counts = [pages.len() as u64, entries, raw, content_bytes, 0];
        let head = 2 + counts.into_iter().map(varint_len).sum::<usize>();
        let page_bytes = |page: &PageSketch<'_>| {
            let separator = page.separator.len();
            let numbers = [u64::from(page.entries), page.newest.get(), page.large_bytes];
            let numbers: usize = numbers.into_iter().map(varint_len).sum();
            varint_len(separator as u64) + separator + Pointer::ENCODED_BYTES + numbers
        };
        head + pages.iter().map(page_bytes).sum::<usize>()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Directory, FormatError> {
        Directory::decode_of(bytes, BLOCK, BlockKind::Page)
    }

    /// Decodes a directory of pages of this kind; `block` names the block in errors.
    pub(super) fn decode_of(
        bytes: &[u8],
        block: &'static str,
        kind: BlockKind,
    ) -> Result<Directory, FormatError> {
        let mut fields = Fields::new(block, bytes);
        fields.version()?;
        match fields.u8("flags")? {
            0 => {}
            found => return Err(FormatError::Unknown { block, field: "flags", found: found.into() }),
        }
        let count = fields.count("page count", bytes.len() / Pointer::ENCODED_BYTES)?;
        if count == 0 {
            return Err(FormatError::Truncated { block, field: "pages" });
        }
        let entries = fields.varint("entry count")?;
        fields.varint("raw bytes")?;
        let content_bytes = fields.varint("content bytes")?;
        let filter = match kind {
            BlockKind::Page => Filter::decode(&mut fields)?,
            _ => {
                fields.reserved("filter count")?;
                Filter::default()
            }
        };
        let mut separators = Vec::with_capacity(count);
        let mut pages = Vec::with_capacity(count);
        for at in 0..count {
            separators.push(fields.sized_bytes("separator", fields.remaining())?);
            pages.push(decode_page(&mut fields, block, kind, at)?);
        }
        fields.finish()?;
        let separators = SortedKeys::new(separators.into_iter()).map_err(|at| FormatError::Disorder {
            block,
            field: "separator",
            at,
        })?;
        let found = pages.iter().map(|page: &PageEntry| u64::from(page.entries)).sum();
        if found != entries {
            return Err(FormatError::OutOfRange {
                block,
                field: "entry count",
                found: entries,
                limit: found,
            });
        }
        Ok(Directory { separators, pages, entries, content_bytes, filter })
    }
}

fn decode_page(
    fields: &mut Fields<'_>,
    block: &'static str,
    kind: BlockKind,
    at: usize,
) -> Result<PageEntry, FormatError> {
    let pointer = decode_pointer(block, fields, at)?;
    if pointer.kind() != kind {
        return Err(FormatError::Unknown {
            block,
            field: "block kind of a page",
            found: pointer.kind() as u64,
        });
    }
    let entries = fields.count("entries of a page", u32::MAX as usize)? as u32;
    let newest = CommitTimestamp::new(fields.varint("newest timestamp")?);
    let large_bytes = fields.varint("bytes of large values")?;
    Ok(PageEntry { pointer, entries, newest, large_bytes })
}

/// A pointer among the fields of a block.
pub(super) fn decode_pointer(
    block: &'static str,
    fields: &mut Fields<'_>,
    at: usize,
) -> Result<Pointer, FormatError> {
    let bytes = fields.array::<{ Pointer::ENCODED_BYTES }>("pointer")?;
    Pointer::decode(bytes).map_err(|reason| FormatError::Pointer { block, at, reason })
}

#[cfg(test)]
mod tests;
