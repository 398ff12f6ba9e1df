//! Prefetch of a long scan: chooses the pages that background workers read (`cache/scan_prefetch.rs`). They
//! are the pages behind its batch in the leaf, and those of the next leaves.
//!
//! The prefetch distance of a scan is short at first ([`FIRST_BYTES`]). It becomes full once the scan has
//! fetched prefetched pages, which shows that it goes on. So a scan of a few hundred rows leaves few pages
//! that no one needs.

use std::ops::{Bound, Range};
use std::sync::Arc;

use pando_storage::{BlockingMode, Direction, KeyRange};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::cache::{ChunkRequest, ScanId, StreamExtension};
use crate::error::BetreeError;
use crate::format::directory::{Directory, PageEntry};
use crate::tree::path::{LeafPlace, Target, find_leaf};
use crate::tree::scan::scan_path::{page_at, pages_within};
use crate::tree::tree_blocks::Blocks;
use crate::tree::view::TreeVersion;

/// The distance of a new stream, in bytes before compression; half of the full distance if that is less.
const FIRST_BYTES: u64 = 256 << 10;
/// Bytes of a chunk before compression: one and a half leaves of the usual size, so that a usual leaf is one
/// chunk.
const CHUNK_BYTES: u64 = 768 << 10;
/// Chunks that are requested at a time, however small the leaves are.
const CHUNKS_MAX: usize = 16;

/// Requests chunks for a scan that stands at a leaf.
pub(crate) struct Prefetcher<'s> {
    pub(crate) version: &'s TreeVersion,
    pub(crate) blocks: &'s Blocks,
    pub(crate) rest: &'s KeyRange,
    pub(crate) direction: Direction,
    pub(crate) blocking: BlockingMode,
}

impl Prefetcher<'_> {
    /// Equal for all batches of a scan, and for other scans of the same direction and end bound.
    pub(crate) fn scan_id(&self) -> ScanId {
        let (seed, end) = match self.direction {
            Direction::Forward => (0, &self.rest.upper),
            Direction::Backward => (1, &self.rest.lower),
        };
        ScanId::from_hash(match end {
            Bound::Included(key) => xxh3_64_with_seed(key, seed + 2),
            Bound::Excluded(key) => xxh3_64_with_seed(key, seed + 4),
            Bound::Unbounded => seed,
        })
    }

    /// Begins a stream with the pages of the batch, which the scan's thread reads, and the pages behind them.
    /// False where no pages are behind them, or no memory.
    pub(crate) fn begin(&self, leaf: &LeafPlace<'_>, directory: &Directory, batch: &Range<usize>) -> bool {
        if !self.blocks.can_prefetch() {
            return false;
        }
        let first = self.request(leaf, directory, batch.clone());
        let Some(frontier) = first.frontier.clone() else { return false };
        let bytes = FIRST_BYTES.min(self.blocks.prefetch_distance_bytes() / 2);
        let mut chunks = vec![first];
        chunks.extend(self.chunks_from(frontier, bytes));
        self.blocks.begin_prefetch(self.scan_id(), chunks)
    }

    /// Requests more chunks from the frontier on.
    pub(crate) fn extend(&self, extension: &StreamExtension) {
        let chunks = self.chunks_from(extension.frontier.clone(), extension.lacking_bytes);
        self.blocks.extend_prefetch(extension, chunks);
    }

    /// Chunks of these bytes from a frontier on. Ends before a block that cannot be read: the scan reads it
    /// later itself, and reports the error.
    fn chunks_from(&self, frontier: Box<[u8]>, bytes: u64) -> Vec<ChunkRequest> {
        let (mut chunks, mut raw_bytes) = (Vec::new(), 0_u64);
        let mut frontier = Some(frontier);
        while raw_bytes < bytes
            && chunks.len() < CHUNKS_MAX
            && let Some(key) = frontier
        {
            let Ok(Some(chunk)) = self.chunk_at(&key) else { break };
            raw_bytes = raw_bytes.saturating_add(chunk.raw_bytes);
            frontier = chunk.frontier.clone();
            chunks.push(chunk);
        }
        chunks
    }

    fn chunk_at(&self, frontier: &[u8]) -> Result<Option<ChunkRequest>, BetreeError> {
        let target = match self.direction {
            Direction::Forward => Target::Covering(frontier),
            Direction::Backward => Target::Before(frontier),
        };
        let visit = |_: &_, _, _| Ok::<(), BetreeError>(());
        let leaf = find_leaf(self.version, self.blocks, target, self.blocking, visit)?;
        let Some(leaf) = leaf else { return Ok(None) };
        let directory: Arc<Directory> = self.blocks.directory(&leaf.leaf.directory, self.blocking)?;
        let within = pages_within(&directory, self.rest, self.direction);
        let at = page_at(&directory, target);
        let pages = match self.direction {
            Direction::Forward => at..within.end.max(at + 1),
            Direction::Backward => within.start.min(at)..at + 1,
        };
        let cut = self.cut(&directory, pages);
        Ok(Some(self.request(&leaf, &directory, cut)))
    }

    /// The nearest of these pages that make a chunk.
    fn cut(&self, directory: &Directory, pages: Range<usize>) -> Range<usize> {
        let mut bytes = 0;
        let goes_in = |page: &&PageEntry| {
            let is_first = bytes == 0;
            bytes += u64::from(page.pointer.raw_length());
            is_first || bytes <= CHUNK_BYTES
        };
        let all = &directory.pages()[pages.clone()];
        match self.direction {
            Direction::Forward => pages.start..pages.start + all.iter().take_while(goes_in).count(),
            Direction::Backward => pages.end - all.iter().rev().take_while(goes_in).count()..pages.end,
        }
    }

    fn request(&self, leaf: &LeafPlace<'_>, directory: &Directory, pages: Range<usize>) -> ChunkRequest {
        let raw_bytes =
            |page: &PageEntry| u64::from(page.pointer.raw_length()).saturating_add(page.large_bytes);
        let entries = &directory.pages()[pages.clone()];
        let mut pointers: Vec<_> = entries.iter().map(|page| page.pointer).collect();
        let last = directory.pages().len();
        let end = match self.direction {
            Direction::Forward if pages.end == last => leaf.upper,
            Direction::Forward => Some(directory.separator(pages.end)),
            Direction::Backward if pages.start == 0 => leaf.lower,
            Direction::Backward => Some(directory.separator(pages.start)),
        };
        if self.direction == Direction::Backward {
            pointers.reverse();
        }
        ChunkRequest {
            pages: pointers,
            raw_bytes: entries.iter().map(raw_bytes).fold(0, u64::saturating_add),
            frontier: end.filter(|end| self.goes_on_at(end)).map(Into::into),
        }
    }

    /// Whether the scan goes on at this key.
    fn goes_on_at(&self, key: &[u8]) -> bool {
        match (self.direction, &self.rest.upper, &self.rest.lower) {
            (Direction::Forward, Bound::Included(last), _) => key <= last.as_slice(),
            (Direction::Forward, Bound::Excluded(last), _) => key < last.as_slice(),
            (Direction::Backward, _, Bound::Included(first) | Bound::Excluded(first)) => {
                key > first.as_slice()
            }
            (Direction::Forward, Bound::Unbounded, _) | (Direction::Backward, _, Bound::Unbounded) => true,
        }
    }
}
