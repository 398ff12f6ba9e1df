//! The search of `$near`: documents in the order of their distances, found by an index of geometries in rings
//! around the centre.
//!
//! # Terms
//! - *Ring*: the places between two distances. The first one is a disc; each next one begins where the last
//!   one ended.
//!
//! # Steps
//! 1. The index is scanned within the covering of a ring. Its entries are sorted by the least distances that
//!    their cells leave possible ([`near_ring`](super::near_ring)).
//! 2. When the scan has ended documents are fetched in that order, and given in the order of their distances.
//! 3. The width of the first ring follows from estimates of the entries in cells around the centre: it has as
//!    many documents as are asked for, and some more. That of the next ring follows from what the ring had: a
//!    ring without an entry is followed by one four times as wide, a ring with few documents by one twice as
//!    wide, a ring with many by one half as wide.
//!
//! # Invariants
//! - A document has one distance, that of its nearest geometry, and so is part of one ring.
//! - A limit ends the search before further documents are fetched, or the next ring is looked at.
//! - A step examines one entry, or fetches one document, or gives one. After `WouldBlock` the same step is
//!   taken again.

use pando_catalog::{Collection, KeySet, QueryAccount};
use pando_document::{Document, RawDocument, RawValue};
use pando_keyorder::Direction;

use super::entry_estimates::EntryEstimates;
use super::near_ring::{Candidates, Fetched, NearRing, RingStep};
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
    Giving(Box<NearRing>),
    Over,
}

impl std::fmt::Debug for Phase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Phase::Between => "Between",
            Phase::Scanning(_) => "Scanning",
            Phase::Giving(_) => "Giving",
            Phase::Over => "Over",
        })
    }
}

/// The scan of one ring.
struct Scan {
    entries: Box<Source>,
    /// The candidate of the last step.
    found: Found,
    candidates: Candidates,
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
        match &mut self.phase {
            Phase::Over => Ok(Step::End),
            Phase::Between => {
                if self.outer <= self.access.query.least {
                    self.width = self.first_width(surroundings).unwrap_or(self.width);
                }
                self.phase = self.begin_ring(surroundings.collection)?;
                Ok(Step::Nothing)
            }
            Phase::Giving(_) => self.give(surroundings, found),
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
        let candidates = Candidates::new(&self.account, seen);
        Ok(Phase::Scanning(Box::new(Scan {
            entries: Box::new(Source::new(
                collection,
                crate::plan::Access::Index(access),
                Coverage::Document,
                &self.account,
            )?),
            found: Found { fields: Some(Vec::new()), ..Found::default() },
            candidates,
        })))
    }

    /// Takes a step of the scan.
    fn scan(&mut self, surroundings: &Surroundings<'_>) -> Result<Step, QueryError> {
        let mut check = || Ok::<(), QueryError>(surroundings.operation.check_now()?);
        let unfiltered = Surroundings { filter: None, ..*surroundings };
        let Phase::Scanning(scan) = &mut self.phase else { unreachable!("asked while it scans") };
        let step = scan.entries.step(&unfiltered, &mut scan.found)?;
        let document: &[u8] = match step {
            Step::Nothing => return Ok(Step::Nothing),
            Step::End => {
                let Phase::Scanning(scan) = std::mem::replace(&mut self.phase, Phase::Over) else {
                    unreachable!("asked while it scans")
                };
                self.phase =
                    Phase::Giving(Box::new(NearRing::new(scan.candidates, &self.account, &mut check)?));
                return Ok(Step::Nothing);
            }
            Step::Document => &scan.found.document,
            Step::Key => &[],
        };
        let fields = scan.found.fields.as_deref().unwrap_or_default();
        let (least, greatest) = self.access.distances(fields).unwrap_or((0.0, f64::INFINITY));
        let is_behind = least >= self.outer && self.outer < self.access.reach;
        if greatest >= self.inner && !is_behind {
            scan.candidates.push(least, &scan.found.primary_key, document, &mut check)?;
        } else {
            scan.candidates.pass();
        }
        Ok(Step::Nothing)
    }

