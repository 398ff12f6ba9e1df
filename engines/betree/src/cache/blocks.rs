//! Reads blocks through the page cache, decodes them, and says what is damaged where.

use std::ops::Deref;
use std::sync::Arc;

use bytes::Bytes;
use pando_storage::{BlockingMode, MemoryAccount, MissedRead};

use super::missed_block::MissedBlock;
use super::page_cache::{BlockKey, PageCache, Promotion, Tier};
use super::scan_ahead::ScanAhead;
use super::stored_page::StoredPage;
use crate::base::Counter;
use crate::base::FormatError;
use crate::base::{BlockKind, Codec, Pointer};
use crate::error::BetreeError;
use crate::format::directory::{Directory, PageEntry};
use crate::format::inner_node::StoredInnerNode;
use crate::format::page::Page;
use crate::format::slice_index::SliceIndex;
use crate::memory::MemoryAccounts;
use crate::memory::page_memory;
use crate::space::BlockStore;
use crate::tree::node::{InnerNode, NodeSlot};
use crate::tree::slice::Slice;

/// A page that was just made, as it is to be kept in memory.
pub(crate) enum NewPage {
    /// Its bytes.
    Decoded(Bytes),
    /// Its payload on disk.
    Compressed(StoredPage),
}

impl NewPage {
    /// A copy for a tier of a page that stands compressed in a writer.
    pub(crate) fn for_tier(tier: Tier, raw: &[u8], (codec, payload): (Codec, &[u8])) -> NewPage {
        match tier {
            Tier::Decoded => NewPage::Decoded(page_memory::copy(raw)),
            Tier::Compressed => NewPage::Compressed(StoredPage::used(codec, payload)),
        }
    }

    /// Memory that it takes.
    pub(crate) fn heap_bytes(&self) -> usize {
        match self {
            NewPage::Decoded(bytes) => bytes.len(),
            NewPage::Compressed(page) => page.heap_bytes(),
        }
    }
}

/// Something that is in memory, or was read to be looked at once.
pub(crate) enum InPassing<'s, T> {
    Kept(&'s T),
    Read(T),
}

impl<T> Deref for InPassing<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        match self {
            InPassing::Kept(kept) => kept,
            InPassing::Read(read) => read,
        }
    }
}

/// The blocks of the store, by pointer.
pub(crate) struct Blocks {
    store: Arc<BlockStore>,
    cache: Arc<PageCache>,
    /// Pages of slices that lookups read because a filter let the key through, and those that had not got it.
    pub(crate) probes: Counter,
    pub(crate) false_positives: Counter,
    /// Slices of which a lookup read nothing, since their filters knew that the key is not there.
    pub(crate) skipped_probes: Counter,
    /// Memory of slice indexes, which stay as long as their slices.
    pub(crate) index_memory: MemoryAccount,
    /// What merges, loads, cursors and callers have.
    pub(crate) accounts: MemoryAccounts,
    /// What others bring for long scans.
    pub(crate) scan_ahead: ScanAhead,
}

impl Blocks {
    pub(crate) fn new(store: Arc<BlockStore>, cache: PageCache) -> Blocks {
        Blocks {
            store,
            cache: Arc::new(cache),
            probes: Counter::default(),
            false_positives: Counter::default(),
            skipped_probes: Counter::default(),
            index_memory: MemoryAccount::default(),
            accounts: MemoryAccounts::default(),
            scan_ahead: ScanAhead::default(),
        }
    }

    pub(crate) fn store(&self) -> &Arc<BlockStore> {
        &self.store
    }

    pub(crate) fn cache(&self) -> &PageCache {
        &self.cache
    }

    /// A leaf's directory.
    pub(crate) fn directory(
        &self,
        pointer: &Pointer,
        blocking: BlockingMode,
    ) -> Result<Arc<Directory>, BetreeError> {
        let key = BlockKey::of(pointer);
        if let Some(directory) = self.cache.directory(&key) {
            return Ok(directory);
        }
        self.miss(pointer, blocking)?;
        let directory = self.read_directory(pointer)?;
        self.cache.insert_directory(key, Arc::clone(&directory));
        Ok(directory)
    }

