//! Scans for the ends of groups: a `$group` with `$first`, `$last`, `$top`, `$bottom`, `$min` and `$max`
//! needs a few documents of each group, which an index has side by side.
//!
//! ```text
//! index { c: 1, a: 1, b: 1 }, filter { c: 5 }, { $sort: { b: 1 } }, { $group: { _id: "$a", x: { $first: … }
//! } }
//!
//! c  5 5 5 5 5 5      the scan gives the first entry of each a, and jumps to the next a
//! a  1 1 1 2 2 3
//! b  3 4 9 1 1 7
//!    ^     ^   ^
//! ```
//!
//! # Rules
//! - The first fields of the index are those of the filter with a single value each, and the key of the
//!   group. Within them all entries of a group lie side by side.
//! - Behind them come the fields of the order, all in the directions of the index or all against them. A
//!   field that is the same in all documents of a group does not matter.
//! - The bounds of the index settle the whole filter: else the first entry might be that of a document that
//!   does not match.
//! - A group with both ends of an order takes two scans. The documents of the first end come first and those
//!   of the last end last, so that `$first` and `$last` see them so.
//! - An index that has met arrays is left out: its entries have elements, and a group sees the whole array.

use pando_catalog::{FieldKind, IndexDescription, Truncation};
use pando_keyorder::Direction;

use super::candidate::Candidate;
use super::cost::{DocumentAccess, Work};
use super::estimates::Estimates;
use super::index_bounds::IndexBounds;
use super::interval::Intervals;
use super::specification::{Consumer, End, FindSpecification, GroupEnd, GroupEnds, KeyNulls};
use super::{Access, IndexAccess, Picks, ScanBounds, ScanDirection};
use crate::path::Path;

/// The scans of an index that give the ends of all groups, where it has them. The filter is settled.
pub(super) fn scans_of(
    find: &FindSpecification<'_>,
    index: &IndexDescription,
    bounds: &IndexBounds,
) -> Option<Access> {
    let Consumer::Ends(wanted) = find.consumer else { return None };
    if find.skip > 0 || find.limit.is_some() || !is_usable(index, wanted) {
        return None;
    }
    let grouped = Grouped::of(index, &bounds.fields, wanted)?;
    let mut scans: Vec<(ScanDirection, Picks)> = Vec::with_capacity(2);
    for end in &wanted.ends {
        let found = grouped.end(end)?;
        match scans.iter_mut().find(|(direction, _)| *direction == found.0) {
            None => scans.push(found),
            Some((_, picks)) => *picks = both(*picks, found.1)?,
        }
    }
    if scans.is_empty() {
        // Of groups by nothing at all the filter tells more than an index.
        wanted.key.as_ref()?;
        scans.push((ScanDirection::Forward, Picks::FirstOfEach { fields: grouped.fields, valued: None }));
    }
    let scan = |(direction, picks)| IndexAccess {
        index: index.clone(),
        bounds: ScanBounds::Fields(bounds.fields.clone()),
        direction,
        partitions: None,
        picks,
    };
    Some(match scans.as_slice() {
        [only] => Access::Index(scan(*only)),
        several => Access::Union(several.iter().copied().map(scan).collect()),
    })
}

/// The work of scans of one index, where this share of its entries are the first of their group.
pub(super) fn work_of(index: &IndexDescription, access: &Access, firsts: f64) -> Work {
    let scans = scans_in(access);
    let bounds = scans.first().and_then(|scan| match &scan.bounds {
        ScanBounds::Fields(bounds) => Some(bounds),
        ScanBounds::Keys { .. } => None,
    });
    let of_all = bounds.map_or(Work::of_collection(), |bounds| Work::of_bounds(index, bounds));
    of_picks(scans, of_all, firsts)
}

/// The same, given the work of all entries of one of them.
pub(super) fn of_picks(scans: &[IndexAccess], of_all: Work, firsts: f64) -> Work {
    let works = scans.iter().map(|scan| of_all.of_picks(scan.picks, firsts));
    works.fold(Work { entries: 0.0, found: 0.0 }, Work::and)
}

fn scans_in(access: &Access) -> &[IndexAccess] {
    match access {
        Access::Index(scan) => std::slice::from_ref(scan),
        Access::Union(scans) => scans,
        _ => &[],
    }
}

/// Has candidates that fetch a document of each group tell how many groups there are. A scan of the
/// collection is better where almost each document is a group.
pub(super) fn sample(candidates: &mut [Candidate], estimates: &dyn Estimates) {
    let fetching = candidates.iter_mut().filter(|candidate| {
        candidate.plan.is_distinct() && candidate.document_access == DocumentAccess::Fetched
    });
    for candidate in fetching {
        let Some(scan) = scans_in(&candidate.plan.access).first() else { continue };
        if let Picks::FirstOfEach { fields: fields @ 1.., .. } = scan.picks
            && let Some(share) = estimates.share_of_firsts(scan, fields)
        {
            candidate.firsts = share;
            candidate.work = work_of(&scan.index, &candidate.plan.access, share);
        }
    }
}

