//! Where a scan stands in the nodes of a tree: a leaf, what waits for it in the nodes above, and a place in a page of each.
//!
//! 1. [`Way::find`] descends to the leaf that covers the place; a level whose slices also covered the leaf before keeps its place.
//! 2. [`Way::fetch`] makes sure that each has the page that covers the place. Pages of the leaf that the batch will want are read
//!    with one call to the device; where the scan is long, others bring those behind them meanwhile ([`beyond`](crate::tree::scan::prefetch)).
//! 3. [`Way::end`] says how far all these pages reach, and [`Way::leave`] goes on behind that.
//!
//! # Invariant
//! - All slices of the way cover the whole leaf, so that none ends before it.

use std::collections::VecDeque;
use std::ops::{Bound, Range};
use std::sync::Arc;

use pando_storage::{BlockingMode, CommitTimestamp, Direction, KeyRange};

use crate::cache::{Blocks, ScanPace, Stretch, Tier};
use crate::error::BetreeError;
use crate::format::directory::{Directory, PageEntry};
use crate::format::page::Page;
use crate::format::slice_index::SliceIndex;
use crate::tree::lookup::Damaged;
use crate::tree::path::{Bounds as PathBounds, LeafPlace, Target, find_leaf};
use crate::tree::scan::batch_fill::Filling;
use crate::tree::scan::page_cursor::PageCursor;
use crate::tree::scan::prefetch::Beyond;
use crate::tree::scan::{ScanRequest, nearer, target_of};
use crate::tree::view::Version;

/// What a long scan that nobody helps reads ahead of a leaf, in bytes before compression.
const AHEAD_BYTES: usize = 1 << 20;
/// What is read ahead is so many batches at most: of the largest ones, as much as above.
const BATCHES_AHEAD: usize = 4;
/// What is read ahead of a slice, of which a leaf's range has little.
const AHEAD_BYTES_SLICE: usize = 64 << 10;

/// One of the slices that wait for a child on the way.
struct SliceWay<'v> {
    index: &'v SliceIndex,
    bounds: PathBounds<'v>,
    at: usize,
    cursor: Option<PageCursor>,
}

/// See the module's head.
pub(crate) struct Way<'v> {
    leaf: LeafPlace<'v>,
    directory: Arc<Directory>,
    at: usize,
    cursor: Option<PageCursor>,
    slices: Vec<SliceWay<'v>>,
    /// Pages of the leaf that were read with another, in the order in which the scan wants them.
    ahead: VecDeque<(usize, Page)>,
    help: Help,
}

/// Whether others bring pages of the leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Help {
    /// They do, or were not asked yet.
    Possible,
    /// They were asked, and there was no room, nothing more to bring, or a page that cannot be brought.
    Refused,
}

