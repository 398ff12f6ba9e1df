//! The mutable part of a tree: committed writes that have not been merged into leaves yet.
//!
//! # Terms
//! - *Chain*: the versions of one key in a buffer, newest first.
//! - *Horizon*: the oldest snapshot that any transaction, present or future, can have. Of the versions at or before it
//!   only the newest can ever be seen, which merges say together with those below them.
//! - *Joining*: making one of merges and the version below them, where nobody can tell the two apart ([`joining`](super::joining)). Below the
//!   horizon only: above it commits that wrote a key blindly may come here in another order than to the log, also from below.
//! - *Sweep*: dropping what nobody can see any more from all chains. A commit that overwrites a key must leave the version before,
//!   which snapshots may see until the commit is published; the next one to the same key drops it, or a sweep.
//!
//! # Invariants
//! - Times descend strictly within a chain.
//! - A frozen buffer never changes: whoever holds it reads without waiting for anybody.
//! - The byte count is what the entries take with their share of the map's nodes, within about a tenth.

use pando_environment::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::ops::Bound;

use bytes::Bytes;
use pando_environment::sync::{RwLock, RwLockReadGuard};
use pando_storage::{Change, CommitTimestamp, KeyRange, Lsn, SnapshotTimestamp};

use super::joining::{Joined, join};
use super::ranges::DeletedRanges;
use crate::format::content::{Content, merges_of};

/// A key's place in the map: its slot, at the fill of a B-tree that grows in order.
pub(crate) const SLOT_BYTES: usize = 144;
/// What the allocator takes beside the bytes it gives.
const ALLOCATION_BYTES: usize = 16;

/// A key that is kept within the map's node if it is short, as most are: a comparison then follows no pointer.
#[derive(Clone)]
pub(crate) enum BufferKey {
    Inline { len: u8, bytes: [u8; BufferKey::INLINE_BYTES] },
    Heap(Box<[u8]>),
}

impl BufferKey {
    const INLINE_BYTES: usize = 30;

    pub(crate) fn new(key: &[u8]) -> BufferKey {
        if key.len() > BufferKey::INLINE_BYTES {
            return BufferKey::Heap(key.into());
        }
        let mut bytes = [0; BufferKey::INLINE_BYTES];
        bytes[..key.len()].copy_from_slice(key);
        BufferKey::Inline { len: key.len() as u8, bytes }
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        match self {
            BufferKey::Inline { len, bytes } => &bytes[..usize::from(*len)],
            BufferKey::Heap(bytes) => bytes,
        }
    }

    fn heap_bytes(key: &[u8]) -> usize {
        if key.len() > BufferKey::INLINE_BYTES { key.len() + ALLOCATION_BYTES } else { 0 }
    }
}

impl Borrow<[u8]> for BufferKey {
    fn borrow(&self) -> &[u8] {
        self.as_slice()
    }
}

impl PartialEq for BufferKey {
    fn eq(&self, other: &BufferKey) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for BufferKey {}

impl PartialOrd for BufferKey {
    fn partial_cmp(&self, other: &BufferKey) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for BufferKey {
    fn cmp(&self, other: &BufferKey) -> std::cmp::Ordering {
        self.as_slice().cmp(other.as_slice())
    }
}

/// A change in memory of its own. No larger than a value alone, for there are very many: a value leaves room to tell it from one other
/// thing, not from two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OwnedChange {
    Put(Bytes),
    Other(NoPut),
}

/// A change that is no put.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NoPut {
    Delete,
    Merge(Box<[u8]>),
}

impl OwnedChange {
    pub(crate) fn new(change: Change<'_>) -> OwnedChange {
        match change {
            Change::Put([]) => OwnedChange::Put(Bytes::new()),
            Change::Put(value) => OwnedChange::Put(Bytes::copy_from_slice(value)),
            Change::Delete => OwnedChange::Other(NoPut::Delete),
            Change::Merge(merges) => OwnedChange::Other(NoPut::Merge(merges.as_bytes().into())),
        }
    }

