//! Version retention: which versions of a key are still needed. Pure; every flush asks it.
//!
//! # The rule
//! A version of a key is needed if it is newer than the newest snapshot, or if it is the newest version that
//! some snapshot sees. In a leaf, the lowest level, a version that all snapshots see loses its timestamp. A
//! delete there with no version kept below it is the same as the absence of an entry, and is dropped.
//!
//! Merge operators that no snapshot tells apart from the version below them are
//! [combined](crate::tree::value_merge) with it. They need that version, which a newer value would make
//! superfluous. Versions above the newest snapshot are never combined.
//!
//! ```text
//! snapshots 4 and 9, newest 20        versions   25    17    12    8    6    3    2
//!                                     needed     yes   yes   no    yes  no   yes  no
//! ```
//!
//! # Range deletes
//! Over a key they count as deletes, each in its place among the versions. They are never written with the
//! key: they stand in the tree's list. While a range delete lies over a key, versions of the key that are not
//! older keep their timestamps.

use std::sync::Arc;

use bytes::Bytes;
use pando_storage::{CommitTimestamp, SnapshotTimestamp};

use crate::format::content::{Content, LargeReference, merges_of};
use crate::range_deletes::DeletedRanges;
use crate::tree::value_merge::{MergeOutcome, combine};

/// The snapshots that exist, and the newest that one can begin at; and the range deletes of the tree at hand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Retained {
    /// Snapshots of live transactions, ascending; the newest visible one is always the last.
    snapshots: Vec<SnapshotTimestamp>,
    ranges: Arc<DeletedRanges>,
}

impl Retained {
    /// `live` in any order, all at most `newest`.
    pub(crate) fn new(mut live: Vec<SnapshotTimestamp>, newest: SnapshotTimestamp) -> Retained {
        live.push(newest);
        live.sort_unstable();
        live.dedup();
        assert!(live.last() == Some(&newest), "no snapshot is newer than the newest");
        Retained { snapshots: live, ranges: Arc::default() }
    }

    /// The same for a tree with these range deletes. The caller reads them after the snapshots. Then a
    /// missing one is newer than all snapshots, and so newer than every version that loses its timestamp.
    pub(crate) fn with_ranges(self, ranges: Arc<DeletedRanges>) -> Retained {
        Retained { ranges, ..self }
    }

    /// The times of the range deletes over a key, the newest first.
    pub(crate) fn deletes_over(&self, key: &[u8]) -> &[CommitTimestamp] {
        if self.ranges.is_empty() { &[] } else { self.ranges.over(key) }
    }

    /// The oldest snapshot.
    pub(crate) fn oldest(&self) -> SnapshotTimestamp {
        self.snapshots[0]
    }

    /// Whether some snapshot, now or later, sees a version and not its next newer one.
    pub(crate) fn tells_apart(&self, newer: CommitTimestamp, older: CommitTimestamp) -> bool {
        // The oldest snapshot that sees the older version decides.
        let at = self.snapshots.partition_point(|snapshot| !snapshot.sees(older));
        self.snapshots.get(at).is_none_or(|snapshot| !snapshot.sees(newer))
    }
}

/// A version of a key, on its way down or in a leaf that is being written.
#[derive(Clone, Debug)]
pub(crate) struct KeyVersion {
    pub(crate) timestamp: CommitTimestamp,
    pub(crate) content: Content<Bytes>,
}

/// Large values whose last reference a flush has dropped.
pub(crate) type Dropped = Vec<LargeReference<Bytes>>;

/// Drops the versions of a key (newest first) that no snapshot needs, if older versions may lie below: then
/// deletes, merge operators and timestamps stay. Large values of dropped versions are noted in `dropped`.
pub(crate) fn retain_pending(
    key: &[u8],
    versions: &mut Vec<KeyVersion>,
    retained: &Retained,
    dropped: &mut Dropped,
) {
    add_range_deletes(key, versions, retained);
    retain_needed(versions, retained, dropped);
    take_out_range_deletes(key, versions, retained);
}

