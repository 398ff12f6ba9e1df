//! Scans: fills a batch with the visible entries of a range, in either direction.
//!
//! 1. The next *piece* in the direction of the scan is found: of the leaf and of each slice on the way to it the page that
//!    covers the place where the scan stands, and the keys that all these pages cover. They are fetched, those of the leaf with
//!    neighbours if the batch will want them. No lock is held meanwhile.
//! 2. The part of the range that the piece covers is cut at the bounds of partitions.
//! 3. In each part the visible entries of active buffer, frozen buffer and pages are merged: on equal keys the one higher up
//!    counts, and a delete hides what is below. The buffers' read locks are held for this step only.
//!
//! A batch sees one view, so that nothing moves between buffers, slices and leaves while it is filled.

use std::cmp::Ordering;
use std::ops::Bound;

use bytes::Bytes;
use pando_storage::{Batch, BatchLimits, Direction, KeyRange, Patience, ScanEnd, SnapshotTimestamp};

use super::buffer::{Buffer, Chain, crosses};
use super::lookup::Damaged;
use super::path::{Bounds as PathBounds, Target, find_leaf};
use super::view::TreeView;
use crate::cache::{Blocks, Retention};
use crate::error::BetreeError;
use crate::format::directory::Directory;
use crate::format::page::Page;
use crate::space::Pointer;

/// Pages that a scan reads ahead at most, in one device read.
const READ_AHEAD_PAGES: usize = 16;

/// What a scan is to bring.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScanRequest<'r> {
    pub(crate) range: &'r KeyRange,
    pub(crate) direction: Direction,
    pub(crate) limits: BatchLimits,
    pub(crate) patience: Patience,
    pub(crate) snapshot: SnapshotTimestamp,
}

type Bounds<'b> = (Bound<&'b [u8]>, Bound<&'b [u8]>);

/// Adds entries to the batch until it is full or the range is exhausted.
pub(crate) fn scan(
    view: &TreeView,
    blocks: &Blocks,
    request: ScanRequest<'_>,
    batch: &mut Batch,
) -> Result<ScanEnd, Damaged> {
    let mut rest = request.range.clone();
    let mut held = Vec::new();
    while !rest.is_empty() {
        let piece = match next_piece(view, blocks, &request, &rest, held) {
            Ok(piece) => piece,
            // What was found counts; the next batch begins where this one could not go on, and tells.
            Err(_) if !batch.is_empty() => return Ok(ScanEnd::More),
            Err(error) => return Err(error),
        };
        if scan_piece(view, &request, &rest, &piece, batch) == ScanEnd::More {
            return Ok(ScanEnd::More);
        }
        match request.direction {
            Direction::Forward => match piece.upper {
                Some(upper) => rest.lower = Bound::Included(upper),
                None => break,
            },
            Direction::Backward => match piece.lower {
                Some(lower) => rest.upper = Bound::Excluded(lower),
                None => break,
            },
        }
        held = piece.pages;
    }
    Ok(ScanEnd::Done)
}

/// Pages and the keys that all of them cover.
#[derive(Default)]
struct Piece {
    /// Of the slices on the way down, then of the leaf: what stands first is newer.
    pages: Vec<(Pointer, Page)>,
    lower: Option<Vec<u8>>,
    upper: Option<Vec<u8>>,
    /// Whether the scan begins with it.
    is_first: bool,
}

/// Where a page stands that covers a place, and which keys it covers.
struct PagePlace<'d> {
    at: usize,
    bounds: PathBounds<'d>,
}

/// The page of a directory that a target names; the directory covers the keys within `bounds`.
fn page_place<'d>(pages: &'d Directory, bounds: PathBounds<'d>, target: Target<'_>) -> PagePlace<'d> {
    let last = pages.pages().len() - 1;
    let at = match target {
        Target::Covering(key) => pages.page_of(key),
        Target::Before(key) => match pages.page_of(key) {
            at if at > 0 && pages.separator(at) == key => at - 1,
            at => at,
        },
        Target::First => 0,
        Target::Last => last,
    };
    let lower = if at == 0 { bounds.0 } else { Some(pages.separator(at)) };
    let upper = if at == last { bounds.1 } else { Some(pages.separator(at + 1)) };
    PagePlace { at, bounds: (lower, upper) }
}

