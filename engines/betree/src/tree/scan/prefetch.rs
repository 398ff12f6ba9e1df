//! What a long scan asks others to bring while it is at its batch ([`crate::cache::ScanAhead`]): the pages of the leaf behind those
//! of the batch, and of the leaves behind that.
//!
//! How far it asks ahead it has to earn: little where it finds nothing that was asked for, and all where it does, for then it has gone on
//! as was expected. A scan of a few hundred rows leaves little behind that nobody wanted.

use std::ops::{Bound, Range};
use std::sync::Arc;

use pando_storage::{BlockingMode, Direction, KeyRange};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::cache::{Blocks, Extension, WantedPages};
use crate::error::BetreeError;
use crate::format::directory::{Directory, PageEntry};
use crate::tree::path::{LeafPlace, Target, find_leaf};
use crate::tree::scan::scan_path::{page_at, pages_within};
use crate::tree::view::Version;

/// So many bytes, before compression, are asked for at least where nothing was; less where little may be ahead.
const FIRST_BYTES: u64 = 256 << 10;
/// Bytes of a portion, before compression, from which on it is cut: a leaf of the usual size and a half, so that such a one is read whole.
const PORTION_BYTES: u64 = 768 << 10;
/// Portions that are asked for at a time, however small the leaves are.
const PORTIONS_MAX: usize = 16;

/// A scan at a leaf.
pub(crate) struct Beyond<'s> {
    pub(crate) version: &'s Version,
    pub(crate) blocks: &'s Blocks,
    pub(crate) rest: &'s KeyRange,
    pub(crate) direction: Direction,
    pub(crate) blocking: BlockingMode,
}

impl Beyond<'_> {
    /// The same for all batches of a scan, and for others that go the same way to the same end.
    pub(crate) fn course(&self) -> u64 {
        let (seed, end) = match self.direction {
            Direction::Forward => (0, &self.rest.upper),
            Direction::Backward => (1, &self.rest.lower),
        };
        match end {
            Bound::Included(key) => xxh3_64_with_seed(key, seed + 2),
            Bound::Excluded(key) => xxh3_64_with_seed(key, seed + 4),
            Bound::Unbounded => seed,
        }
    }

    /// Asks for the pages of the batch, which the scan brings itself, and for what comes after them. False where there is nothing after
    /// them, or no room.
    pub(crate) fn begin(&self, leaf: &LeafPlace<'_>, directory: &Directory, batch: &Range<usize>) -> bool {
        if !self.blocks.has_room_ahead() {
            return false;
        }
        let first = self.wanted(leaf, directory, batch.clone());
        let Some(frontier) = first.frontier.clone() else { return false };
        let bytes = FIRST_BYTES.min(self.blocks.reach_ahead() / 2);
        let mut wanted = vec![first];
        wanted.extend(self.portions_from(frontier, bytes));
        self.blocks.begin_ahead(self.course(), wanted)
    }

    /// Asks for more where the last asking ended.
    pub(crate) fn extend(&self, extension: &Extension) {
        let wanted = self.portions_from(extension.frontier.clone(), extension.missing);
        self.blocks.extend_ahead(extension, wanted);
    }

    /// The portions from a frontier on that reach so far. Whatever cannot be read the scan comes upon itself, later.
    fn portions_from(&self, frontier: Box<[u8]>, bytes: u64) -> Vec<WantedPages> {
        let (mut portions, mut reach) = (Vec::new(), 0);
        let mut frontier = Some(frontier);
        while reach < bytes
            && portions.len() < PORTIONS_MAX
            && let Some(key) = frontier
        {
            let Ok(Some(portion)) = self.portion_at(&key) else { break };
            reach = portion.reach.saturating_add(reach);
            frontier = portion.frontier.clone();
            portions.push(portion);
        }
        portions
    }

    fn portion_at(&self, frontier: &[u8]) -> Result<Option<WantedPages>, BetreeError> {
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
        Ok(Some(self.wanted(&leaf, &directory, cut)))
    }

    /// As many pages of these, the nearest first, as make a portion.
    fn cut(&self, directory: &Directory, pages: Range<usize>) -> Range<usize> {
        let mut bytes = 0;
        let goes_in = |page: &&PageEntry| {
            let is_first = bytes == 0;
            bytes += u64::from(page.pointer.raw_length());
            is_first || bytes <= PORTION_BYTES
        };
        let all = &directory.pages()[pages.clone()];
        match self.direction {
            Direction::Forward => pages.start..pages.start + all.iter().take_while(goes_in).count(),
            Direction::Backward => pages.end - all.iter().rev().take_while(goes_in).count()..pages.end,
        }
    }

    fn wanted(&self, leaf: &LeafPlace<'_>, directory: &Directory, pages: Range<usize>) -> WantedPages {
        let reach = |page: &PageEntry| u64::from(page.pointer.raw_length()).saturating_add(page.large_bytes);
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
        WantedPages {
            pages: pointers,
            reach: entries.iter().map(reach).fold(0, u64::saturating_add),
            frontier: end.filter(|end| self.goes_on_at(end)).map(Into::into),
        }
    }

    /// Whether the scan, having come to this key, goes on there.
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
