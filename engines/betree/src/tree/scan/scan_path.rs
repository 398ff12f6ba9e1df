//! Scan path: the position of a scan in a tree. It has a leaf, the slices pending for it in the nodes above,
//! and a position in a page of each.
//!
//! # Steps
//! 1. [`ScanPath::find`] descends to the leaf that covers the place. Slices that also cover the leaf before
//!    keep their places.
//! 2. [`ScanPath::fetch`] reads the page that covers the place, of the leaf and of each slice. The pages of
//!    the leaf that the batch needs are read with one call to the device. For a long scan, background workers
//!    read those behind them meanwhile ([`prefetch`](crate::tree::scan::prefetch)).
//! 3. [`ScanPath::end`] says how far all these pages reach. [`ScanPath::leave`] goes on behind that.
//!
//! # Invariant
//! - Every slice of the path covers the whole leaf, so none ends before it.

use std::collections::VecDeque;
use std::ops::{Bound, Range};
use std::sync::Arc;

use pando_storage::{BlockingMode, CommitTimestamp, Direction, KeyRange};

use crate::cache::{PageWindow, ReadHint, Tier};
use crate::error::BetreeError;
use crate::format::directory::{Directory, PageEntry};
use crate::format::page::Page;
use crate::format::slice_index::SliceIndex;
use crate::tree::lookup::Damaged;
use crate::tree::path::{Bounds as PathBounds, LeafPlace, Target, find_leaf};
use crate::tree::scan::batch_fill::Filling;
use crate::tree::scan::page_cursor::PageCursor;
use crate::tree::scan::prefetch::Prefetcher;
use crate::tree::scan::{Piece, ScanRequest, nearer, target_of};
use crate::tree::tree_blocks::Blocks;
use crate::tree::view::TreeVersion;

/// Bytes before compression that a long scan without prefetch reads of a leaf at a time.
const LEAF_WINDOW_BYTES: usize = 1 << 20;
/// The same of a slice, which has little of a leaf's range.
const SLICE_WINDOW_BYTES: usize = 64 << 10;
/// Batches that are read at a time at most. Four of the largest ones are as much as a leaf's window.
const WINDOW_BATCHES: usize = 4;

/// A place in one of the slices on the path.
struct SlicePlace<'v> {
    index: &'v SliceIndex,
    bounds: PathBounds<'v>,
    at: usize,
    cursor: Option<PageCursor>,
}

/// See the module's head.
pub(crate) struct ScanPath<'v> {
    leaf: LeafPlace<'v>,
    directory: Arc<Directory>,
    at: usize,
    cursor: Option<PageCursor>,
    slices: Vec<SlicePlace<'v>>,
    ahead: PagesAhead,
}

/// Pages of the leaf that the scan will need next.
struct PagesAhead {
    /// Pages that were read with another, with their places in the leaf, in the order of the scan.
    pages: VecDeque<(usize, Page)>,
    prefetch: Prefetch,
}

/// Whether background workers read pages of the leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Prefetch {
    /// They do, or were not asked yet.
    Possible,
    /// A request failed: no memory, no pages behind the batch, or a page that cannot be read.
    Refused,
}