    fn read_directory(&self, pointer: &Pointer) -> Result<Arc<Directory>, BetreeError> {
        Ok(Arc::new(decode_directory(pointer, &self.store.read_block(pointer)?)?))
    }

    /// A page.
    pub(crate) fn page(&self, pointer: &Pointer, blocking: BlockingMode) -> Result<Page, BetreeError> {
        if let Some(page) = self.cached_page(pointer)? {
            return Ok(page);
        }
        self.miss(pointer, blocking)?;
        let tier = self.cache.tier_for_read(pointer.raw_length() as usize);
        let page =
            self.store.with_stored(pointer, |payload| self.take_in(pointer, payload, Some(tier)))??;
        Ok(page)
    }

    /// A page that is in memory, which thereby counts as used.
    pub(super) fn cached_page(&self, pointer: &Pointer) -> Result<Option<Page>, BetreeError> {
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

    /// Decodes a page that was read, and keeps it in a tier.
    fn take_in(&self, pointer: &Pointer, payload: &[u8], tier: Option<Tier>) -> Result<Page, BetreeError> {
        let page = decode_page(pointer, self.store.decompress(pointer, payload)?)?;
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

    pub(super) fn decode_stored(&self, pointer: &Pointer, stored: &StoredPage) -> Result<Page, BetreeError> {
        let raw = stored.raw(pointer.raw_length() as usize);
        decode_page(pointer, raw.ok_or_else(|| self.store.undecodable(pointer))?)
    }

    /// A page that is in memory, without counting as a use of it.
    fn resident(&self, pointer: &Pointer) -> Result<Option<Page>, BetreeError> {
        let key = BlockKey::of(pointer);
        match self.cache.peek_decoded(&key) {
            Some(page) => Ok(Some(page)),
            None => match self.cache.peek_compressed(&key) {
                Some(stored) => self.decode_stored(pointer, &stored).map(Some),
                None => Ok(None),
            },
        }
    }

    /// Pages for a merge, which rewrites what it reads, so that none is kept. Those that are not in memory come with as few calls to the device
    /// as possible, which are under way together: neighbours, as in a leaf, with one.
    pub(crate) fn pages<'e>(
        &self,
        entries: impl IntoIterator<Item = &'e PageEntry>,
    ) -> Result<Vec<Page>, BetreeError> {
        let entries: Vec<&PageEntry> = entries.into_iter().collect();
        let mut pages = Vec::with_capacity(entries.len());
        for entry in &entries {
            pages.push(self.resident(&entry.pointer)?);
        }
        let missing: Vec<usize> = (0..pages.len()).filter(|at| pages[*at].is_none()).collect();
        if !missing.is_empty() {
            self.cache.flush_reads.add(missing.len() as u64);
            let pointers: Vec<Pointer> = missing.iter().map(|at| entries[*at].pointer).collect();
            let mut outcome = Ok(());
            self.store.read_scattered(&pointers, |place, pointer, payload| {
                match self.take_in(pointer, payload, None) {
                    Ok(page) => pages[missing[place]] = Some(page),
                    Err(error) if outcome.is_ok() => outcome = Err(error),
                    Err(_) => {}
                }
            })?;
            outcome?;
        }
        Ok(pages.into_iter().flatten().collect())
    }

    /// The content of an inner node.
    pub(crate) fn node<'s>(
        &self,
        slot: &'s NodeSlot,
        blocking: BlockingMode,
    ) -> Result<&'s InnerNode, BetreeError> {
        slot.note_use();
        if let Some(node) = slot.loaded() {
            return Ok(node);
        }
        if blocking == BlockingMode::CachedOnly {
            // Seldom: not worth a way of its own.
            return Err(BetreeError::WouldBlock(None));
        }
        self.cache.misses.add(1);
        Ok(slot.fill(self.read_node(slot)?))
    }

    fn read_node(&self, slot: &NodeSlot) -> Result<InnerNode, BetreeError> {
        let pointer = slot.stored().expect("a node is in memory or on disk");
        decode_node(&pointer, slot.height(), &self.store.read_block(&pointer)?)
    }

    /// The index of a slice.
    pub(crate) fn slice_index<'s>(
        &self,
        slice: &'s Slice,
        blocking: BlockingMode,
    ) -> Result<&'s SliceIndex, BetreeError> {
        slice.note_use();
        if let Some(index) = slice.index() {
            return Ok(index);
        }
        if blocking == BlockingMode::CachedOnly {
            // Seldom, as with nodes.
            return Err(BetreeError::WouldBlock(None));
        }
        self.cache.misses.add(1);
        Ok(slice.fill(self.read_index(slice)?, &self.index_memory))
    }

    fn read_index(&self, slice: &Slice) -> Result<SliceIndex, BetreeError> {
        let pointer = &slice.stored().index;
        decode_slice_index(pointer, &self.store.read_block(pointer)?)
    }

    /// A leaf's directory, which does not stay in memory if it is not there.
    pub(crate) fn passing_directory(&self, pointer: &Pointer) -> Result<Arc<Directory>, BetreeError> {
        match self.cache.directory(&BlockKey::of(pointer)) {
            Some(directory) => Ok(directory),
            None => self.read_directory(pointer),
        }
    }

    /// The content of an inner node, which does not stay in memory if it is not there.
    pub(crate) fn passing_node<'s>(
        &self,
        slot: &'s NodeSlot,
    ) -> Result<InPassing<'s, InnerNode>, BetreeError> {
        match slot.loaded() {
            Some(node) => Ok(InPassing::Kept(node)),
            None => self.read_node(slot).map(InPassing::Read),
        }
    }

    /// The same of the index of a slice.
    pub(crate) fn passing_index<'s>(
        &self,
        slice: &'s Slice,
    ) -> Result<InPassing<'s, SliceIndex>, BetreeError> {
        match slice.index() {
            Some(index) => Ok(InPassing::Kept(index)),
            None => self.read_index(slice).map(InPassing::Read),
        }
    }

    /// In which tier a page is, if it is in memory.
    pub(crate) fn tier_of(&self, pointer: &Pointer) -> Option<Tier> {
        self.cache.tier_of(&BlockKey::of(pointer))
    }

    /// Keeps a page that was just written.
    pub(crate) fn keep_page(&self, pointer: &Pointer, page: NewPage) {
        let key = BlockKey::of(pointer);
        match page {
            NewPage::Decoded(raw) => {
                let page = Page::decode(raw).expect("a page that was just built can be read");
                self.cache.insert_decoded(key, page);
            }
            NewPage::Compressed(stored) => self.cache.insert_compressed(key, stored),
        }
    }

    /// Keeps a directory that was just written.
    pub(crate) fn keep_directory(&self, pointer: &Pointer, directory: Arc<Directory>) {
        self.cache.insert_directory(BlockKey::of(pointer), directory);
    }

    /// Drops a block that the newest version does not use any more.
    pub(crate) fn forget(&self, pointer: &Pointer) {
        self.cache.forget(&BlockKey::of(pointer));
    }

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

