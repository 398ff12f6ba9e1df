//! Scans: fills a batch with the visible entries of a range, in either direction.
//!
//! 1. The next page in the direction of the scan is found and fetched, with neighbours if the batch will want them. No lock
//!    is held meanwhile.
//! 2. The part of the range that this page covers is cut at the bounds of partitions.
//! 3. In each part the visible entries of active buffer, frozen buffer and page are merged: on equal keys the one higher up
//!    counts, and a delete hides what is below. The buffers' read locks are held for this step only.
//!
//! A batch sees one view, so that nothing moves between buffers and leaves while it is filled.

use std::cmp::Ordering;
use std::ops::Bound;

use bytes::Bytes;
use pando_storage::{Batch, BatchLimits, Direction, KeyRange, Patience, ScanEnd, SnapshotTimestamp};

use super::buffer::{Buffer, Chain, crosses};
use super::lookup::Damaged;
use super::path::{Target, find_leaf};
use super::view::TreeView;
use crate::cache::{Blocks, Retention};
use crate::format::page::Page;

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
    while !rest.is_empty() {
        let piece = match next_piece(view, blocks, &request, &rest) {
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
    }
    Ok(ScanEnd::Done)
}

/// A page and the keys that it covers.
struct Piece {
    page: Option<Page>,
    lower: Option<Vec<u8>>,
    upper: Option<Vec<u8>>,
}

/// The first piece of what remains, in the direction of the scan.
fn next_piece(
    view: &TreeView,
    blocks: &Blocks,
    request: &ScanRequest<'_>,
    rest: &KeyRange,
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
    let place = find_leaf(&view.version, blocks, target, request.patience).map_err(Damaged::anywhere)?;
    let Some(place) = place else { return Ok(Piece { page: None, lower: None, upper: None }) };
    let directory = blocks
        .directory(&place.leaf.directory, request.patience)
        .map_err(|error| Damaged::new(error, place.lower, place.upper))?;
    let last = directory.pages().len() - 1;
    let at = match target {
        Target::Covering(key) => directory.page_of(key),
        Target::Before(key) => match directory.page_of(key) {
            at if at > 0 && directory.separator(at) == key => at - 1,
            at => at,
        },
        Target::First => 0,
        Target::Last => last,
    };
    let lower = if at == 0 { place.lower } else { Some(directory.separator(at)) };
    let upper = if at == last { place.upper } else { Some(directory.separator(at + 1)) };
    let page = match request.patience {
        Patience::CachedOnly => blocks.page(&directory.pages()[at].pointer, request.patience),
        Patience::MayBlock => {
            // Of a small batch the first page is enough; a large one takes neighbours along in one device read.
            let page_bytes = directory.pages()[at].pointer.raw_length().max(1) as usize;
            let wanted = (request.limits.bytes_max / page_bytes).clamp(1, READ_AHEAD_PAGES);
            let (from, to) = match request.direction {
                Direction::Forward => (at, (at + wanted).min(last + 1)),
                Direction::Backward => ((at + 1).saturating_sub(wanted), at + 1),
            };
            if wanted == 1 || blocks.has_page(&directory.pages()[at].pointer) {
                blocks.page(&directory.pages()[at].pointer, request.patience)
            } else {
                let pages = blocks.pages(&directory.pages()[from..to], Retention::Keep);
                pages.map(|mut pages| pages.swap_remove(at - from))
            }
        }
    };
    let page = page.map_err(|error| Damaged::new(error, lower, upper))?;
    let (lower, upper) = (lower.map(<[u8]>::to_vec), upper.map(<[u8]>::to_vec));
    Ok(Piece { page: Some(page), lower, upper })
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
        if scan_part(view, at, request, (from, to), piece.page.as_ref(), batch) == ScanEnd::More {
            return ScanEnd::More;
        }
    }
    ScanEnd::Done
}

