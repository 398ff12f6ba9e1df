//! The range of keys that a scan, a range delete or an estimate is about, and the direction of a scan.
//!
//! Keys compare as unsigned bytes. Either end of a range may be included, excluded or open. No engine keeps
//! state between two batches of a scan, so a scan that goes on has its range narrowed past the last key
//! ([`KeyRange::advance_past`]).

use std::ops::Bound;

/// Which way a scan goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From small keys to great ones.
    Forward,
    /// From great keys to small ones.
    Backward,
}

/// The keys between two bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRange {
    /// The lower end.
    pub lower: Bound<Vec<u8>>,
    /// The upper end.
    pub upper: Bound<Vec<u8>>,
}

impl KeyRange {
    /// Every key.
    pub const fn all() -> KeyRange {
        KeyRange { lower: Bound::Unbounded, upper: Bound::Unbounded }
    }

    /// The keys that begin with these bytes.
    pub fn prefix(prefix: &[u8]) -> KeyRange {
        let upper = match successor_of_prefix(prefix) {
            Some(next) => Bound::Excluded(next),
            None => Bound::Unbounded,
        };
        KeyRange { lower: Bound::Included(prefix.to_vec()), upper }
    }

    /// One key.
    pub fn point(key: &[u8]) -> KeyRange {
        KeyRange { lower: Bound::Included(key.to_vec()), upper: Bound::Included(key.to_vec()) }
    }

    /// Whether the key lies within.
    pub fn contains(&self, key: &[u8]) -> bool {
        self.is_above_lower(key) && self.is_below_upper(key)
    }

    /// Whether the key is not too small.
    pub fn is_above_lower(&self, key: &[u8]) -> bool {
        match &self.lower {
            Bound::Included(lower) => key >= lower.as_slice(),
            Bound::Excluded(lower) => key > lower.as_slice(),
            Bound::Unbounded => true,
        }
    }

    /// Whether the key is not too great.
    pub fn is_below_upper(&self, key: &[u8]) -> bool {
        match &self.upper {
            Bound::Included(upper) => key <= upper.as_slice(),
            Bound::Excluded(upper) => key < upper.as_slice(),
            Bound::Unbounded => true,
        }
    }

    /// Whether no key can lie within: the bounds cross or touch without meeting.
    pub fn is_empty(&self) -> bool {
        match (&self.lower, &self.upper) {
            (Bound::Unbounded, _) => matches!(&self.upper, Bound::Excluded(upper) if upper.is_empty()),
            (_, Bound::Unbounded) => false,
            (Bound::Included(lower), Bound::Included(upper)) => lower > upper,
            (
                Bound::Included(lower) | Bound::Excluded(lower),
                Bound::Included(upper) | Bound::Excluded(upper),
            ) => lower >= upper,
        }
    }

    /// The same keys, from one that is included up to before another (or to the end); `None` where there are
    /// none.
    pub fn half_open(&self) -> Option<KeyRange> {
        if self.is_empty() {
            return None;
        }
        let lower = match &self.lower {
            Bound::Included(key) => key.clone(),
            Bound::Excluded(key) => successor(key),
            Bound::Unbounded => Vec::new(),
        };
        let upper = match &self.upper {
            Bound::Included(key) => Bound::Excluded(successor(key)),
            Bound::Excluded(key) => Bound::Excluded(key.clone()),
            Bound::Unbounded => Bound::Unbounded,
        };
        Some(KeyRange { lower: Bound::Included(lower), upper }).filter(|range| !range.is_empty())
    }

    /// Narrows the range to what lies beyond `key` in `direction`.
    pub fn advance_past(&mut self, key: &[u8], direction: Direction) {
        let bound = match direction {
            Direction::Forward => &mut self.lower,
            Direction::Backward => &mut self.upper,
        };
        match bound {
            Bound::Excluded(have) => {
                have.clear();
                have.extend_from_slice(key);
            }
            Bound::Included(_) | Bound::Unbounded => *bound = Bound::Excluded(key.to_vec()),
        }
    }
}

/// The smallest key that is greater than this one.
fn successor(key: &[u8]) -> Vec<u8> {
    [key, &[0]].concat()
}

/// The smallest key that is greater than every key with this prefix; `None` where there is none (all bytes
/// 0xFF).
pub fn successor_of_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte != 0xFF)?;
    let mut next = prefix[..=last].to_vec();
    next[last] += 1;
    Some(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_successor_of_a_prefix_skips_bytes_that_cannot_grow() {
        assert_eq!(successor_of_prefix(b"ab"), Some(b"ac".to_vec()));
        assert_eq!(successor_of_prefix(b"a\xFF\xFF"), Some(b"b".to_vec()));
        assert_eq!(successor_of_prefix(b"\xFF"), None);
        assert_eq!(successor_of_prefix(b""), None);
    }

    #[test]
    fn a_range_whose_bounds_touch_without_meeting_is_empty() {
        let touching =
            KeyRange { lower: Bound::Excluded(b"a".to_vec()), upper: Bound::Included(b"a".to_vec()) };
        assert!(touching.is_empty());
        assert!(!KeyRange::point(b"a").is_empty());
        assert!(!KeyRange::all().is_empty());
        assert!(KeyRange::prefix(b"a").contains(b"ab") && !KeyRange::prefix(b"a").contains(b"b"));
    }

    #[test]
    fn a_half_open_range_has_the_same_keys() {
        let key = |number: usize| [&b""[..], b"a", b"a\0", b"a\0\0", b"b"][number].to_vec();
        let bounds =
            |number: usize| [Bound::Included(key(number)), Bound::Excluded(key(number)), Bound::Unbounded];
        for (lower, upper) in (0..5).flat_map(|lower| (0..5).map(move |upper| (lower, upper))) {
            for lower in bounds(lower) {
                for upper in bounds(upper) {
                    let range = KeyRange { lower: lower.clone(), upper };
                    let half_open = range.half_open();
                    let contains =
                        |key: &[u8]| half_open.as_ref().is_some_and(|half_open| half_open.contains(key));
                    assert!((0..5).all(|at| contains(&key(at)) == range.contains(&key(at))), "{range:?}");
                }
            }
        }
    }
}
