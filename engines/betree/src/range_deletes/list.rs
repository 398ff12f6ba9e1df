//! The range deletes of a tree that are not worked in yet: which keys each of them covers, and when it was.
//!
//! # Terms
//! - *Range delete*: all versions of the keys of a *span* that are older than its time are gone for whoever sees that time. It stands in
//!   no buffer and no node, but here: in the tree's view, and with its root in the catalog.
//! - *Stretch*: a span over which the same range deletes lie; their times stand with it, the newest first.
//! - *Floor* of a key for a snapshot: the time of the newest range delete over it that the snapshot sees. Versions below it are not there.
//!
//! # How one comes and goes
//! 1. A commit adds it, behind the gate's write side: so they come in the order of their records, and [`DeletedRanges::seen`] is an exact
//!    cut. Replay adds those behind it and no others.
//! 2. Reads hide what lies below the floor; merges leave it out where no snapshot needs it ([`retain`](crate::tree::version_retention)).
//! 3. When every snapshot sees it, it is worked in from left to right, in steps ([`work_in`](crate::tree::range_delete_step)): nothing older is left in
//!    nodes and leaves, and it is taken off the keys that are done.
//!
//! # Invariants
//! - Stretches ascend, do not overlap, and each has a time. Neighbours that touch differ in their times.
//! - The list never changes: a new one takes its place, together with the view that it stands in. So a reader has both as of one moment.
//! - While a range delete lies over a key, leaves keep the times of versions of that key that are not older: without a time they would
//!   count as older, and be hidden.

use std::sync::Arc;

use pando_storage::{CommitTimestamp, Direction, KeyRange, Lsn, SnapshotTimestamp};

use crate::base::KeySpan;

/// Stretches of one tree at most, about: beyond that ranges are deleted key by key.
pub(crate) const FRAGMENTS_MAX: usize = 1_024;

/// Keys over which the same range deletes lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RangeFragment {
    pub(crate) span: KeySpan,
    /// Newest first, at least one.
    pub(crate) times: Arc<[CommitTimestamp]>,
}

/// See the module's head.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DeletedRanges {
    fragments: Vec<RangeFragment>,
    seen: Lsn,
}

impl DeletedRanges {
    /// A list that was stored, whose stretches are in order.
    pub(crate) fn from_stored(fragments: Vec<RangeFragment>, seen: Lsn) -> DeletedRanges {
        DeletedRanges { fragments, seen }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.fragments.is_empty()
    }

    pub(crate) fn fragments(&self) -> &[RangeFragment] {
        &self.fragments
    }

    /// The last record of the log that brought a range delete of the tree; the list has it, or it has been worked in.
    pub(crate) fn seen(&self) -> Lsn {
        self.seen
    }

    /// The times of all range deletes over a key, the newest first.
    pub(crate) fn over(&self, key: &[u8]) -> &[CommitTimestamp] {
        let at = self.fragments.partition_point(|fragment| *fragment.span.start <= *key);
        match at.checked_sub(1).map(|at| &self.fragments[at]) {
            Some(fragment) if fragment.span.contains(key) => &fragment.times,
            _ => &[],
        }
    }

    /// The time below which versions of a key are not there for a snapshot; 0 if all are.
    pub(crate) fn floor(&self, key: &[u8], snapshot: SnapshotTimestamp) -> CommitTimestamp {
        if self.is_empty() { CommitTimestamp::ZERO } else { floor_of(self.over(key), snapshot) }
    }

    /// The range deletes over the keys with which what remains of a scan begins, and where these keys end, in the direction of the scan;
    /// `None` where they reach to the end of the tree.
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

    /// The list with those of one more record.
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

    /// The list without those up to a time, over the keys of a span.
    pub(crate) fn without(&self, span: &KeySpan, up_to: CommitTimestamp) -> DeletedRanges {
        let fragments =
            self.changed(span, |times| times[..times.partition_point(|time| *time > up_to)].to_vec());
        DeletedRanges { fragments, seen: self.seen }
    }

    /// The list without any.
    pub(crate) fn cleared(&self) -> DeletedRanges {
        DeletedRanges { fragments: Vec::new(), seen: self.seen }
    }

    /// The stretches, with other times over the keys of a span.
    fn changed(
        &self,
        span: &KeySpan,
        change: impl Fn(&[CommitTimestamp]) -> Vec<CommitTimestamp>,
    ) -> Vec<RangeFragment> {
        let mut out = MergeOutcome::default();
        // Where what remains of the span begins; `None` once nothing does.
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

/// The time of the newest of these range deletes that a snapshot sees; 0 for none.
pub(crate) fn floor_of(times: &[CommitTimestamp], snapshot: SnapshotTimestamp) -> CommitTimestamp {
    times.iter().copied().find(|time| snapshot.sees(*time)).unwrap_or(CommitTimestamp::ZERO)
}

/// Stretches in order; those that touch and have the same times become one.
#[derive(Default)]
struct MergeOutcome(Vec<RangeFragment>);

impl MergeOutcome {
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
