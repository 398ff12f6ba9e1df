//! The ranges that a transaction has deleted by one message each, as it sees them itself.
//!
//! # Terms
//! - *Gap*: keys of a scanned range that lie in no deleted range. A scan visits gap after gap and skips what
//!   is deleted.
//! - *Savepoint*: each range counts as one write here. The savepoint of a transaction is the number of its
//!   writes and ranges. For every range it is known how many writes came before it.
//!
//! # Invariants
//! - Every range has a lower end that belongs to it, and an upper end (if any) that does not.
//! - A transaction has few of them ([`OWN_RANGES_MAX`]), because each read looks through all.
//!
//! # Not here
//! The own writes within a range that came before it: the transaction deletes them key by key in its write
//! set.

use std::ops::Bound;

use crate::batch::{Batch, ScanEnd};
use crate::error::StorageError;
use crate::identifiers::TreeId;
use crate::key_range::{Direction, KeyRange};

/// Ranges of one transaction at most. Beyond that a range is deleted key by key.
pub(super) const OWN_RANGES_MAX: usize = 64;

/// A range of keys that a transaction deletes by one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeletedRange {
    /// The tree.
    pub tree: TreeId,
    /// The keys, from one that is included up to before another.
    pub range: KeyRange,
}

/// See the module's head.
#[derive(Debug, Default)]
pub(super) struct OwnRanges {
    ranges: Vec<DeletedRange>,
    /// For each, how many writes there were before it.
    writes_before: Vec<usize>,
}

impl OwnRanges {
    pub(super) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.ranges.len()
    }

    /// All of them, in the order in which they were deleted.
    pub(super) fn as_slice(&self) -> &[DeletedRange] {
        &self.ranges
    }

    /// Bytes of their ends.
    pub(super) fn bytes(&self) -> usize {
        let end_bytes =
            |deleted: &DeletedRange| start(&deleted.range).len() + end(&deleted.range).map_or(0, <[u8]>::len);
        self.ranges.iter().map(end_bytes).sum()
    }

    /// Adds a range after this many writes. A range without keys changes nothing.
    pub(super) fn push(&mut self, tree: TreeId, range: &KeyRange, writes_before: usize) {
        let Some(range) = range.half_open() else { return };
        self.ranges.push(DeletedRange { tree, range });
        self.writes_before.push(writes_before);
    }

    /// Forgets those behind a savepoint; the number of writes at that time.
    pub(super) fn rollback_to(&mut self, savepoint: usize) -> usize {
        while let Some(before) = self.writes_before.last()
            && before + self.ranges.len() > savepoint
        {
            self.ranges.pop();
            self.writes_before.pop();
        }
        savepoint - self.ranges.len()
    }

    /// Whether a key lies within one of them. Nearly always there are none, and a get asks each time.
    #[inline]
    pub(super) fn contain(&self, tree: TreeId, key: &[u8]) -> bool {
        self.of(tree).any(|range| range.contains(key))
    }

    fn of(&self, tree: TreeId) -> impl Iterator<Item = &KeyRange> + '_ {
        self.ranges.iter().filter(move |deleted| deleted.tree == tree).map(|deleted| &deleted.range)
    }

    /// Scans the gaps between the ranges with `base`, a batch at a time. The batch is empty only at the end.
    pub(super) fn scan_beside(
        &self,
        tree: TreeId,
        range: &KeyRange,
        direction: Direction,
        batch: &mut Batch,
        base: &mut dyn FnMut(&KeyRange, &mut Batch) -> Result<ScanEnd, StorageError>,
    ) -> Result<ScanEnd, StorageError> {
        if self.of(tree).next().is_none() {
            return base(range, batch);
        }
        batch.clear();
        let mut rest = range.clone();
        while let Some(gap) = self.next_gap(tree, &mut rest, direction) {
            let end = base(&gap, batch)?;
            if end == ScanEnd::More || !batch.is_empty() {
                // Where there is another gap there may be more, and the scan goes on behind the last entry.
                return Ok(if rest.is_empty() { end } else { ScanEnd::More });
            }
        }
        Ok(ScanEnd::Done)
    }

    /// The next keys outside of all ranges, in the direction of the scan. `rest` keeps the keys after them.
    fn next_gap(&self, tree: TreeId, rest: &mut KeyRange, direction: Direction) -> Option<KeyRange> {
        match direction {
            Direction::Forward => {
                while let Some(within) = self.of(tree).find(|range| begins_within(rest, range)) {
                    rest.lower = Bound::Included(end(within)?.to_vec());
                }
                if rest.is_empty() {
                    return None;
                }
                let from = match &rest.lower {
                    Bound::Included(key) | Bound::Excluded(key) => key.clone(),
                    Bound::Unbounded => Vec::new(),
                };
                let starts = self.of(tree).map(start).filter(|start| *start > from.as_slice());
                let Some(next) = starts.min().filter(|next| rest.is_below_upper(next)) else {
                    return Some(std::mem::replace(rest, nothing()));
                };
                let gap = KeyRange { lower: rest.lower.clone(), upper: Bound::Excluded(next.to_vec()) };
                rest.lower = Bound::Included(next.to_vec());
                Some(gap)
            }
            Direction::Backward => {
                while let Some(within) = self.of(tree).find(|range| ends_within(rest, range)) {
                    rest.upper = Bound::Excluded(start(within).to_vec());
                }
                if rest.is_empty() {
                    return None;
                }
                let lies_before = |end: &&[u8]| match &rest.upper {
                    Bound::Included(key) => *end <= key.as_slice(),
                    Bound::Excluded(key) => *end < key.as_slice(),
                    Bound::Unbounded => true,
                };
                let ends = self.of(tree).filter_map(end).filter(lies_before);
                let Some(next) = ends.max().filter(|next| rest.is_above_lower(next)) else {
                    return Some(std::mem::replace(rest, nothing()));
                };
                let gap = KeyRange { lower: Bound::Included(next.to_vec()), upper: rest.upper.clone() };
                rest.upper = Bound::Excluded(next.to_vec());
                Some(gap)
            }
        }
    }
}

