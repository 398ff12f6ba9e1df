//! The estimated cost of a plan. The unit is a step to the next index entry or neighbouring document.
//!
//! Where only one index could serve, or numbers are unknown, the shares below are assumed. They only have
//! to put plans in a sensible order: equality before ranges, several bounded fields before few, no sort in
//! memory before one, unless little is sorted. Between several indexes the numbers of entries are estimated
//! ([`estimates`](super::estimates)).

use pando_catalog::{FieldKind, IndexDescription, Sparseness};

use super::interval::{Interval, Intervals};
use super::{Picks, brackets};

/// Documents in a collection of unknown size.
pub(super) const DOCUMENTS_ASSUMED: f64 = 10_000.0;

/// Which share of the documents a sparse index has.
const SPARSE: f64 = 0.1;

/// The share of the entries that a scan from value to value steps on.
pub(super) const DISTINCT: f64 = 0.1;

/// One document by its primary key, away from its neighbours.
const FETCH: f64 = 4.0;
/// One document of a scan in the order of primary keys.
const STEP: f64 = 1.3;
/// One document held in memory until all are there.
const HOLD: f64 = 4.0;
/// One comparison in memory.
const COMPARE: f64 = 0.05;

/// Which share of an index lies within bounds of one field.
pub(super) fn share(intervals: &Intervals) -> f64 {
    const MOST: f64 = 0.9;
    if intervals.is_all() {
        return 1.0;
    }
    match intervals.list() {
        [only] if is_open(only) => ONE_SIDED,
        list => list.iter().map(share_of_one).sum::<f64>().min(MOST),
    }
}

/// Which share of the documents has a key at one path: all are assumed to, as in an index of that path alone.
/// Of the documents with keys at several paths it is a part.
fn share_of_paths(intervals: &Intervals) -> f64 {
    const SEVERAL: f64 = 0.15;
    if intervals.list().len() == 1 { 1.0 } else { SEVERAL }
}

/// Which share of the documents has a geometry in a covering.
fn share_of_cells(intervals: &Intervals) -> f64 {
    const REGION: f64 = 0.1;
    if intervals.is_all() { 1.0 } else { REGION }
}

/// The share of a range with one end.
const ONE_SIDED: f64 = 0.15;

/// Whether an end of a range is that of all types.
fn is_last(bytes: &[u8]) -> bool {
    matches!(bytes, [0x08 | 0xF0 | 0x0F | 0xF7])
}

/// Whether it is a range from a value to the end of all types, as a comparison of an expression has it.
fn is_open(interval: &Interval) -> bool {
    !interval.is_point() && is_last(&interval.lower.bytes) != is_last(&interval.upper.bytes)
}

fn share_of_one(interval: &Interval) -> f64 {
    const POINT: f64 = 0.002;
    const TWO_SIDED: f64 = 0.05;
    // The two sides of a value that a negation leaves.
    const TO_ANY_TYPE: f64 = 0.45;
    if interval.is_point() {
        POINT
    } else if is_last(&interval.lower.bytes) || is_last(&interval.upper.bytes) {
        TO_ANY_TYPE
    } else if brackets::is_end(&interval.lower) || brackets::is_end(&interval.upper) {
        ONE_SIDED
    } else {
        TWO_SIDED
    }
}

/// The work of a scan.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    /// Entries stepped over.
    pub entries: f64,
    /// Entries that lie within all bounds.
    pub found: f64,
}

impl Work {
    /// The work of an index scan: bounds narrow the range up to the first that is no list of single values;
    /// later ones only filter.
    pub fn of_bounds(index: &IndexDescription, bounds: &[Intervals]) -> Work {
        let documents = match index.sparse {
            Sparseness::Sparse => DOCUMENTS_ASSUMED * SPARSE,
            Sparseness::Dense => DOCUMENTS_ASSUMED,
        };
        if bounds.iter().any(Intervals::is_empty) {
            return Work { entries: 0.0, found: 0.0 };
        }
        let (mut entries, mut found) = (documents, documents);
        let mut narrowing = true;
        for (field, intervals) in index.fields.iter().zip(bounds) {
            let share = match field.kind {
                FieldKind::WildcardPath => share_of_paths(intervals),
                FieldKind::Sphere | FieldKind::Plane => share_of_cells(intervals),
                _ => share(intervals),
            };
            if narrowing {
                entries *= share;
                narrowing = intervals.is_points();
            }
            found *= share;
        }
        Work { entries: entries.max(1.0), found: found.max(1.0) }
    }

    /// The work of both.
    pub fn and(self, other: Work) -> Work {
        Work { entries: self.entries + other.entries, found: self.found + other.found }
    }

    /// The work of a scan that gives some entries of those within its bounds, of which this share are the
    /// first of their combination of values.
    pub fn of_picks(self, picks: Picks, firsts: f64) -> Work {
        match picks {
            Picks::Every => self,
            Picks::FirstOfEach { fields: 0, .. } => Work { entries: 1.0, found: 1.0 },
            Picks::FirstOfEach { .. } => Work { entries: self.entries * firsts, found: self.found * firsts },
        }
    }

    /// The work of looking at every document.
    pub fn of_collection() -> Work {
        Work { entries: DOCUMENTS_ASSUMED, found: DOCUMENTS_ASSUMED }
    }
}

/// How documents come by what an entry does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DocumentAccess {
    /// Entries hold all that is needed.
    Covered,
    /// Each is fetched by its primary key.
    Fetched,
    /// The scan reads the documents themselves, or entries with copies of them.
    Clustered,
}

/// The order of the results of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Results are given as they are found, and so many end the scan; `None` for all.
    AsFound(Option<u64>),
    /// All are found, then sorted.
    Sorted,
}

/// The cost of a plan, given how many documents are thought to match the whole filter.
pub(super) fn of(work: Work, access: DocumentAccess, order: Order, matching: f64) -> f64 {
    let scan = match access {
        DocumentAccess::Covered => work.entries,
        DocumentAccess::Fetched => work.entries + work.found * FETCH,
        DocumentAccess::Clustered => work.entries * STEP,
    };
    let sorted = matching.min(work.found);
    match order {
        Order::Sorted => scan + sorted * (HOLD + (sorted + 1.0).log2() * COMPARE),
        Order::AsFound(Some(wanted)) => scan * (wanted as f64 / matching.max(1.0)).min(1.0),
        Order::AsFound(None) => scan,
    }
}
