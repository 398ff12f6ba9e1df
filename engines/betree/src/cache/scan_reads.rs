//! Page reads of scans: several pages with one call to the device, without evicting the pages of other
//! readers.
//!
//! # Terms
//! - *One-time read* ([`ReadHint::OneTime`]): how a long scan reads, so that the cache is scan-resistant. The
//!   page does not count as used, and is kept decoded only where there is room. It is therefore evicted
//!   first. Where much memory is unused it counts as used.
//! - *Page window*: neighbouring pages of a leaf or of a slice. The scan needs some of them now and the
//!   others soon.
//!
//! # Prefetch
//! Background workers read the pages that a long scan needs after its batch
//! ([`scan_prefetch`](super::scan_prefetch)). Without workers, or without memory for them, the scan's own
//! thread reads the whole page window. The pages that it does not need yet then wait in the compressed tier.

use std::ops::Range;

use pando_environment::Step;
use pando_storage::BlockingMode;

use super::block_types::{BlockTypes, decode_page};
use super::cached_blocks::CachedBlocks;
use super::page_cache::{BlockKey, OneTimeHit, Promotion, Tier};
use super::scan_prefetch::{
    ChunkRequest, Fetched, PrefetchLimits, ReadyPages, ScanId, ScanVisit, StreamExtension,
};
use super::stored_page::StoredPage;
use crate::base::Pointer;
use crate::error::BetreeError;

/// The prefetch distance of one scan, in bytes before compression: four leaves of the usual size.
const DISTANCE_BYTES: u64 = 2 << 20;
/// The divisor of the cache for the pages that wait for all scans.
const CACHE_DIVISOR: u64 = 16;
/// The most bytes of the pages that wait for all scans, in a cache of any size.
const MEMORY_BYTES_MAX: u64 = 32 << 20;

/// How a reader expects to use the pages that it reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadHint {
    /// The pages may well be read again: point reads and short scans.
    Normal,
    /// The pages are read once: long scans. See the module's head.
    OneTime,
}

/// See the module's head. `E` is an entry of a directory, which holds the pointer of a page.
#[derive(Clone, Debug)]
pub(crate) struct PageWindow<'d, E> {
    /// The pages, as their directory lists them.
    pub(crate) pages: &'d [E],
    /// The pages among them that the scan needs now.
    pub(crate) needed: Range<usize>,
}

impl<T: BlockTypes> CachedBlocks<T> {
    /// Returns a page for a scan, if it is in memory.
    pub(crate) fn scanned_page(
        &self,
        pointer: &Pointer,
        hint: ReadHint,
    ) -> Result<Option<T::Page>, BetreeError> {
        if hint == ReadHint::Normal {
            return self.cached_page(pointer);
        }
        let key = BlockKey::of(pointer);
        match self.cache().one_time(&key, pointer.raw_length() as usize) {
            None => Ok(None),
            Some(OneTimeHit::Decoded(page)) => Ok(Some(page)),
            Some(OneTimeHit::Compressed(found)) => {
                let page = self.decode_stored(pointer, &found.page)?;
                if found.promotion == Promotion::Keep {
                    self.cache().promote(key, page.clone());
                }
                Ok(Some(page))
            }
        }
    }

    /// Reads the pages of a window that are not in memory, with as few calls to the device as possible. Hands
    /// the pages that the scan needs now to `take`, each with its place in the window.
    pub(crate) fn read_window<E: AsRef<Pointer>>(
        &self,
        window: &PageWindow<'_, E>,
        hint: ReadHint,
        mut take: impl FnMut(usize, T::Page),
    ) -> Result<(), BetreeError> {
        let pointer_at = |at: usize| window.pages[at].as_ref();
        let uncached: Vec<usize> =
            (0..window.pages.len()).filter(|at| self.tier_of(pointer_at(*at)).is_none()).collect();
        let pointers: Vec<Pointer> = uncached.iter().map(|at| *pointer_at(*at)).collect();
        self.cache().misses.add(uncached.len() as u64);
        let mut places = uncached.into_iter();
        let mut outcome = Ok(());
        let reads = self.store().read_neighbours(&pointers, |pointer, payload| {
            let at = places.next().expect("each pointer is handed over once, in order");
            if !window.needed.contains(&at) {
                let stored = StoredPage::awaited(pointer.codec(), payload);
                return self.cache().insert_compressed(BlockKey::of(pointer), stored);
            }
            match self.decode_scanned(pointer, payload, hint) {
                Ok(page) => take(at, page),
                Err(error) => outcome = Err(error),
            }
        })?;
        self.cache().scan_reads.add(reads.calls);
        self.cache().scan_read_bytes.add(reads.bytes);
        outcome
    }

    fn prefetch_limits(&self) -> PrefetchLimits {
        let memory_bytes = (self.cache().limit() / CACHE_DIVISOR).min(MEMORY_BYTES_MAX);
        PrefetchLimits {
            memory_bytes: memory_bytes as usize,
            distance_bytes: DISTANCE_BYTES.min(memory_bytes / 2),
        }
    }