    fn of_content(content: Content<Bytes>) -> OwnedChange {
        match content {
            Content::Value(value) => OwnedChange::Put(value),
            Content::Merge(merges) => OwnedChange::Other(NoPut::Merge((*merges).into())),
            Content::Deleted => OwnedChange::Other(NoPut::Delete),
            Content::Large(_) => unreachable!("a buffer has all of its values itself"),
        }
    }

    pub(crate) fn content(&self) -> Content<&[u8]> {
        match self {
            OwnedChange::Put(value) => Content::Value(value),
            OwnedChange::Other(NoPut::Delete) => Content::Deleted,
            OwnedChange::Other(NoPut::Merge(merges)) => Content::Merge(merges),
        }
    }

    /// The same, sharing the memory of a value.
    pub(crate) fn shared_content(&self) -> Content<Bytes> {
        match self {
            OwnedChange::Put(value) => Content::Value(value.clone()),
            OwnedChange::Other(NoPut::Delete) => Content::Deleted,
            OwnedChange::Other(NoPut::Merge(merges)) => Content::Merge(Bytes::copy_from_slice(merges)),
        }
    }
}

/// One version of a key.
#[derive(Clone, Debug)]
pub(crate) struct Version {
    pub(crate) timestamp: CommitTimestamp,
    pub(crate) change: OwnedChange,
}

impl Version {
    fn content_bytes(&self) -> usize {
        self.change.content().in_page().len()
    }

    fn heap_bytes(&self) -> usize {
        match self.content_bytes() {
            0 => 0,
            bytes => bytes + ALLOCATION_BYTES,
        }
    }

    /// What it says, sharing the memory of a value; where it lies below the floor, that the key is not there.
    pub(crate) fn content_above(&self, floor: CommitTimestamp) -> Content<Bytes> {
        if self.timestamp < floor { Content::Deleted } else { self.change.shared_content() }
    }

    /// Takes the version below into this one; false where they stay two.
    fn take_in(&mut self, below: &Version) -> bool {
        let OwnedChange::Other(NoPut::Merge(merges)) = &self.change else { return true };
        match join(merges_of(merges), &below.change.content()) {
            Joined::One(content) => self.change = OwnedChange::of_content(content),
            Joined::Below => self.change = below.change.clone(),
            Joined::Apart => return false,
        }
        true
    }
}

/// The versions of a key, at least one.
#[derive(Clone, Debug)]
pub(crate) struct Chain {
    newest: Version,
    /// Nearly always absent, or one.
    older: Option<Box<Older>>,
}

/// A version that is not the newest, and those before it.
#[derive(Clone, Debug)]
struct Older {
    version: Version,
    before: Option<Box<Older>>,
}

impl Older {
    /// What it takes beside what is before it.
    fn bytes(&self) -> usize {
        self.version.heap_bytes() + size_of::<Older>() + ALLOCATION_BYTES
    }
}

impl Drop for Older {
    /// One after the other: a long chain must not be a deep recursion.
    fn drop(&mut self) {
        let mut next = self.before.take();
        while let Some(mut older) = next {
            next = older.before.take();
        }
    }
}

