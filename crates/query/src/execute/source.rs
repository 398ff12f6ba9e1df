//! Sources of candidates: the access of a plan, carried out.

use std::ops::ControlFlow;

use pando_catalog::{
    BlockingMode, Bytes, Caller, Collection, Direction, DocumentScan, IdKey, IndexDescription, KeyRange,
    Operation, PRIMARY_KEY_BYTES_MAX, PrimaryKey, QueryAccount, Transaction,
};
use pando_document::RawDocument;

use super::Counters;
use super::Row;
use super::entries::Entries;
use super::intersected_scans::IntersectedScans;
use super::key_ranges::{self, KeyRanges, storage_direction};
use super::merged_scans::MergedScans;
use super::near_search::NearSearch;
use super::text_source::TextSource;
use crate::QueryError;
use crate::filter::Filter;
use crate::plan::{Access, Coverage, IndexAccess, ScanBounds, ScanDirection};

/// The result of a step of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A document stands in the scan or, where it was made of an entry, in the buffers.
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
    /// The field bytes of an entry, where a merge compares them.
    pub fields: Option<Vec<u8>>,
}

/// An access under way.
#[derive(Debug)]
pub(super) enum Source {
    /// Documents, looked up one by one.
    Points(Points),
    /// Documents in the order of their keys.
    Documents(Documents),
    /// Entries of an index.
    Entries(Box<Entries>),
    /// One scan after the other; the last comes first.
    Several(Vec<Source>),
    /// Scans of indexes in one order.
    Merged(Box<MergedScans>),
    /// Two scans, of which the common documents are wanted.
    Intersected(Box<IntersectedScans>),
    /// A search for words.
    Text(Box<TextSource>),
    /// Documents in the order of their distances.
    Near(Box<NearSearch>),
}

/// Documents to look up.
#[derive(Debug)]
pub(super) enum Points {
    /// One by its `_id`, or none (any more).
    Id(Option<IdKey>),
    /// Those of a list of primary keys.
    Listed(KeyRanges),
}

/// A scan of documents within ranges of primary keys.
#[derive(Debug)]
pub(super) struct Documents {
    /// `None`: the scan is of the whole collection, and under way or done.
    ranges: Option<KeyRanges>,
    scan: Option<DocumentScan>,
    phase: ScanPhase,
    direction: Direction,
    /// Whether anything of a document is looked at.
    contents: Contents,
    /// Whether fields of the primary key are bounded that the ranges do not settle.
    checking: Checking,
    keys: KeyCount,
}

/// Whether the keys of a scan count as examined: those of an index do, the primary one included, and those of
/// a whole collection do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyCount {
    Counted,
    Uncounted,
}

impl KeyCount {
    fn of(access: &Access) -> KeyCount {
        if matches!(access, Access::Index(_)) { KeyCount::Counted } else { KeyCount::Uncounted }
    }
}

/// Whether the keys of a scan are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Checking {
    Needed,
    Unneeded,
}

/// Whether a scan stands within a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScanPhase {
    Within,
    Between,
}

/// Whether the documents of a scan are looked at, or only that they are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Contents {
    Needed,
    Unneeded,
}

impl Source {
    /// The source of an access.
    ///
    /// # Errors
    /// The index is gone since the plan was made.
    pub fn new(
        collection: &Collection,
        access: Access,
        coverage: Coverage,
        account: &QueryAccount,
    ) -> Result<Source, QueryError> {
        Ok(match access {
            Access::Text(access) => Source::Text(Box::new(TextSource::new(collection, *access, account)?)),
            Access::Nothing => Source::Points(Points::Id(None)),
            Access::Id(id) => Source::Points(Points::Id(Some(collection.id_key(id.raw())))),
            Access::Collection(direction) => {
                let direction = storage_direction(direction);
                let scan = collection.scan_documents(KeyRange::all(), direction);
                Source::Documents(Documents::new(None, Some(scan), direction, coverage))
            }
            Access::Near(access) => Source::Near(Box::new(NearSearch::new(*access, account))),
            Access::Index(access) => Source::of_index(collection, access, coverage)?,
            Access::Merge(access) => {
                Source::Merged(Box::new(MergedScans::new(collection, *access, coverage)?))
            }
            Access::Union(accesses) => {
                let sources = accesses.into_iter().rev();
                let sources = sources.map(|access| Source::of_index(collection, access, coverage));
                Source::Several(sources.collect::<Result<_, _>>()?)
            }
            Access::Intersection(accesses) => {
                Source::Intersected(Box::new(IntersectedScans::new(collection, *accesses, coverage)?))
            }
        })
    }