    /// The prefetch distance of one scan, in bytes before compression.
    pub(crate) fn prefetch_distance_bytes(&self) -> u64 {
        self.prefetch_limits().distance_bytes
    }

    /// Whether there are prefetch workers, and room for another stream.
    pub(crate) fn can_prefetch(&self) -> bool {
        self.scan_prefetch.now().is_some_and(|now| self.scan_prefetch.has_room(now, self.prefetch_limits()))
    }

    /// Begins a prefetch stream, and reads its first chunk at once. False where there is no room.
    pub(crate) fn begin_prefetch(&self, scan: ScanId, chunks: Vec<ChunkRequest>) -> bool {
        let Some(now) = self.scan_prefetch.now() else { return false };
        let visit = ScanVisit { scan, now, limits: self.prefetch_limits() };
        self.scan_prefetch.begin(visit, chunks, |pages| self.read_chunk(pages))
    }

    /// Adds chunks to a prefetch stream.
    pub(crate) fn extend_prefetch(&self, extension: &StreamExtension, chunks: Vec<ChunkRequest>) {
        self.scan_prefetch.extend(extension, chunks, self.prefetch_limits());
    }

    /// Fetches the first of these pages from its prefetch stream, with the pages behind it that are ready. In
    /// mode `CachedOnly` it does not wait for a chunk that is not ready.
    pub(crate) fn fetch_prefetched<'p>(
        &self,
        scan: ScanId,
        pages: impl Iterator<Item = &'p Pointer>,
        blocking: BlockingMode,
    ) -> Fetched<T::Page> {
        let Some(now) = self.scan_prefetch.now().filter(|_| !self.scan_prefetch.is_empty()) else {
            return Fetched::default();
        };
        let keys: Vec<BlockKey> = pages.map(BlockKey::of).collect();
        let visit = ScanVisit { scan, now, limits: self.prefetch_limits() };
        self.scan_prefetch.fetch(visit, &keys, blocking, |pages| self.read_chunk(pages))
    }

    /// One step of a prefetch worker: reads a chunk, or drops the streams of scans that ended.
    pub(crate) fn prefetch_step(&self) -> Step {
        if self.scan_prefetch.read_next(|pages| self.read_chunk(pages)) {
            return Step::Again;
        }
        let later = self.scan_prefetch.now().and_then(|now| self.scan_prefetch.drop_abandoned(now));
        later.map_or(Step::Sleep, Step::Wait)
    }

    /// Reads and decodes the pages of a chunk. Leaves out pages that cannot be read: the scan reads these
    /// itself, and reports the error.
    fn read_chunk(&self, pages: &[Pointer]) -> ReadyPages<T::Page> {
        let mut read: Vec<Option<T::Page>> = pages
            .iter()
            .map(|pointer| self.scanned_page(pointer, ReadHint::OneTime).ok().flatten())
            .collect();
        let mut uncached: Vec<usize> = (0..pages.len()).filter(|at| read[*at].is_none()).collect();
        uncached.sort_unstable_by_key(|at| pages[*at].address());
        let pointers: Vec<Pointer> = uncached.iter().map(|at| pages[*at]).collect();
        self.cache().misses.add(uncached.len() as u64);
        let mut at = 0;
        while at < pointers.len() {
            let from = at;
            let reads = self.store().read_neighbours(&pointers[from..], |pointer, payload| {
                read[uncached[at]] = self.decode_scanned(pointer, payload, ReadHint::OneTime).ok();
                at += 1;
            });
            match reads {
                Ok(reads) => {
                    self.cache().scan_reads.add(reads.calls);
                    self.cache().scan_read_bytes.add(reads.bytes);
                }
                // Skips the page that cannot be read.
                Err(_) => at += 1,
            }
        }
        let ready = pages.iter().zip(read);
        ready.filter_map(|(pointer, page)| Some((BlockKey::of(pointer), page?))).collect()
    }

    fn decode_scanned(
        &self,
        pointer: &Pointer,
        payload: &[u8],
        hint: ReadHint,
    ) -> Result<T::Page, BetreeError> {
        let page: T::Page = decode_page(pointer, self.store().decompress(pointer, payload)?)?;
        let key = BlockKey::of(pointer);
        match (self.cache().tier_for_read(pointer.raw_length() as usize), hint) {
            (Tier::Decoded, _) => self.cache().insert_decoded(key, page.clone()),
            (Tier::Compressed, ReadHint::OneTime) if !self.cache().has_unused() => {
                self.cache().insert_compressed(key, StoredPage::awaited(pointer.codec(), payload));
            }
            // Where much memory is unused, the next use of the page may promote it.
            (Tier::Compressed, _) => {
                self.cache().insert_compressed(key, StoredPage::used(pointer.codec(), payload));
            }
        }
        Ok(page)
    }
}
