//! A block that a reader that must not block needed: what to read, and how it gets into the cache.
//!
//! Between the miss and the bytes the block may have been freed, and its place written anew. Then its checksum does not fit,
//! and the bytes are dropped: the reader, asking again, finds the block's successor. A block that was freed and not yet
//! overwritten comes into the cache in vain, and leaves it as what nobody asks for.

use std::fmt;
use std::sync::Arc;

use pando_environment::File;
use pando_storage::MissedRead;

use super::blocks::{decode_directory, decode_page};
use super::page_cache::{BlockKey, PageCache, Tier};
use super::stored_page::StoredPage;
use crate::base::{BlockKind, Pointer};
use crate::error::BetreeError;
use crate::space::{BlockStore, Sectors};

/// See the module's head.
pub(super) struct MissedBlock {
    store: Arc<BlockStore>,
    cache: Arc<PageCache>,
    pointer: Pointer,
    sectors: Sectors,
}

impl MissedBlock {
    /// `None` where the pointer leads out of the file: whoever reads it with `MayBlock` reports that.
    pub(super) fn new(
        store: &Arc<BlockStore>,
        cache: &Arc<PageCache>,
        pointer: &Pointer,
    ) -> Option<MissedBlock> {
        let sectors = store.sectors(pointer).ok()?;
        Some(MissedBlock { store: Arc::clone(store), cache: Arc::clone(cache), pointer: *pointer, sectors })
    }

    fn keep(&self, bytes: &[u8]) -> Result<(), BetreeError> {
        let payload = self.store.stored_in(&self.pointer, &self.sectors, bytes)?;
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
                    // Whoever waits for it decodes it, with buffers that are warm.
                    Tier::Compressed => {
                        self.cache.insert_compressed(key, StoredPage::awaited(self.pointer.codec(), payload));
                    }
                }
            }
            BlockKind::LargeValue => {
                self.cache.insert_compressed(key, StoredPage::awaited(self.pointer.codec(), payload));
            }
            // The cache has no others.
            _ => {}
        }
        self.cache.misses.add(1);
        Ok(())
    }
}

impl MissedRead for MissedBlock {
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
        // What is wrong with it is told to whoever reads it with `MayBlock`.
        let _kept = self.keep(bytes);
    }
}

impl fmt::Debug for MissedBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes at {}", self.sectors.length, self.sectors.start)
    }
}
