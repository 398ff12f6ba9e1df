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
//! Ranges are made when they are asked for, so a product of two long `$in` lists costs no memory.

use std::ops::Bound;

use pando_catalog::{IndexDescription, KeyRange};
use pando_keyorder::Direction;

use crate::plan::{Cut, Interval, Intervals, ScanDirection, Side};

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
        let points = fields.iter().take_while(|field| field.is_points()).count();
        let ranged = points.min(fields.len() - 1);
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
        let next = self.next.as_ref()?;
        let mut prefix = Vec::with_capacity(32);
        for (field, at) in self.fields[..self.ranged].iter().zip(next) {
            prefix.extend_from_slice(&field.list()[*at].lower.bytes);
        }
        let last = &self.fields[self.ranged];
        let range = match last.is_all() {
            true => bounded(&prefix, None, self.whole_bytes),
            false => bounded(&prefix, Some(&last.list()[next[self.ranged]]), self.whole_bytes),
        };
        self.step();
        Some(range)
    }

    /// Moves to the next combination; the last field turns fastest.
    fn step(&mut self) {
        let Some(next) = &mut self.next else { return };
        for at in (0..next.len()).rev() {
            let (first, last) = (0, self.fields[at].list().len() - 1);
            match self.scan {
                ScanDirection::Forward if next[at] < last => {
                    next[at] += 1;
                    return;
                }
                ScanDirection::Forward => next[at] = first,
                ScanDirection::Backward if next[at] > first => {
                    next[at] -= 1;
                    return;
                }
                ScanDirection::Backward => next[at] = last,
            }
        }
        self.next = None;
    }

    /// Whether the fields that ranges do not settle lie within their bounds. Field bytes that do not decode
    /// do not.
    pub fn admits(&self, field_bytes: &[u8]) -> bool {
        let checked = self.fields.iter().rposition(|field| !field.is_all()).map_or(0, |last| last + 1);
        if checked <= self.ranged + 1 {
            return true;
        }
        let mut rest = field_bytes;
        for (at, field) in self.fields[..checked].iter().enumerate() {
            let Ok(length) = pando_keyorder::parts_length(rest, &self.directions[at..=at]) else {
                return false;
            };
            let (part, behind) = rest.split_at(length);
            if at > self.ranged && !field.list().iter().any(|interval| interval.contains(part)) {
                return false;
            }
            rest = behind;
        }
        true
    }
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