    /// The documents whose primary keys lie in a range, which is a part of what an access reads.
    pub fn of_range(collection: &Collection, range: KeyRange, access: &Access, coverage: Coverage) -> Source {
        let scan = collection.scan_documents(range, Direction::Forward);
        let documents = Documents::new(None, Some(scan), Direction::Forward, coverage);
        Source::Documents(Documents { keys: KeyCount::of(access), ..documents })
    }

    pub fn of_index(
        collection: &Collection,
        access: IndexAccess,
        coverage: Coverage,
    ) -> Result<Source, QueryError> {
        if !access.index.is_primary() {
            return Ok(Source::Entries(Box::new(Entries::new(collection, access, coverage)?)));
        }
        collection.activity().add_primary_use();
        let direction = storage_direction(access.direction);
        let whole_bytes = key_ranges::whole_bytes(&access.index);
        let (ranges, one_range) = ranges_of(&access.index, access.bounds, access.direction);
        Ok(match ranges {
            Some(ranges)
                if whole_bytes.is_none() && ranges.is_points_within(PrimaryKey::CUT_PREFIX_BYTES) =>
            {
                Source::Points(Points::Listed(ranges))
            }
            ranges => {
                let scan = one_range.map(|range| collection.scan_documents(range, direction));
                Source::Documents(Documents::new(ranges, scan, direction, coverage))
            }
        })
    }

    /// Looks at the next document or entry. A document that does not pass `filter` is [`Step::Nothing`].
    pub fn step(&mut self, surroundings: &Surroundings<'_>, found: &mut Found) -> Result<Step, QueryError> {
        match self {
            Source::Points(points) => points.step(surroundings, found),
            Source::Documents(documents) => documents.step(surroundings),
            Source::Entries(entries) => entries.step(surroundings, found),
            Source::Text(text) => text.step(surroundings, found),
            Source::Near(near) => near.step(surroundings, found),
            Source::Merged(merged) => merged.step(surroundings, found),
            Source::Intersected(scans) => scans.step(surroundings, found),
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

impl Source {
    /// The primary key and document of the last step, where they stand in a scan.
    pub fn scanned(&self) -> Option<(&[u8], &[u8])> {
        match self {
            Source::Documents(documents) => documents.scan.as_ref()?.current(),
            Source::Several(sources) => sources.last()?.scanned(),
            Source::Text(text) => text.scanned(),
            Source::Points(_)
            | Source::Entries(_)
            | Source::Merged(_)
            | Source::Intersected(_)
            | Source::Near(_) => None,
        }
    }

    /// The range of primary keys that is left of a scan of the whole collection, where no document is at
    /// hand.
    pub fn rest(&self) -> Option<&KeyRange> {
        match self {
            Source::Documents(Documents { ranges: None, scan: Some(scan), .. }) => scan.rest(),
            _ => None,
        }
    }

    /// Whether documents are fetched for the entries of an index.
    pub fn fetches_entries(&self) -> bool {
        matches!(self, Source::Entries(entries) if entries.fetches())
    }

    /// Whether documents are fetched for keys, whose order tells nothing else about them.
    pub fn gives_keys(&self) -> bool {
        match self {
            Source::Points(Points::Listed(_))
            | Source::Several(_)
            | Source::Merged(_)
            | Source::Intersected(_) => true,
            Source::Entries(entries) => entries.gives_keys(),
            // The score of the last step is asked for, and rings are searched as long as documents are near.
            Source::Text(_) | Source::Near(_) => false,
            Source::Points(Points::Id(_)) | Source::Documents(_) => false,
        }
    }

    /// The document that was fetched for the last step, with the score of a search where that is wanted.
    pub fn scored(&self, document: Bytes) -> Result<Bytes, QueryError> {
        match self {
            Source::Text(text) => text.scored(document),
            _ => Ok(document),
        }
    }

    /// Gives the documents at hand that pass `filter`, where they stand in one scan.
    pub fn sweep(&mut self, sweep: Sweep<'_>, take: &mut TakeRow<'_>) -> Result<ControlFlow<()>, QueryError> {
        match self {
            Source::Documents(documents) => documents.sweep(sweep, take),
            Source::Points(_)
            | Source::Entries(_)
            | Source::Several(_)
            | Source::Merged(_)
            | Source::Intersected(_)
            | Source::Text(_)
            | Source::Near(_) => Ok(ControlFlow::Continue(())),
        }
    }

    /// Passes over what stands at hand and gives the same document as the last step; how many.
    pub fn pass_run(&mut self, surroundings: &Surroundings<'_>) -> u64 {
        match self {
            Source::Documents(documents) => documents.pass_run(surroundings),
            Source::Entries(entries) => entries.pass_run(surroundings),
            Source::Points(_)
            | Source::Several(_)
            | Source::Merged(_)
            | Source::Intersected(_)
            | Source::Text(_)
            | Source::Near(_) => 0,
        }
    }
}

/// Takes rows until it breaks off.
pub(super) type TakeRow<'t> = dyn FnMut(Row<'_>) -> Result<ControlFlow<()>, QueryError> + 't;

/// The surroundings of a sweep.
pub(super) struct Sweep<'s> {
    pub filter: Option<&'s Filter>,
    pub operation: &'s Operation,
    pub counters: &'s mut Counters,
}

/// The surroundings of a step.
#[derive(Clone, Copy)]
pub(super) struct Surroundings<'s> {
    pub operation: &'s Operation,
    pub collection: &'s Collection,
    pub transaction: &'s dyn Transaction,
    pub blocking: BlockingMode,
    pub filter: Option<&'s Filter>,
    pub counters: &'s std::cell::Cell<Counters>,
}