/// Merges the sources of one partition within one page.
fn scan_part(
    view: &TreeView,
    partition: usize,
    request: &ScanRequest<'_>,
    bounds: Bounds<'_>,
    page: Option<&Page>,
    batch: &mut Batch,
) -> ScanEnd {
    let partition = &view.partitions[partition];
    let mut below = page.map(|page| PageEntries::new(page, bounds, request.direction, request.snapshot));
    let active = (!partition.active.is_empty()).then(|| partition.active.read());
    let frozen = partition.frozen.as_ref().map(|frozen| frozen.buffer.read());
    let mut active = active.as_deref().map(|buffer| BufferEntries::new(buffer, bounds, request));
    let mut frozen = frozen.as_deref().map(|buffer| BufferEntries::new(buffer, bounds, request));
    loop {
        // The next key in the scan's direction; the higher source first where two have it.
        let in_active = active.as_ref().and_then(BufferEntries::peek).map(|(key, _)| key);
        let in_frozen = frozen.as_ref().and_then(BufferEntries::peek).map(|(key, _)| key);
        let in_page = below.as_ref().and_then(PageEntries::peek).map(|(key, _)| key);
        let candidates = [in_active, in_frozen, in_page];
        let Some(source) = first_of(candidates, request.direction) else { return ScanEnd::Done };
        let value = match source {
            0 => active
                .as_ref()
                .and_then(BufferEntries::peek)
                .and_then(|(_, value)| value.map(|value| &value[..])),
            1 => frozen
                .as_ref()
                .and_then(BufferEntries::peek)
                .and_then(|(_, value)| value.map(|value| &value[..])),
            _ => below.as_ref().and_then(PageEntries::peek).map(|(_, value)| value),
        };
        let key = candidates[source].expect("the chosen source has an entry");
        if let Some(value) = value {
            if batch.is_full(request.limits) {
                return ScanEnd::More;
            }
            batch.push(key, value);
        }
        let shares = candidates.map(|other| other == Some(key));
        if shares[0]
            && let Some(active) = &mut active
        {
            active.advance();
        }
        if shares[1]
            && let Some(frozen) = &mut frozen
        {
            frozen.advance();
        }
        if shares[2]
            && let Some(below) = &mut below
        {
            below.advance();
        }
    }
}

/// The source whose key comes first; of equal ones the first source.
fn first_of(candidates: [Option<&[u8]>; 3], direction: Direction) -> Option<usize> {
    let mut best: Option<usize> = None;
    for (source, key) in candidates.iter().enumerate() {
        let Some(key) = key else { continue };
        let comes_first = match best.and_then(|best| candidates[best]) {
            None => true,
            Some(have) => match direction {
                Direction::Forward => *key < have,
                Direction::Backward => *key > have,
            },
        };
        if comes_first {
            best = Some(source);
        }
    }
    best
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

/// The visible puts of a page, in the direction of the scan.
struct PageEntries<'p> {
    page: &'p Page,
    /// Entries not looked at yet.
    from: usize,
    to: usize,
    direction: Direction,
    snapshot: SnapshotTimestamp,
    key: Vec<u8>,
    value: Option<&'p [u8]>,
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
        let mut entries = PageEntries { page, from, to, direction, snapshot, key: Vec::new(), value: None };
        entries.advance();
        entries
    }

    fn peek(&self) -> Option<(&[u8], &'p [u8])> {
        self.value.map(|value| (self.key.as_slice(), value))
    }

    fn advance(&mut self) {
        self.value = None;
        while self.value.is_none() && self.from < self.to {
            let (first, end) = self.next_key();
            // Versions stand newest first: the first that is seen counts.
            let visible = (first..end).find(|at| self.snapshot.sees(self.page.entry(*at).timestamp()));
            if let Some(at) = visible {
                let entry = self.page.entry(at);
                if !entry.is_delete() {
                    self.page.key_into(at, &mut self.key);
                    self.value = Some(self.page.value(&entry));
                }
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
