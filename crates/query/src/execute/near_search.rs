//! The search of `$near`: documents in the order of their distances, found by an index of geometries in rings
//! around the centre.
//!
//! # Terms
//! - *Ring*: the places between two distances. The first one is a disc; each next one begins where the last
//!   one ended.
//!
//! # Steps
//! 1. The index is scanned within the covering of a ring, and the documents are fetched.
//! 2. A document whose distance lies in the ring, and that passes the filter, goes into a sorter.
//! 3. When the scan has ended the documents leave the sorter in the order of their distances.
//! 4. The width of the first ring follows from estimates of the entries in cells around the centre: it has as
//!    many documents as are asked for, and some more. That of the next ring follows from what the ring had: a
//!    ring without an entry is followed by one four times as wide, a ring with few documents by one twice as
//!    wide, a ring with many by one half as wide.
//!
//! # Invariants
//! - A document has one distance, that of its nearest geometry, and so is part of one ring.
//! - The documents of one ring are held, within the memory of the query or in files. A limit ends the search
//!   before the next ring is looked at.
//! - A step examines one entry, or fetches one document, or gives one. After `WouldBlock` the same step is
//!   taken again.

use pando_catalog::{Collection, KeySet, QueryAccount, Sorter};
use pando_document::{Document, RawDocument, RawValue};

use super::entry_estimates::EntryEstimates;
use super::source::{Found, Source, Step, Surroundings};
use crate::QueryError;
use crate::geo_index::GeoCells;
use crate::geometry::covering::width_of_level;
use crate::geometry::{NearQuery, stored_geometries};
use crate::metadata::{Metadata, with_hidden};
use crate::path::{Leaves, Path};
use crate::plan::{
    Coverage, Estimates, IndexAccess, NearAccess, NearOutput, Picks, ScanBounds, ScanDirection, cell_bounds,
    ring_bounds,
};

/// Documents of a ring below which the next one is wider.
const RING_FEW: u64 = 300;
/// Entries of the cell around the centre by which the width of the first ring is chosen, at least.
const FIRST_ENTRIES: u64 = 16;
/// Documents that a first ring is to have at most: beyond it the next ones are as good.
const FIRST_MOST: u64 = RING_FEW;
/// Cells of this level are about as wide as a metre.
const LEVEL_OF_METRE: u8 = 23;

/// Documents of a ring above which the next one is narrower.
const RING_MANY: u64 = 600;

/// A search under way.
#[derive(Debug)]
pub(super) struct NearSearch {
    access: NearAccess,
    cells: GeoCells,
    path: Path,
    account: QueryAccount,
    /// Where the present ring begins and ends.
    inner: f64,
    outer: f64,
    width: f64,
    phase: Phase,
}

enum Phase {
    /// The next ring is to be scanned.
    Between,
    Scanning(Box<Scan>),
    Emptying(Box<Sorter>),
    Over,
}

impl std::fmt::Debug for Phase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Phase::Between => "Between",
            Phase::Scanning(_) => "Scanning",
            Phase::Emptying(_) => "Emptying",
            Phase::Over => "Over",
        })
    }
}

/// The scan of one ring.
struct Scan {
    entries: Box<Source>,
    /// The candidate of the last step.
    found: Found,
    /// The candidate whose document is still to be fetched.
    pending: bool,
    /// The keys that were looked at, where one may come again.
    seen: Option<KeySet>,
    sorter: Sorter,
    candidates: u64,
}

impl NearSearch {
    pub fn new(access: NearAccess, account: &QueryAccount) -> NearSearch {
        /// The first radius on the sphere, as an angle: about ten metres.
        const FIRST_ANGLE: f64 = 1.6e-6;
        /// The first radius in the plane, as a share of the farthest distance.
        const FIRST_SHARE: f64 = 1e-6;
        let width = match access.query.metric {
            crate::geometry::Metric::Plane => access.reach * FIRST_SHARE,
            _ => FIRST_ANGLE * access.query.radius(),
        };
        let inner = access.query.least;
        NearSearch {
            cells: access.cells,
            path: Path::new(&access.index.fields[access.at].path),
            account: account.clone(),
            inner,
            outer: inner,
            width,
            phase: if inner <= access.reach { Phase::Between } else { Phase::Over },
            access,
        }
    }