impl<'v> ScanPath<'v> {
    /// The path to the first leaf of the remaining keys; `None` in a tree without leaves.
    pub(crate) fn find(
        version: &'v TreeVersion,
        blocks: &Blocks,
        Piece { request, rest, .. }: Piece<'_>,
        before: Option<ScanPath<'v>>,
    ) -> Result<Option<ScanPath<'v>>, Damaged> {
        let target = target_of(rest, request.direction);
        // A scan reads a child once, in however many leaves: it counts where the scan begins, and where it
        // enters the child.
        let is_first = before.is_none();
        let mut known = before.map(|path| path.slices).unwrap_or_default();
        let mut slices = Vec::new();
        let leaf = find_leaf(version, blocks, target, request.blocking, |node, at, bounds| {
            if node.slices(at).is_empty() {
                return Ok(());
            }
            if is_first || enters(target, bounds) {
                node.note_read(at);
            }
            for slice in node.slices(at) {
                let index = blocks.slice_index(slice, request.blocking);
                let index = index.map_err(|error| Damaged::new(error, bounds.0, bounds.1))?;
                slices.push(match known.iter().position(|known| std::ptr::eq(known.index, index)) {
                    Some(have) => known.swap_remove(have),
                    None => SlicePlace { index, bounds, at: page_at(&index.pages, target), cursor: None },
                });
            }
            Ok::<(), Damaged>(())
        })?;
        let Some(leaf) = leaf else { return Ok(None) };
        let directory = blocks
            .directory(&leaf.leaf.directory, request.blocking)
            .map_err(|error| Damaged::new(error, leaf.lower, leaf.upper))?;
        let at = page_at(&directory, target);
        let ahead = PagesAhead { pages: VecDeque::new(), prefetch: Prefetch::Possible };
        Ok(Some(ScanPath { leaf, directory, at, cursor: None, slices, ahead }))
    }

    /// Reads the page that covers the place, of the leaf and of each slice, unless the whole page is older
    /// than the floor.
    pub(crate) fn fetch(
        &mut self,
        version: &TreeVersion,
        blocks: &Blocks,
        piece: Piece<'_>,
        batch: &Filling<'_>,
    ) -> Result<(), Damaged> {
        let Piece { request, rest, floor } = piece;
        let ScanPath { leaf, directory, at, cursor, slices, ahead } = self;
        for slice in slices.iter_mut().filter(|slice| slice.cursor.is_none()) {
            let index = slice.index;
            if index.pages.pages()[slice.at].newest < floor {
                continue;
            }
            let bounds = page_bounds(&index.pages, slice.at, slice.bounds);
            let page = slice_page(blocks, &index.pages, slice.at, request)
                .map_err(|error| Damaged::new(error, bounds.0, bounds.1))?;
            slice.cursor = Some(cursor_in(page, bounds, piece));
        }
        if cursor.is_none() && directory.pages()[*at].newest >= floor {
            let bounds = page_bounds(directory, *at, (leaf.lower, leaf.upper));
            let page = match ahead.take(*at, request.direction) {
                Some(page) => page,
                None => {
                    let (direction, blocking) = (request.direction, request.blocking);
                    let prefetcher = Prefetcher { version, blocks, rest, direction, blocking };
                    LeafPageRead { prefetcher, request, leaf, directory, at: *at }
                        .page(batch, ahead)
                        .map_err(|error| Damaged::new(error, bounds.0, bounds.1))?
                }
            };
            *cursor = Some(cursor_in(page, bounds, piece));
        }
        Ok(())
    }

    /// The key at which the first page ends in the direction of the scan: exclusive forwards, inclusive
    /// backwards. `None` at the end of the tree.
    pub(crate) fn end(&self, direction: Direction) -> Option<&[u8]> {
        let of_leaf = self.leaf_end(direction);
        self.slices.iter().fold(of_leaf, |end, slice| nearer(end, slice.end(direction), direction))
    }

    fn leaf_end(&self, direction: Direction) -> Option<&[u8]> {
        let bounds = page_bounds(&self.directory, self.at, (self.leaf.lower, self.leaf.upper));
        end_of(bounds, direction)
    }

    /// The cursors in the leaf, and in the slices (the newest first), for a piece with this floor.
    pub(crate) fn sources(
        &mut self,
        floor: CommitTimestamp,
    ) -> (Option<&mut PageCursor>, impl Iterator<Item = &mut PageCursor>) {
        let slices = self.slices.iter_mut().filter_map(|slice| slice.cursor.as_mut());
        (
            self.cursor.as_mut().map(|cursor| cursor.above(floor)),
            slices.map(move |cursor| cursor.above(floor)),
        )
    }

    /// Leaves the pages that end here; false if the leaf ends here as well.
    pub(crate) fn leave(&mut self, end: &[u8], direction: Direction) -> bool {
        let mut goes_on = true;
        if self.leaf_end(direction) == Some(end) {
            goes_on = step(&mut self.at, self.directory.pages().len(), direction);
            self.cursor = None;
        }
        for slice in &mut self.slices {
            if slice.end(direction) == Some(end) {
                // A slice whose last page ends here ends with the leaf, and is dropped with the path.
                let _last = step(&mut slice.at, slice.index.pages.pages().len(), direction);
                slice.cursor = None;
            }
        }
        goes_on
    }
}