impl Chain {
    /// The versions that the snapshot sees, newest first: the first of them counts, and if that is a merge those behind it.
    pub(crate) fn visible(&self, snapshot: SnapshotTimestamp) -> impl Iterator<Item = &Version> + '_ {
        self.versions().skip_while(move |version| !snapshot.sees(version.timestamp))
    }

    /// All versions, newest first.
    pub(crate) fn versions(&self) -> impl Iterator<Item = &Version> + '_ {
        let older = std::iter::successors(self.older.as_deref(), |older| older.before.as_deref());
        std::iter::once(&self.newest).chain(older.map(|older| &older.version))
    }

    /// Puts a version in its place: nearly always before all others, but two commits that wrote a key blindly may come
    /// here in another order than to the log. The bytes that are older than the newest now, and were not before.
    fn push(&mut self, version: Version) -> usize {
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

    /// Drops the versions that no snapshot can see any more, once merges above them have been joined with them; by how much the bytes
    /// of the newest and of the older ones change. Range deletes at these times lie over the key: what is below one is not there for
    /// merges above it.
    fn prune(&mut self, horizon: SnapshotTimestamp, deletes: &[CommitTimestamp]) -> (isize, isize) {
        // The newest that all see: it stays, and takes in what is below as far as that counts.
        let mut stays = &mut self.newest;
        let mut place = &mut self.older;
        let mut is_newest = true;
        while !horizon.sees(stays.timestamp) {
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
                let change = OwnedChange::Other(NoPut::Delete);
                stays.take_in(&Version { timestamp: older.version.timestamp, change });
            }
            if !stays.take_in(&older.version) {
                break;
            }
            dropped += older.bytes() as isize;
            *place = older.before.take();
        }
        let change = stays.heap_bytes() as isize - before;
        if is_newest { (change, -dropped) } else { (0, change - dropped) }
    }
}

/// An ordered map of chains.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    chains: BTreeMap<BufferKey, Chain>,
    bytes: usize,
    /// Of the bytes, those of versions that are not the newest of their key.
    older_bytes: usize,
    /// Bytes of keys and newest values, for estimates.
    content_bytes: usize,
}

impl std::fmt::Debug for BufferKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "key of {} bytes", self.as_slice().len())
    }
}

impl Buffer {
    /// Adds a version of a key.
    pub(crate) fn push(
        &mut self,
        key: &[u8],
        version: Version,
        horizon: SnapshotTimestamp,
        ranges: &DeletedRanges,
    ) {
        if let Some(chain) = self.chains.get_mut(key) {
            self.content_bytes -= chain.newest.content_bytes();
            let (newest, older) = (chain.newest.heap_bytes(), chain.push(version));
            let (_, change) = chain.prune(horizon, ranges.over(key));
            self.content_bytes += chain.newest.content_bytes();
            self.older_bytes = (self.older_bytes + older).strict_add_signed(change);
            self.bytes = (self.bytes + chain.newest.heap_bytes() + older - newest).strict_add_signed(change);
            return;
        }
        self.bytes += version.heap_bytes() + SLOT_BYTES + BufferKey::heap_bytes(key);
        self.content_bytes += key.len() + version.content_bytes();
        self.chains.insert(BufferKey::new(key), Chain { newest: version, older: None });
    }

    /// Drops all versions that no snapshot can see any more; by how much the bytes become fewer.
    fn sweep(&mut self, horizon: SnapshotTimestamp, ranges: &DeletedRanges) -> usize {
        let before = self.bytes;
        for (key, chain) in &mut self.chains {
            self.content_bytes -= chain.newest.content_bytes();
            let (newest, older) = chain.prune(horizon, ranges.over(key.as_slice()));
            self.content_bytes += chain.newest.content_bytes();
            self.older_bytes = self.older_bytes.strict_add_signed(older);
            self.bytes = self.bytes.strict_add_signed(newest + older);
        }
        before.strict_sub(self.bytes)
    }

    pub(crate) fn get(&self, key: &[u8]) -> Option<&Chain> {
        self.chains.get(key)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Keys.
    pub(crate) fn len(&self) -> usize {
        self.chains.len()
    }

    /// Bytes of keys and newest values.
    pub(crate) fn content_bytes(&self) -> usize {
        self.content_bytes
    }

    /// The chains of a range, ascending.
    pub(crate) fn range(
        &self,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
    ) -> impl DoubleEndedIterator<Item = (&[u8], &Chain)> + '_ {
        // `BTreeMap::range` panics where the bounds cross.
        let range = (!crosses(lower, upper)).then(|| self.chains.range::<[u8], _>((lower, upper)));
        range.into_iter().flatten().map(|(key, chain)| (key.as_slice(), chain))
    }
}

