//! Scans: fills a batch with the visible entries of a range, in either direction.
//!
//! # Terms
//! - *Path*: the leaf where the scan stands, and the slices in the nodes above it, with a place in a page of
//!   each ([`scan_path`]).
//! - *Piece*: the keys from where the scan stands up to the nearest of these ends: of a page on the path, of
//!   the partition, of the keys over which the same range deletes lie.
//! - *Floor*: the time of the newest range delete over a piece that the snapshot sees. Older versions count
//!   as deleted.
//! - *Upper source*: a buffer or a slice. It is above the leaf and usually has few entries.
//!
//! # Steps
//! 1. Fetch the pages that cover the place, and neighbours in the leaf that the batch needs. No lock is held.
//! 2. Merge the upper sources within the piece. On equal keys the uppermost source counts, and a delete hides
//!    the entries below it. The operands of a merge operator are collected source by source, down to the
//!    version to which they apply. Entries of the leaf before the next key of an upper source are copied
//!    without comparing keys. Only this step holds the buffers' read locks.
//! 3. Leave the pages that end with the piece. Within a leaf there is no further descent. A page of a slice
//!    stays with its place for as many leaves as it covers.
//! 4. Read the large values of the batch, neighbours together ([`batch_fill`]). No lock is held.
//!
//! # Invariant
//! - A batch sees one view: no entry moves between buffers, slices and leaves while it is filled.

mod batch_fill;
mod page_cursor;
mod prefetch;
mod scan_path;

use std::cmp::Ordering;
use std::ops::Bound;

use bytes::Bytes;
use pando_storage::{
    Batch, BatchLimits, BlockingMode, CommitTimestamp, Direction, KeyRange, ScanEnd, SnapshotTimestamp,
};

use super::buffer::{Buffer, BufferedVersion, Chain, bounds_of};
use super::lookup::Damaged;
use super::path::Target;
use super::view::{Partition, TreeView};
use crate::cache::ReadHint;
use crate::format::content::Content;
use crate::range_deletes::floor_of;
use crate::tree::tree_blocks::Blocks;
use crate::tree::value_merge::MergeOperands;
use batch_fill::Filling;
use page_cursor::{PageCursor, Until};
use scan_path::ScanPath;

/// The entries that a scan returns, and how it reads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScanRequest<'r> {
    pub(crate) range: &'r KeyRange,
    pub(crate) direction: Direction,
    pub(crate) limits: BatchLimits,
    /// Follows from the limits that the caller wants; `limits` may be narrower.
    pub(crate) hint: ReadHint,
    pub(crate) blocking: BlockingMode,
    pub(crate) snapshot: SnapshotTimestamp,
}

/// The hint for a scan whose caller wants batches of these limits. A scan is long if it wants the largest
/// batches of a cursor, or if its caller has borrowed memory for them.
pub(crate) fn read_hint(wanted: BatchLimits, batch: &Batch) -> ReadHint {
    if batch.is_owned() || wanted.bytes_max >= BatchLimits::LARGEST.bytes_max {
        ReadHint::OneTime
    } else {
        ReadHint::Normal
    }
}

/// The piece that a scan comes to next. It begins where `rest` begins. Its end is known once its pages are
/// fetched.
#[derive(Clone, Copy)]
pub(crate) struct Piece<'p> {
    pub(crate) request: &'p ScanRequest<'p>,
    /// The keys that the scan has not passed.
    pub(crate) rest: &'p KeyRange,
    /// See the module's head.
    pub(crate) floor: CommitTimestamp,
}

type Bounds<'b> = (Bound<&'b [u8]>, Bound<&'b [u8]>);

/// Adds entries to the batch until it is full or the range is exhausted.
pub(crate) fn scan(
    view: &TreeView,
    blocks: &Blocks,
    request: ScanRequest<'_>,
    batch: &mut Batch,
) -> Result<ScanEnd, Damaged> {
    let mut filling = Filling::new(batch);
    let end = fill(view, blocks, request, &mut filling)?;
    filling.finish(blocks, &request, end)
}

