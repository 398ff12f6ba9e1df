//! Sources of candidates: the access of a plan, carried out.

use std::sync::Arc;

use pando_catalog::{
    BlockingMode, Collection, Direction, DocumentScan, ErrorKind, Index, IndexScan, KeyRange, PrimaryKey,
    StorageError, Transaction, Truncation, index_entry,
};

use super::Counters;
use super::entry_document::EntryDocument;
use super::key_ranges::KeyRanges;
use crate::QueryError;
use crate::filter::Filter;
use crate::plan::{Access, Coverage, IndexAccess, ScanBounds, ScanDirection};

/// The result of a step of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A document stands in the buffers.
    Document,
    /// A primary key stands in its buffer; its document is to be fetched.
    Key,
    /// The document or entry is not wanted.
    Nothing,
    /// There is no more.
    End,
}

/// The buffers that a step fills.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub primary_key: Vec<u8>,
    pub document: Vec<u8>,
}

/// An access under way.
#[derive(Debug)]
pub(super) enum Source {
    /// One primary key, or none (any more).
    Point(Option<Vec<u8>>),
    /// Documents in the order of their keys.
    Documents(Documents),
    /// Entries of an index.
    Entries(Entries),
    /// One scan after the other; the last comes first.
    Several(Vec<Source>),
}

/// A scan of documents within ranges of primary keys.
#[derive(Debug)]
pub(super) struct Documents {
    /// `None`: the scan is of the whole collection, and under way or done.
    ranges: Option<KeyRanges>,
    scan: Option<DocumentScan>,
    direction: Direction,
}

/// A scan of index entries.
#[derive(Debug)]
pub(super) struct Entries {
    index: Arc<Index>,
    /// `None`: one range of keys, under way or done.
    ranges: Option<KeyRanges>,
    scan: Option<IndexScan>,
    direction: Direction,
    coverage: EntryCoverage,
    /// Ranges that ended without an entry, one after the other.
    empty_ranges: u32,
    scanning: Scanning,
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

/// Where the documents of entries come from.
#[derive(Debug)]
enum EntryCoverage {
    /// They are fetched.
    Fetched,
    /// They are made of the entries.
    Made(EntryDocument),
    /// There is no need of them.
    Unneeded,
}

impl Source {
    /// The source of an access.
    ///
    /// # Errors
    /// The index is gone since the plan was made.
    pub fn new(collection: &Collection, access: Access, coverage: Coverage) -> Result<Source, QueryError> {
        Ok(match access {
            Access::Nothing => Source::Point(None),
            Access::PrimaryKey(id) => Source::Point(Some(collection.primary_key_of(id.raw()).into_bytes())),
            Access::Collection(direction) => {
                let direction = storage_direction(direction);
                let scan = Some(collection.scan_documents(KeyRange::all(), direction));
                Source::Documents(Documents { ranges: None, scan, direction })
            }
            Access::Index(access) => Source::of_index(collection, access, coverage)?,
            Access::Union(accesses) => {
                let sources = accesses.into_iter().rev();
                let sources = sources.map(|access| Source::of_index(collection, access, Coverage::Document));
                Source::Several(sources.collect::<Result<_, _>>()?)
            }
        })
    }

    fn of_index(
        collection: &Collection,
        access: IndexAccess,
        coverage: Coverage,
    ) -> Result<Source, QueryError> {
        let direction = storage_direction(access.direction);
        let is_primary = access.is_primary();
        let whole_bytes = match (access.index.truncated, is_primary) {
            (Truncation::Whole, _) => None,
            (Truncation::Truncated, true) => Some(PrimaryKey::CUT_PREFIX_BYTES),
            (Truncation::Truncated, false) => Some(index_entry::CUT_PREFIX_BYTES),
        };
        let (ranges, one_range) = match access.bounds {
            ScanBounds::Fields(fields) => {
                (Some(KeyRanges::new(&access.index, fields, access.direction, whole_bytes)), None)
            }
            ScanBounds::Keys { min, max } => (None, Some(between(min, max))),
        };
        if is_primary {
            let scan = one_range.map(|range| collection.scan_documents(range, direction));
            return Ok(Source::Documents(Documents { ranges, scan, direction }));
        }
        let index = collection.index(&access.index.name).ok_or_else(|| {
            let message = format!("index {} was dropped while it was to be read", access.index.name);
            QueryError::from(StorageError::new(ErrorKind::NotFound, message))
        })?;
        let scan = one_range.map(|range| collection.scan_index(index, range, direction));
        let coverage = match coverage {
            Coverage::Document => EntryCoverage::Fetched,
            Coverage::Entry => EntryCoverage::Made(EntryDocument::new(&access.index)),
            Coverage::Nothing => EntryCoverage::Unneeded,
        };
        Ok(Source::Entries(Entries {
            index: Arc::clone(index),
            ranges,
            scan,
            direction,
            coverage,
            empty_ranges: 0,
            scanning: Scanning::Range,
        }))
    }