impl SlicePlace<'_> {
    fn end(&self, direction: Direction) -> Option<&[u8]> {
        end_of(page_bounds(&self.index.pages, self.at, self.bounds), direction)
    }
}

impl PagesAhead {
    /// Takes out the page at a place in the leaf. Drops the pages before it: the scan skipped these because
    /// they are older than a floor.
    fn take(&mut self, at: usize, direction: Direction) -> Option<Page> {
        while self.pages.pop_front_if(|(place, _)| is_passed(*place, at, direction)).is_some() {}
        self.pages.pop_front_if(|(place, _)| *place == at).map(|(_, page)| page)
    }
}

/// Whether a page lies before another in the direction of a scan.
fn is_passed(page: usize, at: usize, direction: Direction) -> bool {
    match direction {
        Direction::Forward => page < at,
        Direction::Backward => page > at,
    }
}

/// Whether this target is the child's first key in the direction of the scan.
fn enters(target: Target<'_>, child: PathBounds<'_>) -> bool {
    match target {
        Target::Covering(key) => child.0 == Some(key),
        Target::Before(key) => child.1 == Some(key),
        Target::First | Target::Last => true,
    }
}

/// Goes to the next page; false if there is none.
fn step(at: &mut usize, count: usize, direction: Direction) -> bool {
    match direction {
        Direction::Forward if *at + 1 < count => *at += 1,
        Direction::Backward if *at > 0 => *at -= 1,
        Direction::Forward | Direction::Backward => return false,
    }
    true
}

/// The page of a directory that a target names.
pub(crate) fn page_at(pages: &Directory, target: Target<'_>) -> usize {
    match target {
        Target::Covering(key) => pages.page_of(key),
        Target::Before(key) => match pages.page_of(key) {
            at if at > 0 && pages.separator(at) == key => at - 1,
            at => at,
        },
        Target::First => 0,
        Target::Last => pages.pages().len() - 1,
    }
}

/// The keys that a page covers of a directory that covers the keys within `bounds`.
fn page_bounds<'d>(pages: &'d Directory, at: usize, bounds: PathBounds<'d>) -> PathBounds<'d> {
    let lower = if at == 0 { bounds.0 } else { Some(pages.separator(at)) };
    let is_last = at + 1 == pages.pages().len();
    (lower, if is_last { bounds.1 } else { Some(pages.separator(at + 1)) })
}

fn end_of<'d>(bounds: PathBounds<'d>, direction: Direction) -> Option<&'d [u8]> {
    match direction {
        Direction::Forward => bounds.1,
        Direction::Backward => bounds.0,
    }
}

/// A cursor before the remaining keys of a page. A bound that lies outside the page is not searched in it.
fn cursor_in(page: Page, bounds: PathBounds<'_>, Piece { request, rest, .. }: Piece<'_>) -> PageCursor {
    let lower = rest.lower.as_ref().map(Vec::as_slice);
    let upper = rest.upper.as_ref().map(Vec::as_slice);
    let begins_within = match (lower, bounds.0) {
        (Bound::Included(key), Some(begin)) => key <= begin,
        (Bound::Excluded(key), Some(begin)) => key < begin,
        (Bound::Unbounded, _) => true,
        (_, None) => false,
    };
    let ends_within = match (upper, bounds.1) {
        (Bound::Included(key) | Bound::Excluded(key), Some(end)) => key >= end,
        (Bound::Unbounded, _) => true,
        (_, None) => false,
    };
    let lower = if begins_within { Bound::Unbounded } else { lower };
    let upper = if ends_within { Bound::Unbounded } else { upper };
    PageCursor::new(page, (lower, upper), request.direction, request.snapshot)
}

fn slice_page(
    blocks: &Blocks,
    pages: &Directory,
    at: usize,
    request: &ScanRequest<'_>,
) -> Result<Page, BetreeError> {
    let mut window = at..at + 1;
    if request.hint == ReadHint::OneTime {
        let bytes_max = window_bytes(blocks, request, SLICE_WINDOW_BYTES);
        window = widened(pages.pages(), window, request.direction, |bytes, _| bytes < bytes_max);
    }
    let read = WindowRead { at, needed: at..at + 1, window };
    read.page(blocks, pages.pages(), request, |_, _| {})
}

