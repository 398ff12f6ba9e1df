//! The range deletes of a tree that are not applied to its nodes and leaves yet: which keys each covers, and
//! its timestamp.
//!
//! # Terms
//! - *Range delete*: deletes every older version of the keys of a *span*, for every snapshot that sees its
//!   timestamp. It is a range tombstone in RocksDB's terms. It is kept in no buffer and in no node, but in
//!   this list. The list is part of the tree's view, and the catalog stores it with the root.
//! - *Fragment*: a span whose keys have the same range deletes, with their timestamps, newest first.
//!   Overlapping range deletes are cut into fragments, as RocksDB cuts range tombstones.
//! - *Floor* of a key for a snapshot: the timestamp of the newest range delete over the key that the snapshot
//!   sees. Versions below the floor are deleted.
//!
//! ```text
//!  range deletes   [b ........ m) at 7        fragments   [b, f)  7
//!                      [f .......... t) at 9              [f, m)  9, 7
//!                                                         [m, t)  9
//!  floor of key h:  snapshot 10 -> 9     snapshot 8 -> 7     snapshot 5 -> 0
//! ```
//!
//! # The life of a range delete
//! 1. A commit adds it under the write side of the commit gate. So range deletes are added in log order, and
//!    [`DeletedRanges::seen`] is an exact cut: replay adds those after it and no others.
//! 2. Reads hide versions below the floor. Flushes drop them where no snapshot needs them
//!    ([`version_retention`](crate::tree::version_retention)).
//! 3. Once every snapshot sees it, background work applies it from left to right, in steps
//!    ([`range_delete_step`](crate::tree::range_delete_step)). A step removes older versions from nodes and
//!    leaves, then takes the range delete off the keys that are done.
//!
//! # Invariants
//! - Fragments ascend, do not overlap, and have at least one timestamp. Adjacent fragments differ in their
//!   timestamps.
//! - The list is immutable. A new list is installed together with the view that holds it, so a reader sees
//!   both as of one moment.
//! - While a range delete covers a key, leaves keep the timestamps of its versions that are not older. A
//!   version without a timestamp would count as older and be hidden.

use std::sync::Arc;

use pando_storage::{CommitTimestamp, Direction, KeyRange, Lsn, SnapshotTimestamp};

use crate::base::KeySpan;

/// About the most fragments of one tree. Beyond that, ranges are deleted key by key.
pub(crate) const FRAGMENTS_MAX: usize = 1_024;

/// A span whose keys have the same range deletes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RangeFragment {
    pub(crate) span: KeySpan,
    /// Newest first, at least one.
    pub(crate) times: Arc<[CommitTimestamp]>,
}

/// The list of one tree; see the module's head.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DeletedRanges {
    fragments: Vec<RangeFragment>,
    seen: Lsn,
}

impl DeletedRanges {
    /// A stored list, whose fragments are in order.
    pub(crate) fn from_stored(fragments: Vec<RangeFragment>, seen: Lsn) -> DeletedRanges {
        DeletedRanges { fragments, seen }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.fragments.is_empty()
    }

    pub(crate) fn fragments(&self) -> &[RangeFragment] {
        &self.fragments
    }

    /// The last log record that brought a range delete of the tree. The list has it, unless it has been
    /// applied since.
    pub(crate) fn seen(&self) -> Lsn {
        self.seen
    }

    /// The timestamps of all range deletes over a key, newest first.
    pub(crate) fn over(&self, key: &[u8]) -> &[CommitTimestamp] {
        let at = self.fragments.partition_point(|fragment| *fragment.span.start <= *key);
        match at.checked_sub(1).map(|at| &self.fragments[at]) {
            Some(fragment) if fragment.span.contains(key) => &fragment.times,
            _ => &[],
        }
    }

    /// The floor of a key for a snapshot; 0 if no version is deleted.
    pub(crate) fn floor(&self, key: &[u8], snapshot: SnapshotTimestamp) -> CommitTimestamp {
        if self.is_empty() { CommitTimestamp::ZERO } else { floor_of(self.over(key), snapshot) }
    }

    /// The range deletes over the next keys of a scan, in its direction, and the key at which these keys end.
    /// That is `None` where they reach to the end of the tree.
    pub(crate) fn next(&self, rest: &KeyRange, direction: Direction) -> (&[CommitTimestamp], Option<&[u8]>) {
        match direction {
            Direction::Forward => self.next_forward(rest),
            Direction::Backward => self.next_backward(rest),
        }
    }

    fn next_forward(&self, rest: &KeyRange) -> (&[CommitTimestamp], Option<&[u8]>) {
        use std::ops::Bound::{Excluded, Included, Unbounded};
        let from = match &rest.lower {
            Included(key) | Excluded(key) => key.as_slice(),
            Unbounded => &[],
        };
        let after = self.fragments.partition_point(|fragment| *fragment.span.start <= *from);
        if let Some(at) = after.checked_sub(1)
            && self.fragments[at].span.contains(from)
        {
            let fragment = &self.fragments[at];
            return (&fragment.times, fragment.span.end.as_deref());
        }
        (&[], self.fragments.get(after).map(|next| &*next.span.start))
    }

