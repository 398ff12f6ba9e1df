//! A scan of index entries within the bounds of a plan.
//!
//! # Steps
//! 1. The ranges of keys come one after the other ([`KeyRanges`]). Where many have no entry, the scan looks
//!    for the next entry in any of them.
//! 2. An entry whose later fields lie out of bounds is not given. After some such entries the scan jumps to
//!    the next one that may lie within.
//! 3. A scan that steps from value to value passes over the entries that are not wanted ([`Picking`]).
//! 4. The document of an entry is made of it, is a copy in it, or is fetched by the executor.

use std::sync::Arc;

use pando_catalog::{
    Collection, Direction, EntryContents, ErrorKind, Index, IndexEntry, IndexScan, KeyRange, StorageError,
    Truncation,
};
use pando_document::RawDocument;

use super::entry_document::EntryDocument;
use super::key_ranges::{KeyRanges, storage_direction};
use super::picking::{Picking, Verdict};
use super::source::{Found, ScanPhase, Step, Surroundings, ranges_of};
use crate::QueryError;
use crate::plan::{Coverage, IndexAccess, Picks};

/// A scan of index entries.
#[derive(Debug)]
pub(super) struct Entries {
    index: Arc<Index>,
    /// `None`: one range of keys, under way or done.
    ranges: Option<KeyRanges>,
    /// Of the primary keys of matches, in a collection with partitions.
    within: Option<Arc<[KeyRange]>>,
    scan: Option<IndexScan>,
    phase: ScanPhase,
    direction: Direction,
    coverage: EntryCoverage,
    /// Ranges that ended without an entry, one after the other.
    empty_ranges: u32,
    scanning: Scanning,
    /// The length of the field bytes of the entry that a document was made of last.
    field_bytes: usize,
    /// Where it steps from value to value.
    picking: Option<Picking>,
    /// Entries out of bounds, one after the other.
    out_of_bounds: u32,
}

/// The purpose of a scan of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scanning {
    /// The entries of one range.
    Range,
    /// The next entry in any of the ranges that are left.
    NextEntry,
}

/// So many ranges without an entry are read before the scan looks where the next entry is.
const EMPTY_RANGES_MAX: u32 = 8;

/// So many entries out of the bounds of later fields are stepped over before the scan jumps to the next one
/// that may lie within: a jump costs as much as some of them.
const OUT_OF_BOUNDS_MAX: u32 = 24;
/// The same where the scan has just jumped, and has found another such entry.
const OUT_OF_BOUNDS_AGAIN: u32 = 8;

/// Where the documents of entries come from.
#[derive(Debug)]
enum EntryCoverage {
    /// They are fetched.
    Fetched,
    /// The entries hold copies of them.
    Copied,
    /// They are made of the entries.
    Made(EntryDocument),
    /// There is no need of them.
    Unneeded,
}

impl EntryCoverage {
    /// Writes the document of an entry; false where it is to be fetched.
    fn write(&self, entry: &IndexEntry<'_>, out: &mut Vec<u8>) -> Result<bool, QueryError> {
        match self {
            EntryCoverage::Made(maker) if entry.truncated == Truncation::Whole => {
                if maker.write(entry.fields, entry.type_bits, out)? {
                    return Ok(true);
                }
            }
            EntryCoverage::Unneeded => {
                out.clear();
                out.extend_from_slice(RawDocument::empty().as_bytes());
                return Ok(true);
            }
            EntryCoverage::Copied | EntryCoverage::Made(_) | EntryCoverage::Fetched => {}
        }
        let Some(document) = entry.document else { return Ok(false) };
        out.clear();
        out.extend_from_slice(document);
        Ok(true)
    }
}

impl Entries {
    /// A scan of the entries of an index other than the primary key.
    ///
    /// # Errors
    /// The index is gone since the plan was made.
    pub fn new(
        collection: &Collection,
        access: IndexAccess,
        coverage: Coverage,
    ) -> Result<Entries, QueryError> {
        let direction = storage_direction(access.direction);
        let index = collection.index(&access.index.name).ok_or_else(|| {
            let message = format!("index {} was dropped while it was to be read", access.index.name);
            QueryError::from(StorageError::new(ErrorKind::NotFound, message))
        })?;
        index.count_use();
        let (ranges, one_range) = ranges_of(&access.index, access.bounds, access.direction);
        let within = access.partitions.map(|scope| Arc::clone(&scope.keys));
        let scan = one_range.map(|range| collection.scan_entries(index, range, direction, within.clone()));
        let coverage = match coverage {
            Coverage::Document if access.index.contents == EntryContents::Copy => EntryCoverage::Copied,
            Coverage::Document => EntryCoverage::Fetched,
            Coverage::Entry(nulls) => EntryCoverage::Made(EntryDocument::new(&access.index, nulls)),
            Coverage::Nothing | Coverage::Counter => EntryCoverage::Unneeded,
        };
        let phase = if scan.is_some() { ScanPhase::Within } else { ScanPhase::Between };
        let picking = match access.picks {
            Picks::Every => None,
            Picks::FirstOfEach { fields, valued } => Some(Picking::new(fields, valued, index.directions())),
        };
        Ok(Entries {
            index: Arc::clone(index),
            ranges,
            within,
            scan,
            phase,
            direction,
            coverage,
            field_bytes: 0,
            empty_ranges: 0,
            scanning: Scanning::Range,
            picking,
            out_of_bounds: 0,
        })
    }

