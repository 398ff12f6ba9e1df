//! The versions of one key in a buffer.

use bytes::Bytes;
use pando_storage::{Change, CommitTimestamp, Merge, SnapshotTimestamp};

use super::ALLOCATION_BYTES;
use crate::format::content::{Content, merges_of};
use crate::tree::value_merge::{MergeOutcome, combine};
use crate::tree::version_retention::Retained;

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
        let OwnedChange::Other(DeleteOrMerge::Merge(merges)) = &mut self.change else { return true };
        if let OwnedChange::Other(DeleteOrMerge::Merge(below)) = &below.change
            && let (Some(number), Some(below)) =
                (merges_of(merges).as_addition(), merges_of(below).as_addition())
        {
            // In place: nearly every commit adds to counters.
            merges.copy_from_slice(&Merge::addition_bytes(number.wrapping_add(below)));
            return true;
        }
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
    /// Counts for the first of the older versions only.
    state: ChainState,
}

/// The state of the older versions of a chain, so that a commit need not walk along them.
#[derive(Clone, Copy, Debug)]
struct ChainState {
    /// The oldest snapshot for which the chain was pruned last; `None`: it has to be pruned.
    pruned_for: Option<SnapshotTimestamp>,
    /// Their number.
    length: u32,
    /// The length from which on the chain is to be thinned.
    thin_at: u32,
}

/// Older versions from which on a chain is thinned for the first time: more than commits leave behind where
/// no old snapshot lives.
const THIN_MIN: u32 = 512;

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
    pub(super) fn push(&mut self, version: BufferedVersion, oldest: SnapshotTimestamp) -> usize {
        let none = ChainState { pruned_for: Some(oldest), length: 0, thin_at: THIN_MIN };
        let mut state = self.older.as_ref().map_or(none, |first| first.state);
        state.length = state.length.saturating_add(1);
        if oldest.sees(version.timestamp) {
            state.pruned_for = None;
        }
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
        let older = Box::new(Older { version, before: place.take(), state });
        let bytes = older.bytes();
        *place = Some(older);
        if let Some(first) = &mut self.older {
            first.state = state;
        }
        bytes
    }

    /// Whether there are so many older versions that the list of all snapshots is worth a look.
    pub(super) fn is_to_be_thinned(&self) -> bool {
        self.older.as_ref().is_some_and(|first| first.state.length >= first.state.thin_at)
    }

    /// Drops the versions that no snapshot of the list tells apart from the next newer one, after merge
    /// operators were combined with them. No range delete lies over the key. The chain is next thinned when
    /// it has doubled, so that a version costs the same however many snapshots live. Returns by how many
    /// bytes the newest version and the older ones changed.
    pub(super) fn thin(&mut self, retained: &Retained) -> (isize, isize) {
        let before = self.newest.heap_bytes() as isize;
        let (mut older_change, mut kept) = (0, 0);
        let (mut newer, mut place) = (&mut self.newest, &mut self.older);
        let mut newer_is_older = false;
        while let Some(older) = place.as_deref_mut() {
            let bytes = newer.heap_bytes() as isize;
            let is_dropped = !retained.tells_apart(newer.timestamp, older.version.timestamp)
                && newer.combine_with(&older.version);
            if is_dropped {
                if newer_is_older {
                    older_change += newer.heap_bytes() as isize - bytes;
                }
                older_change -= older.bytes() as isize;
                let before = older.before.take();
                *place = before;
                continue;
            }
            kept += 1;
            let Older { version, before, .. } = &mut **place.as_mut().expect("it was just looked at");
            (newer, place, newer_is_older) = (version, before, true);
        }
        let newest_change = self.newest.heap_bytes() as isize - before;
        if let Some(first) = &mut self.older {
            // Versions have come together: pruning may have something to do again.
            first.state =
                ChainState { pruned_for: None, length: kept, thin_at: THIN_MIN.max(kept.saturating_mul(2)) };
        }
        (newest_change, older_change)
    }

    /// Drops the versions that no snapshot can see, after merge operators above were combined with them.
    /// Range deletes at the times `deletes` lie over the key: for operators above one, the versions below it
    /// do not exist. Returns by how many bytes the newest version and the older ones changed.
    ///
    /// A chain that was pruned for the same oldest snapshot, and has only newer versions since, is left as it
    /// is without a look: while an old snapshot lives, a key that every commit writes has a long chain.
    pub(super) fn prune(&mut self, oldest: SnapshotTimestamp, deletes: &[CommitTimestamp]) -> (isize, isize) {
        match &mut self.older {
            None => return (0, 0),
            Some(first) if first.state.pruned_for == Some(oldest) => return (0, 0),
            Some(first) => first.state.pruned_for = Some(oldest),
        }
        let (changed, length) = self.prune_older(oldest, deletes);
        if let (Some(first), Some(length)) = (&mut self.older, length) {
            first.state.length = length;
        }
        changed
    }

    /// Prunes, and counts the older versions that are left, where they are known.
    fn prune_older(
        &mut self,
        oldest: SnapshotTimestamp,
        deletes: &[CommitTimestamp],
    ) -> ((isize, isize), Option<u32>) {
        // The newest version that all snapshots see: it stays, and is combined with the versions below it.
        let mut stays = &mut self.newest;
        let mut place = &mut self.older;
        let (mut is_newest, mut kept) = (true, 0);
        while !oldest.sees(stays.timestamp) {
            let Some(older) = place else { return ((0, 0), Some(kept)) };
            let Older { version, before, .. } = &mut **older;
            (stays, place, is_newest) = (version, before, false);
            kept += 1;
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
        let length = place.is_none().then_some(kept);
        let change = stays.heap_bytes() as isize - before;
        (if is_newest { (change, -dropped) } else { (0, change - dropped) }, length)
    }
}
