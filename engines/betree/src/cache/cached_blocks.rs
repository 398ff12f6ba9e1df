//! Cached blocks: reads of pages and directories through the page cache, which decodes them.
//!
//! # Terms
//! - *Miss*: the block is not in memory. In mode `MayBlock` the caller's thread reads it. In mode
//!   `CachedOnly` the call returns `WouldBlock` with the read to submit ([`MissedBlock`]).
//! - *One-time read*: a read whose result is unlikely to be used again. It leaves no copy in the cache.
//!
//! # Damaged blocks
//! The block store compares checksums. Bytes that pass and do not decode give [`BetreeError::Format`] with
//! the offset of the block. A damaged block is never cached, so every reader gets the error.

use std::sync::Arc;

use bytes::Bytes;
use pando_storage::{BlockingMode, MissedRead};

use super::block_types::{BlockTypes, DecodedPage, decode_directory, decode_page};
use super::missed_block::MissedBlock;
use super::page_cache::{BlockKey, PageCache, Promotion, Tier};
use super::scan_prefetch::ScanPrefetch;
use super::stored_page::StoredPage;
use crate::base::{Codec, Pointer};
use crate::error::BetreeError;
use crate::memory::MemoryAccounts;
use crate::memory::page_memory;
use crate::space::BlockStore;

/// A page that a writer made, in the form in which the cache will keep it.
pub(crate) enum NewPage {
    /// Its uncompressed bytes.
    Decoded(Bytes),
    /// Its payload on disk.
    Compressed(StoredPage),
}

impl NewPage {
    /// Copies a page out of a writer's buffer, in the form that `tier` keeps.
    pub(crate) fn for_tier(tier: Tier, raw: &[u8], (codec, payload): (Codec, &[u8])) -> NewPage {
        match tier {
            Tier::Decoded => NewPage::Decoded(page_memory::copy(raw)),
            Tier::Compressed => NewPage::Compressed(StoredPage::used(codec, payload)),
        }
    }

    /// Bytes of memory that the copy takes.
    pub(crate) fn heap_bytes(&self) -> usize {
        match self {
            NewPage::Decoded(bytes) => bytes.len(),
            NewPage::Compressed(page) => page.heap_bytes(),
        }
    }
}

/// The pages and directories of a store, by pointer.
pub(crate) struct CachedBlocks<T: BlockTypes> {
    store: Arc<BlockStore>,
    cache: Arc<PageCache<T>>,
    /// Working memory of flushes, loads, cursors and callers.
    pub(crate) accounts: MemoryAccounts,
    /// Pages that background workers read ahead of long scans.
    pub(crate) scan_prefetch: ScanPrefetch<T::Page>,
}

impl<T: BlockTypes> CachedBlocks<T> {
    pub(crate) fn new(store: Arc<BlockStore>, cache: PageCache<T>) -> CachedBlocks<T> {
        CachedBlocks {
            store,
            cache: Arc::new(cache),
            accounts: MemoryAccounts::default(),
            scan_prefetch: ScanPrefetch::default(),
        }
    }

    pub(crate) fn store(&self) -> &Arc<BlockStore> {
        &self.store
    }

    pub(crate) fn cache(&self) -> &PageCache<T> {
        &self.cache
    }

    /// Returns a leaf's directory.
    pub(crate) fn directory(
        &self,
        pointer: &Pointer,
        blocking: BlockingMode,
    ) -> Result<Arc<T::Directory>, BetreeError> {
        let key = BlockKey::of(pointer);
        if let Some(directory) = self.cache.directory(&key) {
            return Ok(directory);
        }
        self.miss(pointer, blocking)?;
        let directory = self.read_directory(pointer)?;
        self.cache.insert_directory(key, Arc::clone(&directory));
        Ok(directory)
    }

    fn read_directory(&self, pointer: &Pointer) -> Result<Arc<T::Directory>, BetreeError> {
        Ok(Arc::new(decode_directory(pointer, &self.store.read_block(pointer)?)?))
    }

    /// Returns a leaf's directory. A one-time read if it is not in memory.
    pub(crate) fn directory_once(&self, pointer: &Pointer) -> Result<Arc<T::Directory>, BetreeError> {
        match self.cache.directory(&BlockKey::of(pointer)) {
            Some(directory) => Ok(directory),
            None => self.read_directory(pointer),
        }
    }

    /// Whether a leaf's directory is in memory. Does not count as a use.
    pub(crate) fn has_directory(&self, pointer: &Pointer) -> bool {
        self.cache.has_directory(&BlockKey::of(pointer))
    }

    /// Decodes a directory that was read ahead, and keeps it.
    pub(crate) fn insert_directory(&self, pointer: &Pointer, raw: &[u8]) -> Result<(), BetreeError> {
        self.keep_directory(pointer, Arc::new(decode_directory(pointer, raw)?));
        Ok(())
    }

    /// Returns a page.
    pub(crate) fn page(&self, pointer: &Pointer, blocking: BlockingMode) -> Result<T::Page, BetreeError> {
        if let Some(page) = self.cached_page(pointer)? {
            return Ok(page);
        }
        self.miss(pointer, blocking)?;
        let tier = self.cache.tier_for_read(pointer.raw_length() as usize);
        let page =
            self.store.with_stored(pointer, |payload| self.decode_read(pointer, payload, Some(tier)))??;
        Ok(page)
    }