pub(super) fn decode_directory(pointer: &Pointer, bytes: &[u8]) -> Result<Directory, BetreeError> {
    Directory::decode(bytes)
        .map_err(|source| BetreeError::Format { offset: pointer.address().byte_offset(), source })
}

pub(super) fn decode_node(pointer: &Pointer, height: u8, bytes: &[u8]) -> Result<InnerNode, BetreeError> {
    StoredInnerNode::decode(bytes)
        .and_then(|stored| stored.check_height(height))
        .map(InnerNode::from_stored)
        .map_err(|source| BetreeError::Format { offset: pointer.address().byte_offset(), source })
}

pub(super) fn decode_slice_index(pointer: &Pointer, bytes: &[u8]) -> Result<SliceIndex, BetreeError> {
    SliceIndex::decode(bytes)
        .map_err(|source| BetreeError::Format { offset: pointer.address().byte_offset(), source })
}

pub(super) fn decode_page(pointer: &Pointer, bytes: Bytes) -> Result<Page, BetreeError> {
    let damaged = |source| BetreeError::Format { offset: pointer.address().byte_offset(), source };
    let page = Page::decode(bytes).map_err(damaged)?;
    if page.has_merges() && pointer.kind() == BlockKind::Page {
        return Err(damaged(FormatError::Disorder { block: "page of a leaf", field: "merge", at: 0 }));
    }
    Ok(page)
}