/// Adds entries, without the bytes of large values.
fn fill(
    view: &TreeView,
    blocks: &Blocks,
    request: ScanRequest<'_>,
    batch: &mut Filling<'_>,
) -> Result<ScanEnd, Damaged> {
    let mut rest = request.range.clone();
    let mut place = Place { path: None, before: None, partition: 0 };
    if !rest.is_empty() {
        place.enter(view, view.partition_at(target_of(&rest, request.direction)));
    }
    let mut end_key = Vec::new();
    while !rest.is_empty() {
        let (floor, floor_end) = floor_at(view, &rest, &request);
        let piece = Piece { request: &request, rest: &rest, floor };
        match place.fetch(view, blocks, piece, batch) {
            Ok(()) => {}
            // The entries so far are returned. The next batch begins at the failing page and reports the
            // error.
            Err(_) if !batch.is_empty() => return Ok(ScanEnd::More),
            Err(error) => return Err(error),
        }
        let end = nearer(place.end(view, request.direction), floor_end, request.direction);
        let has_end = match end {
            Some(end) => {
                end_key.clear();
                end_key.extend_from_slice(end);
                true
            }
            None => false,
        };
        let end = has_end.then_some(end_key.as_slice());
        let partition = &view.partitions[place.partition];
        if scan_piece(partition, piece, end, &mut place.path, batch) == ScanEnd::More {
            return Ok(ScanEnd::More);
        }
        let Some(end) = end else { break };
        place.leave(view, end, request.direction);
        match request.direction {
            Direction::Forward => set_bound(&mut rest.lower, Bound::Included(()), end),
            Direction::Backward => set_bound(&mut rest.upper, Bound::Excluded(()), end),
        }
    }
    Ok(ScanEnd::Done)
}

/// The floor at the begin of the remaining keys, and the key at which this floor ends in the direction of the
/// scan.
fn floor_at<'v>(
    view: &'v TreeView,
    rest: &KeyRange,
    request: &ScanRequest<'_>,
) -> (CommitTimestamp, Option<&'v [u8]>) {
    if view.ranges.is_empty() {
        return (CommitTimestamp::ZERO, None);
    }
    let (times, end) = view.ranges.next(rest, request.direction);
    (floor_of(times, request.snapshot), end)
}

/// The place of a scan.
struct Place<'v> {
    /// `None` before the first descent, and before the descent to the next leaf.
    path: Option<ScanPath<'v>>,
    /// The path to the leaf that was left. Its slices may reach farther.
    before: Option<ScanPath<'v>>,
    partition: usize,
}

impl<'v> Place<'v> {
    /// Enters a partition. Counts one read of its buffer, in however many pieces the scan reads it.
    fn enter(&mut self, view: &TreeView, partition: usize) {
        self.partition = partition;
        let active = &view.partitions[partition].active;
        if !active.is_empty() {
            active.note_read();
        }
    }

    fn fetch(
        &mut self,
        view: &'v TreeView,
        blocks: &Blocks,
        piece: Piece<'_>,
        batch: &Filling<'_>,
    ) -> Result<(), Damaged> {
        if self.path.is_none() {
            self.path = ScanPath::find(&view.version, blocks, piece, self.before.take())?;
        }
        match &mut self.path {
            Some(path) => path.fetch(&view.version, blocks, piece, batch),
            None => Ok(()),
        }
    }

    /// The key at which the piece ends.
    fn end<'p>(&'p self, view: &'p TreeView, direction: Direction) -> Option<&'p [u8]> {
        let of_path = self.path.as_ref().and_then(|path| path.end(direction));
        nearer(of_path, partition_end(view, self.partition, direction), direction)
    }

    fn leave(&mut self, view: &TreeView, end: &[u8], direction: Direction) {
        if partition_end(view, self.partition, direction) == Some(end) {
            let next = match direction {
                Direction::Forward => self.partition + 1,
                Direction::Backward => self.partition - 1,
            };
            self.enter(view, next);
        }
        if self.path.as_mut().is_some_and(|path| !path.leave(end, direction)) {
            self.before = self.path.take();
        }
    }
}

/// The key at which a partition ends in the direction of a scan; `None` for the last partition.
fn partition_end(view: &TreeView, partition: usize, direction: Direction) -> Option<&[u8]> {
    match direction {
        Direction::Forward => view.upper_of(partition),
        Direction::Backward => (partition > 0).then(|| &*view.partitions[partition].lower),
    }
}