    fn next_backward(&self, rest: &KeyRange) -> (&[CommitTimestamp], Option<&[u8]>) {
        use std::ops::Bound::{Excluded, Included, Unbounded};
        let begins = |fragment: &RangeFragment| match &rest.upper {
            Included(key) => *fragment.span.start <= **key,
            Excluded(key) => *fragment.span.start < **key,
            Unbounded => true,
        };
        let Some(at) = self.fragments.partition_point(begins).checked_sub(1) else { return (&[], None) };
        let fragment = &self.fragments[at];
        let reaches = match (&fragment.span.end, &rest.upper) {
            (None, _) => true,
            (Some(_), Unbounded) => false,
            (Some(end), Included(key)) => **end > **key,
            (Some(end), Excluded(key)) => **end >= **key,
        };
        if reaches {
            return (&fragment.times, Some(&fragment.span.start));
        }
        (&[], fragment.span.end.as_deref())
    }

    /// The list with the range deletes of one more log record.
    pub(crate) fn with_all<'s>(
        &self,
        spans: impl Iterator<Item = &'s KeySpan>,
        time: CommitTimestamp,
        lsn: Lsn,
    ) -> DeletedRanges {
        assert!(lsn > self.seen, "range deletes come in the order of their records");
        spans.fold(DeletedRanges { fragments: self.fragments.clone(), seen: lsn }, |list, span| {
            list.with(span, time)
        })
    }

    fn with(&self, span: &KeySpan, time: CommitTimestamp) -> DeletedRanges {
        let fragments = self.changed(span, |times| {
            let newer = times.partition_point(|other| *other > time);
            let mut times = times.to_vec();
            if times.get(newer) != Some(&time) {
                times.insert(newer, time);
            }
            times
        });
        DeletedRanges { fragments, seen: self.seen }
    }

    /// The list without the range deletes up to a timestamp, over the keys of a span.
    pub(crate) fn without(&self, span: &KeySpan, up_to: CommitTimestamp) -> DeletedRanges {
        let fragments =
            self.changed(span, |times| times[..times.partition_point(|time| *time > up_to)].to_vec());
        DeletedRanges { fragments, seen: self.seen }
    }

    /// The empty list.
    pub(crate) fn cleared(&self) -> DeletedRanges {
        DeletedRanges { fragments: Vec::new(), seen: self.seen }
    }

    /// The fragments, with changed timestamps over the keys of a span.
    fn changed(
        &self,
        span: &KeySpan,
        change: impl Fn(&[CommitTimestamp]) -> Vec<CommitTimestamp>,
    ) -> Vec<RangeFragment> {
        let mut out = FragmentCollector::default();
        // The start of the rest of the span; `None` once the rest is empty.
        let mut rest = Some(span.start.clone());
        for fragment in &self.fragments {
            let before = KeySpan { start: fragment.span.start.clone(), end: Some(span.start.clone()) };
            let behind = span.end.as_ref().map(|end| KeySpan { start: end.clone(), end: None });
            out.push(fragment.span.meet(&before), &fragment.times);
            if let Some(from) = rest.clone()
                && fragment.span.start > from
            {
                let gap = KeySpan { start: from, end: Some(fragment.span.start.clone()) };
                out.push(span.meet(&gap), &change(&[]));
                rest = Some(fragment.span.start.clone());
            }
            if let Some(both) = span.meet(&fragment.span) {
                rest = both.end.clone();
                out.push(Some(both), &change(&fragment.times));
            }
            out.push(behind.and_then(|behind| fragment.span.meet(&behind)), &fragment.times);
        }
        if let Some(from) = rest {
            out.push(span.meet(&KeySpan { start: from, end: None }), &change(&[]));
        }
        out.0
    }
}

/// The timestamp of the newest of these range deletes that a snapshot sees; 0 for none.
pub(crate) fn floor_of(times: &[CommitTimestamp], snapshot: SnapshotTimestamp) -> CommitTimestamp {
    times.iter().copied().find(|time| snapshot.sees(*time)).unwrap_or(CommitTimestamp::ZERO)
}

/// Collects fragments in order. Adjacent ones with the same timestamps become one.
#[derive(Default)]
struct FragmentCollector(Vec<RangeFragment>);

impl FragmentCollector {
    fn push(&mut self, span: Option<KeySpan>, times: &[CommitTimestamp]) {
        let Some(span) = span.filter(|_| !times.is_empty()) else { return };
        match self.0.last_mut() {
            Some(last) if last.span.end.as_ref() == Some(&span.start) && *last.times == *times => {
                last.span.end = span.end;
            }
            _ => self.0.push(RangeFragment { span, times: times.into() }),
        }
    }
}

#[cfg(test)]
mod tests;
