//! What a plan is likely to cost. The unit is one index entry or one neighbouring document stepped over.
//!
//! Without statistics of values the shares below are assumed; they only have to put plans in a sensible order: equality
//! before ranges, several bounded fields before few, no sort before a sort, unless what is sorted is little.

use super::interval::Intervals;

/// Documents in a collection of unknown size.
pub(super) const DOCUMENTS_ASSUMED: f64 = 10_000.0;

/// One document by its primary key, away from its neighbours.
const FETCH: f64 = 4.0;
/// One document of a scan in the order of primary keys.
const STEP: f64 = 1.3;
/// One comparison in memory.
const COMPARE: f64 = 0.05;

/// Which share of an index lies within bounds of one field.
fn share(intervals: &Intervals) -> f64 {
    const POINT: f64 = 0.002;
    const TWO_SIDED: f64 = 0.05;
    const COMPLEMENT: f64 = 0.9;
    if intervals.is_all() {
        return 1.0;
    }
    let sum: f64 = intervals
        .list()
        .iter()
        .map(|interval| {
            match (interval.is_point(), reaches_an_end(&interval.lower.bytes, &interval.upper.bytes)) {
                (true, _) => POINT,
                (false, true) => COMPLEMENT / 2.0,
                (false, false) => TWO_SIDED,
            }
        })
        .sum();
    sum.min(COMPLEMENT)
}

/// Whether an interval goes on to MinKey or MaxKey.
fn reaches_an_end(lower: &[u8], upper: &[u8]) -> bool {
    let is_end = |bytes: &[u8]| matches!(bytes, [0x08 | 0xF0 | 0x0F | 0xF7]);
    is_end(lower) || is_end(upper)
}

/// What an index scan has to do.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    /// Entries stepped over.
    pub entries: f64,
    /// Entries that lie within all bounds.
    pub found: f64,
}

/// The work of a scan: bounds narrow the range up to the first that is no list of single values; later ones only filter.
pub(super) fn work(documents: f64, bounds: &[Intervals]) -> Work {
    let (mut entries, mut found) = (documents, documents);
    let mut narrowing = true;
    for intervals in bounds {
        let share = share(intervals);
        if narrowing {
            entries *= share;
            narrowing = intervals.is_points();
        }
        found *= share;
    }
    Work { entries: entries.max(1.0), found: found.max(1.0) }
}

/// How documents come by what an entry does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DocumentAccess {
    /// Entries hold all that is needed.
    Covered,
    /// Each is fetched by its primary key.
    Fetched,
    /// The index is the documents themselves.
    Clustered,
}

/// What stands behind a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Results are given as they are found, and so many end the scan; `None` for all.
    AsFound(Option<u64>),
    /// All are found, then sorted.
    Sorted,
}

/// The cost of an index plan.
pub(super) fn of_index(work: Work, access: DocumentAccess, order: Order) -> f64 {
    let each = match access {
        DocumentAccess::Covered => 0.0,
        DocumentAccess::Fetched => FETCH,
        DocumentAccess::Clustered => STEP - 1.0,
    };
    let scan = work.entries + work.found * each;
    finish(scan, work.found, order)
}

/// The cost of looking at every document; `found` of them match.
pub(super) fn of_collection(documents: f64, found: f64, order: Order) -> f64 {
    finish(documents * STEP, found, order)
}

fn finish(scan: f64, found: f64, order: Order) -> f64 {
    match order {
        Order::Sorted => scan + found * (found + 1.0).log2() * COMPARE,
        Order::AsFound(Some(wanted)) => scan * (wanted as f64 / found).min(1.0),
        Order::AsFound(None) => scan,
    }
}
