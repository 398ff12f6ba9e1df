//! Reads of large values, which are stored outside of pages in one or more pieces. Each piece comes from the
//! cache or from the device, and is decompressed straight into its place in the value.
//!
//! # Caching
//! - Pieces stay in the compressed tier, as they stand on disk. Each use decompresses them again.
//! - A value is not kept if it is larger than the cache divided by [`KEPT_VALUE_DIVISOR`]: a few such reads
//!   would evict everything else.
//! - Long scans keep none ([`ReadHint::OneTime`]).
//! - In mode `CachedOnly` an uncached piece is reported to the caller only if the cache would keep it.
//!   Otherwise the caller would wait for a read whose result is dropped.

use pando_storage::BlockingMode;

use super::block_types::BlockTypes;
use super::cached_blocks::{CachedBlocks, NewPage};
use super::page_cache::BlockKey;
use super::scan_reads::ReadHint;
use super::stored_page::StoredPage;
use crate::base::{Codec, Pointer};
use crate::error::BetreeError;

/// The divisor of the cache that gives the largest value that is kept.
const KEPT_VALUE_DIVISOR: u64 = 128;

/// A large value to read, and the place for its bytes.
pub(crate) struct LargeValueRead<'t, P> {
    /// The pointers of its pieces, in the order of the value.
    pub(crate) pieces: P,
    /// As long as the value.
    pub(crate) target: &'t mut [u8],
}

/// A piece that must come from the device.
struct UncachedPiece<'t> {
    pointer: Pointer,
    is_kept: bool,
    target: &'t mut [u8],
}

impl<T: BlockTypes> CachedBlocks<T> {
    /// Fills in large values with as few calls to the device as possible.
    pub(crate) fn read_large_values<'t, P: Iterator<Item = Pointer> + Clone>(
        &self,
        values: impl IntoIterator<Item = LargeValueRead<'t, P>>,
        hint: ReadHint,
        blocking: BlockingMode,
    ) -> Result<(), BetreeError> {
        let mut uncached = Vec::new();
        for LargeValueRead { pieces, target } in values {
            let stored_bytes = pieces.clone().map(|piece| piece.grain_bytes()).sum();
            let is_kept = self.keeps_large(stored_bytes);
            let mut rest = target;
            for pointer in pieces {
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
                        uncached.push(UncachedPiece { pointer, is_kept, target });
                    }
                }
            }
        }
        self.read_pieces(uncached, hint)
    }

    fn read_pieces(&self, mut uncached: Vec<UncachedPiece<'_>>, hint: ReadHint) -> Result<(), BetreeError> {
        uncached.sort_by_key(|piece| piece.pointer.address());
        let pointers: Vec<Pointer> = uncached.iter().map(|piece| piece.pointer).collect();
        let mut places = uncached.iter_mut();
        let mut outcome = Ok(());
        self.store().read_neighbours(&pointers, |pointer, payload| {
            let piece = places.next().expect("each pointer is handed over once, in order");
            if !pointer.codec().decompress_into(payload, piece.target) {
                outcome = Err(self.store().undecodable(pointer).into());
            } else if piece.is_kept && hint == ReadHint::Normal {
                self.cache()
                    .insert_compressed(BlockKey::of(pointer), StoredPage::used(pointer.codec(), payload));
            }
        })?;
        outcome
    }

    fn keeps_large(&self, stored_bytes: u64) -> bool {
        stored_bytes <= self.cache().limit() / KEPT_VALUE_DIVISOR
    }

    /// Copies a piece out of a writer's buffer, if the cache has room for it.
    pub(crate) fn new_piece(&self, (codec, payload): (Codec, &[u8])) -> Option<NewPage> {
        let has_room = self.keeps_large(payload.len() as u64) && self.cache().has_compressed_room();
        has_room.then(|| NewPage::Compressed(StoredPage::used(codec, payload)))
    }
}