/// Puts a delete for each range delete over the key in its place among the versions (newest first), if an
/// older version follows. Otherwise versions farther down may be older or newer than the range delete, and
/// merge operators must not take the key below them for deleted.
pub(crate) fn add_range_deletes(key: &[u8], versions: &mut Vec<KeyVersion>, retained: &Retained) {
    for time in retained.deletes_over(key) {
        let newer = versions.partition_point(|version| version.timestamp > *time);
        // A write of the same transaction has the same timestamp, and hides older versions as well.
        if versions.get(newer).is_some_and(|version| version.timestamp < *time) {
            versions.insert(newer, KeyVersion { timestamp: *time, content: Content::Deleted });
        }
    }
}

/// Takes these deletes out again. A delete by the same transaction has the same effect, and goes as well.
fn take_out_range_deletes(key: &[u8], versions: &mut Vec<KeyVersion>, retained: &Retained) {
    let deletes = retained.deletes_over(key);
    if !deletes.is_empty() {
        versions.retain(|version| !(version.content.is_deleted() && deletes.contains(&version.timestamp)));
    }
}

/// Drops the versions and range deletes (newest first) that no snapshot needs.
pub(crate) fn retain_needed(versions: &mut Vec<KeyVersion>, retained: &Retained, dropped: &mut Dropped) {
    versions.dedup_by(|older, newer| {
        assert!(older.timestamp < newer.timestamp, "of each key the versions descend by time");
        if retained.tells_apart(newer.timestamp, older.timestamp) {
            return false;
        }
        let Content::Merge(merges) = &newer.content else {
            if let Content::Large(reference) = &older.content {
                dropped.push(reference.clone());
            }
            return true;
        };
        match combine(merges_of(merges), &older.content.as_ref()) {
            MergeOutcome::One(content) => newer.content = content,
            MergeOutcome::Below => std::mem::swap(&mut newer.content, &mut older.content),
            MergeOutcome::Apart => return false,
        }
        true
    });
}

/// Prepares the versions and range deletes of a key (newest first, without merge operators) for a leaf. Drops
/// deletes with no version below, and takes the timestamp from a last version that all snapshots see.
pub(crate) fn settle(key: &[u8], versions: &mut Vec<KeyVersion>, retained: &Retained) {
    take_out_range_deletes(key, versions, retained);
    while versions.last().is_some_and(|last| last.content.is_deleted()) {
        versions.pop();
    }
    if let Some(last) = versions.last_mut()
        && retained.oldest().sees(last.timestamp)
        && retained.deletes_over(key).last().is_none_or(|oldest| last.timestamp < *oldest)
    {
        last.timestamp = CommitTimestamp::ZERO;
    }
}

#[cfg(test)]
mod tests {
    use pando_storage::{Lsn, Merge};

    use crate::base::KeySpan;
    use crate::tree::version_retention::*;

    fn kept(snapshots: &[u64], newest: u64, versions: &[(u64, bool)]) -> Vec<u64> {
        kept_under(&[], snapshots, newest, versions)
    }

    /// The versions kept under range deletes of these times, the oldest first.
    fn kept_under(deletes: &[u64], snapshots: &[u64], newest: u64, versions: &[(u64, bool)]) -> Vec<u64> {
        let ranges = deletes.iter().fold(DeletedRanges::default(), |list, time| {
            list.with_all([KeySpan::all()].iter(), CommitTimestamp::new(*time), Lsn::new(*time))
        });
        let live = snapshots.iter().map(|snapshot| SnapshotTimestamp::new(*snapshot)).collect();
        let retained = Retained::new(live, SnapshotTimestamp::new(newest));
        let mut versions: Vec<_> = versions
            .iter()
            .map(|(timestamp, put)| KeyVersion {
                timestamp: CommitTimestamp::new(*timestamp),
                content: if *put { Content::Value(Bytes::new()) } else { Content::Deleted },
            })
            .collect();
        let retained = retained.with_ranges(Arc::new(ranges));
        add_range_deletes(b"key", &mut versions, &retained);
        retain_needed(&mut versions, &retained, &mut Dropped::new());
        settle(b"key", &mut versions, &retained);
        versions.iter().map(|version| version.timestamp.get()).collect()
    }