/// The keys that both ranges have.
fn within<'b>(left: PathBounds<'b>, right: PathBounds<'b>) -> PathBounds<'b> {
    let upper = match (left.1, right.1) {
        (Some(left), Some(right)) => Some(left.min(right)),
        (left, right) => left.or(right),
    };
    // `None` is the lowest bound, and the least of options.
    (left.0.max(right.0), upper)
}

/// The first piece of what remains, in the direction of the scan. Pages often serve several pieces: those of the piece before
/// are `held`.
fn next_piece(
    view: &TreeView,
    blocks: &Blocks,
    request: &ScanRequest<'_>,
    rest: &KeyRange,
    held: Vec<(Pointer, Page)>,
) -> Result<Piece, Damaged> {
    let target = match request.direction {
        Direction::Forward => match &rest.lower {
            Bound::Included(key) | Bound::Excluded(key) => Target::Covering(key),
            Bound::Unbounded => Target::First,
        },
        Direction::Backward => match &rest.upper {
            Bound::Included(key) => Target::Covering(key),
            Bound::Excluded(key) => Target::Before(key),
            Bound::Unbounded => Target::Last,
        },
    };
    let is_first = held.is_empty();
    // A scan reads a child once, in however many pieces: it counts where it begins, and where it enters the child.
    let enters = |child: PathBounds<'_>| match target {
        _ if is_first => true,
        Target::Covering(key) => child.0 == Some(key),
        Target::Before(key) => child.1 == Some(key),
        Target::First | Target::Last => true,
    };
    let mut pages = Vec::new();
    let mut bounds = (None, None);
    let place = find_leaf(&view.version, blocks, target, request.patience, |node, at, of_child| {
        if enters(of_child) {
            node.note_read(at);
        }
        for slice in node.slices(at) {
            let damaged = |error| Damaged::new(error, of_child.0, of_child.1);
            let index = blocks.slice_index(slice, request.patience).map_err(damaged)?;
            let place = page_place(&index.pages, of_child, target);
            let pointer = index.pages.pages()[place.at].pointer;
            let page = match held_page(&held, &pointer) {
                Some(page) => page,
                None => blocks.page(&pointer, request.patience).map_err(damaged)?,
            };
            pages.push((pointer, page));
            bounds = within(bounds, place.bounds);
        }
        Ok::<(), Damaged>(())
    })?;
    let Some(place) = place else { return Ok(Piece::default()) };
    let of_leaf = (place.lower, place.upper);
    let directory = blocks
        .directory(&place.leaf.directory, request.patience)
        .map_err(|error| Damaged::new(error, of_leaf.0, of_leaf.1))?;
    let place = page_place(&directory, of_leaf, target);
    let pointer = directory.pages()[place.at].pointer;
    let page = match held_page(&held, &pointer) {
        Some(page) => page,
        None => leaf_page(blocks, &directory, place.at, request)
            .map_err(|error| Damaged::new(error, place.bounds.0, place.bounds.1))?,
    };
    pages.push((pointer, page));
    let (lower, upper) = within(bounds, place.bounds);
    let (lower, upper) = (lower.map(<[u8]>::to_vec), upper.map(<[u8]>::to_vec));
    Ok(Piece { pages, lower, upper, is_first })
}

fn held_page(held: &[(Pointer, Page)], pointer: &Pointer) -> Option<Page> {
    held.iter().find(|(held, _)| held == pointer).map(|(_, page)| page.clone())
}

