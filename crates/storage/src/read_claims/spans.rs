//! The ranges that one reader has claimed, by tree: apart from each other, in order.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;

use crate::identifiers::TreeId;
use crate::key_range::KeyRange;

/// Ranges of one reader. Beyond that, neighbours are joined.
pub(super) const SPANS_MAX: usize = 4_096;

/// See the module's head.
#[derive(Debug, Default)]
pub(super) struct Spans {
    /// In each tree, the first key behind a range by its first key; `None` where the range has no end.
    trees: HashMap<TreeId, BTreeMap<Vec<u8>, Option<Vec<u8>>>>,
    count: usize,
}

/// The ends of a range of the form that [`KeyRange::half_open`] gives.
pub(super) fn ends(range: &KeyRange) -> (&[u8], Option<&[u8]>) {
    let lower = match &range.lower {
        Bound::Included(lower) | Bound::Excluded(lower) => lower.as_slice(),
        Bound::Unbounded => &[],
    };
    let upper = match &range.upper {
        Bound::Included(upper) | Bound::Excluded(upper) => Some(upper.as_slice()),
        Bound::Unbounded => None,
    };
    (lower, upper)
}

fn is_beyond(end: Option<&[u8]>, key: &[u8]) -> bool {
    end.is_none_or(|end| end > key)
}

impl Spans {
    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Adds a half-open range.
    pub(super) fn add(&mut self, tree: TreeId, range: &KeyRange) {
        let (lower, upper) = ends(range);
        let spans = self.trees.entry(tree).or_default();
        let before = spans.len();
        let (mut lower, mut upper) = (lower.to_vec(), upper.map(<[u8]>::to_vec));
        // The ranges that it meets or touches become part of it.
        while let Some((start, end)) =
            Self::last_to(spans, upper.as_deref().map_or(Bound::Unbounded, Bound::Included))
        {
            if end.as_deref().is_some_and(|end| end < lower.as_slice()) {
                break;
            }
            let (start, end) = (start.clone(), end.clone());
            spans.remove(&start);
            lower = lower.min(start);
            upper = match (upper, end) {
                (Some(one), Some(other)) => Some(one.max(other)),
                _ => None,
            };
        }
        spans.insert(lower, upper);
        self.count = self.count + spans.len() - before;
        if self.count > SPANS_MAX {
            self.join_neighbours();
        }
    }

    /// The last range that begins before an end, or at it.
    fn last_to<'s>(
        spans: &'s BTreeMap<Vec<u8>, Option<Vec<u8>>>,
        end: Bound<&[u8]>,
    ) -> Option<(&'s Vec<u8>, &'s Option<Vec<u8>>)> {
        spans.range::<[u8], _>((Bound::Unbounded, end)).next_back()
    }

    /// Joins each second range of every tree with the one behind it.
    fn join_neighbours(&mut self) {
        self.count = 0;
        for spans in self.trees.values_mut() {
            let mut joined = BTreeMap::new();
            let mut rest = std::mem::take(spans).into_iter();
            while let Some((lower, end)) = rest.next() {
                let end = rest.next().map_or(end, |(_, end)| end);
                joined.insert(lower, end);
            }
            self.count += joined.len();
            *spans = joined;
        }
    }

    /// Whether a key lies within one.
    pub(super) fn contain(&self, tree: TreeId, key: &[u8]) -> bool {
        let Some(spans) = self.trees.get(&tree) else { return false };
        Self::last_to(spans, Bound::Included(key)).is_some_and(|(_, end)| is_beyond(end.as_deref(), key))
    }

    /// Whether a half-open range has keys of one.
    pub(super) fn meet(&self, tree: TreeId, range: &KeyRange) -> bool {
        let Some(spans) = self.trees.get(&tree) else { return false };
        let (lower, upper) = ends(range);
        Self::last_to(spans, upper.map_or(Bound::Unbounded, Bound::Excluded))
            .is_some_and(|(_, end)| is_beyond(end.as_deref(), lower))
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    const TREE: TreeId = TreeId::new(3);

    fn range(lower: &str, upper: &str) -> KeyRange {
        KeyRange { lower: Bound::Included(lower.into()), upper: Bound::Excluded(upper.into()) }
    }

    fn of(spans: &Spans) -> Vec<(String, String)> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        spans.trees[&TREE]
            .iter()
            .map(|(lower, upper)| (text(lower), upper.as_deref().map_or("∞".to_owned(), text)))
            .collect()
    }

    fn pair(lower: &str, upper: &str) -> (String, String) {
        (lower.to_owned(), upper.to_owned())
    }

    #[test]
    fn ranges_that_meet_or_touch_become_one() {
        let mut spans = Spans::default();
        for (lower, upper) in [("d", "f"), ("k", "m"), ("f", "g"), ("a", "b"), ("c", "e")] {
            spans.add(TREE, &range(lower, upper));
        }
        assert_eq!(of(&spans), [pair("a", "b"), pair("c", "g"), pair("k", "m")]);
        spans.add(TREE, &range("b", "l"));
        assert_eq!((of(&spans), spans.len()), (vec![pair("a", "m")], 1));
        spans.add(TREE, &KeyRange { lower: Bound::Included(b"l".to_vec()), upper: Bound::Unbounded });
        assert_eq!(of(&spans), [pair("a", "∞")]);
        spans.add(TREE, &range("x", "y"));
        assert_eq!(of(&spans), [pair("a", "∞")]);
        spans.add(TREE, &KeyRange::all().half_open().expect("it has keys"));
        assert_eq!((of(&spans), spans.len()), (vec![pair("", "∞")], 1));
    }

    #[test]
    fn a_key_and_a_range_are_found_at_the_ends() {
        let mut spans = Spans::default();
        spans.add(TREE, &range("b", "d"));
        spans.add(TREE, &range("f", "g"));
        let within: Vec<_> = ["a", "b", "cc", "d", "e", "f", "ff", "g"]
            .into_iter()
            .filter(|key| spans.contain(TREE, key.as_bytes()))
            .collect();
        assert_eq!(within, ["b", "cc", "f", "ff"]);
        assert!(spans.meet(TREE, &range("a", "bb")) && spans.meet(TREE, &range("c", "z")));
        assert!(spans.meet(TREE, &KeyRange::all().half_open().expect("it has keys")));
        assert!(!spans.meet(TREE, &range("a", "b")) && !spans.meet(TREE, &range("d", "f")));
        assert!(!spans.meet(TREE, &range("g", "z")) && !spans.meet(TreeId::new(1), &range("a", "z")));
    }

    #[test]
    fn there_are_only_so_many() {
        let mut spans = Spans::default();
        for number in 0..100_000_u32 {
            let key = (number * 2).to_be_bytes();
            spans.add(TREE, &KeyRange::point(&key).half_open().expect("it has keys"));
            assert!(spans.len() <= SPANS_MAX);
        }
        for number in (0..100_000_u32).step_by(77) {
            assert!(spans.contain(TREE, &(number * 2).to_be_bytes()), "no claim is lost");
        }
        assert!(!spans.contain(TREE, &200_000_u32.to_be_bytes()));
    }
}
