//! A layer: writes that left memory at one time, sorted, in a file, with index and filter in memory.
//!
//! # Terms
//! - *Number* of a write: how many the transaction had made before it. A layer holds those of one interval.
//! - *Limit*: the number from which on writes no longer count, because the transaction was rolled back to
//!   there.
//!
//! # Invariants
//! - Writes ascend by tree and key over all pages; of one key the newest comes first.
//! - The filter has every key, the index the last key of every page.

use std::cell::RefCell;
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;

use super::page::{Numbered, Page, encode};
use super::space::{SpillFile, SpillSpace};
use crate::access::BlockingMode;
use crate::error::StorageError;
use crate::fingerprint::fingerprint;
use crate::identifiers::TreeId;
use crate::key_filter::KeyFilter;
use crate::memory::HeldMemory;

/// Bytes that are written at once.
const WRITE_BYTES: usize = 1 << 20;

/// A page's place in its file.
struct PageAt {
    offset: u64,
    stored_bytes: u32,
    raw_bytes: u32,
    checksum: u64,
    last_tree: TreeId,
    last_key: Box<[u8]>,
}

/// A place in a layer; the end has a page that is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) page: usize,
    pub(super) entry: usize,
}

/// See the module's head.
pub(super) struct Layer {
    file: SpillFile,
    pages: Vec<PageAt>,
    filter: KeyFilter,
    /// Of the filter and the index.
    held: HeldMemory,
    /// The page that was read last.
    recent: RefCell<Option<(usize, Arc<Page>)>>,
    pub(super) entries: usize,
    pub(super) content_bytes: usize,
    /// The first number that it may hold, and the one behind the last.
    pub(super) first: usize,
    pub(super) limit: usize,
    /// How often its writes were merged.
    pub(super) level: u32,
}

impl Layer {
    /// The newest write of a key that counts.
    pub(super) fn get<T>(
        &self,
        tree: TreeId,
        key: &[u8],
        blocking: BlockingMode,
        read: impl FnOnce(Numbered<'_>) -> T,
    ) -> Result<Option<T>, StorageError> {
        if !self.filter.may_contain(fingerprint(tree, key)) {
            return Ok(None);
        }
        let mut place = self.lower_bound(tree, key, blocking)?;
        while place.page < self.pages.len() {
            let page = self.page(place.page, blocking)?;
            let entry = page.entry(place.entry);
            if (entry.write.tree, entry.write.key) != (tree, key) {
                return Ok(None);
            }
            if entry.number < self.limit {
                return Ok(Some(read(entry)));
            }
            place = self.after(place, &page);
        }
        Ok(None)
    }

    /// The place of the first entry that is not before a key.
    pub(super) fn lower_bound(
        &self,
        tree: TreeId,
        key: &[u8],
        blocking: BlockingMode,
    ) -> Result<Place, StorageError> {
        let page = self.pages.partition_point(|page| (page.last_tree, &*page.last_key) < (tree, key));
        if page == self.pages.len() {
            return Ok(self.end());
        }
        Ok(Place { page, entry: self.page(page, blocking)?.lower_bound(tree, key) })
    }

    pub(super) fn end(&self) -> Place {
        Place { page: self.pages.len(), entry: 0 }
    }

    /// The place behind another, in a page at hand.
    pub(super) fn after(&self, place: Place, page: &Page) -> Place {
        if place.entry + 1 < page.len() {
            Place { page: place.page, entry: place.entry + 1 }
        } else {
            Place { page: place.page + 1, entry: 0 }
        }
    }

    /// The place before another; `None` at the beginning.
    pub(super) fn before(&self, place: Place, blocking: BlockingMode) -> Result<Option<Place>, StorageError> {
        if place.entry > 0 {
            return Ok(Some(Place { page: place.page, entry: place.entry - 1 }));
        }
        let Some(page) = place.page.checked_sub(1) else { return Ok(None) };
        Ok(Some(Place { page, entry: self.page(page, blocking)?.len() - 1 }))
    }

    /// Whether there are that many pages.
    pub(super) fn has_page(&self, at: usize) -> bool {
        at < self.pages.len()
    }

    /// A page; from memory, if it is the one that was read last.
    pub(super) fn page(&self, at: usize, blocking: BlockingMode) -> Result<Arc<Page>, StorageError> {
        if let Some((recent, page)) = &*self.recent.borrow()
            && *recent == at
        {
            return Ok(Arc::clone(page));
        }
        if blocking == BlockingMode::CachedOnly {
            return Err(StorageError::would_block());
        }
        let page = Arc::new(self.read_page(&self.pages[at])?);
        *self.recent.borrow_mut() = Some((at, Arc::clone(&page)));
        Ok(page)
    }

    fn read_page(&self, at: &PageAt) -> Result<Page, StorageError> {
        let damaged = || self.file.damaged(at.offset);
        let mut stored = vec![0; at.stored_bytes as usize];
        self.file.read(&mut stored, at.offset)?;
        if xxh3_64(&stored) != at.checksum {
            return Err(damaged());
        }
        let raw = if at.stored_bytes == at.raw_bytes {
            stored
        } else {
            lz4_flex::block::decompress(&stored, at.raw_bytes as usize).map_err(|_| damaged())?
        };
        Page::decode(raw).filter(|page| page.len() > 0).ok_or_else(damaged)
    }

    /// Bytes of memory, about: the index, the filter, and the page that was read last.
    pub(super) fn memory(&self) -> usize {
        let recent = self.recent.borrow().as_ref().map_or(0, |(_, page)| page.memory());
        self.held.bytes() + recent
    }
}

/// Writes a layer. Dropped before it is finished, it leaves nothing.
pub(super) struct LayerWriter {
    layer: Layer,
    page_bytes: usize,
    raw: Vec<u8>,
    /// Of the last write in `raw`.
    last: (TreeId, Vec<u8>),
    unwritten: Vec<u8>,
}

impl LayerWriter {
    /// For at most this many writes of these numbers.
    pub(super) fn new(
        space: &Arc<SpillSpace>,
        writes: usize,
        numbers: std::ops::Range<usize>,
        level: u32,
    ) -> Result<LayerWriter, StorageError> {
        let filter = KeyFilter::for_keys(writes);
        let held = space.layer_memory.hold(size_of::<Layer>() + filter.memory());
        let layer = Layer {
            file: space.create()?,
            pages: Vec::new(),
            filter,
            held,
            recent: RefCell::default(),
            entries: 0,
            content_bytes: 0,
            first: numbers.start,
            limit: numbers.end,
            level,
        };
        let last = (TreeId::new(0), Vec::new());
        Ok(LayerWriter {
            layer,
            page_bytes: space.page_bytes(),
            raw: Vec::new(),
            last,
            unwritten: Vec::new(),
        })
    }

