//! The key ranges of an index scan, made one after the other from the bounds of the index's fields.
//!
//! The first fields that are bounded to single values, and the field behind them, make the ranges: each
//! combination of values, then each interval. The fields behind those are checked entry by entry.
//!
//! ```text
//! bounds  a: [1,1] [3,3]   b: (5, inf]   c: [7,7]
//! ranges  a=1 b>5,  a=3 b>5              check c=7
//! ```
//!
//! Ranges are made when they are asked for, so a product of two long `$in` lists costs no memory. Its time is
//! bounded by the entries: after some combinations without an entry the caller looks for the next entry
//! ([`KeyRanges::rest`]), and the combinations before it are passed over ([`KeyRanges::skip_to`]). Keys that
//! are cut do not tell their fields. For those the product has a limit ([`CUT_RANGES_MAX`]), and the fields
//! beyond it are checked entry by entry.

use std::ops::Bound;

use pando_catalog::{IndexDescription, KeyRange, PrimaryKey, Truncation, index_entry};
use pando_keyorder::Direction;

use crate::plan::{Cut, Interval, Intervals, ScanDirection, Side};

/// Most ranges of several fields in an index whose keys may be cut.
const CUT_RANGES_MAX: usize = 10_000;

/// The ranges of a scan.
#[derive(Clone, Debug)]
pub(super) struct KeyRanges {
    fields: Vec<Intervals>,
    directions: Vec<Direction>,
    /// The field whose intervals make ranges; those before it have single values only.
    ranged: usize,
    scan: ScanDirection,
    /// Of each field up to `ranged`, which interval comes next; `None` at the end.
    next: Option<Vec<usize>>,
    /// Keys are cut to so many bytes; bounds beyond them are widened. `None`: no key is cut.
    whole_bytes: Option<usize>,
}

impl KeyRanges {
    pub fn new(
        index: &IndexDescription,
        fields: Vec<Intervals>,
        scan: ScanDirection,
        whole_bytes: Option<usize>,
    ) -> KeyRanges {
        assert_eq!(fields.len(), index.fields.len(), "each field of the index has its bounds");
        let ranges_max = if whole_bytes.is_some() { CUT_RANGES_MAX } else { usize::MAX };
        let mut ranged = 0;
        let mut ranges = fields[0].list().len();
        while ranged + 1 < fields.len() && fields[ranged].is_points() {
            ranges = ranges.saturating_mul(fields[ranged + 1].list().len());
            if ranges > ranges_max {
                break;
            }
            ranged += 1;
        }
        let is_empty = fields.iter().any(Intervals::is_empty);
        let first = |field: &Intervals| match scan {
            ScanDirection::Forward => 0,
            ScanDirection::Backward => field.list().len() - 1,
        };
        let next = (!is_empty).then(|| fields[..=ranged].iter().map(first).collect());
        let directions = index.fields.iter().map(|field| field.direction).collect();
        KeyRanges { fields, directions, ranged, scan, next, whole_bytes }
    }

    /// The next range in the scan's direction.
    pub fn next_range(&mut self) -> Option<KeyRange> {
        let mut next = self.next.take()?;
        let range = self.range_at(&next);
        self.turn_to_next(&mut next);
        Some(range)
    }

    /// Has the combination behind `place` come next, if there is one.
    fn turn_to_next(&mut self, place: &mut Vec<usize>) {
        if self.turn(place) {
            while place.len() <= self.ranged {
                place.push(self.first(place.len()));
            }
            self.next = Some(std::mem::take(place));
        }
    }

    /// Whether the ranges are single keys, of at most so many bytes.
    pub fn is_points_within(&self, bytes_max: usize) -> bool {
        let longest = |field: &Intervals| field.list().iter().map(|point| point.lower.bytes.len()).max();
        self.ranged + 1 == self.fields.len()
            && self.fields.iter().all(Intervals::is_points)
            && self.fields.iter().filter_map(longest).sum::<usize>() <= bytes_max
    }

    /// The next single key in the scan's direction; see [`is_points_within`](KeyRanges::is_points_within).
    pub fn next_point(&mut self) -> Option<Vec<u8>> {
        let mut next = self.next.take()?;
        let mut point = Vec::with_capacity(24);
        for (field, at) in self.fields.iter().zip(&next) {
            point.extend_from_slice(&field.list()[*at].lower.bytes);
        }
        self.turn_to_next(&mut next);
        Some(point)
    }

    /// Whether the ranges settle all bounds.
    pub fn admits_all(&self) -> bool {
        self.checked() <= self.ranged + 1
    }

    /// The fields up to the last that is bounded.
    fn checked(&self) -> usize {
        self.fields.iter().rposition(|field| !field.is_all()).map_or(0, |last| last + 1)
    }