/// The first key of a deleted range.
fn start(range: &KeyRange) -> &[u8] {
    match &range.lower {
        Bound::Included(key) | Bound::Excluded(key) => key,
        Bound::Unbounded => &[],
    }
}

/// The key before which a deleted range ends; `None` if it reaches to the end of the tree.
fn end(range: &KeyRange) -> Option<&[u8]> {
    match &range.upper {
        Bound::Included(key) | Bound::Excluded(key) => Some(key),
        Bound::Unbounded => None,
    }
}

/// Whether the first keys of the rest of a scan lie within a deleted range.
fn begins_within(rest: &KeyRange, range: &KeyRange) -> bool {
    if rest.is_empty() {
        return false;
    }
    match &rest.lower {
        Bound::Included(key) | Bound::Excluded(key) => range.contains(key),
        Bound::Unbounded => start(range).is_empty(),
    }
}

/// Whether the last keys of the rest of a scan lie within a deleted range.
fn ends_within(rest: &KeyRange, range: &KeyRange) -> bool {
    if rest.is_empty() {
        return false;
    }
    match &rest.upper {
        Bound::Included(key) => range.contains(key),
        Bound::Excluded(key) => start(range) < &**key && end(range).is_none_or(|end| **key <= *end),
        Bound::Unbounded => end(range).is_none(),
    }
}

/// A range without keys.
fn nothing() -> KeyRange {
    KeyRange { lower: Bound::Unbounded, upper: Bound::Excluded(Vec::new()) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use pando_environment::SeededRandom;

    use super::*;

    const TREE: TreeId = TreeId::new(1);

    fn range(lower: &[u8], upper: &[u8]) -> KeyRange {
        KeyRange { lower: Bound::Included(lower.to_vec()), upper: Bound::Excluded(upper.to_vec()) }
    }

    #[test]
    fn a_rollback_forgets_the_ranges_behind_the_savepoint() {
        let mut own = OwnRanges::default();
        // A write, a range, two writes, two ranges: savepoints 0 to 6.
        own.push(TREE, &range(b"a", b"b"), 1);
        own.push(TREE, &range(b"c", b"d"), 3);
        own.push(TREE, &range(b"e", b"f"), 3);
        assert_eq!((own.rollback_to(9), own.len()), (6, 3), "one that lies ahead changes nothing");
        assert_eq!((own.rollback_to(6), own.len()), (3, 3));
        assert_eq!((own.rollback_to(5), own.len()), (3, 2));
        assert_eq!((own.rollback_to(4), own.len()), (3, 1));
        assert_eq!((own.rollback_to(2), own.len()), (1, 1));
        assert_eq!((own.rollback_to(1), own.len()), (1, 0));
    }

    #[test]
    fn scans_beside_ranges_bring_what_lies_in_none() {
        let random = SeededRandom::new(3);
        let key = || (0..random.below(3)).map(|_| random.below(3) as u8).collect::<Vec<u8>>();
        for _ in 0..2_000 {
            let all: BTreeSet<Vec<u8>> = (0..12).map(|_| key()).collect();
            let mut own = OwnRanges::default();
            for _ in 0..random.below(4) {
                let upper = if random.below(4) == 0 { Bound::Unbounded } else { Bound::Excluded(key()) };
                let range = KeyRange { lower: Bound::Included(key()), upper };
                own.push(TREE, &range, 0);
            }
            let bound = || match random.below(3) {
                0 => Bound::Included(key()),
                1 => Bound::Excluded(key()),
                _ => Bound::Unbounded,
            };
            let range = KeyRange { lower: bound(), upper: bound() };
            for direction in [Direction::Forward, Direction::Backward] {
                let mut expected: Vec<&Vec<u8>> =
                    all.iter().filter(|key| range.contains(key) && !own.contain(TREE, key)).collect();
                if direction == Direction::Backward {
                    expected.reverse();
                }
                let (mut rest, mut found, mut batch) = (range.clone(), Vec::new(), Batch::new());
                loop {
                    let end = own.scan_beside(TREE, &rest, direction, &mut batch, &mut |range, batch| {
                        batch.clear();
                        let within: Vec<_> = all.iter().filter(|key| range.contains(key)).collect();
                        let first = match direction {
                            Direction::Forward => within.iter().take(2).copied().collect::<Vec<_>>(),
                            Direction::Backward => within.iter().rev().take(2).copied().collect(),
                        };
                        first.iter().for_each(|key| batch.push(key, b""));
                        Ok(if within.len() > first.len() { ScanEnd::More } else { ScanEnd::Done })
                    });
                    found.extend(batch.iter().map(|(key, _)| key.to_vec()));
                    match (end.expect("nothing fails"), batch.last()) {
                        (ScanEnd::More, Some((last, _))) => rest.advance_past(last, direction),
                        (ScanEnd::More, None) => panic!("an empty batch is the end"),
                        (ScanEnd::Done, _) => break,
                    }
                }
                assert!(found.iter().eq(expected), "{range:?} {direction:?} beside {own:?}");
            }
        }
    }
}
