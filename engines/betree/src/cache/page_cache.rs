//! The page cache: decoded pages and leaf directories within one limit of bytes.
//!
//! Directories come first: without them a point query costs two device reads instead of one. They may take up to
//! [`DIRECTORY_SHARE`] of the limit, pages have what directories leave. Within each class `quick_cache` chooses what goes
//! (S3-FIFO: a page read once by a scan leaves before one that was read twice).
//!
//! # Invariants
//! - A block is known by address *and* checksum: space that is used again never answers for what stood there before.
//! - Pages lie in the cache's own entries, not behind a pointer of their own: a hit follows one pointer less.
//! - Weights are the bytes that the value really takes, and what the cache itself takes for an entry.
//! - A block heavier than its shard's capacity is not kept: the limit holds even so.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use quick_cache::Weighter;
use quick_cache::sync::Cache;

use crate::counter::Counter;
use crate::format::directory::Directory;
use crate::format::page::Page;
use crate::space::Pointer;

/// Hundredths of the limit that directories may take.
const DIRECTORY_SHARE: u64 = 40;
/// What the cache takes for an entry beside the value: key, links, hash slot, and the counters of shared memory.
const ENTRY_BYTES: usize = 120;

/// What a block is known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct BlockKey {
    address: u64,
    checksum: u64,
}

impl BlockKey {
    pub(super) fn of(pointer: &Pointer) -> BlockKey {
        BlockKey { address: pointer.address().get(), checksum: pointer.checksum() }
    }
}

#[derive(Clone)]
struct PageWeight;

impl Weighter<BlockKey, Page> for PageWeight {
    fn weight(&self, _: &BlockKey, page: &Page) -> u64 {
        (page.heap_bytes() + ENTRY_BYTES) as u64
    }
}

#[derive(Clone)]
struct DirectoryWeight;

impl Weighter<BlockKey, Arc<Directory>> for DirectoryWeight {
    fn weight(&self, _: &BlockKey, directory: &Arc<Directory>) -> u64 {
        (directory.heap_bytes() + ENTRY_BYTES) as u64
    }
}

/// See the module's head.
pub(crate) struct PageCache {
    pages: Cache<BlockKey, Page, PageWeight>,
    directories: Cache<BlockKey, Arc<Directory>, DirectoryWeight>,
    limit: AtomicU64,
    /// What the pages' capacity was last set to.
    page_limit: AtomicU64,
    pub(super) hits: Counter,
    pub(super) misses: Counter,
}

impl PageCache {
    /// An empty cache of at most `limit` bytes, for pages of about `page_bytes`.
    pub(crate) fn new(limit: u64, page_bytes: usize) -> PageCache {
        let directories = limit * DIRECTORY_SHARE / 100;
        let pages = (limit / page_bytes.max(64) as u64).clamp(16, 1 << 20) as usize;
        PageCache {
            pages: Cache::with_weighter(pages, limit, PageWeight),
            directories: Cache::with_weighter((pages / 32).max(16), directories, DirectoryWeight),
            limit: AtomicU64::new(limit),
            page_limit: AtomicU64::new(limit),
            hits: Counter::default(),
            misses: Counter::default(),
        }
    }

    /// Shares the limit out again: pages get what directories and `others` (the write buffers) leave. Called by background
    /// work now and then.
    pub(crate) fn rebalance(&self, others: u64) {
        let limit = self.limit.load(Ordering::Relaxed);
        let floor = limit / 8;
        let wanted = limit.saturating_sub(self.directories.weight() + others).max(floor);
        let have = self.page_limit.load(Ordering::Relaxed);
        // Setting a capacity locks every shard: not for a percent more or less.
        if wanted.abs_diff(have) > limit / 100 {
            self.page_limit.store(wanted, Ordering::Relaxed);
            self.pages.set_capacity(wanted);
        }
    }

    pub(super) fn page(&self, key: &BlockKey) -> Option<Page> {
        self.pages.get(key)
    }

    pub(super) fn directory(&self, key: &BlockKey) -> Option<Arc<Directory>> {
        self.directories.get(key)
    }

    /// A page without counting as a use of it.
    pub(super) fn peek_page(&self, key: &BlockKey) -> Option<Page> {
        self.pages.peek(key)
    }

    pub(super) fn insert_page(&self, key: BlockKey, page: Page) {
        self.pages.insert(key, page);
    }

    pub(super) fn insert_directory(&self, key: BlockKey, directory: Arc<Directory>) {
        self.directories.insert(key, directory);
    }

    pub(super) fn forget(&self, key: &BlockKey) {
        self.pages.remove(key);
        self.directories.remove(key);
    }

    /// Whether pages can be added without one having to go.
    pub(crate) fn has_room(&self) -> bool {
        self.pages.weight() < self.page_limit.load(Ordering::Relaxed) / 10 * 9
    }

    /// Bytes in use by pages.
    pub(crate) fn page_bytes(&self) -> u64 {
        self.pages.weight()
    }

    /// Bytes in use by directories.
    pub(crate) fn directory_bytes(&self) -> u64 {
        self.directories.weight()
    }

    /// Pages in memory.
    pub(crate) fn pages(&self) -> u64 {
        self.pages.len() as u64
    }
}