    /// The range of a combination: an interval of each field up to `ranged`.
    fn range_at(&self, places: &[usize]) -> KeyRange {
        let mut prefix = Vec::with_capacity(32);
        for (field, at) in self.fields[..self.ranged].iter().zip(places) {
            prefix.extend_from_slice(&field.list()[*at].lower.bytes);
        }
        let last = &self.fields[self.ranged];
        match last.is_all() {
            true => bounded(&prefix, None, self.whole_bytes),
            false => bounded(&prefix, Some(&last.list()[places[self.ranged]]), self.whole_bytes),
        }
    }

    /// Whether the ranges are combinations of several fields' bounds, most of which may have no entry.
    ///
    /// Bounds that were widened overlap, and keys that were cut do not tell their parts.
    pub fn can_skip(&self) -> bool {
        self.ranged > 0 && self.whole_bytes.is_none()
    }

    /// The range from the next combination on to the last.
    pub fn rest(&self) -> Option<KeyRange> {
        let first = self.range_at(self.next.as_ref()?);
        let ends: Vec<usize> = (0..=self.ranged).map(|at| self.last(at)).collect();
        let last = self.range_at(&ends);
        Some(match self.scan {
            ScanDirection::Forward => KeyRange { lower: first.lower, upper: last.upper },
            ScanDirection::Backward => KeyRange { lower: last.lower, upper: first.upper },
        })
    }

    /// There are no more ranges.
    pub fn end(&mut self) {
        self.next = None;
    }

    /// Passes over the combinations before the field bytes of an entry that [`KeyRanges::rest`] has found.
    pub fn skip_to(&mut self, field_bytes: &[u8]) {
        let Some(next) = self.next.take() else { return };
        let mut reached = Vec::with_capacity(next.len());
        let mut rest = field_bytes;
        for at in 0..=self.ranged {
            let Ok(length) = pando_keyorder::parts_length(rest, &self.directions[at..=at]) else {
                self.next = Some(next);
                return;
            };
            let (part, behind) = rest.split_at(length);
            rest = behind;
            let place = place_in(&self.fields[at], part);
            let ahead = match (place, self.scan) {
                (Ok(within), _) => Some(within),
                (Err(above), ScanDirection::Forward) => {
                    Some(above).filter(|above| *above < self.fields[at].list().len())
                }
                (Err(above), ScanDirection::Backward) => above.checked_sub(1),
            };
            match ahead {
                Some(ahead) => reached.push(ahead),
                // No value here lies ahead: the field before goes to its next value.
                None => {
                    if !self.turn(&mut reached) {
                        return;
                    }
                    break;
                }
            }
            if place.is_err() {
                break;
            }
        }
        while reached.len() <= self.ranged {
            reached.push(self.first(reached.len()));
        }
        self.next = Some(reached);
    }

    /// Moves the last of some fields to its next interval, or the one before it; false at the end.
    fn turn(&self, reached: &mut Vec<usize>) -> bool {
        while let Some(at) = reached.pop() {
            let field = reached.len();
            if at != self.last(field) {
                reached.push(match self.scan {
                    ScanDirection::Forward => at + 1,
                    ScanDirection::Backward => at - 1,
                });
                return true;
            }
        }
        false
    }

    /// The interval of a field with which the scan begins.
    fn first(&self, field: usize) -> usize {
        match self.scan {
            ScanDirection::Forward => 0,
            ScanDirection::Backward => self.fields[field].list().len() - 1,
        }
    }

    /// The interval of a field with which the scan ends.
    fn last(&self, field: usize) -> usize {
        match self.scan {
            ScanDirection::Forward => self.fields[field].list().len() - 1,
            ScanDirection::Backward => 0,
        }
    }

    /// The key from which on the scan may meet entries within bounds again, behind one that the bounds do not
    /// [admit](KeyRanges::admits); `None` where the keys are cut or do not decode.
    ///
    /// ```text
    /// bounds a: (1, inf]  b: [5,5] [7,7]      forward, at a=2 b=6: a=2 b=7;  at a=2 b=8: behind all of a=2
    /// ```
    pub fn next_within(&self, field_bytes: &[u8]) -> Option<Vec<u8>> {
        if self.whole_bytes.is_some() {
            return None;
        }
        let mut length = 0;
        for (at, field) in self.fields[..self.checked()].iter().enumerate() {
            let rest = &field_bytes[length..];
            let part = &rest[..pando_keyorder::parts_length(rest, &self.directions[at..=at]).ok()?];
            let place = if at > self.ranged { place_in(field, part) } else { Ok(0) };
            let Err(behind) = place else {
                length += part.len();
                continue;
            };
            let mut next = field_bytes[..length].to_vec();
            let (cut, is_behind) = match self.scan {
                ScanDirection::Forward => {
                    let cut = field.list().get(behind).map(|interval| &interval.lower);
                    (cut, cut.is_none_or(|cut| cut.side == Side::After))
                }
                ScanDirection::Backward => {
                    let before = behind.checked_sub(1).map(|before| &field.list()[before].upper);
                    (before, before.is_some_and(|cut| cut.side == Side::After))
                }
            };
            next.extend_from_slice(cut.map_or(&[], |cut| &cut.bytes));
            if is_behind {
                next.push(ABOVE_EVERY_PART);
            }
            return Some(next);
        }
        None
    }