    /// Takes a step of the ring that was scanned.
    fn give(&mut self, surroundings: &Surroundings<'_>, found: &mut Found) -> Result<Step, QueryError> {
        let Phase::Giving(ring) = &mut self.phase else { unreachable!("asked while it gives") };
        let mut check = || Ok::<(), QueryError>(surroundings.operation.check_now()?);
        match ring.step(found, &mut check)? {
            RingStep::Given => Ok(Step::Document),
            RingStep::Fetch => {
                let Surroundings { collection, transaction, blocking, .. } = *surroundings;
                let key = ring.candidate_key();
                let document = collection.fetch(transaction, key, blocking)?;
                match document {
                    Some(document) => {
                        surroundings.count_documents(1);
                        self.judge(surroundings, RawDocument::from_bytes(&document)?)?;
                    }
                    None => {
                        surroundings.forget_key();
                        ring.dismiss();
                    }
                }
                Ok(Step::Nothing)
            }
            RingStep::Judge => {
                let document = ring.candidate_document();
                self.judge(surroundings, RawDocument::from_bytes(&document)?)?;
                Ok(Step::Nothing)
            }
            RingStep::End => {
                self.end_ring();
                Ok(Step::Nothing)
            }
        }
    }

    /// Keeps the document of the candidate at hand if it is part of the ring and passes the filter.
    fn judge(&mut self, surroundings: &Surroundings<'_>, document: &RawDocument) -> Result<(), QueryError> {
        let mut check = || Ok::<(), QueryError>(surroundings.operation.check_now()?);
        let fetched = self.fetched(surroundings, document)?;
        let Phase::Giving(ring) = &mut self.phase else { unreachable!("asked while it gives") };
        match fetched {
            Some(fetched) => ring.keep(fetched, &mut check),
            None => {
                ring.dismiss();
                Ok(())
            }
        }
    }

    /// The document as it is given, with its distance.
    fn fetched(
        &self,
        surroundings: &Surroundings<'_>,
        document: &RawDocument,
    ) -> Result<Option<Fetched>, QueryError> {
        let Some((distance, place)) = nearest(&self.path, &self.access.query, document)? else {
            return Ok(None);
        };
        let is_inside = match self.is_last() {
            true => distance <= self.access.query.greatest,
            false => distance < self.outer,
        };
        if distance < self.inner || !is_inside {
            return Ok(None);
        }
        if let Some(filter) = surroundings.filter
            && !filter.matches(document)?
        {
            return Ok(None);
        }
        let changed = self.access.output.apply(document, distance, place)?;
        let changed = changed.as_deref().unwrap_or(document);
        let known = [(Metadata::GeoDistance, RawValue::Double(distance)), (Metadata::GeoPoint, place)];
        let metadata = self.access.metadata;
        let with_metadata = match metadata.has_any(&[Metadata::GeoDistance, Metadata::GeoPoint]) {
            true => Some(with_hidden(changed, known.into_iter().filter(|(kind, _)| metadata.has(*kind)))?),
            false => None,
        };
        let shown = with_metadata.as_deref().unwrap_or(changed);
        Ok(Some(Fetched { distance, document: shown.as_bytes().to_vec() }))
    }

    /// Chooses the width of the next ring by what this one had.
    fn end_ring(&mut self) {
        let Phase::Giving(ring) = &self.phase else { unreachable!("asked while it gives") };
        if ring.candidates() == 0 {
            self.width *= 4.0;
        } else if ring.kept() < RING_FEW {
            self.width *= 2.0;
        } else if ring.kept() > RING_MANY {
            self.width /= 2.0;
        }
        self.phase = if self.is_last() { Phase::Over } else { Phase::Between };
    }
}

impl NearAccess {
    /// The least and the greatest distance of the places in the cell of an entry with these fields, where
    /// that can be told.
    fn distances(&self, fields: &[u8]) -> Option<(f64, f64)> {
        let directions: Vec<Direction> =
            self.index.fields[..=self.at].iter().map(|field| field.direction).collect();
        let before = pando_keyorder::parts_length(fields, &directions[..self.at]).ok()?;
        let own = &directions[self.at..];
        let length = pando_keyorder::parts_length(&fields[before..], own).ok()?;
        // A cell number is whole, whichever type the bits of types would say.
        let values = pando_keyorder::decode(&fields[before..before + length], &[], own).ok()?;
        self.cells.distances(&self.query, values.first()?.as_i64_exact()?)
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
