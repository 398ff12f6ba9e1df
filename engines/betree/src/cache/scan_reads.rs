//! How scans read pages: several with one call to the device, and, where a scan is long, past the cache's favour.
//!
//! # Terms
//! - *Passing*: reading as a long scan does. What it reads once says nothing about what will be read again: its pages are
//!   not counted as used, but where memory lies unused, are decoded for good only where there is room, and are thereby the first to leave.
//! - *Stretch*: neighbouring pages of a leaf or of a slice, of which the scan wants some at once, and the others soon.
//!
//! What a long scan will want after this batch others bring meanwhile ([`scan_ahead`](super::scan_ahead)). Where nobody helps, or there is no room
//! for it, pages that are wanted soon go into the cache as they stand on disk: whoever comes for them decodes them.

use std::ops::Range;

use pando_environment::Step;
use pando_storage::BlockingMode;

use super::blocks::{Blocks, decode_page};
use super::page_cache::{BlockKey, Passed, Promotion, Tier};
use super::scan_ahead::{Extension, Fetched, Landed, Room, WantedPages};
use super::stored_page::StoredPage;
use crate::base::Pointer;
use crate::error::BetreeError;
use crate::format::directory::PageEntry;
use crate::format::page::Page;

/// What is asked for ahead of a scan that goes on, in bytes before compression: four leaves of the usual size.
const AHEAD_BYTES: u64 = 2 << 20;
/// What is asked for ahead of all scans has at most this part of the cache, and at most so many bytes.
const AHEAD_SHARE: u64 = 16;
const AHEAD_LIMIT_MAX: u64 = 32 << 20;

/// How a scan reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScanPace {
    /// A few rows: what it reads may well be read again.
    Stepping,
    /// See the module's head.
    Passing,
}

/// See the module's head.
#[derive(Clone, Debug)]
pub(crate) struct Stretch<'d> {
    /// The pages, as their directory has them.
    pub(crate) pages: &'d [PageEntry],
    /// Those among them that are wanted at once.
    pub(crate) wanted: Range<usize>,
}

impl Blocks {
    /// A page for a scan, if it is in memory.
    pub(crate) fn scanned_page(
        &self,
        pointer: &Pointer,
        pace: ScanPace,
    ) -> Result<Option<Page>, BetreeError> {
        if pace == ScanPace::Stepping {
            return self.cached_page(pointer);
        }
        let key = BlockKey::of(pointer);
        match self.cache().passing(&key, pointer.raw_length() as usize) {
            None => Ok(None),
            Some(Passed::Decoded(page)) => Ok(Some(page)),
            Some(Passed::Compressed(found)) => {
                let page = self.decode_stored(pointer, &found.page)?;
                if found.promotion == Promotion::Keep {
                    self.cache().promote(key, page.clone());
                }
                Ok(Some(page))
            }
        }
    }

    /// Reads those pages of a stretch that are not in memory, with as few calls to the device as possible, and hands over with
    /// their places those that are wanted at once.
    pub(crate) fn read_stretch(
        &self,
        stretch: &Stretch<'_>,
        pace: ScanPace,
        mut take: impl FnMut(usize, Page),
    ) -> Result<(), BetreeError> {
        let missing: Vec<usize> = (0..stretch.pages.len())
            .filter(|at| self.cache().tier_of(&BlockKey::of(&stretch.pages[*at].pointer)).is_none())
            .collect();
        let pointers: Vec<Pointer> = missing.iter().map(|at| stretch.pages[*at].pointer).collect();
        self.cache().misses.add(missing.len() as u64);
        let mut places = missing.into_iter();
        let mut outcome = Ok(());
        let reads = self.store().read_neighbours(&pointers, |pointer, payload| {
            let at = places.next().expect("each pointer is handed over once, in order");
            if !stretch.wanted.contains(&at) {
                let stored = StoredPage::awaited(pointer.codec(), payload);
                return self.cache().insert_compressed(BlockKey::of(pointer), stored);
            }
            match self.take_scanned(pointer, payload, pace) {
                Ok(page) => take(at, page),
                Err(error) => outcome = Err(error),
            }
        })?;
        self.cache().scan_reads.add(reads.calls);
        self.cache().scan_read_bytes.add(reads.bytes);
        outcome
    }

    fn room_ahead(&self) -> Room {
        let limit = (self.cache().limit() / AHEAD_SHARE).min(AHEAD_LIMIT_MAX);
        Room { limit: limit as usize, ahead: AHEAD_BYTES.min(limit / 2) }
    }