    /// Returns a page if it is in memory. Counts as a use.
    pub(super) fn cached_page(&self, pointer: &Pointer) -> Result<Option<T::Page>, BetreeError> {
        let key = BlockKey::of(pointer);
        if let Some(page) = self.cache.decoded(&key) {
            return Ok(Some(page));
        }
        let Some(found) = self.cache.compressed(&key, pointer.raw_length() as usize) else { return Ok(None) };
        let page = self.decode_stored(pointer, &found.page)?;
        if found.promotion == Promotion::Keep {
            self.cache.promote(key, page.clone());
        }
        Ok(Some(page))
    }

    /// Decodes a page that was read from the device. Keeps it in `tier`, if there is one.
    fn decode_read(
        &self,
        pointer: &Pointer,
        payload: &[u8],
        tier: Option<Tier>,
    ) -> Result<T::Page, BetreeError> {
        let page: T::Page = decode_page(pointer, self.store.decompress(pointer, payload)?)?;
        let key = BlockKey::of(pointer);
        match tier {
            Some(Tier::Decoded) => self.cache.insert_decoded(key, page.clone()),
            Some(Tier::Compressed) => {
                self.cache.insert_compressed(key, StoredPage::used(pointer.codec(), payload));
            }
            None => {}
        }
        Ok(page)
    }

    pub(super) fn decode_stored(
        &self,
        pointer: &Pointer,
        stored: &StoredPage,
    ) -> Result<T::Page, BetreeError> {
        let raw = stored.raw(pointer.raw_length() as usize);
        decode_page(pointer, raw.ok_or_else(|| self.store.undecodable(pointer))?)
    }

    /// Returns a page if it is in memory. Does not count as a use.
    fn peek_page(&self, pointer: &Pointer) -> Result<Option<T::Page>, BetreeError> {
        let key = BlockKey::of(pointer);
        match self.cache.peek_decoded(&key) {
            Some(page) => Ok(Some(page)),
            None => match self.cache.peek_compressed(&key) {
                Some(stored) => self.decode_stored(pointer, &stored).map(Some),
                None => Ok(None),
            },
        }
    }

    /// Returns pages for a flush, which replaces the pages that it reads: these are one-time reads.
    ///
    /// Pages that are not in memory are read with as few calls to the device as possible, one for each group
    /// of neighbours. All calls are in flight together.
    pub(crate) fn pages_once<'p>(
        &self,
        pointers: impl IntoIterator<Item = &'p Pointer>,
    ) -> Result<Vec<T::Page>, BetreeError> {
        let pointers: Vec<&Pointer> = pointers.into_iter().collect();
        let mut pages = Vec::with_capacity(pointers.len());
        for pointer in &pointers {
            pages.push(self.peek_page(pointer)?);
        }
        let uncached: Vec<usize> = (0..pages.len()).filter(|at| pages[*at].is_none()).collect();
        if !uncached.is_empty() {
            self.cache.flush_reads.add(uncached.len() as u64);
            let pointers: Vec<Pointer> = uncached.iter().map(|at| *pointers[*at]).collect();
            let mut outcome = Ok(());
            self.store.read_scattered(&pointers, |place, pointer, payload| {
                match self.decode_read(pointer, payload, None) {
                    Ok(page) => pages[uncached[place]] = Some(page),
                    Err(error) if outcome.is_ok() => outcome = Err(error),
                    Err(_) => {}
                }
            })?;
            outcome?;
        }
        Ok(pages.into_iter().flatten().collect())
    }

    /// The tier in which a page is, if it is in memory.
    pub(crate) fn tier_of(&self, pointer: &Pointer) -> Option<Tier> {
        self.cache.tier_of(&BlockKey::of(pointer))
    }

    /// Keeps a page that was just written.
    pub(crate) fn keep_page(&self, pointer: &Pointer, page: NewPage) {
        let key = BlockKey::of(pointer);
        match page {
            NewPage::Decoded(raw) => {
                let page = T::Page::from_block(raw);
                self.cache.insert_decoded(key, page.expect("a page that was just built can be read"));
            }
            NewPage::Compressed(stored) => self.cache.insert_compressed(key, stored),
        }
    }

    /// Keeps a directory that was just written.
    pub(crate) fn keep_directory(&self, pointer: &Pointer, directory: Arc<T::Directory>) {
        self.cache.insert_directory(BlockKey::of(pointer), directory);
    }

    /// Drops a block that the newest version of a tree does not use any more.
    pub(crate) fn forget(&self, pointer: &Pointer) {
        self.cache.forget(&BlockKey::of(pointer));
    }

    /// Counts a miss in mode `MayBlock`. In mode `CachedOnly` returns the error with the read to submit.
    pub(super) fn miss(&self, pointer: &Pointer, blocking: BlockingMode) -> Result<(), BetreeError> {
        match blocking {
            BlockingMode::CachedOnly => {
                let read = MissedBlock::new(&self.store, &self.cache, pointer);
                Err(BetreeError::WouldBlock(read.map(|read| Arc::new(read) as Arc<dyn MissedRead>)))
            }
            BlockingMode::MayBlock => {
                self.cache.misses.add(1);
                Ok(())
            }
        }
    }
}