/// The nearer of two ends in the direction of a scan. `None` is behind every key.
fn nearer<'b>(left: Option<&'b [u8]>, right: Option<&'b [u8]>, direction: Direction) -> Option<&'b [u8]> {
    match (left, right, direction) {
        (Some(left), Some(right), Direction::Forward) => Some(left.min(right)),
        (Some(left), Some(right), Direction::Backward) => Some(left.max(right)),
        (left, right, _) => left.or(right),
    }
}

/// The place where the remaining keys begin, in the direction of the scan.
fn target_of(rest: &KeyRange, direction: Direction) -> Target<'_> {
    match direction {
        Direction::Forward => match &rest.lower {
            Bound::Included(key) | Bound::Excluded(key) => Target::Covering(key),
            Bound::Unbounded => Target::First,
        },
        Direction::Backward => match &rest.upper {
            Bound::Included(key) => Target::Covering(key),
            Bound::Excluded(key) => Target::Before(key),
            Bound::Unbounded => Target::Last,
        },
    }
}

/// Sets a bound to a key. Reuses the memory of the old one.
fn set_bound(bound: &mut Bound<Vec<u8>>, kind: Bound<()>, key: &[u8]) {
    let mut bytes = match std::mem::replace(bound, Bound::Unbounded) {
        Bound::Included(bytes) | Bound::Excluded(bytes) => bytes,
        Bound::Unbounded => Vec::new(),
    };
    bytes.clear();
    bytes.extend_from_slice(key);
    *bound = kind.map(|()| bytes);
}

/// Merges the sources of a piece, which lies in one partition.
fn scan_piece(
    partition: &Partition,
    piece: Piece<'_>,
    end: Option<&[u8]>,
    path: &mut Option<ScanPath<'_>>,
    batch: &mut Filling<'_>,
) -> ScanEnd {
    let Piece { request, rest, floor } = piece;
    let bounds = piece_bounds(rest, end, request.direction);
    let active = (!partition.active.is_empty()).then(|| partition.active.read());
    let frozen = partition.frozen.as_ref().map(|frozen| frozen.buffer.read());
    let buffers = active.as_deref().into_iter().chain(frozen.as_deref());
    let mut sources: Vec<Source<'_>> = buffers
        .map(|buffer| Source::Buffer(BufferEntries::new(buffer, bounds, piece)))
        .filter(|source| source.key().is_some())
        .collect();
    let mut leaf = None;
    if let Some(path) = path {
        let (cursor, slices) = path.sources(floor);
        leaf = cursor;
        sources.extend(slices.filter_map(|cursor| {
            let key = cursor.settle()?;
            is_before(key, end, request.direction).then_some(Source::Page(cursor))
        }));
    }
    merge(sources, leaf, request, end, batch)
}

/// Merges upper sources, the newest first, with the leaf, up to the piece's end.
fn merge(
    mut sources: Vec<Source<'_>>,
    mut leaf: Option<&mut PageCursor>,
    request: &ScanRequest<'_>,
    end: Option<&[u8]>,
    batch: &mut Filling<'_>,
) -> ScanEnd {
    let (direction, limits) = (request.direction, request.limits);
    while let Some(first) = first_of(&sources, direction) {
        let (above, below) = sources.split_at_mut(first + 1);
        let source = &mut above[first];
        let key = source.key().expect("an exhausted source is taken out");
        if let Some(leaf) = &mut leaf
            && leaf.copy_until(Until::Key(key), limits, batch) == ScanEnd::More
        {
            return ScanEnd::More;
        }
        let content = source.content();
        if !content.is_deleted() && batch.is_full(limits) {
            return ScanEnd::More;
        }
        if let Content::Merge(_) = content {
            let mut operands = MergeOperands::default();
            let mut holders =
                std::iter::once(&*source).chain(&*below).filter(|other| other.key() == Some(key));
            let found = holders.find_map(|holder| holder.collect_operands(&mut operands));
            let found = found.or_else(|| leaf.as_ref().and_then(|leaf| leaf.find(key)));
            batch.push_merged(key, operands, found);
        } else {
            batch.push(key, content);
        }
        if let Some(leaf) = &mut leaf {
            leaf.pass_key(key);
        }
        let mut ends = false;
        for other in below.iter_mut().filter(|other| other.key() == Some(key)) {
            ends |= !other.advance(end, direction);
        }
        if !source.advance(end, direction) || ends {
            sources.retain(|source| source.key().is_some_and(|key| is_before(key, end, direction)));
        }
    }
    match leaf {
        Some(leaf) => leaf.copy_until(end.map_or(Until::All, Until::End), limits, batch),
        None => ScanEnd::Done,
    }
}

