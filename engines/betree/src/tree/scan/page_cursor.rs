//! Page cursor: a position in a page during a scan. It yields the visible entries from there on, one by one
//! or many at once.
//!
//! # Terms
//! - *Settled*: the next visible entry has been found, and its key put together. Only merging with other
//!   sources needs that; [`copy_until`](PageCursor::copy_until) copies the entries before a key without
//!   comparing each of them.
//!
//! # Invariants
//! - Versions of one key stand newest first: the first that the snapshot sees counts, the others are skipped.
//! - An entry without a timestamp is seen by every snapshot, and is the last of its key.
//! - An entry that is older than the floor of the piece counts as deleted. The cursor still stops at it like
//!   at any other: the next piece, to which the next visible entry may belong, has another floor.

use std::ops::Bound;

use bytes::Bytes;
use pando_storage::{BatchLimits, CommitTimestamp, Direction, ScanEnd, SnapshotTimestamp};

use crate::format::content::Content;
use crate::format::page::{Entry, Found, Page};
use crate::tree::scan::batch_fill::Filling;

/// Bytes of memory that a batch reserves at a time at most.
const RESERVED_BYTES_MAX: usize = 256 * 1024;

/// The end of the entries that are copied.
#[derive(Clone, Copy, Debug)]
pub(super) enum Until<'k> {
    /// Before this key, in the direction of the scan.
    Key(&'k [u8]),
    /// The end of a piece: before this key forwards, down to and including it backwards.
    End(&'k [u8]),
    /// Everything.
    All,
}

/// See the module's head.
#[derive(Debug)]
pub(super) struct PageCursor {
    page: Page,
    direction: Direction,
    snapshot: SnapshotTimestamp,
    floor: CommitTimestamp,
    /// Entries that have not been passed.
    from: usize,
    to: usize,
    /// The next visible entry, if settled.
    next: Option<Next>,
    /// The whole key of `next`.
    key: Vec<u8>,
    /// The prefix of all keys, followed by the head of the entry that is being copied.
    start: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct Next {
    at: usize,
    entry: Entry,
    /// The first entry of the same key.
    first: usize,
}

impl PageCursor {
    /// A cursor before the first entry within the bounds, in the direction of the scan.
    pub(super) fn new(
        page: Page,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
        snapshot: SnapshotTimestamp,
    ) -> PageCursor {
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
        let start = page.key_start();
        let (floor, next, key) = (CommitTimestamp::ZERO, None, Vec::new());
        PageCursor { page, direction, snapshot, floor, from, to, next, key, start }
    }

    /// The same cursor in a piece with this floor.
    pub(super) fn above(&mut self, floor: CommitTimestamp) -> &mut PageCursor {
        self.floor = floor;
        self
    }

    /// Whether an entry counts as a delete.
    fn is_delete(&self, entry: &Entry) -> bool {
        entry.is_delete() || entry.timestamp() < self.floor
    }

    /// Finds the next visible entry. Returns its key, or `None` if there is none.
    pub(super) fn settle(&mut self) -> Option<&[u8]> {
        if self.next.is_none() {
            self.next = match self.direction {
                Direction::Forward => self.next_forward(),
                Direction::Backward => self.next_backward(),
            };
            if let Some(next) = &self.next {
                self.page.key_into(next.at, &mut self.key);
            }
        }
        self.key()
    }

    /// The key of the next visible entry, once settled.
    pub(super) fn key(&self) -> Option<&[u8]> {
        self.next.as_ref().map(|_| self.key.as_slice())
    }

    /// The content of the next visible entry, once settled.
    pub(super) fn content(&self) -> Content<&[u8]> {
        match &self.next {
            Some(next) if !self.is_delete(&next.entry) => self.page.content(&next.entry),
            _ => Content::Deleted,
        }
    }

    /// The contents of the next visible key, once settled: merge operands, newest first, and last the version
    /// to which they apply, if it is here.
    pub(super) fn versions(&self) -> impl Iterator<Item = Content<Bytes>> + '_ {
        self.next.iter().flat_map(|next| self.page.merged_from(next.at, self.floor))
    }

    /// The content of a key in the page of a leaf.
    pub(super) fn find(&self, key: &[u8]) -> Option<Content<Bytes>> {
        match self.page.clone().find(key, self.snapshot, self.floor) {
            Found::Absent => None,
            Found::Deleted => Some(Content::Deleted),
            Found::Value(value) => Some(Content::Value(value)),
            Found::Large(reference) => Some(Content::Large(reference)),
            Found::Merged(_) => {
                unreachable!("a page of a leaf with merge operators is refused when it is read")
            }
        }
    }

    /// Passes the next visible entry, once settled, and all older versions of its key.
    pub(super) fn pass(&mut self) {
        let Some(next) = self.next.take() else { return };
        match self.direction {
            Direction::Forward => self.from = self.behind(next.at, &next.entry),
            Direction::Backward => self.to = next.first,
        }
    }

    /// Passes all versions of a key, if they come next.
    pub(super) fn pass_key(&mut self, key: &[u8]) {
        self.next = None;
        match self.direction {
            Direction::Forward => {
                while self.from < self.to && self.page.has_key(self.from, key) {
                    self.from += 1;
                }
            }
            Direction::Backward => {
                while self.from < self.to && self.page.has_key(self.to - 1, key) {
                    self.to -= 1;
                }
            }
        }
    }

    /// Copies the visible entries before a place, until the batch is full.
    pub(super) fn copy_until(
        &mut self,
        until: Until<'_>,
        limits: BatchLimits,
        batch: &mut Filling<'_>,
    ) -> ScanEnd {
        self.next = None;
        let end = match (until, self.direction) {
            (Until::All, Direction::Forward) => self.to,
            (Until::All, Direction::Backward) => self.from,
            (Until::Key(key), Direction::Forward) | (Until::End(key), _) => self.page.lower_bound(key),
            (Until::Key(key), Direction::Backward) => self.page.upper_bound(key),
        };
        let end = end.clamp(self.from, self.to);
        match self.direction {
            Direction::Forward => self.copy_forward(end, limits, batch),
            Direction::Backward => self.copy_backward(end, limits, batch),
        }
    }

    fn copy_forward(&mut self, end: usize, limits: BatchLimits, batch: &mut Filling<'_>) -> ScanEnd {
        let wanted = (end - self.from).min(limits.entries_max.saturating_sub(batch.len()));
        self.page.prefetch_entries(self.from, wanted);
        self.reserve(end - self.from, limits, batch);
        while self.from < end {
            let entry = self.page.entry(self.from);
            if !self.snapshot.sees(entry.timestamp()) {
                self.from += 1;
                continue;
            }
            if !self.is_delete(&entry) && !self.copy(self.from, &entry, limits, batch) {
                return ScanEnd::More;
            }
            self.from = self.behind(self.from, &entry);
        }
        ScanEnd::Done
    }

    fn copy_backward(&mut self, end: usize, limits: BatchLimits, batch: &mut Filling<'_>) -> ScanEnd {
        self.reserve(self.to - end, limits, batch);
        let from = std::mem::replace(&mut self.from, end);
        let mut outcome = ScanEnd::Done;
        while let Some(next) = self.next_backward() {
            if !self.is_delete(&next.entry) && !self.copy(next.at, &next.entry, limits, batch) {
                outcome = ScanEnd::More;
                break;
            }
            self.to = next.first;
        }
        self.from = from;
        outcome
    }

    /// Adds an entry to the batch; false if the batch is full.
    fn copy(&mut self, at: usize, entry: &Entry, limits: BatchLimits, batch: &mut Filling<'_>) -> bool {
        if batch.is_full(limits) {
            return false;
        }
        if entry.is_large() {
            self.page.key_into(at, &mut self.key);
            batch.push(&self.key, self.page.content(entry));
            return true;
        }
        let pieces = self.page.pieces(at, entry, &mut self.start);
        batch.push_joined(pieces.start, pieces.rest, pieces.key_bytes);
        true
    }

    /// Reserves memory in the batch for this number of entries of the page's average size.
    fn reserve(&self, entries: usize, limits: BatchLimits, batch: &mut Filling<'_>) {
        let entries = entries.min(limits.entries_max.saturating_sub(batch.len()));
        let room = limits.bytes_max.saturating_sub(batch.bytes()).min(RESERVED_BYTES_MAX);
        let usual = self.page.raw_bytes() / self.page.len().max(1) + self.start.len();
        batch.reserve(entries, (entries * usual).min(room + usual));
    }

    /// The index behind all versions of the key of the entry `at`, which is the visible one.
    fn behind(&self, at: usize, entry: &Entry) -> usize {
        let mut behind = at + 1;
        if entry.timestamp().get() != 0 {
            while behind < self.to && self.is_continued(behind - 1) {
                behind += 1;
            }
        }
        behind
    }

    fn next_forward(&mut self) -> Option<Next> {
        while self.from < self.to {
            let entry = self.page.entry(self.from);
            if self.snapshot.sees(entry.timestamp()) {
                return Some(Next { at: self.from, entry, first: self.from });
            }
            self.from += 1;
        }
        None
    }

    fn next_backward(&mut self) -> Option<Next> {
        while self.from < self.to {
            let end = self.to;
            let mut first = end - 1;
            while first > self.from && self.is_continued(first - 1) {
                first -= 1;
            }
            for at in first..end {
                let entry = self.page.entry(at);
                if self.snapshot.sees(entry.timestamp()) {
                    return Some(Next { at, entry, first });
                }
            }
            self.to = first;
        }
        None
    }

    /// Whether the entry after this one is an older version of the same key.
    fn is_continued(&self, at: usize) -> bool {
        self.page.entry(at).timestamp().get() != 0 && self.page.same_key(at, at + 1)
    }
}