    /// How far others go ahead of a scan that goes on, in bytes before compression.
    pub(crate) fn reach_ahead(&self) -> u64 {
        self.room_ahead().ahead
    }

    /// Whether there is somebody to help a scan, and room for what they would bring.
    pub(crate) fn has_room_ahead(&self) -> bool {
        self.scan_ahead.now().is_some_and(|now| self.scan_ahead.has_room(now, self.room_ahead()))
    }

    /// Has others bring what a long scan will want, but for the first portion, which comes at once. False where there is no room.
    pub(crate) fn begin_ahead(&self, course: u64, wanted: Vec<WantedPages>) -> bool {
        let Some(now) = self.scan_ahead.now() else { return false };
        self.scan_ahead.begin(course, now, (wanted, self.room_ahead()), |pages| self.bring(pages))
    }

    /// Has others bring more of it.
    pub(crate) fn extend_ahead(&self, extension: &Extension, wanted: Vec<WantedPages>) {
        self.scan_ahead.extend(extension, wanted, self.room_ahead());
    }

    /// The first of these pages, if it was asked for, and those behind it that came with it; that must not block if they have come.
    pub(crate) fn fetch_ahead<'p>(
        &self,
        course: u64,
        pages: impl Iterator<Item = &'p PageEntry>,
        blocking: BlockingMode,
    ) -> Fetched {
        let Some(now) = self.scan_ahead.now().filter(|_| !self.scan_ahead.is_empty()) else {
            return Fetched::default();
        };
        let keys: Vec<BlockKey> = pages.map(|page| BlockKey::of(&page.pointer)).collect();
        self.scan_ahead.fetch((course, &keys), now, (self.room_ahead(), blocking), |pages| self.bring(pages))
    }

    /// One step of a task that helps scans: brings something that one has asked for, or drops what scans that ended have left.
    pub(crate) fn help_step(&self) -> Step {
        if self.scan_ahead.help(|pages| self.bring(pages)) {
            return Step::Again;
        }
        let later = self.scan_ahead.now().and_then(|now| self.scan_ahead.tidy(now));
        later.map_or(Step::Sleep, Step::Wait)
    }

    /// Those of the pages that are in memory or can be read, in their order. What is wrong with others is told to the scan that comes for
    /// them.
    fn bring(&self, pages: &[Pointer]) -> Landed {
        let mut brought: Vec<Option<Page>> = pages
            .iter()
            .map(|pointer| self.scanned_page(pointer, ScanPace::Passing).ok().flatten())
            .collect();
        let mut missing: Vec<usize> = (0..pages.len()).filter(|at| brought[*at].is_none()).collect();
        missing.sort_unstable_by_key(|at| pages[*at].address());
        let pointers: Vec<Pointer> = missing.iter().map(|at| pages[*at]).collect();
        self.cache().misses.add(missing.len() as u64);
        let mut at = 0;
        while at < pointers.len() {
            let from = at;
            let reads = self.store().read_neighbours(&pointers[from..], |pointer, payload| {
                brought[missing[at]] = self.take_scanned(pointer, payload, ScanPace::Passing).ok();
                at += 1;
            });
            match reads {
                Ok(reads) => {
                    self.cache().scan_reads.add(reads.calls);
                    self.cache().scan_read_bytes.add(reads.bytes);
                }
                // On behind the bad one.
                Err(_) => at += 1,
            }
        }
        let landed = pages.iter().zip(brought);
        landed.filter_map(|(pointer, page)| Some((BlockKey::of(pointer), page?))).collect()
    }

    fn take_scanned(&self, pointer: &Pointer, payload: &[u8], pace: ScanPace) -> Result<Page, BetreeError> {
        let page = decode_page(pointer, self.store().decompress(pointer, payload)?)?;
        let key = BlockKey::of(pointer);
        match (self.cache().tier_for_read(pointer.raw_length() as usize), pace) {
            (Tier::Decoded, _) => self.cache().insert_decoded(key, page.clone()),
            // Where memory lies unused, the next use of the page may decode it for good.
            (Tier::Compressed, ScanPace::Passing) if !self.cache().has_unused() => {
                self.cache().insert_compressed(key, StoredPage::awaited(pointer.codec(), payload));
            }
            (Tier::Compressed, _) => {
                self.cache().insert_compressed(key, StoredPage::used(pointer.codec(), payload));
            }
        }
        Ok(page)
    }
}
