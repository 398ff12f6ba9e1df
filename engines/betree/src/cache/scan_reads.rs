//! How scans read pages: several with one call to the device, and, where a scan is long, past the cache's favour.
//!
//! # Terms
//! - *Passing*: reading as a long scan does. What it reads once says nothing about what will be read again: its pages are
//!   not counted as used, are decoded for good only where there is room, and are thereby the first to leave.
//! - *Stretch*: neighbouring pages of a leaf or of a slice, of which the scan wants some at once, and the others soon.
//!
//! Pages that are wanted soon go into the cache as they stand on disk: whoever comes for them decodes them, once.

use std::ops::Range;

use super::blocks::{Blocks, decode_page};
use super::page_cache::{BlockKey, Passed, Promotion, Tier};
use super::stored_page::StoredPage;
use crate::error::BetreeError;
use crate::format::directory::PageEntry;
use crate::format::page::Page;
use crate::space::Pointer;

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

    fn take_scanned(&self, pointer: &Pointer, payload: &[u8], pace: ScanPace) -> Result<Page, BetreeError> {
        let page = decode_page(pointer, self.store().decompress(pointer, payload)?)?;
        let key = BlockKey::of(pointer);
        match (self.cache().tier_for_read(pointer.raw_length() as usize), pace) {
            (Tier::Decoded, _) => self.cache().insert_decoded(key, page.clone()),
            (Tier::Compressed, ScanPace::Stepping) => {
                self.cache().insert_compressed(key, StoredPage::used(pointer.codec(), payload));
            }
            (Tier::Compressed, ScanPace::Passing) => {
                self.cache().insert_compressed(key, StoredPage::awaited(pointer.codec(), payload));
            }
        }
        Ok(page)
    }
}
