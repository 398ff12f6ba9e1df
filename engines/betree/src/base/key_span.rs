//! A half-open range of keys: from one key up to before another.

use std::ops::Bound;

use bytes::Bytes;
use pando_storage::{KEY_BYTES_MAX, KeyRange};

/// The longest bound of a span: the first key after the longest key.
pub(crate) const BOUND_BYTES_MAX: usize = KEY_BYTES_MAX + 1;

/// A half-open range of keys that is not empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeySpan {
    pub(crate) start: Bytes,
    /// `None`: up to the end of the tree.
    pub(crate) end: Option<Bytes>,
}

impl KeySpan {
    /// Every key.
    #[cfg(test)]
    pub(crate) fn all() -> KeySpan {
        KeySpan { start: Bytes::new(), end: None }
    }

    /// The keys of a range; `None` if it is empty.
    pub(crate) fn of(range: &KeyRange) -> Option<KeySpan> {
        if range.is_empty() {
            return None;
        }
        let start = match &range.lower {
            Bound::Included(key) => Bytes::copy_from_slice(key),
            Bound::Excluded(key) => behind(key),
            Bound::Unbounded => Bytes::new(),
        };
        let end = match &range.upper {
            Bound::Included(key) => Some(behind(key)),
            Bound::Excluded(key) => Some(Bytes::copy_from_slice(key)),
            Bound::Unbounded => None,
        };
        Some(KeySpan { start, end }).filter(KeySpan::has_keys)
    }

    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        *self.start <= *key && self.end.as_ref().is_none_or(|end| *key < **end)
    }

    /// Whether all keys from `lower` up to before `upper` lie within. `None` stands for the end of the tree.
    pub(crate) fn covers(&self, lower: &[u8], upper: Option<&[u8]>) -> bool {
        let ends_within = match (&self.end, upper) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(end), Some(upper)) => *upper <= **end,
        };
        *self.start <= *lower && ends_within
    }

    /// Whether some key from `lower` up to before `upper` may lie within. `None` stands for the end of the
    /// tree.
    pub(crate) fn overlaps(&self, lower: &[u8], upper: Option<&[u8]>) -> bool {
        upper.is_none_or(|upper| *self.start < *upper) && self.end.as_ref().is_none_or(|end| *lower < **end)
    }

    /// The keys that both spans have; `None` if there are none.
    pub(crate) fn meet(&self, other: &KeySpan) -> Option<KeySpan> {
        let start = self.start.clone().max(other.start.clone());
        let end = match (&self.end, &other.end) {
            (Some(one), Some(other)) => Some(one.min(other).clone()),
            (one, other) => one.clone().or_else(|| other.clone()),
        };
        Some(KeySpan { start, end }).filter(KeySpan::has_keys)
    }

    /// Bytes of its ends.
    pub(crate) fn bytes(&self) -> usize {
        self.start.len() + self.end.as_ref().map_or(0, Bytes::len)
    }

    /// Whether its ends are short enough to be stored.
    pub(crate) fn is_storable(&self) -> bool {
        let is_short = |key: &Bytes| key.len() <= BOUND_BYTES_MAX;
        is_short(&self.start) && self.end.as_ref().is_none_or(is_short)
    }

    fn has_keys(&self) -> bool {
        self.end.as_ref().is_none_or(|end| self.start < *end)
    }
}

/// The first key behind another.
fn behind(key: &[u8]) -> Bytes {
    Bytes::from([key, &[0]].concat())
}
