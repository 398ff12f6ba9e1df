//! The ranges that a transaction has deleted, as it sees them itself.
//!
//! What it wrote into a range before it deleted it, it deletes key by key in its own writes. So its writes always lie over its ranges,
//! and its ranges over what the engine has.
//!
//! # Savepoints
//! A savepoint is a number of writes; here each range counts as one, too: the savepoint of a transaction is the number of its writes and
//! ranges. Of a range is known how many writes there were before it.

use std::ops::Bound;

use pando_storage::{Batch, Direction, KeyRange, ScanEnd, StorageError, TreeId};

use crate::base::KeySpan;
use crate::range_deletes::encoding::DeletedRange;

/// Ranges of one transaction at most: each read looks through them. Beyond that ranges are deleted key by key.
pub(crate) const OWN_RANGES_MAX: usize = 64;

/// See the module's head.
#[derive(Debug, Default)]
pub(crate) struct OwnRanges {
    ranges: Vec<DeletedRange>,
    /// For each, how many writes there were before it.
    writes_before: Vec<usize>,
}

impl OwnRanges {
    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.ranges.len()
    }

    /// All of them, in the order in which they were deleted.
    pub(crate) fn as_slice(&self) -> &[DeletedRange] {
        &self.ranges
    }

    /// Bytes of their ends.
    pub(crate) fn bytes(&self) -> usize {
        self.ranges.iter().map(|range| range.span.bytes()).sum()
    }

    /// Adds a range behind so many writes.
    pub(crate) fn push(&mut self, tree: TreeId, span: KeySpan, writes_before: usize) {
        self.ranges.push(DeletedRange { tree, span });
        self.writes_before.push(writes_before);
    }

    /// Forgets those behind a savepoint; the number of writes at that time.
    pub(crate) fn rollback_to(&mut self, savepoint: usize) -> usize {
        while let Some(before) = self.writes_before.last()
            && before + self.ranges.len() > savepoint
        {
            self.ranges.pop();
            self.writes_before.pop();
        }
        savepoint - self.ranges.len()
    }

    /// Whether a key lies within one of them.
    pub(crate) fn contain(&self, tree: TreeId, key: &[u8]) -> bool {
        self.of(tree).any(|span| span.contains(key))
    }

    fn of(&self, tree: TreeId) -> impl Iterator<Item = &KeySpan> + '_ {
        self.ranges.iter().filter(move |range| range.tree == tree).map(|range| &range.span)
    }

    /// Scans what lies beside the ranges with `base`, a batch at a time: it is empty only at the end.
    pub(crate) fn scan_beside(
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

    /// The next keys that lie beside all ranges, in the direction of the scan; what remains after them is left in `rest`.
    fn next_gap(&self, tree: TreeId, rest: &mut KeyRange, direction: Direction) -> Option<KeyRange> {
        match direction {
            Direction::Forward => {
                while let Some(within) = self.of(tree).find(|span| begins_within(rest, span)) {
                    rest.lower = Bound::Included(within.end.as_ref()?.to_vec());
                }
                if rest.is_empty() {
                    return None;
                }
                let from = match &rest.lower {
                    Bound::Included(key) | Bound::Excluded(key) => key.clone(),
                    Bound::Unbounded => Vec::new(),
                };
                let starts = self.of(tree).map(|span| &*span.start).filter(|start| *start > from.as_slice());
                let Some(next) = starts.min().filter(|next| rest.is_below_upper(next)) else {
                    return Some(std::mem::replace(rest, nothing()));
                };
                let gap = KeyRange { lower: rest.lower.clone(), upper: Bound::Excluded(next.to_vec()) };
                rest.lower = Bound::Included(next.to_vec());
                Some(gap)
            }
            Direction::Backward => {
                while let Some(within) = self.of(tree).find(|span| ends_within(rest, span)) {
                    rest.upper = Bound::Excluded(within.start.to_vec());
                }
                if rest.is_empty() {
                    return None;
                }
                let lies_before = |end: &&[u8]| match &rest.upper {
                    Bound::Included(key) => *end <= key.as_slice(),
                    Bound::Excluded(key) => *end < key.as_slice(),
                    Bound::Unbounded => true,
                };
                let ends = self.of(tree).filter_map(|span| span.end.as_deref()).filter(lies_before);
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

/// Whether the first keys of what remains lie within a span.
fn begins_within(rest: &KeyRange, span: &KeySpan) -> bool {
    if rest.is_empty() {
        return false;
    }
    match &rest.lower {
        Bound::Included(key) | Bound::Excluded(key) => span.contains(key),
        Bound::Unbounded => span.start.is_empty(),
    }
}

/// Whether the last keys of what remains lie within a span.
fn ends_within(rest: &KeyRange, span: &KeySpan) -> bool {
    if rest.is_empty() {
        return false;
    }
    match &rest.upper {
        Bound::Included(key) => span.contains(key),
        Bound::Excluded(key) => *span.start < **key && span.end.as_ref().is_none_or(|end| **key <= **end),
        Bound::Unbounded => span.end.is_none(),
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

    use crate::range_deletes::own_ranges::*;

    const TREE: TreeId = TreeId::new(1);

    fn span(lower: &[u8], upper: Option<&[u8]>) -> KeySpan {
        let upper = upper.map_or(Bound::Unbounded, |upper| Bound::Excluded(upper.to_vec()));
        KeySpan::of(&KeyRange { lower: Bound::Included(lower.to_vec()), upper }).expect("it has keys")
    }

    #[test]
    fn a_rollback_forgets_the_ranges_behind_the_savepoint() {
        let mut own = OwnRanges::default();
        // A write, a range, two writes, two ranges: savepoints 0 to 6.
        own.push(TREE, span(b"a", Some(b"b")), 1);
        own.push(TREE, span(b"c", Some(b"d")), 3);
        own.push(TREE, span(b"e", Some(b"f")), 3);
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
                own.ranges.extend(KeySpan::of(&range).map(|span| DeletedRange { tree: TREE, span }));
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