    /// Adds the next write, in the order of a layer.
    pub(super) fn push(&mut self, entry: &Numbered<'_>) -> Result<(), StorageError> {
        let write = &entry.write;
        let added = write.key.len() + write.change.bytes().len();
        if !self.raw.is_empty() && self.raw.len() + added > self.page_bytes {
            self.end_page()?;
        }
        encode(&mut self.raw, entry);
        self.layer.filter.add(fingerprint(write.tree, write.key));
        self.layer.entries += 1;
        self.layer.content_bytes += added;
        self.last.0 = write.tree;
        self.last.1.clear();
        self.last.1.extend_from_slice(write.key);
        Ok(())
    }

    fn end_page(&mut self) -> Result<(), StorageError> {
        let packed = lz4_flex::block::compress(&self.raw);
        let stored = if packed.len() < self.raw.len() { &packed } else { &self.raw };
        let length = |bytes: &[u8]| u32::try_from(bytes.len()).expect("a page is one write or a few KB");
        self.layer.pages.push(PageAt {
            offset: self.layer.file.length() + self.unwritten.len() as u64,
            stored_bytes: length(stored),
            raw_bytes: length(&self.raw),
            checksum: xxh3_64(stored),
            last_tree: self.last.0,
            last_key: self.last.1.as_slice().into(),
        });
        let held = &mut self.layer.held;
        held.set(held.bytes() + size_of::<PageAt>() + self.last.1.len());
        self.unwritten.extend_from_slice(stored);
        self.raw.clear();
        if self.unwritten.len() >= WRITE_BYTES { self.write_out() } else { Ok(()) }
    }

    fn write_out(&mut self) -> Result<(), StorageError> {
        self.layer.file.append(&self.unwritten)?;
        self.unwritten.clear();
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<Layer, StorageError> {
        if !self.raw.is_empty() {
            self.end_page()?;
        }
        self.write_out()?;
        Ok(self.layer)
    }
}
