//! Reads large values: each piece out of the cache or from the device, decompressed straight into its place in the value.
//!
//! # What is kept
//! Pieces are kept as they stand on disk, in the compressed tier, and decoded at each use. A value that would take more than
//! 1 / [`KEPT_PARTS`] of the cache is not kept at all, so that reading a few of them drives nothing out; nor is what a long scan passes. Who
//! reads that must not block is told which piece is missing only where that piece would be kept.

use bytes::Bytes;
use pando_storage::BlockingMode;

use super::blocks::{Blocks, NewPage};
use super::page_cache::BlockKey;
use super::scan_reads::ScanPace;
use super::stored_page::StoredPage;
use crate::base::{Codec, Pointer};
use crate::error::BetreeError;
use crate::format::content::LargeReference;

/// A value may take so small a part of the cache.
const KEPT_PARTS: u64 = 128;

/// A large value that is wanted, and the place of its bytes.
pub(crate) struct Wanted<'w> {
    pub(crate) reference: &'w LargeReference<Bytes>,
    /// As long as the value.
    pub(crate) target: &'w mut [u8],
}

/// A piece that has to be read.
struct Missing<'m> {
    pointer: Pointer,
    is_kept: bool,
    target: &'m mut [u8],
}

impl Blocks {
    /// A large value for a point query.
    pub(crate) fn large_value(
        &self,
        reference: &LargeReference<Bytes>,
        blocking: BlockingMode,
    ) -> Result<Bytes, BetreeError> {
        // Checked to be at most as long as a value can be.
        let mut value = vec![0; reference.length() as usize];
        let wanted = Wanted { reference, target: &mut value };
        self.fill_large([wanted], ScanPace::Stepping, blocking)?;
        Ok(Bytes::from(value))
    }

    /// Fills in values, with as few calls to the device as possible.
    pub(crate) fn fill_large<'w>(
        &self,
        wanted: impl IntoIterator<Item = Wanted<'w>>,
        pace: ScanPace,
        blocking: BlockingMode,
    ) -> Result<(), BetreeError> {
        let mut missing = Vec::new();
        for Wanted { reference, target } in wanted {
            let stored: u64 = reference.pieces().map(|piece| piece.grain_bytes()).sum();
            let is_kept = self.keeps_large(stored);
            let mut rest = target;
            for pointer in reference.pieces() {
                let (target, after) = rest.split_at_mut(pointer.raw_length() as usize);
                rest = after;
                match self.cache().piece(&BlockKey::of(&pointer)) {
                    Some(piece) if piece.decode_into(target) => {}
                    Some(_) => return Err(self.store().undecodable(&pointer).into()),
                    None if blocking == BlockingMode::CachedOnly && !is_kept => {
                        return Err(BetreeError::WouldBlock(None));
                    }
                    None => {
                        self.miss(&pointer, blocking)?;
                        missing.push(Missing { pointer, is_kept, target });
                    }
                }
            }
        }
        self.read_pieces(missing, pace)
    }

    fn read_pieces(&self, mut missing: Vec<Missing<'_>>, pace: ScanPace) -> Result<(), BetreeError> {
        missing.sort_by_key(|piece| piece.pointer.address());
        let pointers: Vec<Pointer> = missing.iter().map(|piece| piece.pointer).collect();
        let mut places = missing.iter_mut();
        let mut outcome = Ok(());
        self.store().read_neighbours(&pointers, |pointer, payload| {
            let piece = places.next().expect("each pointer is handed over once, in order");
            if !pointer.codec().decompress_into(payload, piece.target) {
                outcome = Err(self.store().undecodable(pointer).into());
            } else if piece.is_kept && pace == ScanPace::Stepping {
                self.cache()
                    .insert_compressed(BlockKey::of(pointer), StoredPage::used(pointer.codec(), payload));
            }
        })?;
        outcome
    }

    fn keeps_large(&self, stored_bytes: u64) -> bool {
        stored_bytes <= self.cache().limit() / KEPT_PARTS
    }

    /// A copy of a piece that stands in a writer, if there is room for it in the cache.
    pub(crate) fn new_piece(&self, (codec, payload): (Codec, &[u8])) -> Option<NewPage> {
        let has_room = self.keeps_large(payload.len() as u64) && self.cache().has_compressed_room();
        has_room.then(|| NewPage::Compressed(StoredPage::used(codec, payload)))
    }
}
