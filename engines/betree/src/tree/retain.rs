//! Which versions of a key are still needed: pure, asked by every merge.
//!
//! # The rule
//! Of a key's versions, newest first, one is needed if it is newer than the newest snapshot, or if some snapshot sees it and
//! nothing newer. In a leaf, below which nothing lies, one that all snapshots see loses its time, and a delete below which
//! nothing is kept says what the absence of an entry says, and goes.
//!
//! ```text
//! snapshots 4 and 9, newest 20        versions   25    17    12    8    6    3    2
//!                                     needed     yes   yes   no    yes  no   yes  no
//! ```

use bytes::Bytes;
use pando_storage::{CommitTimestamp, SnapshotTimestamp};

use crate::format::content::{Content, LargeReference};

/// The snapshots that exist, and the newest that one can begin at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Retained {
    /// Snapshots of live transactions, ascending; the newest visible one is always the last.
    snapshots: Vec<SnapshotTimestamp>,
}

impl Retained {
    /// `live` in any order, all at most `newest`.
    pub(crate) fn new(mut live: Vec<SnapshotTimestamp>, newest: SnapshotTimestamp) -> Retained {
        live.push(newest);
        live.sort_unstable();
        live.dedup();
        assert!(live.last() == Some(&newest), "no snapshot is newer than the newest");
        Retained { snapshots: live }
    }

    /// The oldest snapshot.
    pub(crate) fn oldest(&self) -> SnapshotTimestamp {
        self.snapshots[0]
    }

    /// Whether a version is needed whose next newer version has the time `newer` (`None`: it is the newest).
    fn needs(&self, timestamp: CommitTimestamp, newer: Option<CommitTimestamp>) -> bool {
        // The first snapshot that sees it: does it see the newer one, too?
        let at = self.snapshots.partition_point(|snapshot| !snapshot.sees(timestamp));
        match (self.snapshots.get(at), newer) {
            (None, _) => true,
            (Some(_), None) => true,
            (Some(snapshot), Some(newer)) => !snapshot.sees(newer),
        }
    }
}

/// A version on its way through a merge. Of two with the same time, the first is the one that counts.
#[derive(Clone, Debug)]
pub(crate) struct MergedVersion {
    pub(crate) timestamp: CommitTimestamp,
    pub(crate) content: Content<Bytes>,
}

/// Large values whose last reference a merge has left out.
pub(crate) type Dropped = Vec<LargeReference<Bytes>>;

/// Takes out of a key's versions (newest first) what nobody needs, where older versions may lie below: deletes and times
/// stay. Large values of what is taken out are noted in `dropped`.
pub(crate) fn retain_pending(versions: &mut Vec<MergedVersion>, retained: &Retained, dropped: &mut Dropped) {
    if versions.len() < 2 {
        return;
    }
    let mut newer = None;
    versions.retain(|version| {
        // The same write twice: a replay brought what a leaf had already.
        let is_repeated = newer.is_some_and(|newer| newer <= version.timestamp);
        let needed = !is_repeated && retained.needs(version.timestamp, newer);
        if !is_repeated {
            newer = Some(version.timestamp);
        }
        if let (false, Content::Large(reference)) = (needed, &version.content) {
            dropped.push(reference.clone());
        }
        needed
    });
}

/// Takes out of all versions of a key (newest first) what nobody needs, and the time from what all see.
pub(crate) fn retain(versions: &mut Vec<MergedVersion>, retained: &Retained, dropped: &mut Dropped) {
    retain_pending(versions, retained, dropped);
    while versions.last().is_some_and(|last| last.content.is_deleted()) {
        versions.pop();
    }
    if let Some(last) = versions.last_mut()
        && retained.oldest().sees(last.timestamp)
    {
        last.timestamp = CommitTimestamp::ZERO;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(snapshots: &[u64], newest: u64, versions: &[(u64, bool)]) -> Vec<u64> {
        let live = snapshots.iter().map(|snapshot| SnapshotTimestamp::new(*snapshot)).collect();
        let retained = Retained::new(live, SnapshotTimestamp::new(newest));
        let mut versions = versions
            .iter()
            .map(|(timestamp, put)| MergedVersion {
                timestamp: CommitTimestamp::new(*timestamp),
                content: put.then(Bytes::new).into(),
            })
            .collect();
        retain(&mut versions, &retained, &mut Dropped::new());
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
    fn what_is_pending_keeps_its_deletes_and_times() {
        let version = |timestamp| MergedVersion {
            timestamp: CommitTimestamp::new(timestamp),
            content: Content::Deleted,
        };
        let mut versions = vec![version(9), version(5)];
        let retained = Retained::new(Vec::new(), SnapshotTimestamp::new(9));
        retain_pending(&mut versions, &retained, &mut Dropped::new());
        assert_eq!(versions.iter().map(|version| version.timestamp.get()).collect::<Vec<_>>(), [9]);
    }

    #[test]
    fn a_version_that_came_twice_is_kept_once() {
        assert_eq!(kept(&[], 3, &[(7, true), (7, true)]), [7]);
    }
}
