//! A tree: its keys in order, each with the versions that a snapshot may still see.

use std::collections::BTreeMap;
use std::ops::Bound;

use bytes::Bytes;
use pando_storage::{
    Batch, BatchLimits, Change, CommitTimestamp, Direction, Estimate, KeyRange, ScanEnd, SnapshotTimestamp,
};

/// A value of a key, or its deletion, as one commit left it.
struct Version {
    timestamp: CommitTimestamp,
    value: Option<Bytes>,
}

/// A tree, dropped or not.
pub(crate) struct Tree {
    name: String,
    /// Versions of each key by rising timestamp; never empty.
    keys: BTreeMap<Box<[u8]>, Vec<Version>>,
    /// Of what the newest snapshot sees.
    size: Estimate,
    /// `Some`: dropped, and seen only by transactions up to this number.
    seen_up_to: Option<u64>,
}

impl Tree {
    pub(crate) fn new(name: &str) -> Tree {
        Tree { name: name.to_owned(), keys: BTreeMap::new(), size: Estimate::default(), seen_up_to: None }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Whether the tree has not been dropped.
    pub(crate) fn is_listed(&self) -> bool {
        self.seen_up_to.is_none()
    }

    pub(crate) fn is_seen_by(&self, transaction: u64) -> bool {
        self.seen_up_to.is_none_or(|last| transaction <= last)
    }

    pub(crate) fn drop_for_transactions_after(&mut self, transaction: u64) {
        self.seen_up_to = Some(transaction);
    }

    pub(crate) fn estimate(&self) -> Estimate {
        self.size
    }

    pub(crate) fn get(&self, key: &[u8], snapshot: SnapshotTimestamp) -> Option<&Bytes> {
        seen(self.keys.get(key)?, snapshot)
    }

    pub(crate) fn scan(
        &self,
        range: &KeyRange,
        direction: Direction,
        limits: BatchLimits,
        snapshot: SnapshotTimestamp,
        batch: &mut Batch,
    ) -> ScanEnd {
        batch.clear();
        if range.is_empty() {
            return ScanEnd::Done;
        }
        let bounds = (as_slice(&range.lower), as_slice(&range.upper));
        let mut within = self.keys.range::<[u8], _>(bounds);
        let mut next = || match direction {
            Direction::Forward => within.next(),
            Direction::Backward => within.next_back(),
        };
        while let Some((key, versions)) = next() {
            let Some(value) = seen(versions, snapshot) else { continue };
            if batch.is_full(limits) {
                return ScanEnd::More;
            }
            batch.push(key, value);
        }
        ScanEnd::Done
    }

    /// Adds a version, the newest of all. Says whether some version of the key will have to be pruned once
    /// every snapshot sees this commit. A merge is applied to the newest version, which its transaction may
    /// not have seen.
    pub(crate) fn add(&mut self, key: &[u8], change: Change<'_>, timestamp: CommitTimestamp) -> bool {
        let newest = self.keys.get(key).and_then(|versions| versions.last()?.value.as_deref());
        let value = change.over(newest).map(|value| Bytes::copy_from_slice(&value));
        let is_deletion = value.is_none();
        let after = value.as_ref().map(Bytes::len);
        let version = Version { timestamp, value };
        let before = match self.keys.get_mut(key) {
            Some(versions) => {
                let before = versions.last().and_then(|last| last.value.as_ref().map(Bytes::len));
                versions.push(version);
                self.count(key, before, after);
                return true;
            }
            None => None,
        };
        self.keys.insert(key.into(), vec![version]);
        self.count(key, before, after);
        is_deletion
    }

    /// Drops the versions of a key that no snapshot from `oldest` on can see.
    pub(crate) fn prune(&mut self, key: &[u8], oldest: SnapshotTimestamp) {
        let Some(versions) = self.keys.get_mut(key) else { return };
        let newer = versions.iter().rev().take_while(|version| !oldest.sees(version.timestamp)).count();
        let seen_by_oldest = versions.len() - newer;
        versions.drain(..seen_by_oldest.saturating_sub(1));
        if let [only] = versions.as_slice()
            && only.value.is_none()
            && oldest.sees(only.timestamp)
        {
            self.keys.remove(key);
        }
    }

    /// Keeps the size of what the newest snapshot sees: lengths of a key's value before and after a commit.
    fn count(&mut self, key: &[u8], before: Option<usize>, after: Option<usize>) {
        if let Some(value) = before {
            self.size.entries -= 1;
            self.size.bytes -= (key.len() + value) as u64;
        }
        if let Some(value) = after {
            self.size.entries += 1;
            self.size.bytes += (key.len() + value) as u64;
        }
    }
}

/// The value that a snapshot sees; `None` where the key was not there or deleted.
fn seen(versions: &[Version], snapshot: SnapshotTimestamp) -> Option<&Bytes> {
    let newest = versions.iter().rev().find(|version| snapshot.sees(version.timestamp))?;
    newest.value.as_ref()
}

fn as_slice(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    bound.as_ref().map(Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commit(number: u64) -> CommitTimestamp {
        CommitTimestamp::new(number)
    }

    #[test]
    fn pruning_keeps_what_the_oldest_snapshot_sees_and_everything_after() {
        let mut tree = Tree::new("t");
        for number in 1..=5 {
            tree.add(b"k", Change::Put(&[number as u8]), commit(number));
        }
        tree.prune(b"k", SnapshotTimestamp::new(3));
        assert_eq!(tree.keys[&b"k"[..]].iter().map(|v| v.timestamp.get()).collect::<Vec<_>>(), vec![3, 4, 5]);
        assert_eq!(tree.get(b"k", SnapshotTimestamp::new(3)), Some(&Bytes::from_static(&[3])));
    }

    #[test]
    fn a_deletion_that_everyone_sees_leaves_nothing() {
        let mut tree = Tree::new("t");
        tree.add(b"k", Change::Put(b"v"), commit(1));
        assert!(tree.add(b"k", Change::Delete, commit(2)), "the older version has to be pruned one day");
        tree.prune(b"k", SnapshotTimestamp::new(1));
        assert_eq!(tree.get(b"k", SnapshotTimestamp::new(1)), Some(&Bytes::from_static(b"v")));
        tree.prune(b"k", SnapshotTimestamp::new(2));
        assert!(tree.keys.is_empty());
        assert_eq!(tree.estimate(), Estimate::default());
    }
}