    #[test]
    fn the_example_of_the_module_holds() {
        let versions = [25, 17, 12, 8, 6, 3, 2].map(|timestamp| (timestamp, true));
        assert_eq!(kept(&[4, 9], 20, &versions), [25, 17, 8, 0]);
    }

    #[test]
    fn without_old_snapshots_only_the_newest_version_is_kept_and_loses_its_time() {
        assert_eq!(kept(&[], 9, &[(9, true), (5, true), (1, true)]), [0]);
    }

    #[test]
    fn a_delete_goes_unless_an_older_version_must_stay_hidden_from_some() {
        assert_eq!(kept(&[], 9, &[(9, false), (5, true)]), []);
        assert_eq!(kept(&[6], 9, &[(9, false), (5, true)]), [9, 0]);
        assert_eq!(kept(&[3], 9, &[(9, false), (5, true)]), []);
    }

    #[test]
    fn pending_versions_keep_their_deletes_and_timestamps() {
        let version =
            |timestamp| KeyVersion { timestamp: CommitTimestamp::new(timestamp), content: Content::Deleted };
        let mut versions = vec![version(9), version(5)];
        let retained = Retained::new(Vec::new(), SnapshotTimestamp::new(9));
        retain_pending(b"key", &mut versions, &retained, &mut Dropped::new());
        assert_eq!(versions.iter().map(|version| version.timestamp.get()).collect::<Vec<_>>(), [9]);
    }

    fn add(number: i64) -> Content<Bytes> {
        Content::Merge(Merge::Add(number).to_bytes().into())
    }

    fn counter(number: i64) -> Content<Bytes> {
        Content::Value(Bytes::copy_from_slice(&number.to_le_bytes()))
    }

    /// The versions that are kept of pending ones.
    fn pending(snapshots: &[u64], versions: &[(u64, Content<Bytes>)]) -> Vec<(u64, Content<Bytes>)> {
        pending_under(DeletedRanges::default(), snapshots, versions)
    }

    fn pending_under(
        ranges: DeletedRanges,
        snapshots: &[u64],
        versions: &[(u64, Content<Bytes>)],
    ) -> Vec<(u64, Content<Bytes>)> {
        let live = snapshots.iter().map(|snapshot| SnapshotTimestamp::new(*snapshot)).collect();
        let retained = Retained::new(live, SnapshotTimestamp::new(20)).with_ranges(Arc::new(ranges));
        let mut versions: Vec<_> = versions
            .iter()
            .map(|(time, content)| (CommitTimestamp::new(*time), content.clone()))
            .map(|(timestamp, content)| KeyVersion { timestamp, content })
            .collect();
        retain_pending(b"key", &mut versions, &retained, &mut Dropped::new());
        versions.into_iter().map(|version| (version.timestamp.get(), version.content)).collect()
    }

    #[test]
    fn operators_combine_with_versions_below_between_the_same_snapshots() {
        let versions =
            [(19, add(1)), (17, add(2)), (12, add(3)), (8, add(4)), (6, counter(100)), (3, add(7))];
        assert_eq!(pending(&[], &versions), [(19, counter(110))]);
        assert_eq!(pending(&[6], &versions), [(19, add(10)), (6, counter(100))]);
        let one_by_one = [(19, add(1)), (17, add(5)), (8, add(4)), (6, counter(100)), (3, add(7))];
        assert_eq!(pending(&[3, 6, 11, 18], &versions), one_by_one);
    }

    #[test]
    fn a_snapshot_at_the_timestamp_of_an_operator_sees_it() {
        let versions = [(9, add(1)), (8, add(2))];
        assert_eq!(pending(&[8], &versions), versions);
        assert_eq!(pending(&[9], &versions), [(9, add(3))]);
        assert_eq!(pending(&[7], &versions), [(9, add(3))]);
    }