/// A page of a leaf, and into the cache those behind it that the batch will want.
fn leaf_page(
    blocks: &Blocks,
    directory: &Directory,
    at: usize,
    request: &ScanRequest<'_>,
) -> Result<Page, BetreeError> {
    let pointer = &directory.pages()[at].pointer;
    if request.patience == Patience::CachedOnly {
        return blocks.page(pointer, request.patience);
    }
    // Of a small batch the first page is enough; a large one takes neighbours along in one device read.
    let page_bytes = pointer.raw_length().max(1) as usize;
    let wanted = (request.limits.bytes_max / page_bytes).clamp(1, READ_AHEAD_PAGES);
    let (from, to) = match request.direction {
        Direction::Forward => (at, (at + wanted).min(directory.pages().len())),
        Direction::Backward => ((at + 1).saturating_sub(wanted), at + 1),
    };
    if wanted == 1 || blocks.tier_of(pointer).is_some() {
        return blocks.page(pointer, request.patience);
    }
    let mut pages = blocks.pages(&directory.pages()[from..to], Retention::Keep)?;
    Ok(pages.swap_remove(at - from))
}

/// Scans what a piece covers of the rest, partition by partition.
fn scan_piece(
    view: &TreeView,
    request: &ScanRequest<'_>,
    rest: &KeyRange,
    piece: &Piece,
    batch: &mut Batch,
) -> ScanEnd {
    let (mut lower, mut upper) = (as_slice(&rest.lower), as_slice(&rest.upper));
    if let Some(from) = &piece.lower {
        lower = later(lower, Bound::Included(from));
    }
    if let Some(to) = &piece.upper {
        upper = earlier(upper, Bound::Excluded(to));
    }
    let first = match lower {
        Bound::Included(key) | Bound::Excluded(key) => view.partition_of(key),
        Bound::Unbounded => 0,
    };
    let last = match upper {
        Bound::Included(key) | Bound::Excluded(key) => view.partition_of(key),
        Bound::Unbounded => view.partitions.len() - 1,
    };
    let count = (last + 1).saturating_sub(first);
    for step in 0..count {
        let at = match request.direction {
            Direction::Forward => first + step,
            Direction::Backward => last - step,
        };
        let from = later(lower, Bound::Included(&view.partitions[at].lower));
        let to = match view.upper_of(at) {
            Some(to) => earlier(upper, Bound::Excluded(to)),
            None => upper,
        };
        if crosses(from, to) {
            continue;
        }
        let enters = match request.direction {
            Direction::Forward => from == Bound::Included(&*view.partitions[at].lower),
            Direction::Backward => view.upper_of(at).is_some_and(|end| to == Bound::Excluded(end)),
        };
        let active = &view.partitions[at].active;
        if (piece.is_first || enters) && !active.is_empty() {
            active.note_read();
        }
        if scan_part(view, at, request, (from, to), &piece.pages, batch) == ScanEnd::More {
            return ScanEnd::More;
        }
    }
    ScanEnd::Done
}

/// Merges the sources of one partition within one piece.
fn scan_part(
    view: &TreeView,
    partition: usize,
    request: &ScanRequest<'_>,
    bounds: Bounds<'_>,
    pages: &[(Pointer, Page)],
    batch: &mut Batch,
) -> ScanEnd {
    let partition = &view.partitions[partition];
    let active = (!partition.active.is_empty()).then(|| partition.active.read());
    let frozen = partition.frozen.as_ref().map(|frozen| frozen.buffer.read());
    let buffers = active.as_deref().into_iter().chain(frozen.as_deref());
    let buffers = buffers.map(|buffer| Source::Buffer(BufferEntries::new(buffer, bounds, request)));
    let pages = pages
        .iter()
        .map(|(_, page)| Source::Page(PageEntries::new(page, bounds, request.direction, request.snapshot)));
    let mut sources: Vec<Source<'_>> = buffers.chain(pages).filter(|source| source.key().is_some()).collect();
    loop {
        if let [Source::Page(entries)] = &mut sources[..] {
            return scan_page(entries, request, batch);
        }
        // The next key in the scan's direction; the higher source where several have it.
        let Some(first) = first_of(&sources, request.direction) else { return ScanEnd::Done };
        let (above, below) = sources.split_at_mut(first + 1);
        let source = &mut above[first];
        let key = source.key().expect("a source that is used up is taken out");
        if let Some(value) = source.value() {
            if batch.is_full(request.limits) {
                return ScanEnd::More;
            }
            batch.push(key, value);
        }
        let mut ends = false;
        for other in below.iter_mut().filter(|other| other.key() == Some(key)) {
            other.advance();
            ends |= other.key().is_none();
        }
        source.advance();
        if ends || source.key().is_none() {
            sources.retain(|source| source.key().is_some());
        }
    }
}

