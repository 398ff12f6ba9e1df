//! A set of numbers kept as intervals, for units of a file: the free, the used or the changed ones.
//!
//! Invariants: intervals are not empty, do not overlap and do not touch. `total` is the sum of their lengths.

use std::collections::BTreeMap;
use std::ops::Range;

/// See the [module](self).
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct IntervalSet {
    /// End (exclusive) by start.
    intervals: BTreeMap<u64, u64>,
    total: u64,
}

/// The intervals beside an inserted range that were merged with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Neighbours {
    pub(crate) left: Option<Range<u64>>,
    pub(crate) right: Option<Range<u64>>,
}

impl IntervalSet {
    pub(crate) fn new() -> IntervalSet {
        IntervalSet::default()
    }

    /// The number of intervals.
    pub(crate) fn len(&self) -> usize {
        self.intervals.len()
    }

    /// The number of numbers in the set.
    pub(crate) const fn total(&self) -> u64 {
        self.total
    }

    /// The intervals, ascending.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = Range<u64>> + Clone + '_ {
        self.intervals.iter().map(|(start, end)| *start..*end)
    }

    /// The first part of the range that is in the set.
    pub(crate) fn overlap(&self, range: &Range<u64>) -> Option<Range<u64>> {
        let from_left = self.at_or_before(range.start).filter(|found| found.end > range.start);
        let found = from_left.or_else(|| {
            self.intervals.range(range.start..range.end).next().map(|(start, end)| *start..*end)
        })?;
        Some(found.start.max(range.start)..found.end.min(range.end))
    }

    /// Whether all of the range is in the set.
    pub(crate) fn contains(&self, range: &Range<u64>) -> bool {
        self.at_or_before(range.start).is_some_and(|found| found.end >= range.end)
    }

    /// Adds a range that is disjoint from the set. Otherwise the set is unchanged, and the overlap is the
    /// error.
    pub(crate) fn insert(&mut self, range: Range<u64>) -> Result<Neighbours, Range<u64>> {
        assert!(range.start < range.end, "an empty range {range:?} cannot be inserted");
        if let Some(overlap) = self.overlap(&range) {
            return Err(overlap);
        }
        self.total += range.end - range.start;
        let left = self.at_or_before(range.start).filter(|found| found.end == range.start);
        let right = self.intervals.get(&range.end).map(|end| range.end..*end);
        let start = left.as_ref().map_or(range.start, |left| left.start);
        let end = right.as_ref().map_or(range.end, |right| right.end);
        self.intervals.remove(&range.end);
        self.intervals.insert(start, end);
        Ok(Neighbours { left, right })
    }

    /// Removes a range that is wholly in the set, and returns the interval that contained it. Otherwise the
    /// set is unchanged.
    pub(crate) fn remove(&mut self, range: &Range<u64>) -> Option<Range<u64>> {
        assert!(range.start < range.end, "an empty range {range:?} cannot be removed");
        let around = self.at_or_before(range.start).filter(|found| found.end >= range.end)?;
        self.intervals.remove(&around.start);
        if around.start < range.start {
            self.intervals.insert(around.start, range.start);
        }
        if range.end < around.end {
            self.intervals.insert(range.end, around.end);
        }
        self.total -= range.end - range.start;
        Some(around)
    }

    /// Removes a range. Returns its parts that were in the set, then its parts that were not.
    pub(crate) fn take(&mut self, range: Range<u64>) -> (Vec<Range<u64>>, Vec<Range<u64>>) {
        let (mut within, mut without) = (Vec::new(), Vec::new());
        let mut at = range.start;
        while let Some(part) = self.overlap(&(at..range.end)).filter(|part| part.start < part.end) {
            if at < part.start {
                without.push(at..part.start);
            }
            at = part.end;
            self.remove(&part);
            within.push(part);
        }
        if at < range.end {
            without.push(at..range.end);
        }
        (within, without)
    }

    /// The parts of the range that are not in the set, ascending.
    pub(crate) fn gaps(&self, range: Range<u64>) -> Vec<Range<u64>> {
        let mut gaps = Vec::new();
        let mut at = range.start;
        while at < range.end {
            let Some(part) = self.overlap(&(at..range.end)) else { break };
            if at < part.start {
                gaps.push(at..part.start);
            }
            at = part.end;
        }
        if at < range.end {
            gaps.push(at..range.end);
        }
        gaps
    }

    fn at_or_before(&self, number: u64) -> Option<Range<u64>> {
        self.intervals.range(..=number).next_back().map(|(start, end)| *start..*end)
    }
}

impl std::fmt::Debug for IntervalSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use pando_environment::SeededRandom;

    use super::*;

    fn members(set: &IntervalSet) -> Vec<u64> {
        set.iter().flatten().collect()
    }

    #[test]
    fn ranges_that_touch_become_one() {
        let mut set = IntervalSet::new();
        set.insert(4..6).unwrap();
        set.insert(8..9).unwrap();
        let joined = set.insert(6..8).unwrap();
        assert_eq!(joined, Neighbours { left: Some(4..6), right: Some(8..9) });
        assert_eq!((set.iter().next(), set.len()), (Some(4..9), 1));
        assert_eq!(set.insert(0..5), Err(4..5));
        assert_eq!(set.remove(&(5..7)), Some(4..9));
        assert_eq!(set.gaps(0..10), [0..4, 5..7, 9..10]);
    }

    #[test]
    fn random_operations_agree_with_a_set_of_numbers() {
        for seed in 0..50 {
            let random = SeededRandom::new(seed);
            let mut set = IntervalSet::new();
            let mut model = std::collections::BTreeSet::new();
            for _ in 0..300 {
                let start = random.below(60);
                let range = start..start + 1 + random.below(8);
                let inside = range.clone().filter(|number| model.contains(number)).count() as u64;
                assert_eq!(set.overlap(&range).is_some(), inside > 0, "seed {seed}");
                assert_eq!(set.contains(&range), inside == range.end - range.start, "seed {seed}");
                match random.below(3) {
                    0 => {
                        if set.insert(range.clone()).is_ok() {
                            assert_eq!(inside, 0);
                            model.extend(range);
                        }
                    }
                    1 => {
                        if set.remove(&range).is_some() {
                            model.retain(|number| !range.contains(number));
                        }
                    }
                    _ => {
                        let (within, without) = set.take(range.clone());
                        assert_eq!(within.into_iter().flatten().count() as u64, inside, "seed {seed}");
                        assert!(without.into_iter().flatten().all(|number| !model.contains(&number)));
                        model.retain(|number| !range.contains(number));
                    }
                }
                assert_eq!(members(&set), model.iter().copied().collect::<Vec<_>>(), "seed {seed}");
                assert_eq!(set.total(), model.len() as u64);
                let gaps: Vec<u64> = set.gaps(10..40).into_iter().flatten().collect();
                assert_eq!(gaps, (10..40).filter(|number| !model.contains(number)).collect::<Vec<_>>());
            }
        }
    }
}
