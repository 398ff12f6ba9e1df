//! Reads blocks through the page cache, decodes them, and says what is damaged where.

use std::sync::Arc;

use pando_storage::{MissedRead, Patience};

use super::missed_block::MissedBlock;
use super::page_cache::{BlockKey, PageCache};
use crate::counter::Counter;
use crate::error::BetreeError;
use crate::format::directory::{Directory, PageEntry};
use crate::format::inner_node::StoredInnerNode;
use crate::format::page::Page;
use crate::format::slice_index::SliceIndex;
use crate::space::{BlockStore, Pointer};
use crate::tree::node::{InnerNode, NodeSlot};
use crate::tree::slice::{IndexMemory, Slice};

/// Whether what is read from the device is kept in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retention {
    /// For readers.
    Keep,
    /// For merges, which rewrite what they read.
    Bypass,
}

/// The blocks of the store, by pointer.
pub(crate) struct Blocks {
    store: Arc<BlockStore>,
    cache: Arc<PageCache>,
    /// Memory of inner nodes, which are never evicted.
    pub(crate) node_bytes: Counter,
    /// Pages of slices that lookups read because a filter let the key through, and those that had not got it.
    pub(crate) probes: Counter,
    pub(crate) vain_probes: Counter,
    /// Memory of slice indexes, which stay as long as their slices.
    pub(crate) index_memory: IndexMemory,
}

impl Blocks {
    pub(crate) fn new(store: Arc<BlockStore>, cache: PageCache) -> Blocks {
        Blocks {
            store,
            cache: Arc::new(cache),
            node_bytes: Counter::default(),
            probes: Counter::default(),
            vain_probes: Counter::default(),
            index_memory: IndexMemory::default(),
        }
    }

    pub(crate) fn store(&self) -> &Arc<BlockStore> {
        &self.store
    }

    pub(crate) fn cache(&self) -> &PageCache {
        &self.cache
    }

    /// Reads of pages and directories that memory answered, and those that it did not.
    pub(crate) fn hits_and_misses(&self) -> (u64, u64) {
        (self.cache.hits.get(), self.cache.misses.get())
    }

    /// A leaf's directory.
    pub(crate) fn directory(
        &self,
        pointer: &Pointer,
        patience: Patience,
    ) -> Result<Arc<Directory>, BetreeError> {
        let key = BlockKey::of(pointer);
        if let Some(directory) = self.cache.directory(&key) {
            return Ok(directory);
        }
        self.miss(pointer, patience)?;
        let directory = Arc::new(decode_directory(pointer, &self.store.read_block(pointer)?)?);
        self.cache.insert_directory(key, Arc::clone(&directory));
        Ok(directory)
    }

    /// A page.
    pub(crate) fn page(&self, pointer: &Pointer, patience: Patience) -> Result<Page, BetreeError> {
        let key = BlockKey::of(pointer);
        if let Some(page) = self.cache.page(&key) {
            self.cache.hits.add(1);
            return Ok(page);
        }
        self.miss(pointer, patience)?;
        let page = decode_page(pointer, self.store.read_block(pointer)?)?;
        self.cache.insert_page(key, page.clone());
        Ok(page)
    }

    /// Neighbouring pages of a leaf, those that are not in memory with as few device reads as possible.
    pub(crate) fn pages(
        &self,
        entries: &[PageEntry],
        retention: Retention,
    ) -> Result<Vec<Page>, BetreeError> {
        let mut pages: Vec<Option<Page>> =
            entries.iter().map(|entry| self.cache.peek_page(&BlockKey::of(&entry.pointer))).collect();
        let missing: Vec<usize> = (0..pages.len()).filter(|at| pages[*at].is_none()).collect();
        if !missing.is_empty() {
            self.cache.misses.add(missing.len() as u64);
            let pointers: Vec<Pointer> = missing.iter().map(|at| entries[*at].pointer).collect();
            let blocks = self.store.read_neighbours(&pointers)?;
            for ((at, pointer), bytes) in missing.into_iter().zip(&pointers).zip(blocks) {
                let page = decode_page(pointer, bytes)?;
                if retention == Retention::Keep {
                    self.cache.insert_page(BlockKey::of(pointer), page.clone());
                }
                pages[at] = Some(page);
            }
        }
        Ok(pages.into_iter().flatten().collect())
    }

    /// The content of an inner node.
    pub(crate) fn node<'s>(
        &self,
        slot: &'s NodeSlot,
        patience: Patience,
    ) -> Result<&'s InnerNode, BetreeError> {
        if let Some(node) = slot.loaded() {
            return Ok(node);
        }
        if patience == Patience::CachedOnly {
            // Once in the life of a node: not worth a way of its own.
            return Err(BetreeError::WouldBlock(None));
        }
        self.cache.misses.add(1);
        let pointer = slot.stored().expect("a node is in memory or on disk");
        let bytes = self.store.read_block(&pointer)?;
        let stored = StoredInnerNode::decode(&bytes)
            .and_then(|stored| stored.check_height(slot.height()))
            .map_err(|source| BetreeError::Format { offset: pointer.address().byte_offset(), source })?;
        let node = slot.fill(InnerNode::from_stored(stored));
        self.node_bytes.add(node.heap_bytes() as u64);
        Ok(node)
    }

    /// The index of a slice.
    pub(crate) fn slice_index<'s>(
        &self,
        slice: &'s Slice,
        patience: Patience,
    ) -> Result<&'s SliceIndex, BetreeError> {
        if let Some(index) = slice.index() {
            return Ok(index);
        }
        if patience == Patience::CachedOnly {
            // Once in the life of a slice, as with nodes.
            return Err(BetreeError::WouldBlock(None));
        }
        self.cache.misses.add(1);
        let pointer = &slice.stored().index;
        let bytes = self.store.read_block(pointer)?;
        let index = SliceIndex::decode(&bytes)
            .map_err(|source| BetreeError::Format { offset: pointer.address().byte_offset(), source })?;
        Ok(slice.fill(index, &self.index_memory))
    }

    /// Whether a page is in memory.
    pub(crate) fn has_page(&self, pointer: &Pointer) -> bool {
        self.cache.peek_page(&BlockKey::of(pointer)).is_some()
    }

    /// Keeps a page that was just written.
    pub(crate) fn keep_page(&self, pointer: &Pointer, page: Page) {
        self.cache.insert_page(BlockKey::of(pointer), page);
    }

    /// Keeps a directory that was just written.
    pub(crate) fn keep_directory(&self, pointer: &Pointer, directory: Arc<Directory>) {
        self.cache.insert_directory(BlockKey::of(pointer), directory);
    }

    /// Drops a block that the newest version does not use any more.
    pub(crate) fn forget(&self, pointer: &Pointer) {
        self.cache.forget(&BlockKey::of(pointer));
    }

    fn miss(&self, pointer: &Pointer, patience: Patience) -> Result<(), BetreeError> {
        match patience {
            Patience::CachedOnly => {
                let read = MissedBlock::new(&self.store, &self.cache, pointer);
                Err(BetreeError::WouldBlock(read.map(|read| Arc::new(read) as Arc<dyn MissedRead>)))
            }
            Patience::MayBlock => {
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

pub(super) fn decode_page(pointer: &Pointer, bytes: bytes::Bytes) -> Result<Page, BetreeError> {
    let page = Page::decode(bytes)
        .map_err(|source| BetreeError::Format { offset: pointer.address().byte_offset(), source })?;
    Ok(page)
}