    /// Whether the fields that ranges do not settle lie within their bounds. Field bytes that do not decode
    /// do not.
    pub fn admits(&self, field_bytes: &[u8]) -> bool {
        let checked = self.checked();
        if checked <= self.ranged + 1 {
            return true;
        }
        let mut rest = field_bytes;
        for (at, field) in self.fields[..checked].iter().enumerate() {
            let Ok(length) = pando_keyorder::parts_length(rest, &self.directions[at..=at]) else {
                return false;
            };
            let (part, behind) = rest.split_at(length);
            if at > self.ranged && place_in(field, part).is_err() {
                return false;
            }
            rest = behind;
        }
        true
    }
}

/// A byte that no part of a key begins with, above all that do.
const ABOVE_EVERY_PART: u8 = 0xFF;

/// So many bytes of a key are whole where keys of an index may be cut; `None`: no key is cut.
pub(super) fn whole_bytes(index: &IndexDescription) -> Option<usize> {
    match (index.truncated, index.is_primary()) {
        (Truncation::Whole, _) => None,
        (Truncation::Truncated, true) => Some(PrimaryKey::CUT_PREFIX_BYTES),
        (Truncation::Truncated, false) => Some(index_entry::CUT_PREFIX_BYTES),
    }
}

/// The ranges that bounds make, at most.
pub(super) fn combinations(fields: &[Intervals]) -> usize {
    let points = fields.iter().take_while(|field| field.is_points()).count();
    let ranged = fields.iter().take(points + 1);
    ranged.fold(1, |ranges: usize, field| ranges.saturating_mul(field.list().len()))
}

/// The interval that a key's part lies in, or else the first one behind it.
fn place_in(field: &Intervals, part: &[u8]) -> Result<usize, usize> {
    field.list().binary_search_by(|interval| interval.compare(part).reverse())
}

/// The keys that begin with a prefix and then lie within an interval, or anywhere.
fn bounded(prefix: &[u8], interval: Option<&Interval>, whole_bytes: Option<usize>) -> KeyRange {
    let Some(interval) = interval else {
        return KeyRange { lower: lower(prefix, None, whole_bytes), upper: upper(prefix, None, whole_bytes) };
    };
    KeyRange {
        lower: lower(prefix, Some(&interval.lower), whole_bytes),
        upper: upper(prefix, Some(&interval.upper), whole_bytes),
    }
}

fn joined(prefix: &[u8], cut: Option<&Cut>) -> Vec<u8> {
    let mut bytes = prefix.to_vec();
    bytes.extend_from_slice(cut.map_or(&[], |cut| &cut.bytes));
    bytes
}

fn lower(prefix: &[u8], cut: Option<&Cut>, whole_bytes: Option<usize>) -> Bound<Vec<u8>> {
    let mut bytes = joined(prefix, cut);
    if whole_bytes.is_some_and(|whole| bytes.len() > whole) {
        bytes.truncate(whole_bytes.unwrap_or(usize::MAX));
        return Bound::Included(bytes);
    }
    match cut.map_or(Side::Before, |cut| cut.side) {
        Side::Before if bytes.is_empty() => Bound::Unbounded,
        Side::Before => Bound::Included(bytes),
        Side::After => behind(&bytes).map_or(Bound::Unbounded, Bound::Included),
    }
}

fn upper(prefix: &[u8], cut: Option<&Cut>, whole_bytes: Option<usize>) -> Bound<Vec<u8>> {
    let mut bytes = joined(prefix, cut);
    let mut side = cut.map_or(Side::After, |cut| cut.side);
    if whole_bytes.is_some_and(|whole| bytes.len() > whole) {
        bytes.truncate(whole_bytes.unwrap_or(usize::MAX));
        side = Side::After;
    }
    match side {
        Side::Before => Bound::Excluded(bytes),
        Side::After if bytes.is_empty() => Bound::Unbounded,
        Side::After => behind(&bytes).map_or(Bound::Unbounded, Bound::Excluded),
    }
}

/// The first key behind all that begin with these bytes.
fn behind(bytes: &[u8]) -> Option<Vec<u8>> {
    match KeyRange::prefix(bytes).upper {
        Bound::Excluded(next) => Some(next),
        Bound::Included(_) | Bound::Unbounded => None,
    }
}

/// The keys between two, of all fields at once.
pub(super) fn between(min: Option<Vec<u8>>, max: Option<Vec<u8>>) -> KeyRange {
    KeyRange {
        lower: min.map_or(Bound::Unbounded, Bound::Included),
        upper: max.map_or(Bound::Unbounded, Bound::Excluded),
    }
}
/// The direction of a scan in the storage engine.
pub(super) fn storage_direction(direction: ScanDirection) -> pando_catalog::Direction {
    match direction {
        ScanDirection::Forward => pando_catalog::Direction::Forward,
        ScanDirection::Backward => pando_catalog::Direction::Backward,
    }
}