impl<'v> Way<'v> {
    /// The way to the first leaf of what remains; `None` in a tree without leaves.
    pub(crate) fn find(
        version: &'v Version,
        blocks: &Blocks,
        request: &ScanRequest<'_>,
        rest: &KeyRange,
        before: Option<Way<'v>>,
    ) -> Result<Option<Way<'v>>, Damaged> {
        let target = target_of(rest, request.direction);
        // A scan reads a child once, in however many leaves: it counts where the scan begins, and where it enters the child.
        let is_first = before.is_none();
        let mut known = before.map(|way| way.slices).unwrap_or_default();
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
                    None => SliceWay { index, bounds, at: page_at(&index.pages, target), cursor: None },
                });
            }
            Ok::<(), Damaged>(())
        })?;
        let Some(leaf) = leaf else { return Ok(None) };
        let directory = blocks
            .directory(&leaf.leaf.directory, request.blocking)
            .map_err(|error| Damaged::new(error, leaf.lower, leaf.upper))?;
        let at = page_at(&directory, target);
        Ok(Some(Way {
            leaf,
            directory,
            at,
            cursor: None,
            slices,
            ahead: VecDeque::new(),
            help: Help::Possible,
        }))
    }

    /// Has every source stand in the page that covers the place, unless all of that page is older than the floor.
    pub(crate) fn fetch(
        &mut self,
        version: &Version,
        blocks: &Blocks,
        (request, floor): (&ScanRequest<'_>, CommitTimestamp),
        rest: &KeyRange,
        batch: &Filling<'_>,
    ) -> Result<(), Damaged> {
        let Way { leaf, directory, at, cursor, slices, ahead, help } = self;
        for slice in slices.iter_mut().filter(|slice| slice.cursor.is_none()) {
            let index = slice.index;
            if index.pages.pages()[slice.at].newest < floor {
                continue;
            }
            let bounds = page_bounds(&index.pages, slice.at, slice.bounds);
            let page = slice_page(blocks, &index.pages, slice.at, request)
                .map_err(|error| Damaged::new(error, bounds.0, bounds.1))?;
            slice.cursor = Some(cursor_in(page, bounds, request, rest));
        }
        if cursor.is_none() && directory.pages()[*at].newest >= floor {
            let bounds = page_bounds(directory, *at, (leaf.lower, leaf.upper));
            while ahead.pop_front_if(|(place, _)| is_passed(*place, *at, request.direction)).is_some() {}
            let page = match ahead.pop_front_if(|(place, _)| place == at) {
                Some((_, page)) => page,
                None => leaf_page(
                    &Beyond {
                        version,
                        blocks,
                        rest,
                        direction: request.direction,
                        blocking: request.blocking,
                    },
                    (leaf, directory, *at),
                    (request, batch),
                    (ahead, help),
                )
                .map_err(|error| Damaged::new(error, bounds.0, bounds.1))?,
            };
            *cursor = Some(cursor_in(page, bounds, request, rest));
        }
        Ok(())
    }

    /// Where the first page ends, in the direction of the scan: the key before which all pages reach, or (backwards) down to which;
    /// `None` at the end of the tree.
    pub(crate) fn end(&self, direction: Direction) -> Option<&[u8]> {
        let of_leaf = self.leaf_end(direction);
        self.slices.iter().fold(of_leaf, |end, slice| nearer(end, slice.end(direction), direction))
    }

    fn leaf_end(&self, direction: Direction) -> Option<&[u8]> {
        let bounds = page_bounds(&self.directory, self.at, (self.leaf.lower, self.leaf.upper));
        end_of(bounds, direction)
    }

    /// The places in the leaf, and in the slices, the newest first, for a piece with this floor.
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
                // One that ends altogether ends with the leaf, and is not asked again.
                let _last = step(&mut slice.at, slice.index.pages.pages().len(), direction);
                slice.cursor = None;
            }
        }
        goes_on
    }
}

impl SliceWay<'_> {
    fn end(&self, direction: Direction) -> Option<&[u8]> {
        end_of(page_bounds(&self.index.pages, self.at, self.bounds), direction)
    }
}

/// Whether a page lies before another in the direction of a scan: it was read ahead, and is older than a floor that was met since.
fn is_passed(page: usize, at: usize, direction: Direction) -> bool {
    match direction {
        Direction::Forward => page < at,
        Direction::Backward => page > at,
    }
}

/// Whether a scan that comes to this target comes to a child's first key, in its direction.
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

/// A place in a page before what remains. Bounds that the page lies within are not looked for in it.
fn cursor_in(page: Page, bounds: PathBounds<'_>, request: &ScanRequest<'_>, rest: &KeyRange) -> PageCursor {
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
    if request.pace == ScanPace::Passing {
        let ahead = ahead_bytes(blocks, request, AHEAD_BYTES_SLICE);
        window = widened(pages.pages(), window, request.direction, |bytes, _| bytes < ahead);
    }
    let reading = Reading { at, wanted: at..at + 1, window };
    reading.page(blocks, pages.pages(), request, |_, _| {})
}