fn is_usable(index: &IndexDescription, wanted: &GroupEnds) -> bool {
    // In an index the number of an element is part of a path, and in a group it is the name of a field.
    let is_plain = |path: &str| !Path::new(path).has_index();
    let ignores_nulls = wanted.ends.iter().any(|end| end.nulls == KeyNulls::Ignored);
    let has_order = wanted.ends.iter().any(|end| end.nulls == KeyNulls::Ordered);
    let paths = wanted.ends.iter().filter(|end| end.nulls == KeyNulls::Ignored);
    !index.is_primary()
        && !index.is_wildcard()
        && !index.is_of_geometries()
        && !index.is_multikey()
        && index.truncated == Truncation::Whole
        && index.text_order == wanted.order
        // A scan that looks behind nulls gives more than the ends.
        && !(ignores_nulls && has_order)
        && wanted.key.as_deref().is_none_or(is_plain)
        && paths.flat_map(|end| end.pattern.parts()).all(|part| is_plain(part.path.as_str()))
}

/// The picks of one scan for two ends.
fn both(one: Picks, other: Picks) -> Option<Picks> {
    (one == other).then_some(one)
}

/// The groups within an index.
struct Grouped<'i> {
    index: &'i IndexDescription,
    bounds: &'i [Intervals],
    key: Option<&'i str>,
    /// The place of the key in the index.
    key_at: Option<usize>,
    /// The first fields that are the same in all entries of a group.
    same: usize,
    /// How many of them tell groups apart; none where all entries are of one group.
    fields: usize,
}

impl<'i> Grouped<'i> {
    fn of(
        index: &'i IndexDescription,
        bounds: &'i [Intervals],
        wanted: &'i GroupEnds,
    ) -> Option<Grouped<'i>> {
        let key = wanted.key.as_deref();
        let mut grouped = Grouped { index, bounds, key, key_at: None, same: 0, fields: 0 };
        for at in 0..index.fields.len() {
            if grouped.key_at.is_none() && key.is_some_and(|key| grouped.is_field(at, key)) {
                grouped.key_at = Some(at);
                grouped.fields = at + 1;
            } else if !grouped.is_single(at) {
                break;
            }
            grouped.same = at + 1;
        }
        (key.is_none() || grouped.key_at.is_some()).then_some(grouped)
    }

    fn is_field(&self, at: usize, path: &str) -> bool {
        self.index.fields[at].kind == FieldKind::Value && self.index.fields[at].path == path
    }

    /// Whether the bounds leave one value of a field.
    fn is_single(&self, at: usize) -> bool {
        self.bounds[at].is_points() && self.bounds[at].list().len() == 1
    }

    /// The scan that comes to an end of each group first.
    fn end(&self, end: &GroupEnd) -> Option<(ScanDirection, Picks)> {
        if self.index.text_order != *end.pattern.text_order() {
            return None;
        }
        let mut next = self.same;
        let (mut within, mut between) = (None, None);
        for part in end.pattern.parts() {
            let path = part.path.as_str();
            if let Some(key_at) = self.key_at.filter(|_| self.key == Some(path)) {
                between = between.or(Some(self.direction(key_at, part.direction, end.end)));
                continue;
            }
            if (0..self.index.fields.len()).any(|at| self.is_field(at, path) && self.is_single(at)) {
                continue;
            }
            while next < self.index.fields.len() && !self.is_field(next, path) && self.is_single(next) {
                next += 1;
            }
            if next == self.index.fields.len() || !self.is_field(next, path) {
                return None;
            }
            let direction = self.direction(next, part.direction, end.end);
            if within.is_some_and(|within| within != direction) {
                return None;
            }
            within = Some(direction);
            next += 1;
        }
        let valued = match (end.nulls, within) {
            (KeyNulls::Ordered, _) => None,
            // Its order is of one field, the one before `next`.
            (KeyNulls::Ignored, Some(_)) => Some(next - 1),
            (KeyNulls::Ignored, None) => return None,
        };
        let forward = self.direction_of_ties(end.end);
        let direction = within.or(between).unwrap_or(forward);
        Some((direction, Picks::FirstOfEach { fields: self.fields, valued }))
    }

    /// The way in which a scan comes to an end of a field's order first.
    fn direction(&self, at: usize, wanted: Direction, end: End) -> ScanDirection {
        match (self.index.fields[at].direction == wanted) == (end == End::First) {
            true => ScanDirection::Forward,
            false => ScanDirection::Backward,
        }
    }

    /// Where all documents of a group are equal in the order, the first of them is that of the least key.
    fn direction_of_ties(&self, end: End) -> ScanDirection {
        match end {
            End::First => ScanDirection::Forward,
            End::Last => ScanDirection::Backward,
        }
    }
}
