//! The read of one block that a caller in mode `CachedOnly` missed: its place in the file, and how its bytes
//! get into the cache.
//!
//! 1. The caller gets `WouldBlock` with a [`MissedBlock`]; its event loop submits the read.
//! 2. [`MissedBlock::fulfil`] verifies the bytes and puts them into the cache.
//! 3. The event loop repeats the request, which then finds the block.
//!
//! # Races
//! Between steps 1 and 2 a checkpoint may free the block.
//! - If its place was written anew, the checksum does not fit and the bytes are dropped. The repeated request
//!   finds the block's successor.
//! - If its place was not yet written anew, the stale block enters the cache. No pointer leads to it any
//!   more, so it ages out unused.

use std::fmt;
use std::sync::Arc;

use pando_environment::File;
use pando_storage::MissedRead;

use super::block_types::{BlockTypes, decode_directory, decode_page};
use super::page_cache::{BlockKey, PageCache, Tier};
use super::stored_page::StoredPage;
use crate::base::{BlockKind, Pointer};
use crate::error::BetreeError;
use crate::space::{BlockStore, Sectors};

/// See the module's head.
pub(super) struct MissedBlock<T: BlockTypes> {
    store: Arc<BlockStore>,
    cache: Arc<PageCache<T>>,
    pointer: Pointer,
    sectors: Sectors,
}

impl<T: BlockTypes> MissedBlock<T> {
    /// `None` where the pointer leads out of the file. A read with `MayBlock` reports that.
    pub(super) fn new(
        store: &Arc<BlockStore>,
        cache: &Arc<PageCache<T>>,
        pointer: &Pointer,
    ) -> Option<MissedBlock<T>> {
        let sectors = store.sectors(pointer).ok()?;
        Some(MissedBlock { store: Arc::clone(store), cache: Arc::clone(cache), pointer: *pointer, sectors })
    }

    fn keep(&self, bytes: &[u8]) -> Result<(), BetreeError> {
        let payload = &*self.store.stored_in(&self.pointer, &self.sectors, bytes)?;
        let key = BlockKey::of(&self.pointer);
        match self.pointer.kind() {
            BlockKind::LeafDirectory => {
                let raw = self.store.decompress(&self.pointer, payload)?;
                self.cache.insert_directory(key, Arc::new(decode_directory(&self.pointer, &raw)?));
            }
            BlockKind::Page | BlockKind::RunPage => {
                match self.cache.tier_for_read(self.pointer.raw_length() as usize) {
                    Tier::Decoded => {
                        let raw = self.store.decompress(&self.pointer, payload)?;
                        self.cache.insert_decoded(key, decode_page(&self.pointer, raw)?);
                    }
                    // The repeated request decodes it, in a thread whose buffers are warm.
                    Tier::Compressed => {
                        self.cache.insert_compressed(key, StoredPage::awaited(self.pointer.codec(), payload));
                    }
                }
            }
            BlockKind::LargeValue => {
                self.cache.insert_compressed(key, StoredPage::awaited(self.pointer.codec(), payload));
            }
            // The cache holds no other kinds.
            _ => {}
        }
        self.cache.misses.add(1);
        Ok(())
    }
}

impl<T: BlockTypes> MissedRead for MissedBlock<T> {
    fn file(&self) -> &Arc<dyn File> {
        self.store.shared_file()
    }

    fn offset(&self) -> u64 {
        self.sectors.start
    }

    fn length(&self) -> usize {
        self.sectors.length
    }

    fn fulfil(&self, bytes: &[u8]) {
        // A reader with `MayBlock` reads the block again and reports what is wrong with it.
        let _kept = self.keep(bytes);
    }
}

impl<T: BlockTypes> fmt::Debug for MissedBlock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes at {}", self.sectors.length, self.sectors.start)
    }
}