/// A page of the leaf; others that the batch will want are put aside.
fn leaf_page(
    beyond: &Beyond<'_>,
    (leaf, directory, at): (&LeafPlace<'_>, &Directory, usize),
    (request, batch): (&ScanRequest<'_>, &Filling<'_>),
    (ahead, help): (&mut VecDeque<(usize, Page)>, &mut Help),
) -> Result<Page, BetreeError> {
    let Beyond { blocks, rest, direction, .. } = *beyond;
    let pages = directory.pages();
    let within = pages_within(directory, rest, direction);
    let cut =
        |range: Range<usize>| range.start.max(within.start).min(at)..range.end.min(within.end).max(at + 1);
    let wanted = cut(wanted_pages(pages, at, request, batch));
    let is_passing = request.pace == ScanPace::Passing;
    if is_passing
        && *help == Help::Possible
        && let Some(page) = brought_page(beyond, (leaf, directory, at), &wanted, (ahead, help))
    {
        return Ok(page);
    }
    let mut window = wanted.clone();
    if is_passing {
        let ahead = ahead_bytes(blocks, request, AHEAD_BYTES);
        window = cut(widened(pages, window, direction, |bytes, _| bytes < ahead));
    }
    Reading { at, wanted, window }.page(blocks, pages, request, |place, page| match direction {
        Direction::Forward => ahead.push_back((place, page)),
        Direction::Backward => ahead.push_front((place, page)),
    })
}

/// A page that others bring, or were to bring; those behind it that came with it are put aside. `None` where it can be read in place
/// anyway, or nobody brings it.
fn brought_page(
    beyond: &Beyond<'_>,
    (leaf, directory, at): (&LeafPlace<'_>, &Directory, usize),
    wanted: &Range<usize>,
    (ahead, help): (&mut VecDeque<(usize, Page)>, &mut Help),
) -> Option<Page> {
    let Beyond { blocks, direction, blocking, .. } = *beyond;
    let pages = directory.pages();
    let fetch = || match direction {
        Direction::Forward => blocks.fetch_ahead(beyond.course(), pages[at..wanted.end].iter(), blocking),
        Direction::Backward => {
            blocks.fetch_ahead(beyond.course(), pages[wanted.start..=at].iter().rev(), blocking)
        }
    };
    let mut fetched = fetch();
    if let Some(extension) = &fetched.extension {
        beyond.extend(extension);
    } else if fetched.pages.is_empty()
        && blocking == BlockingMode::MayBlock
        && blocks.tier_of(&pages[at].pointer) != Some(Tier::Decoded)
    {
        if beyond.begin(leaf, directory, wanted) {
            fetched = fetch();
        }
        if fetched.pages.is_empty() {
            *help = Help::Refused;
        }
    }
    let mut landed = fetched.pages.into_iter();
    let first = landed.next()?;
    ahead.clear();
    ahead.extend(landed.enumerate().map(|(behind, page)| match direction {
        Direction::Forward => (at + 1 + behind, page),
        Direction::Backward => (at - 1 - behind, page),
    }));
    Some(first)
}

/// The pages of the leaf that the batch will want, from this one on in the direction of the scan.
fn wanted_pages(
    pages: &[PageEntry],
    at: usize,
    request: &ScanRequest<'_>,
    batch: &Filling<'_>,
) -> Range<usize> {
    let bytes_left = request.limits.bytes_max.saturating_sub(batch.bytes());
    let entries_left = request.limits.entries_max.saturating_sub(batch.len());
    // Of the first page the scan has half, on average.
    let first = &pages[at];
    let first_bytes = u64::from(first.pointer.raw_length()).saturating_add(first.large_bytes);
    let half = (usize::try_from(first_bytes / 2).unwrap_or(usize::MAX), first.entries as usize / 2);
    widened(pages, at..at + 1, request.direction, |bytes, entries| {
        bytes < bytes_left.saturating_add(half.0) && entries < entries_left.saturating_add(half.1)
    })
}

/// What is read ahead at most: not more than a small part of the cache, where it is to wait, and for a few batches only. Where batches are
/// narrow there are many cursors, or many runs to be merged, and what all of them read ahead has to have room until it is their turn.
fn ahead_bytes(blocks: &Blocks, request: &ScanRequest<'_>, usual: usize) -> usize {
    let of_cache = usize::try_from(blocks.cache().limit() / 16).unwrap_or(usual);
    usual.min(of_cache).min(request.limits.bytes_max.saturating_mul(BATCHES_AHEAD))
}

/// Adds pages in the direction of the scan as long as the bytes before compression and the entries of those so far say so.
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

/// The pages that can have keys of what remains, as far as its far end says.
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

/// Which pages of a directory are read together.
struct Reading {
    /// The one that is to be had.
    at: usize,
    /// Those that the batch will want.
    wanted: Range<usize>,
    window: Range<usize>,
}

impl Reading {
    /// The page that is to be had; others that are wanted and were read with it go to `put_aside`, ascending.
    fn page(
        self,
        blocks: &Blocks,
        pages: &[PageEntry],
        request: &ScanRequest<'_>,
        mut put_aside: impl FnMut(usize, Page),
    ) -> Result<Page, BetreeError> {
        let Reading { at, wanted, window } = self;
        let (pointer, pace) = (&pages[at].pointer, request.pace);
        if let Some(page) = blocks.scanned_page(pointer, pace)? {
            return Ok(page);
        }
        if request.blocking == BlockingMode::CachedOnly {
            return blocks.page(pointer, request.blocking);
        }
        let first = window.start;
        let stretch = Stretch { pages: &pages[window], wanted: wanted.start - first..wanted.end - first };
        let mut found = None;
        let outcome = blocks.read_stretch(&stretch, pace, |place, page| {
            if place + first == at { found = Some(page) } else { put_aside(place + first, page) }
        });
        match (outcome, found) {
            (_, Some(page)) => Ok(page),
            // What is wrong with a neighbour is told when it is its turn.
            (Ok(()) | Err(_), None) => match blocks.scanned_page(pointer, pace)? {
                Some(page) => Ok(page),
                None => blocks.page(pointer, request.blocking),
            },
        }
    }
}