/// A page of the leaf that a scan needs.
struct LeafPageRead<'r> {
    prefetcher: Prefetcher<'r>,
    request: &'r ScanRequest<'r>,
    leaf: &'r LeafPlace<'r>,
    directory: &'r Directory,
    at: usize,
}

impl LeafPageRead<'_> {
    /// Returns the page. Others that the batch needs are put into `ahead`.
    fn page(&self, batch: &Filling<'_>, ahead: &mut PagesAhead) -> Result<Page, BetreeError> {
        let LeafPageRead { ref prefetcher, request, directory, at, .. } = *self;
        let pages = directory.pages();
        let within = pages_within(directory, prefetcher.rest, request.direction);
        let cut = |range: Range<usize>| {
            range.start.max(within.start).min(at)..range.end.min(within.end).max(at + 1)
        };
        let needed = cut(needed_pages(pages, at, request, batch));
        let is_long = request.hint == ReadHint::OneTime;
        if is_long
            && ahead.prefetch == Prefetch::Possible
            && let Some(page) = self.prefetched(&needed, ahead)
        {
            return Ok(page);
        }
        let mut window = needed.clone();
        if is_long {
            let bytes_max = window_bytes(prefetcher.blocks, request, LEAF_WINDOW_BYTES);
            window = cut(widened(pages, window, request.direction, |bytes, _| bytes < bytes_max));
        }
        let put_aside = |place, page| match request.direction {
            Direction::Forward => ahead.pages.push_back((place, page)),
            Direction::Backward => ahead.pages.push_front((place, page)),
        };
        WindowRead { at, needed, window }.page(prefetcher.blocks, pages, request, put_aside)
    }

    /// Returns the page from a prefetch stream, and begins or extends the stream as needed. The pages behind
    /// it that are ready are put into `ahead`. `None` where the page is decoded in memory anyway, or is not
    /// prefetched.
    fn prefetched(&self, needed: &Range<usize>, ahead: &mut PagesAhead) -> Option<Page> {
        let LeafPageRead { ref prefetcher, request, leaf, directory, at } = *self;
        let (blocks, direction, blocking) = (prefetcher.blocks, request.direction, request.blocking);
        let pages = directory.pages();
        let scan = prefetcher.scan_id();
        let fetch = || match direction {
            Direction::Forward => {
                let pages = pages[at..needed.end].iter().map(|page| &page.pointer);
                blocks.fetch_prefetched(scan, pages, blocking)
            }
            Direction::Backward => {
                let pages = pages[needed.start..=at].iter().rev().map(|page| &page.pointer);
                blocks.fetch_prefetched(scan, pages, blocking)
            }
        };
        let mut fetched = fetch();
        if let Some(extension) = &fetched.extension {
            prefetcher.extend(extension);
        } else if fetched.pages.is_empty()
            && blocking == BlockingMode::MayBlock
            && blocks.tier_of(&pages[at].pointer) != Some(Tier::Decoded)
        {
            if prefetcher.begin(leaf, directory, needed) {
                fetched = fetch();
            }
            if fetched.pages.is_empty() {
                ahead.prefetch = Prefetch::Refused;
            }
        }
        let mut ready = fetched.pages.into_iter();
        let first = ready.next()?;
        ahead.pages.clear();
        ahead.pages.extend(ready.enumerate().map(|(behind, page)| match direction {
            Direction::Forward => (at + 1 + behind, page),
            Direction::Backward => (at - 1 - behind, page),
        }));
        Some(first)
    }
}

/// The pages of the leaf that the batch needs, from this one on in the direction of the scan.
fn needed_pages(
    pages: &[PageEntry],
    at: usize,
    request: &ScanRequest<'_>,
    batch: &Filling<'_>,
) -> Range<usize> {
    let bytes_left = request.limits.bytes_max.saturating_sub(batch.bytes());
    let entries_left = request.limits.entries_max.saturating_sub(batch.len());
    // The scan needs half of the first page, on average.
    let first = &pages[at];
    let first_bytes = u64::from(first.pointer.raw_length()).saturating_add(first.large_bytes);
    let half = (usize::try_from(first_bytes / 2).unwrap_or(usize::MAX), first.entries as usize / 2);
    widened(pages, at..at + 1, request.direction, |bytes, entries| {
        bytes < bytes_left.saturating_add(half.0) && entries < entries_left.saturating_add(half.1)
    })
}