    pub fn step(&mut self, surroundings: &Surroundings<'_>, found: &mut Found) -> Result<Step, QueryError> {
        let mut check = || Ok(surroundings.operation.check_now()?);
        match &mut self.phase {
            Phase::Over => Ok(Step::End),
            Phase::Between => {
                if self.outer <= self.access.query.least {
                    self.width = self.first_width(surroundings).unwrap_or(self.width);
                }
                self.phase = self.begin_ring(surroundings.collection)?;
                Ok(Step::Nothing)
            }
            Phase::Emptying(sorter) => {
                let next = sorter.next::<QueryError>(&mut check)?;
                let Some((key, document)) = next else {
                    self.phase = if self.is_last() { Phase::Over } else { Phase::Between };
                    return Ok(Step::Nothing);
                };
                found.primary_key.clear();
                found.primary_key.extend_from_slice(&key[size_of::<f64>()..]);
                found.document.clear();
                found.document.extend_from_slice(document);
                Ok(Step::Document)
            }
            Phase::Scanning(_) => self.scan(surroundings),
        }
    }

    /// A first width that holds some entries, where the engine tells how many there are.
    fn first_width(&self, surroundings: &Surroundings<'_>) -> Option<f64> {
        let NearAccess { cells, query, index, at, fields, .. } = &self.access;
        let estimates = EntryEstimates::new(surroundings.collection, surroundings.transaction);
        let entries = |level: u8| {
            let mut fields = fields.clone();
            fields[*at] = cell_bounds(cells, query, level)?;
            estimates.entries(index, &fields)
        };
        if entries(0)? < FIRST_ENTRIES {
            // The centre lies far from most of them.
            return None;
        }
        let (mut coarse, mut fine) = (0, LEVEL_OF_METRE + 1);
        let mut held = FIRST_ENTRIES;
        while fine - coarse > 1 {
            let level = coarse + (fine - coarse) / 2;
            let found = entries(level)?;
            if found >= FIRST_ENTRIES {
                (coarse, held) = (level, found);
            } else {
                fine = level;
            }
        }
        let cell = width_of_level(coarse) * query.radius();
        let area = cell * cell / held as f64 * first_documents(self.access.wanted);
        // A ring around a disc is narrower for the same area.
        let radius = (area / std::f64::consts::PI).sqrt();
        let width = match self.inner > radius {
            true => area / (std::f64::consts::TAU * self.inner),
            false => radius,
        };
        Some(width.max(self.width))
    }

    fn is_last(&self) -> bool {
        self.outer >= self.access.reach
    }

    fn begin_ring(&mut self, collection: &Collection) -> Result<Phase, QueryError> {
        self.inner = self.outer;
        self.outer = (self.inner + self.width).min(self.access.reach);
        if self.outer <= self.inner {
            // The width is lost in the rounding of the distance.
            self.outer = self.access.reach;
        }
        let mut fields = self.access.fields.clone();
        fields[self.access.at] = ring_bounds(&self.cells, &self.access.query, self.inner, self.outer);
        let access = IndexAccess {
            index: self.access.index.clone(),
            bounds: ScanBounds::Fields(fields),
            direction: ScanDirection::Forward,
            partitions: None,
            picks: Picks::Every,
        };
        let seen = access.gives_duplicates().then(|| KeySet::new(&self.account));
        Ok(Phase::Scanning(Box::new(Scan {
            entries: Box::new(Source::new(
                collection,
                crate::plan::Access::Index(access),
                Coverage::Document,
                &self.account,
            )?),
            found: Found::default(),
            pending: false,
            seen,
            sorter: Sorter::new(&self.account),
            candidates: 0,
        })))
    }

    /// Takes a step of the scan.
    fn scan(&mut self, surroundings: &Surroundings<'_>) -> Result<Step, QueryError> {
        let mut check = || Ok::<(), QueryError>(surroundings.operation.check_now()?);
        let unfiltered = Surroundings { filter: None, ..*surroundings };
        let Phase::Scanning(scan) = &mut self.phase else { unreachable!("asked while it scans") };
        if !scan.pending {
            let step = scan.entries.step(&unfiltered, &mut scan.found)?;
            match step {
                Step::Nothing => return Ok(Step::Nothing),
                Step::End => {
                    self.end_ring(&mut check)?;
                    return Ok(Step::Nothing);
                }
                Step::Document | Step::Key => {}
            }
            scan.candidates += 1;
            if let Some(seen) = &mut scan.seen
                && !seen.insert(&scan.found.primary_key, &mut check)?
            {
                return Ok(Step::Nothing);
            }
            if step == Step::Document {
                let document = std::mem::take(&mut scan.found.document);
                self.take(surroundings, RawDocument::from_bytes(&document)?)?;
                return Ok(Step::Nothing);
            }
            scan.pending = true;
        }
        let Surroundings { collection, transaction, blocking, .. } = *surroundings;
        let document = collection.fetch(transaction, &scan.found.primary_key, blocking)?;
        scan.pending = false;
        match document {
            Some(document) => {
                surroundings.count_documents(1);
                self.take(surroundings, RawDocument::from_bytes(&document)?)?;
            }
            None => surroundings.forget_key(),
        }
        Ok(Step::Nothing)
    }