    /// Whether a document is fetched for each entry.
    pub fn fetches(&self) -> bool {
        matches!(self.coverage, EntryCoverage::Fetched)
    }

    /// Whether a document may be fetched for an entry.
    pub fn gives_keys(&self) -> bool {
        matches!(self.coverage, EntryCoverage::Fetched | EntryCoverage::Made(_))
    }

    /// The next entry.
    pub fn step(&mut self, surroundings: &Surroundings<'_>, found: &mut Found) -> Result<Step, QueryError> {
        let Some(scan) = self.scan.as_mut().filter(|_| self.phase == ScanPhase::Within) else {
            return Ok(self.begin_range(surroundings.collection));
        };
        let Some(entry) = scan.next(surroundings.transaction, surroundings.blocking)? else {
            self.phase = ScanPhase::Between;
            self.empty_ranges += 1;
            if let (Scanning::NextEntry, Some(ranges)) = (self.scanning, &mut self.ranges) {
                ranges.end();
            }
            if matches!(self.coverage, EntryCoverage::Unneeded) {
                // A count looks one entry beyond its range, and MongoDB shows that.
                surroundings.count_keys(1);
            }
            // At once, so that a short range of a long list costs two steps and not three.
            return Ok(self.begin_range(surroundings.collection));
        };
        surroundings.count_keys(1);
        self.empty_ranges = 0;
        if let (Scanning::NextEntry, Some(ranges)) = (self.scanning, &mut self.ranges) {
            ranges.skip_to(entry.fields);
            self.phase = ScanPhase::Between;
            return Ok(Step::Nothing);
        }
        // The bytes of a cut key are lost: its document is tested instead.
        let is_whole = entry.truncated == Truncation::Whole;
        if is_whole
            && let Some(ranges) = &self.ranges
            && !ranges.admits(entry.fields)
        {
            self.out_of_bounds += 1;
            if self.out_of_bounds >= OUT_OF_BOUNDS_MAX
                && let Some(next) = ranges.next_within(entry.fields)
            {
                scan.seek(&next);
                self.out_of_bounds = OUT_OF_BOUNDS_MAX - OUT_OF_BOUNDS_AGAIN;
            }
            return Ok(Step::Nothing);
        }
        self.out_of_bounds = 0;
        let verdict = self.picking.as_mut().filter(|_| is_whole).map(|picking| picking.look(entry.fields));
        if let Some(Verdict::Had(fields)) = verdict {
            scan.skip_fields(fields);
            return Ok(Step::Nothing);
        }
        found.primary_key.clear();
        found.primary_key.extend_from_slice(entry.primary_key);
        if let Some(fields) = &mut found.fields {
            fields.clear();
            fields.extend_from_slice(entry.fields);
        }
        self.field_bytes = entry.fields.len();
        let is_complete = self.coverage.write(&entry, &mut found.document)?;
        match verdict {
            Some(Verdict::Given(fields)) => {
                scan.skip_fields(fields);
                // Of the next value as few entries out of bounds are read as can be.
                self.out_of_bounds = OUT_OF_BOUNDS_MAX - 1;
            }
            Some(Verdict::Last) => self.end(),
            Some(Verdict::Had(_)) | None => {}
        }
        if !is_complete {
            return Ok(Step::Key);
        }
        match surroundings.filter {
            Some(filter) if !filter.matches(RawDocument::from_bytes(&found.document)?)? => Ok(Step::Nothing),
            _ => Ok(Step::Document),
        }
    }

    /// Jumps to the first entry at or beyond a key, in the scan's direction.
    pub fn seek(&mut self, key: &[u8]) {
        if let Some(scan) = &mut self.scan {
            scan.seek(key);
        }
    }

    /// Gives no more entries.
    fn end(&mut self) {
        self.phase = ScanPhase::Between;
        if let Some(ranges) = &mut self.ranges {
            ranges.end();
        }
    }

    /// The range to scan next.
    fn next_range(&mut self) -> Option<KeyRange> {
        let ranges = self.ranges.as_mut()?;
        if self.empty_ranges >= EMPTY_RANGES_MAX && ranges.can_skip() {
            self.scanning = Scanning::NextEntry;
            return ranges.rest();
        }
        self.scanning = Scanning::Range;
        ranges.next_range()
    }

    /// Begins the next range, in the memory of the scan before.
    fn begin_range(&mut self, collection: &Collection) -> Step {
        let Some(range) = self.next_range() else { return Step::End };
        match &mut self.scan {
            Some(scan) => scan.restart(range),
            none => {
                *none = Some(collection.scan_entries(&self.index, range, self.direction, self.within.clone()))
            }
        }
        self.phase = ScanPhase::Within;
        Step::Nothing
    }

    /// Passes over the entries at hand that give the same document as the last one did.
    pub fn pass_run(&mut self, surroundings: &Surroundings<'_>) -> u64 {
        // Of equal entries a scan that picks has passed over the others.
        let Some(scan) = self.scan.as_mut().filter(|_| self.picking.is_none()) else { return 0 };
        let passed = match &self.coverage {
            EntryCoverage::Fetched | EntryCoverage::Copied => 0,
            EntryCoverage::Made(_) => scan.pass_equal(self.field_bytes),
            EntryCoverage::Unneeded if self.ranges.as_ref().is_none_or(KeyRanges::admits_all) => {
                scan.pass_rest()
            }
            EntryCoverage::Unneeded => 0,
        };
        surroundings.count_keys(passed as u64);
        passed as u64
    }
}