    /// Looks at the next document or entry. A document that does not pass `filter` is [`Step::Nothing`].
    pub fn step(&mut self, surroundings: &Surroundings<'_>, found: &mut Found) -> Result<Step, QueryError> {
        match self {
            Source::Point(key) => match key.take() {
                Some(key) => {
                    found.primary_key = key;
                    surroundings.count_key();
                    Ok(Step::Key)
                }
                None => Ok(Step::End),
            },
            Source::Documents(documents) => documents.step(surroundings, found),
            Source::Entries(entries) => entries.step(surroundings, found),
            Source::Several(sources) => {
                let Some(current) = sources.last_mut() else { return Ok(Step::End) };
                match current.step(surroundings, found)? {
                    Step::End => {
                        sources.pop();
                        Ok(Step::Nothing)
                    }
                    step => Ok(step),
                }
            }
        }
    }
}

/// The surroundings of a step.
pub(super) struct Surroundings<'s> {
    pub collection: &'s Collection,
    pub transaction: &'s dyn Transaction,
    pub blocking: BlockingMode,
    pub filter: Option<&'s Filter>,
    pub counters: &'s std::cell::Cell<Counters>,
}

impl Surroundings<'_> {
    fn count_key(&self) {
        let mut counters = self.counters.get();
        counters.keys_examined += 1;
        self.counters.set(counters);
    }

    /// A lookup that finds nothing has examined nothing.
    pub fn forget_key(&self) {
        let mut counters = self.counters.get();
        counters.keys_examined -= 1;
        self.counters.set(counters);
    }

    pub fn count_document(&self) {
        let mut counters = self.counters.get();
        counters.documents_examined += 1;
        self.counters.set(counters);
    }
}

impl Documents {
    fn step(&mut self, surroundings: &Surroundings<'_>, found: &mut Found) -> Result<Step, QueryError> {
        let Some(scan) = &mut self.scan else {
            let Some(range) = self.ranges.as_mut().and_then(KeyRanges::next_range) else {
                return Ok(Step::End);
            };
            self.scan = Some(surroundings.collection.scan_documents(range, self.direction));
            return Ok(Step::Nothing);
        };
        let Some((key, document)) = scan.next(surroundings.transaction, surroundings.blocking)? else {
            self.scan = None;
            return Ok(Step::Nothing);
        };
        surroundings.count_document();
        if self.ranges.is_some() {
            surroundings.count_key();
        }
        let document = pando_document::RawDocument::from_bytes(document)?;
        if let Some(filter) = surroundings.filter
            && !filter.matches(document)?
        {
            return Ok(Step::Nothing);
        }
        found.primary_key.clear();
        found.primary_key.extend_from_slice(key);
        found.document.clear();
        found.document.extend_from_slice(document.as_bytes());
        Ok(Step::Document)
    }
}

impl Entries {
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

    fn step(&mut self, surroundings: &Surroundings<'_>, found: &mut Found) -> Result<Step, QueryError> {
        let Some(scan) = &mut self.scan else {
            let Some(range) = self.next_range() else { return Ok(Step::End) };
            self.scan = Some(surroundings.collection.scan_index(&self.index, range, self.direction));
            return Ok(Step::Nothing);
        };
        let Some(entry) = scan.next(surroundings.transaction, surroundings.blocking)? else {
            self.scan = None;
            self.empty_ranges += 1;
            if let (Scanning::NextEntry, Some(ranges)) = (self.scanning, &mut self.ranges) {
                ranges.end();
            }
            if matches!(self.coverage, EntryCoverage::Unneeded) {
                // A count looks one entry beyond its range, and MongoDB shows that.
                surroundings.count_key();
            }
            return Ok(Step::Nothing);
        };
        self.empty_ranges = 0;
        if let (Scanning::NextEntry, Some(ranges)) = (self.scanning, &mut self.ranges) {
            ranges.skip_to(entry.fields);
            surroundings.count_key();
            self.scan = None;
            return Ok(Step::Nothing);
        }
        surroundings.count_key();
        // The bytes of a cut key are lost: its document is tested instead.
        let is_whole = entry.truncated == Truncation::Whole;
        if is_whole && self.ranges.as_ref().is_some_and(|ranges| !ranges.admits(entry.fields)) {
            return Ok(Step::Nothing);
        }
        found.primary_key.clear();
        found.primary_key.extend_from_slice(entry.primary_key);
        match &self.coverage {
            EntryCoverage::Made(maker) if is_whole => {
                if !maker.write(entry.fields, entry.type_bits, &mut found.document)? {
                    return Ok(Step::Key);
                }
            }
            EntryCoverage::Made(_) | EntryCoverage::Fetched => return Ok(Step::Key),
            EntryCoverage::Unneeded => {
                found.document.clear();
                found.document.extend_from_slice(pando_document::RawDocument::empty().as_bytes());
            }
        }
        match surroundings.filter {
            Some(filter) if !filter.matches(pando_document::RawDocument::from_bytes(&found.document)?)? => {
                Ok(Step::Nothing)
            }
            _ => Ok(Step::Document),
        }
    }
}

fn storage_direction(direction: ScanDirection) -> Direction {
    match direction {
        ScanDirection::Forward => Direction::Forward,
        ScanDirection::Backward => Direction::Backward,
    }
}

fn between(min: Option<Vec<u8>>, max: Option<Vec<u8>>) -> KeyRange {
    use std::ops::Bound;
    KeyRange {
        lower: min.map_or(Bound::Unbounded, Bound::Included),
        upper: max.map_or(Bound::Unbounded, Bound::Excluded),
    }
}