/// Whether no key can lie between two bounds.
pub(crate) fn crosses(lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> bool {
    match (lower, upper) {
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
        (Bound::Included(lower), Bound::Included(upper)) => lower > upper,
        (
            Bound::Included(lower) | Bound::Excluded(lower),
            Bound::Included(upper) | Bound::Excluded(upper),
        ) => lower >= upper,
    }
}

/// The bounds of a range, borrowed.
pub(crate) fn bounds_of(range: &KeyRange) -> (Bound<&[u8]>, Bound<&[u8]>) {
    (range.lower.as_ref().map(Vec::as_slice), range.upper.as_ref().map(Vec::as_slice))
}

/// A buffer shared between those who fill it, read it and merge it.
#[derive(Debug)]
pub(crate) struct SharedBuffer {
    buffer: RwLock<Buffer>,
    bytes: AtomicUsize,
    /// The first record that has a write here; 0 while there is none.
    first_lsn: AtomicU64,
    /// Reads that found something to look through here, up to [`READS_WORTH`].
    reads: AtomicU8,
}

/// A sweep looks at every chain. It is worth that where one byte in so many is of a version that is not the newest.
const SWEEP_SHARE: usize = 16;

/// So many reads make a buffer worth flushing when there is nothing else to do; they are not counted further.
const READS_WORTH: u8 = 16;

impl SharedBuffer {
    pub(crate) fn new() -> SharedBuffer {
        SharedBuffer {
            buffer: RwLock::default(),
            bytes: AtomicUsize::new(0),
            first_lsn: AtomicU64::new(0),
            reads: AtomicU8::new(0),
        }
    }

    /// Applies writes of one commit, in any order of keys; the growth in bytes.
    pub(crate) fn apply<'w>(
        &self,
        lsn: Lsn,
        timestamp: CommitTimestamp,
        (horizon, ranges): (SnapshotTimestamp, &DeletedRanges),
        writes: impl Iterator<Item = (&'w [u8], OwnedChange)>,
    ) -> isize {
        let mut buffer = self.buffer.write();
        let before = buffer.bytes();
        for (key, change) in writes {
            buffer.push(key, Version { timestamp, change }, horizon, ranges);
        }
        let after = buffer.bytes();
        self.bytes.store(after, Ordering::Relaxed);
        // The smallest, since commits may come to a buffer in another order than to the log.
        let first = self.first_lsn.load(Ordering::Relaxed);
        if first == 0 || lsn.get() < first {
            self.first_lsn.store(lsn.get(), Ordering::Release);
        }
        after as isize - before as isize
    }

    /// Drops what no snapshot can see any more, if there may be enough of it; the bytes that were dropped. The buffer is not frozen.
    pub(crate) fn sweep(&self, horizon: SnapshotTimestamp, ranges: &DeletedRanges) -> usize {
        let mut buffer = self.buffer.write();
        if buffer.older_bytes < buffer.bytes / SWEEP_SHARE {
            return 0;
        }
        let dropped = buffer.sweep(horizon, ranges);
        self.bytes.store(buffer.bytes(), Ordering::Relaxed);
        dropped
    }

    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Buffer> {
        self.buffer.read()
    }

    /// Somebody reads it for an answer.
    pub(crate) fn note_read(&self) {
        if self.reads.load(Ordering::Relaxed) < READS_WORTH {
            self.reads.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Whether it was read again and again.
    pub(crate) fn is_wanted(&self) -> bool {
        self.reads.load(Ordering::Relaxed) >= READS_WORTH
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Whether there is nothing: without a lock, so that a lookup passes an empty buffer at the cost of one load.
    pub(crate) fn is_empty(&self) -> bool {
        self.first_lsn.load(Ordering::Acquire) == 0
    }

    /// The first record that has a write here.
    pub(crate) fn first_lsn(&self) -> Option<Lsn> {
        match self.first_lsn.load(Ordering::Acquire) {
            0 => None,
            lsn => Some(Lsn::new(lsn)),
        }
    }
}

#[cfg(test)]
mod tests;
