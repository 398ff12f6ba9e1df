//! The versions of one key in a buffer.

use bytes::Bytes;
use pando_storage::{Change, CommitTimestamp, SnapshotTimestamp};

use super::ALLOCATION_BYTES;
use crate::format::content::{Content, merges_of};
use crate::tree::value_merge::{MergeOutcome, combine};

/// A change that owns its memory.
///
/// It is no larger than a value alone, since there are very many. The niche of `Bytes` has room for one other
/// variant, not for two: so deletes and merge operators share [`Other`](OwnedChange::Other).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OwnedChange {
    Put(Bytes),
    Other(DeleteOrMerge),
}

/// A change other than a put.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DeleteOrMerge {
    Delete,
    Merge(Box<[u8]>),
}

impl OwnedChange {
    pub(crate) fn new(change: Change<'_>) -> OwnedChange {
        match change {
            Change::Put([]) => OwnedChange::Put(Bytes::new()),
            Change::Put(value) => OwnedChange::Put(Bytes::copy_from_slice(value)),
            Change::Delete => OwnedChange::Other(DeleteOrMerge::Delete),
            Change::Merge(merges) => OwnedChange::Other(DeleteOrMerge::Merge(merges.as_bytes().into())),
        }
    }

    fn of_content(content: Content<Bytes>) -> OwnedChange {
        match content {
            Content::Value(value) => OwnedChange::Put(value),
            Content::Merge(merges) => OwnedChange::Other(DeleteOrMerge::Merge((*merges).into())),
            Content::Deleted => OwnedChange::Other(DeleteOrMerge::Delete),
            Content::Large(_) => unreachable!("a buffer has all of its values itself"),
        }
    }

    pub(crate) fn content(&self) -> Content<&[u8]> {
        match self {
            OwnedChange::Put(value) => Content::Value(value),
            OwnedChange::Other(DeleteOrMerge::Delete) => Content::Deleted,
            OwnedChange::Other(DeleteOrMerge::Merge(merges)) => Content::Merge(merges),
        }
    }

    /// The content, which shares the memory of a value.
    pub(crate) fn shared_content(&self) -> Content<Bytes> {
        match self {
            OwnedChange::Put(value) => Content::Value(value.clone()),
            OwnedChange::Other(DeleteOrMerge::Delete) => Content::Deleted,
            OwnedChange::Other(DeleteOrMerge::Merge(merges)) => {
                Content::Merge(Bytes::copy_from_slice(merges))
            }
        }
    }
}

/// A version of a key in a buffer.
#[derive(Clone, Debug)]
pub(crate) struct BufferedVersion {
    pub(crate) timestamp: CommitTimestamp,
    pub(crate) change: OwnedChange,
}

impl BufferedVersion {
    pub(super) fn content_bytes(&self) -> usize {
        self.change.content().in_page().len()
    }

    pub(super) fn heap_bytes(&self) -> usize {
        match self.content_bytes() {
            0 => 0,
            bytes => bytes + ALLOCATION_BYTES,
        }
    }

    /// The content, which shares the memory of a value. A version below the floor counts as a delete.
    pub(crate) fn content_above(&self, floor: CommitTimestamp) -> Content<Bytes> {
        if self.timestamp < floor { Content::Deleted } else { self.change.shared_content() }
    }

    /// Combines this version with the one below it; false if they stay apart.
    fn combine_with(&mut self, below: &BufferedVersion) -> bool {
        let OwnedChange::Other(DeleteOrMerge::Merge(merges)) = &self.change else { return true };
        match combine(merges_of(merges), &below.change.content()) {
            MergeOutcome::One(content) => self.change = OwnedChange::of_content(content),
            MergeOutcome::Below => self.change = below.change.clone(),
            MergeOutcome::Apart => return false,
        }
        true
    }
}

/// The versions of a key, at least one.
#[derive(Clone, Debug)]
pub(crate) struct Chain {
    pub(super) newest: BufferedVersion,
    /// Nearly always none or one.
    pub(super) older: Option<Box<Older>>,
}

/// A version that is not the newest, and the versions before it.
#[derive(Clone, Debug)]
pub(super) struct Older {
    version: BufferedVersion,
    pub(super) before: Option<Box<Older>>,
}

impl Older {
    /// Its bytes, without those of the versions before it.
    pub(super) fn bytes(&self) -> usize {
        self.version.heap_bytes() + size_of::<Older>() + ALLOCATION_BYTES
    }
}

impl Drop for Older {
    /// Drops the versions in a loop: a long chain must not recurse deeply.
    fn drop(&mut self) {
        let mut next = self.before.take();
        while let Some(mut older) = next {
            next = older.before.take();
        }
    }
}

impl Chain {
    /// The versions that the snapshot sees, newest first. The first of them counts; if it is a merge
    /// operator, the next ones count as well.
    pub(crate) fn visible(&self, snapshot: SnapshotTimestamp) -> impl Iterator<Item = &BufferedVersion> + '_ {
        self.versions().skip_while(move |version| !snapshot.sees(version.timestamp))
    }

    /// All versions, newest first.
    pub(crate) fn versions(&self) -> impl Iterator<Item = &BufferedVersion> + '_ {
        let older = std::iter::successors(self.older.as_deref(), |older| older.before.as_deref());
        std::iter::once(&self.newest).chain(older.map(|older| &older.version))
    }

    /// Puts a version in its place. It is nearly always the newest, but two commits that wrote a key blindly
    /// may arrive in another order than in the log. Returns the bytes by which the older versions grew.
    pub(super) fn push(&mut self, version: BufferedVersion) -> usize {
        let mut place = &mut self.older;
        let version = if version.timestamp > self.newest.timestamp {
            std::mem::replace(&mut self.newest, version)
        } else {
            assert!(version.timestamp < self.newest.timestamp, "a commit writes a key once");
            while place.as_ref().is_some_and(|older| older.version.timestamp > version.timestamp) {
                place = &mut place.as_mut().expect("it was just looked at").before;
            }
            version
        };
        let older = Box::new(Older { version, before: place.take() });
        let bytes = older.bytes();
        *place = Some(older);
        bytes
    }

    /// Drops the versions that no snapshot can see, after merge operators above were combined with them.
    /// Range deletes at the times `deletes` lie over the key: for operators above one, the versions below it
    /// do not exist. Returns by how many bytes the newest version and the older ones changed.
    pub(super) fn prune(&mut self, oldest: SnapshotTimestamp, deletes: &[CommitTimestamp]) -> (isize, isize) {
        // The newest version that all snapshots see: it stays, and is combined with the versions below it.
        let mut stays = &mut self.newest;
        let mut place = &mut self.older;
        let mut is_newest = true;
        while !oldest.sees(stays.timestamp) {
            let Some(older) = place else { return (0, 0) };
            let Older { version, before } = &mut **older;
            (stays, place, is_newest) = (version, before, false);
        }
        let before = stays.heap_bytes() as isize;
        let mut dropped = 0;
        while let Some(older) = place {
            let is_between =
                |time: &CommitTimestamp| older.version.timestamp < *time && *time <= stays.timestamp;
            if deletes.iter().any(is_between) {
                let change = OwnedChange::Other(DeleteOrMerge::Delete);
                stays.combine_with(&BufferedVersion { timestamp: older.version.timestamp, change });
            }
            if !stays.combine_with(&older.version) {
                break;
            }
            dropped += older.bytes() as isize;
            *place = older.before.take();
        }
        let change = stays.heap_bytes() as isize - before;
        if is_newest { (change, -dropped) } else { (0, change - dropped) }
    }
}