    /// Takes a candidate into the sorter if it is part of the ring and passes the filter.
    fn take(&mut self, surroundings: &Surroundings<'_>, document: &RawDocument) -> Result<(), QueryError> {
        let Some((distance, place)) = nearest(&self.path, &self.access.query, document)? else {
            return Ok(());
        };
        let query = &self.access.query;
        let is_inside = match self.is_last() {
            true => distance <= query.greatest,
            false => distance < self.outer,
        };
        if distance < self.inner || !is_inside {
            return Ok(());
        }
        if let Some(filter) = surroundings.filter
            && !filter.matches(document)?
        {
            return Ok(());
        }
        let mut key = Vec::with_capacity(48);
        // Distances are not negative, so that their bits are in their order.
        key.extend_from_slice(&distance.to_bits().to_be_bytes());
        let changed = self.access.output.apply(document, distance, place)?;
        let changed = changed.as_deref().unwrap_or(document);
        let known = [(Metadata::GeoDistance, RawValue::Double(distance)), (Metadata::GeoPoint, place)];
        let metadata = self.access.metadata;
        let with_metadata = match metadata.has_any(&[Metadata::GeoDistance, Metadata::GeoPoint]) {
            true => Some(with_hidden(changed, known.into_iter().filter(|(kind, _)| metadata.has(*kind)))?),
            false => None,
        };
        let bytes = with_metadata.as_deref().unwrap_or(changed).as_bytes();
        let mut check = || Ok::<(), QueryError>(surroundings.operation.check_now()?);
        let Phase::Scanning(scan) = &mut self.phase else { unreachable!("asked while it scans") };
        key.extend_from_slice(&scan.found.primary_key);
        scan.sorter.push(&key, bytes, &mut check)
    }

    fn end_ring(&mut self, check: &mut dyn FnMut() -> Result<(), QueryError>) -> Result<(), QueryError> {
        let Phase::Scanning(scan) = std::mem::replace(&mut self.phase, Phase::Over) else {
            unreachable!("asked while it scans")
        };
        let mut sorter = scan.sorter;
        sorter.finish(check)?;
        let held = sorter.len();
        if scan.candidates == 0 {
            self.width *= 4.0;
        } else if held < RING_FEW {
            self.width *= 2.0;
        } else if held > RING_MANY {
            self.width /= 2.0;
        }
        self.phase = Phase::Emptying(Box::new(sorter));
        Ok(())
    }
}

/// The documents that the first ring is to have. As places are spread by chance, a ring for just as many as
/// are asked for would often have fewer, and the next ring costs as much again.
fn first_documents(wanted: Option<u64>) -> f64 {
    let wanted = wanted.map_or(FIRST_ENTRIES, |wanted| wanted.min(FIRST_MOST)) as f64;
    wanted + 2.0 * wanted.sqrt() + 3.0
}

/// The distance of the nearest geometry at a path, and that geometry.
pub fn nearest<'d>(
    path: &Path,
    query: &NearQuery,
    document: &'d RawDocument,
) -> Result<Option<(f64, RawValue<'d>)>, QueryError> {
    let mut nearest: Option<(f64, RawValue<'d>)> = None;
    path.any(document, Leaves::Whole, &mut |leaf| {
        let Some(value) = leaf.value else { return Ok(false) };
        let given = stored_geometries(value, &mut |place, geometry| {
            let Some(distance) = query.distance(&geometry) else { return };
            if nearest.is_none_or(|(least, _)| distance < least) {
                nearest = Some((distance, place));
            }
        });
        given.map_err(|fault| QueryError::bad_value(fault.0))?;
        Ok(false)
    })?;
    Ok(nearest)
}

impl NearOutput {
    /// The document with what is asked for beside it; `None` where that is the document.
    fn apply(
        &self,
        document: &RawDocument,
        distance: f64,
        place: RawValue<'_>,
    ) -> Result<Option<pando_document::RawDocumentBuf>, QueryError> {
        match self {
            NearOutput::Document => Ok(None),
            NearOutput::Fields { distance_field, place_field, multiplier } => {
                let mut changed = Document::from_raw(document)?;
                set(&mut changed, distance_field, pando_document::Value::Double(distance * multiplier));
                if let Some(field) = place_field {
                    set(&mut changed, field, place.to_owned());
                }
                Ok(Some(changed.to_raw()))
            }
        }
    }
}

/// Sets a value at a dotted path; whatever stands in its way becomes a document.
fn set(document: &mut Document, path: &str, value: pando_document::Value) {
    use pando_document::Value;
    let Some((name, rest)) = path.split_once('.') else {
        document.insert(path, value);
        return;
    };
    if !matches!(document.get(name), Some(Value::Document(_))) {
        document.insert(name, Value::Document(Document::new()));
    }
    if let Some(Value::Document(inner)) = document.get_mut(name) {
        set(inner, rest, value);
    }
}