/// What remains of a page when no other source has anything more: most of a scan.
fn scan_page(entries: &mut PageEntries<'_>, request: &ScanRequest<'_>, batch: &mut Batch) -> ScanEnd {
    while let Some(value) = entries.next {
        if let Some(value) = value {
            if batch.is_full(request.limits) {
                return ScanEnd::More;
            }
            batch.push(&entries.key, value);
        }
        entries.advance();
    }
    ScanEnd::Done
}

/// The source whose key comes first; of equal ones the first source.
fn first_of(sources: &[Source<'_>], direction: Direction) -> Option<usize> {
    let mut best: Option<(usize, &[u8])> = None;
    for (at, source) in sources.iter().enumerate() {
        let Some(key) = source.key() else { continue };
        let comes_first = match (best, direction) {
            (None, _) => true,
            (Some((_, have)), Direction::Forward) => key < have,
            (Some((_, have)), Direction::Backward) => key > have,
        };
        if comes_first {
            best = Some((at, key));
        }
    }
    best.map(|(at, _)| at)
}

/// Visible entries from one place, deletes included.
enum Source<'s> {
    Buffer(BufferEntries<'s>),
    Page(PageEntries<'s>),
}

impl Source<'_> {
    /// The next key; `None` if there is no more.
    fn key(&self) -> Option<&[u8]> {
        match self {
            Source::Buffer(entries) => entries.peek().map(|(key, _)| key),
            Source::Page(entries) => entries.next.map(|_| entries.key.as_slice()),
        }
    }

    /// The value of the next key; `None` if it is deleted.
    fn value(&self) -> Option<&[u8]> {
        match self {
            Source::Buffer(entries) => entries.peek().and_then(|(_, value)| value.map(|value| &value[..])),
            Source::Page(entries) => entries.next.flatten(),
        }
    }

    fn advance(&mut self) {
        match self {
            Source::Buffer(entries) => entries.advance(),
            Source::Page(entries) => entries.advance(),
        }
    }
}

/// The visible entries of a buffer, deletes included, in the direction of the scan.
struct BufferEntries<'b> {
    entries: Box<dyn Iterator<Item = (&'b [u8], &'b Chain)> + 'b>,
    snapshot: SnapshotTimestamp,
    next: Option<(&'b [u8], Option<&'b Bytes>)>,
}

impl<'b> BufferEntries<'b> {
    fn new(buffer: &'b Buffer, bounds: Bounds<'b>, request: &ScanRequest<'_>) -> BufferEntries<'b> {
        let range = buffer.range(bounds.0, bounds.1);
        let entries: Box<dyn Iterator<Item = _> + 'b> = match request.direction {
            Direction::Forward => Box::new(range),
            Direction::Backward => Box::new(range.rev()),
        };
        let mut entries = BufferEntries { entries, snapshot: request.snapshot, next: None };
        entries.advance();
        entries
    }

    fn peek(&self) -> Option<(&'b [u8], Option<&'b Bytes>)> {
        self.next
    }

    fn advance(&mut self) {
        self.next = self.entries.by_ref().find_map(|(key, chain)| {
            let version = chain.visible(self.snapshot)?;
            Some((key, version.value.as_ref()))
        });
    }
}