    #[test]
    fn above_the_newest_snapshot_versions_stay_apart() {
        let versions = [(23, add(1)), (22, add(2)), (21, counter(1)), (20, add(3)), (19, add(4))];
        assert_eq!(pending(&[], &versions), [&versions[..3], &[(20, add(7))]].concat());
    }

    #[test]
    fn operators_over_a_delete_become_a_put_and_vanish_over_a_value_that_they_leave_alone() {
        let value = Content::Value(Bytes::from_static(b"no counter"));
        assert_eq!(pending(&[], &[(9, add(4)), (8, Content::Deleted), (7, counter(1))]), [(9, counter(4))]);
        assert_eq!(pending(&[], &[(9, add(4)), (8, value.clone())]), [(9, value)]);
    }

    #[test]
    fn operators_vanish_over_a_large_value_that_they_leave_alone_and_stay_if_they_must_read_it() {
        let large = Content::Large(crate::format::content::tests::large(70_000));
        let max = Content::Merge(Merge::Max(b"m").to_bytes().into());
        assert_eq!(pending(&[], &[(9, add(4)), (8, large.clone())]), [(9, large.clone())]);
        let (both, older) = ([(9, max), (8, large)], (7, counter(1)));
        assert_eq!(pending(&[], &[&both[..], &[older]].concat()), both);
    }

    #[test]
    fn under_a_range_delete_only_versions_that_an_older_snapshot_sees_are_kept() {
        assert_eq!(kept_under(&[7], &[], 9, &[(5, true), (3, true)]), []);
        assert_eq!(kept_under(&[7], &[5], 9, &[(6, true), (5, true), (3, true)]), [0]);
        assert_eq!(kept_under(&[7], &[4], 9, &[(5, true), (3, true)]), [0]);
        assert_eq!(
            kept_under(&[7], &[], 6, &[(5, true), (3, true)]),
            [0],
            "nobody sees the range delete yet"
        );
        assert_eq!(kept_under(&[7], &[], 9, &[(5, false), (3, true)]), []);
        assert_eq!(kept_under(&[4, 7], &[5], 9, &[(5, true), (3, true)]), [5]);
        assert_eq!(kept_under(&[4, 7], &[3], 9, &[(5, true), (3, true)]), [0]);
    }

    #[test]
    fn operators_over_a_range_delete_become_a_put_only_if_an_older_version_follows() {
        let pending = |snapshots: &[u64], versions: &[(u64, Content<Bytes>)]| {
            let ranges = DeletedRanges::default();
            let time = CommitTimestamp::new(7);
            pending_under(ranges.with_all([KeySpan::all()].iter(), time, Lsn::new(7)), snapshots, versions)
        };
        assert_eq!(pending(&[], &[(9, add(4))]), [(9, add(4))], "farther down there may be one of 8");
        assert_eq!(pending(&[], &[(9, add(4)), (8, counter(1))]), [(9, counter(5))]);
        assert_eq!(pending(&[], &[(9, add(4)), (6, counter(1))]), [(9, counter(4))]);
        assert_eq!(pending(&[6], &[(9, add(4)), (6, counter(1))]), [(9, counter(4)), (6, counter(1))]);
        let (above, below) = ((9, add(4)), (6, counter(1)));
        assert_eq!(pending(&[8], &[above.clone(), below]), [above], "no snapshot sees the deleted version");
    }

    #[test]
    fn a_version_that_is_not_older_than_a_range_delete_keeps_its_timestamp() {
        assert_eq!(kept_under(&[7], &[], 9, &[(8, true), (5, true)]), [8]);
        assert_eq!(kept_under(&[7], &[], 9, &[(7, true), (5, true)]), [7], "of the same transaction");
        assert_eq!(kept_under(&[7], &[5], 9, &[(8, true), (5, true)]), [8, 0]);
        assert_eq!(kept_under(&[2, 7], &[5], 9, &[(8, true), (5, true)]), [8, 5]);
        assert_eq!(kept_under(&[7], &[], 9, &[(8, false), (5, true)]), [], "nothing lies below");
    }
}