/// The part of the remaining keys that lies in a piece.
fn piece_bounds<'b>(rest: &'b KeyRange, end: Option<&'b [u8]>, direction: Direction) -> Bounds<'b> {
    let (lower, upper) = bounds_of(rest);
    match (end, direction) {
        (None, _) => (lower, upper),
        (Some(end), Direction::Forward) => (lower, earlier(upper, Bound::Excluded(end))),
        (Some(end), Direction::Backward) => (later(lower, Bound::Included(end)), upper),
    }
}

/// Whether a key lies before the end of a piece.
fn is_before(key: &[u8], end: Option<&[u8]>, direction: Direction) -> bool {
    end.is_none_or(|end| match direction {
        Direction::Forward => key < end,
        Direction::Backward => key >= end,
    })
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

/// Visible entries of an upper source, deletes included.
enum Source<'s> {
    Buffer(BufferEntries<'s>),
    Page(&'s mut PageCursor),
}

impl Source<'_> {
    /// The next key; `None` if there is no more.
    fn key(&self) -> Option<&[u8]> {
        match self {
            Source::Buffer(entries) => entries.next.map(|next| next.key),
            Source::Page(cursor) => cursor.key(),
        }
    }

    /// The content of the next key.
    fn content(&self) -> Content<&[u8]> {
        match self {
            Source::Buffer(entries) => {
                let next = entries.next.filter(|next| next.version.timestamp >= entries.floor);
                next.map_or(Content::Deleted, |next| next.version.change.content())
            }
            Source::Page(cursor) => cursor.content(),
        }
    }

    /// Adds the merge operands of the next key to `operands`. Returns the version to which they apply, if it
    /// is here.
    fn collect_operands(&self, operands: &mut MergeOperands) -> Option<Content<Bytes>> {
        match self {
            Source::Buffer(entries) => {
                let versions = entries.next.map(|next| next.chain.visible(entries.snapshot));
                versions
                    .into_iter()
                    .flatten()
                    .find_map(|version| operands.take(version.content_above(entries.floor)))
            }
            Source::Page(cursor) => cursor.versions().find_map(|content| operands.take(content)),
        }
    }

    /// Goes on to the next key; false if there is none in the piece.
    fn advance(&mut self, end: Option<&[u8]>, direction: Direction) -> bool {
        match self {
            Source::Buffer(entries) => {
                entries.advance();
                entries.next.is_some()
            }
            Source::Page(cursor) => {
                cursor.pass();
                cursor.settle().is_some_and(|key| is_before(key, end, direction))
            }
        }
    }
}

/// The visible entries of a buffer within a piece, deletes included, in the direction of the scan.
struct BufferEntries<'b> {
    entries: Box<dyn Iterator<Item = (&'b [u8], &'b Chain)> + 'b>,
    snapshot: SnapshotTimestamp,
    floor: CommitTimestamp,
    next: Option<NextEntry<'b>>,
}

/// A key in a buffer, and the newest of its versions that the scan sees.
#[derive(Clone, Copy)]
struct NextEntry<'b> {
    key: &'b [u8],
    chain: &'b Chain,
    version: &'b BufferedVersion,
}

impl<'b> BufferEntries<'b> {
    fn new(
        buffer: &'b Buffer,
        bounds: Bounds<'b>,
        Piece { request, floor, .. }: Piece<'_>,
    ) -> BufferEntries<'b> {
        let range = buffer.range(bounds.0, bounds.1);
        let entries: Box<dyn Iterator<Item = _> + 'b> = match request.direction {
            Direction::Forward => Box::new(range),
            Direction::Backward => Box::new(range.rev()),
        };
        let mut entries = BufferEntries { entries, snapshot: request.snapshot, floor, next: None };
        entries.advance();
        entries
    }

    fn advance(&mut self) {
        self.next = self.entries.by_ref().find_map(|(key, chain)| {
            let version = chain.visible(self.snapshot).next()?;
            Some(NextEntry { key, chain, version })
        });
    }
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