impl<'s> Surroundings<'s> {
    pub fn new(
        caller: Caller<'s>,
        transaction: &'s dyn Transaction,
        collection: &'s Collection,
        filter: Option<&'s Filter>,
        counters: &'s std::cell::Cell<Counters>,
    ) -> Surroundings<'s> {
        let Caller { operation, blocking } = caller;
        Surroundings { operation, collection, transaction, blocking, filter, counters }
    }

    pub fn count_keys(&self, keys: u64) {
        let mut counters = self.counters.get();
        counters.keys_examined += keys;
        self.counters.set(counters);
    }

    /// A lookup that finds nothing has examined nothing.
    pub fn forget_key(&self) {
        let mut counters = self.counters.get();
        counters.keys_examined -= 1;
        self.counters.set(counters);
    }

    pub fn count_documents(&self, documents: u64) {
        let mut counters = self.counters.get();
        counters.documents_examined += documents;
        self.counters.set(counters);
    }
}

impl Points {
    fn step(&mut self, surroundings: &Surroundings<'_>, found: &mut Found) -> Result<Step, QueryError> {
        let key = match self {
            Points::Id(None) => return Ok(Step::End),
            Points::Id(Some(id)) => {
                let Surroundings { collection, transaction, blocking, .. } = *surroundings;
                let key = collection.locate(transaction, id, blocking)?;
                *self = Points::Id(None);
                key
            }
            Points::Listed(ranges) => ranges.next_point(),
        };
        let Some(key) = key else { return Ok(Step::End) };
        found.primary_key = key;
        surroundings.count_keys(1);
        Ok(Step::Key)
    }
}

impl Documents {
    fn new(
        ranges: Option<KeyRanges>,
        scan: Option<DocumentScan>,
        direction: Direction,
        coverage: Coverage,
    ) -> Documents {
        let contents = match coverage {
            Coverage::Document | Coverage::Entry(_) => Contents::Needed,
            Coverage::Nothing | Coverage::Counter => Contents::Unneeded,
        };
        let phase = if scan.is_some() { ScanPhase::Within } else { ScanPhase::Between };
        let checking = match ranges.as_ref().is_none_or(KeyRanges::admits_all) {
            true => Checking::Unneeded,
            false => Checking::Needed,
        };
        let keys = if ranges.is_some() { KeyCount::Counted } else { KeyCount::Uncounted };
        Documents { ranges, scan, phase, direction, contents, checking, keys }
    }