/// The visible entries of a page, deletes included, in the direction of the scan.
struct PageEntries<'p> {
    page: &'p Page,
    /// Entries not looked at yet.
    from: usize,
    to: usize,
    direction: Direction,
    snapshot: SnapshotTimestamp,
    key: Vec<u8>,
    /// The value of the next key, `None` within if it is deleted.
    next: Option<Option<&'p [u8]>>,
}

impl<'p> PageEntries<'p> {
    fn new(
        page: &'p Page,
        bounds: Bounds<'_>,
        direction: Direction,
        snapshot: SnapshotTimestamp,
    ) -> PageEntries<'p> {
        let from = match bounds.0 {
            Bound::Included(key) => page.lower_bound(key),
            Bound::Excluded(key) => page.upper_bound(key),
            Bound::Unbounded => 0,
        };
        let to = match bounds.1 {
            Bound::Included(key) => page.upper_bound(key),
            Bound::Excluded(key) => page.lower_bound(key),
            Bound::Unbounded => page.len(),
        };
        let mut entries = PageEntries { page, from, to, direction, snapshot, key: Vec::new(), next: None };
        entries.advance();
        entries
    }

    fn advance(&mut self) {
        self.next = None;
        while self.next.is_none() && self.from < self.to {
            let (first, end) = self.next_key();
            // Versions stand newest first: the first that is seen counts.
            let visible = (first..end).find(|at| self.snapshot.sees(self.page.entry(*at).timestamp()));
            if let Some(at) = visible {
                let entry = self.page.entry(at);
                self.page.key_into(at, &mut self.key);
                self.next = Some((!entry.is_delete()).then(|| self.page.value(&entry)));
            }
        }
    }

    /// Takes the entries of the next key out of those not looked at.
    fn next_key(&mut self) -> (usize, usize) {
        match self.direction {
            Direction::Forward => {
                let first = self.from;
                let mut end = first + 1;
                while end < self.to && self.is_continued(end - 1) {
                    end += 1;
                }
                self.from = end;
                (first, end)
            }
            Direction::Backward => {
                let end = self.to;
                let mut first = end - 1;
                while first > self.from && self.is_continued(first - 1) {
                    first -= 1;
                }
                self.to = first;
                (first, end)
            }
        }
    }

    /// Whether the entry after this one is an older version of the same key. One without time is the last of its key.
    fn is_continued(&self, at: usize) -> bool {
        self.page.entry(at).timestamp().get() != 0 && self.page.same_key(at, at + 1)
    }
}

fn as_slice(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    bound.as_ref().map(Vec::as_slice)
}

/// The lower bound that excludes more.
fn later<'b>(left: Bound<&'b [u8]>, right: Bound<&'b [u8]>) -> Bound<&'b [u8]> {
    let rank = |bound: Bound<&'b [u8]>| match bound {
        Bound::Unbounded => None,
        Bound::Included(key) => Some((key, 0)),
        Bound::Excluded(key) => Some((key, 1)),
    };
    if rank(left) >= rank(right) { left } else { right }
}

/// The upper bound that excludes more.
fn earlier<'b>(left: Bound<&'b [u8]>, right: Bound<&'b [u8]>) -> Bound<&'b [u8]> {
    let order = |left: Bound<&'b [u8]>, right: Bound<&'b [u8]>| match (left, right) {
        (Bound::Unbounded, Bound::Unbounded) => Ordering::Equal,
        (Bound::Unbounded, _) => Ordering::Greater,
        (_, Bound::Unbounded) => Ordering::Less,
        (Bound::Included(left), Bound::Included(right)) | (Bound::Excluded(left), Bound::Excluded(right)) => {
            left.cmp(right)
        }
        (Bound::Included(left), Bound::Excluded(right)) => left.cmp(right).then(Ordering::Greater),
        (Bound::Excluded(left), Bound::Included(right)) => left.cmp(right).then(Ordering::Less),
    };
    if order(left, right) == Ordering::Greater { right } else { left }
}