/// The bytes of a page window: at most a small part of the cache, which holds the pages, and at most a few
/// batches. Narrow batches mean many cursors, or many sorted runs to merge. The windows of all of them must
/// fit into the cache.
fn window_bytes(blocks: &Blocks, request: &ScanRequest<'_>, usual: usize) -> usize {
    let of_cache = usize::try_from(blocks.cache().limit() / 16).unwrap_or(usual);
    usual.min(of_cache).min(request.limits.bytes_max.saturating_mul(WINDOW_BATCHES))
}

/// Adds pages in the direction of the scan while `is_wanting` says so. It gets the bytes before compression
/// and the entries of the pages so far.
fn widened(
    pages: &[PageEntry],
    from: Range<usize>,
    direction: Direction,
    is_wanting: impl Fn(usize, usize) -> bool,
) -> Range<usize> {
    let mut range = from;
    let sum = |bytes: usize, entries: usize, page: &PageEntry| {
        let all = u64::from(page.pointer.raw_length()).saturating_add(page.large_bytes);
        (bytes.saturating_add(usize::try_from(all).unwrap_or(usize::MAX)), entries + page.entries as usize)
    };
    let (mut bytes, mut entries) =
        pages[range.clone()].iter().fold((0, 0), |(bytes, entries), page| sum(bytes, entries, page));
    while is_wanting(bytes, entries) {
        let next = match direction {
            Direction::Forward if range.end < pages.len() => {
                range.end += 1;
                range.end - 1
            }
            Direction::Backward if range.start > 0 => {
                range.start -= 1;
                range.start
            }
            Direction::Forward | Direction::Backward => break,
        };
        (bytes, entries) = sum(bytes, entries, &pages[next]);
    }
    range
}

/// The pages that do not lie behind the end of the remaining keys.
pub(crate) fn pages_within(directory: &Directory, rest: &KeyRange, direction: Direction) -> Range<usize> {
    let all = 0..directory.pages().len();
    match (direction, &rest.lower, &rest.upper) {
        (Direction::Forward, _, Bound::Included(key) | Bound::Excluded(key)) => 0..directory.page_of(key) + 1,
        (Direction::Backward, Bound::Included(key) | Bound::Excluded(key), _) => {
            directory.page_of(key)..all.end
        }
        (Direction::Forward, _, Bound::Unbounded) | (Direction::Backward, Bound::Unbounded, _) => all,
    }
}

/// Pages of a directory that are read together.
struct WindowRead {
    /// The page that the scan needs now.
    at: usize,
    /// The pages that the batch needs.
    needed: Range<usize>,
    /// All pages that are read.
    window: Range<usize>,
}

impl WindowRead {
    /// Returns the page that the scan needs now. Other pages that the batch needs and that were read with it
    /// go to `put_aside`, ascending.
    fn page(
        self,
        blocks: &Blocks,
        pages: &[PageEntry],
        request: &ScanRequest<'_>,
        mut put_aside: impl FnMut(usize, Page),
    ) -> Result<Page, BetreeError> {
        let WindowRead { at, needed, window } = self;
        let (pointer, hint) = (&pages[at].pointer, request.hint);
        if let Some(page) = blocks.scanned_page(pointer, hint)? {
            return Ok(page);
        }
        if request.blocking == BlockingMode::CachedOnly {
            return blocks.page(pointer, request.blocking);
        }
        let first = window.start;
        let window = PageWindow { pages: &pages[window], needed: needed.start - first..needed.end - first };
        let mut found = None;
        let outcome = blocks.read_window(&window, hint, |place, page| {
            if place + first == at { found = Some(page) } else { put_aside(place + first, page) }
        });
        match (outcome, found) {
            (_, Some(page)) => Ok(page),
            // An error of a neighbour is reported when the scan needs that page.
            (Ok(()) | Err(_), None) => match blocks.scanned_page(pointer, hint)? {
                Some(page) => Ok(page),
                None => blocks.page(pointer, request.blocking),
            },
        }
    }
}