    fn step(&mut self, surroundings: &Surroundings<'_>) -> Result<Step, QueryError> {
        let Some(scan) = self.scan.as_mut().filter(|_| self.phase == ScanPhase::Within) else {
            let Some(range) = self.ranges.as_mut().and_then(KeyRanges::next_range) else {
                return Ok(Step::End);
            };
            match &mut self.scan {
                Some(scan) => scan.restart(range),
                none => *none = Some(surroundings.collection.scan_documents(range, self.direction)),
            }
            self.phase = ScanPhase::Within;
            return Ok(Step::Nothing);
        };
        let Some((key, document)) = scan.next(surroundings.transaction, surroundings.blocking)? else {
            self.phase = ScanPhase::Between;
            return Ok(Step::Nothing);
        };
        if self.keys == KeyCount::Counted {
            surroundings.count_keys(1);
        }
        if let Some(ranges) = self.ranges.as_ref().filter(|_| self.checking == Checking::Needed)
            && !admits(ranges, key)
        {
            return Ok(Step::Nothing);
        }
        surroundings.count_documents(1);
        match surroundings.filter {
            Some(filter) if !filter.matches(RawDocument::from_bytes(document)?)? => Ok(Step::Nothing),
            _ => Ok(Step::Document),
        }
    }

    fn sweep(&mut self, sweep: Sweep<'_>, take: &mut TakeRow<'_>) -> Result<ControlFlow<()>, QueryError> {
        let Some(scan) = self.scan.as_mut().filter(|_| self.phase == ScanPhase::Within) else {
            return Ok(ControlFlow::Continue(()));
        };
        let is_counted = self.keys == KeyCount::Counted;
        let checked = self.ranges.as_ref().filter(|_| self.checking == Checking::Needed);
        while let Some((primary_key, document)) = scan.next_at_hand() {
            sweep.operation.check()?;
            sweep.counters.keys_examined += u64::from(is_counted);
            if checked.is_some_and(|ranges| !admits(ranges, primary_key)) {
                continue;
            }
            sweep.counters.documents_examined += 1;
            let document = RawDocument::from_bytes(document)?;
            if let Some(filter) = sweep.filter
                && !filter.matches(document)?
            {
                continue;
            }
            if take(Row { primary_key, document })?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Passes over the documents at hand, where none is looked at.
    fn pass_run(&mut self, surroundings: &Surroundings<'_>) -> u64 {
        let passes = self.contents == Contents::Unneeded && self.checking == Checking::Unneeded;
        let Some(scan) = self.scan.as_mut().filter(|_| passes) else { return 0 };
        let passed = scan.pass_rest() as u64;
        surroundings.count_documents(passed);
        if self.keys == KeyCount::Counted {
            surroundings.count_keys(passed);
        }
        passed
    }
}

/// The range of primary keys that an access reads in their order, where it is one and settles all bounds.
pub fn primary_range(access: &Access) -> Option<KeyRange> {
    let access = match access {
        Access::Collection(ScanDirection::Forward) => return Some(KeyRange::all()),
        Access::Index(access) if access.index.is_primary() => access,
        _ => return None,
    };
    if access.direction != ScanDirection::Forward {
        return None;
    }
    match ranges_of(&access.index, access.bounds.clone(), access.direction) {
        (None, range) => range,
        (Some(mut ranges), _) => {
            let is_plain = ranges.admits_all() && !ranges.is_points_within(usize::MAX);
            let range = ranges.next_range().filter(|_| is_plain)?;
            ranges.next_range().is_none().then_some(range)
        }
    }
}

/// The ranges of a scan one after the other, or the only one.
pub(super) fn ranges_of(
    index: &IndexDescription,
    bounds: ScanBounds,
    direction: ScanDirection,
) -> (Option<KeyRanges>, Option<KeyRange>) {
    match bounds {
        ScanBounds::Fields(fields) => {
            (Some(KeyRanges::new(index, fields, direction, key_ranges::whole_bytes(index))), None)
        }
        ScanBounds::Keys { min, max } => (None, Some(key_ranges::between(min, max))),
    }
}

/// Whether the fields of a primary key lie within bounds. Those of a cut one are lost: its document is tested
/// instead.
fn admits(ranges: &KeyRanges, primary_key: &[u8]) -> bool {
    primary_key.len() == PRIMARY_KEY_BYTES_MAX || ranges.admits(primary_key)
}
