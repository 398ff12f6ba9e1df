//! Estimates: the numbers of entries and documents by which the planner chooses between several indexes.
//!
//! The planner asks for them only where two indexes or more could serve a find. All numbers of one choice
//! come from here, or none: a measured number does not compare with an assumed one.

use pando_catalog::{FieldKind, IndexDescription, Uniqueness};

use super::candidate::Candidate;
use super::cost::{self, Work};
use super::interval::Intervals;
use super::{Access, IndexAccess, ScanBounds, ends};

/// Scans of one plan that are counted.
const SCANS_COUNTED_MAX: usize = 16;

/// The source of estimates.
pub trait Estimates {
    /// Entries of an index within the ranges of keys that these bounds make, about; `None` if unknown.
    fn entries(&self, index: &IndexDescription, bounds: &[Intervals]) -> Option<u64>;

    /// Documents of the collection, about; `None` if unknown.
    fn documents(&self) -> Option<u64>;

    /// The share of the entries within the bounds of a scan that are the first of their combination of values
    /// of so many first fields, about; `None` if unknown.
    fn share_of_firsts(&self, _scan: &IndexAccess, _fields: usize) -> Option<f64> {
        None
    }
}

/// No estimates: the planner assumes shares by the shape of bounds.
#[derive(Clone, Copy, Debug)]
pub struct AssumedShares;

impl Estimates for AssumedShares {
    fn entries(&self, _: &IndexDescription, _: &[Intervals]) -> Option<u64> {
        None
    }

    fn documents(&self) -> Option<u64> {
        None
    }
}

/// The estimated work of each candidate; `None` where that of one is unknown.
pub(super) fn of_candidates(candidates: &[Candidate], estimates: &dyn Estimates) -> Option<Vec<Work>> {
    candidates.iter().map(|candidate| of_candidate(candidate, estimates)).collect()
}

fn of_candidate(candidate: &Candidate, estimates: &dyn Estimates) -> Option<Work> {
    match &candidate.plan.access {
        Access::Collection(_) => {
            let documents = estimates.documents()? as f64;
            Some(Work { entries: documents, found: documents })
        }
        Access::Index(access) => Some(of_scan(access, estimates)?.of_picks(access.picks, candidate.firsts)),
        Access::Union(scans) if candidate.plan.is_distinct() => {
            let [first, ..] = scans.as_slice() else { return None };
            let of_all = of_scan(first, estimates)?;
            Some(ends::of_picks(scans, of_all, candidate.firsts))
        }
        Access::Union(scans) => of_scans(scans, estimates),
        Access::Merge(merge) => of_scans(&merge.scans, estimates),
        Access::Nothing | Access::Id(_) | Access::Intersection(_) | Access::Text(_) | Access::Near(_) => {
            Some(candidate.work)
        }
    }
}

/// The work of many scans is that of the first ones, as far as those tell.
fn of_scans(scans: &[IndexAccess], estimates: &dyn Estimates) -> Option<Work> {
    let counted = scans.len().clamp(1, SCANS_COUNTED_MAX);
    let mut sum = Work { entries: 0.0, found: 0.0 };
    for scan in scans.iter().take(counted) {
        sum = sum.and(of_scan(scan, estimates)?);
    }
    let times = scans.len() as f64 / counted as f64;
    Some(Work { entries: sum.entries * times, found: sum.found * times })
}

/// The estimated work of all entries of a scan.
pub(super) fn of_scan(access: &IndexAccess, estimates: &dyn Estimates) -> Option<Work> {
    match &access.bounds {
        ScanBounds::Fields(bounds) => of_bounds(&access.index, bounds, estimates),
        ScanBounds::Keys { .. } => None,
    }
}

/// The estimated work of a scan within bounds: the ranges are counted, and of the fields behind them shares
/// are assumed.
fn of_bounds(index: &IndexDescription, bounds: &[Intervals], estimates: &dyn Estimates) -> Option<Work> {
    if bounds.iter().any(Intervals::is_empty) {
        return Some(Work { entries: 0.0, found: 0.0 });
    }
    let mut entries = estimates.entries(index, bounds)? as f64;
    let is_keyed = index.fields.iter().all(|field| field.kind == FieldKind::Value);
    if index.unique == Uniqueness::Unique && is_keyed && bounds.iter().all(Intervals::is_points) {
        entries = bounds.iter().fold(1.0, |keys, field| keys * field.list().len() as f64).min(entries);
    }
    let checked = bounds.iter().skip_while(|field| field.is_points()).skip(1);
    Some(Work { entries, found: checked.fold(entries, |found, field| found * cost::share(field)) })
}
