//! The mutable part of a tree: committed writes that have not been merged into leaves yet.
//!
//! # Terms
//! - *Chain*: the versions of one key in a buffer, newest first.
//! - *Horizon*: the oldest snapshot that any transaction, present or future, can have. Of the versions at or before it
//!   only the newest can ever be seen, which merges say together with those below them.
//! - *BufferedMessages*: making one of merges and the version below them, where nobody can tell the two apart ([`joining`](crate::tree::value_merge)). Below the
//!   horizon only: above it commits that wrote a key blindly may come here in another order than to the log, also from below.
//! - *Left*: a commit that overwrites a key must leave the version before, which snapshots may see until the commit is published. Of the next
//!   commits to the same buffer the first that knows of a horizon which sees the newer version drops it, whatever its own keys are: so memory is
//!   mostly freed by a thread that needs some at once, while it is still in the processor's caches.
//! - *Sweep*: dropping what nobody can see any more from all chains: what was left while somebody could see it, or too much of it.
//!
//! # Invariants
//! - Times descend strictly within a chain.
//! - A frozen buffer never changes: whoever holds it reads without waiting for anybody.
//! - The byte count is what the entries take with their share of the map's nodes and table, within about a tenth.

use pando_environment::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::collections::VecDeque;
use std::ops::Bound;

use pando_environment::sync::{RwLock, RwLockReadGuard};
use pando_storage::{CommitTimestamp, KeyRange, Lsn, SnapshotTimestamp};

use self::chains::{ChainNumber, Chains};
use self::key::BufferKey;
use crate::range_deletes::DeletedRanges;

mod chain;
mod chains;
mod key;

#[cfg(test)]
pub(crate) use self::chain::NoPut;
pub(crate) use self::chain::{Chain, OwnedChange, Version};

/// What a key takes beside its values: its entry, its slot at the fill of a B-tree that grows at random, its part of the table.
pub(crate) const SLOT_BYTES: usize = 156;
/// What the allocator takes beside the bytes it gives.
const ALLOCATION_BYTES: usize = 16;

/// The chains of keys.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    chains: Chains,
    sizes: Sizes,
    /// Chains in which commits have left a version, as they came, and the times from which on nobody wants it.
    left: VecDeque<(CommitTimestamp, ChainNumber)>,
}

/// The bounds that decide which versions of a key can be dropped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PruneBounds<'r> {
    /// The oldest snapshot that any transaction, present or future, can have.
    pub(crate) oldest: SnapshotTimestamp,
    /// The range deletes of the tree.
    pub(crate) ranges: &'r DeletedRanges,
}

/// What a buffer has, in bytes.
#[derive(Debug, Default)]
struct Sizes {
    all: usize,
    /// Of these, those of versions that are not the newest of their key.
    older: usize,
    /// Of keys and newest values, for estimates.
    content: usize,
}

impl Sizes {
    /// Prunes the chain of a key.
    fn prune(&mut self, key: &[u8], chain: &mut Chain, bounds: PruneBounds<'_>) {
        self.content -= chain.newest.content_bytes();
        let (newest, older) = chain.prune(bounds.oldest, bounds.ranges.over(key));
        self.content += chain.newest.content_bytes();
        self.older = self.older.strict_add_signed(older);
        self.all = self.all.strict_add_signed(newest + older);
    }
}

/// So many chains in which a version was left are remembered at least: more than most commits overwrite.
const LEFT_MIN: usize = 256;
/// And so many at most: dropping them takes a fraction of a millisecond, also when an old snapshot has ended.
const LEFT_MAX: usize = 4_096;
/// Between both, one of so many chains: where several write at a time, the horizon is some commits behind.
const LEFT_SHARE: usize = 4;

impl Buffer {
    /// Adds a version of a key; its chain, if it has an older version now.
    pub(crate) fn push(
        &mut self,
        key: &[u8],
        version: Version,
        bounds: PruneBounds<'_>,
    ) -> Option<ChainNumber> {
        let Some(number) = self.chains.find(key) else {
            self.sizes.all += version.heap_bytes() + SLOT_BYTES + BufferKey::heap_bytes(key);
            self.sizes.content += key.len() + version.content_bytes();
            self.chains.insert(key, Chain { newest: version, older: None });
            return None;
        };
        let (_, chain) = self.chains.get_mut(number);
        let (newest, content) = (chain.newest.heap_bytes(), chain.newest.content_bytes());
        let older = chain.push(version);
        self.sizes.content = self.sizes.content - content + chain.newest.content_bytes();
        self.sizes.older += older;
        self.sizes.all = self.sizes.all + chain.newest.heap_bytes() + older - newest;
        self.sizes.prune(key, chain, bounds);
        chain.older.is_some().then_some(number)
    }

    /// Remembers that a version was left in a chain, if there is room to.
    fn note_left(&mut self, number: ChainNumber) {
        if self.left.len() < (self.chains.len() / LEFT_SHARE).clamp(LEFT_MIN, LEFT_MAX) {
            // What came late stands below others, and goes when they are seen.
            self.left.push_back((self.chains.get(number).newest.timestamp, number));
        }
    }

    /// Drops what commits have left that the horizon sees.
    fn drop_left(&mut self, bounds: PruneBounds<'_>) {
        while let Some((timestamp, number)) = self.left.front()
            && bounds.oldest.sees(*timestamp)
        {
            let (key, chain) = self.chains.get_mut(*number);
            self.sizes.prune(key, chain, bounds);
            self.left.pop_front();
        }
    }

    /// Drops all versions that no snapshot can see any more; by how much the bytes become fewer.
    fn sweep(&mut self, bounds: PruneBounds<'_>) -> usize {
        let before = self.sizes.all;
        for (key, chain) in self.chains.all_mut() {
            self.sizes.prune(key, chain, bounds);
        }
        before.strict_sub(self.sizes.all)
    }

    pub(crate) fn get(&self, key: &[u8]) -> Option<&Chain> {
        self.chains.find(key).map(|number| self.chains.get(number))
    }

    pub(crate) fn bytes(&self) -> usize {
        self.sizes.all
    }

    /// Keys.
    pub(crate) fn len(&self) -> usize {
        self.chains.len()
    }

    /// Bytes of keys and newest values.
    pub(crate) fn content_bytes(&self) -> usize {
        self.sizes.content
    }

    /// The chains of a range, ascending.
    pub(crate) fn range(
        &self,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
    ) -> impl DoubleEndedIterator<Item = (&[u8], &Chain)> + '_ {
        // `BTreeMap::range` panics where the bounds cross.
        (!crosses(lower, upper)).then(|| self.chains.range(lower, upper)).into_iter().flatten()
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

/// What applying writes did to a buffer.
pub(crate) struct Applied {
    /// By how many bytes it grew.
    pub(crate) growth: isize,
    /// Chains in which it left a version that the next commits are to drop.
    pub(crate) left: usize,
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

    /// Applies writes of one commit, in any order of keys.
    pub(crate) fn apply<'w>(
        &self,
        lsn: Lsn,
        timestamp: CommitTimestamp,
        bounds: PruneBounds<'_>,
        writes: impl Iterator<Item = (&'w [u8], OwnedChange)>,
    ) -> Applied {
        let mut buffer = self.buffer.write();
        let before = buffer.bytes();
        buffer.drop_left(bounds);
        let left = buffer.left.len();
        // A part of a large commit has the time of the whole, which nobody sees for long: the commits between would have to wait for it.
        let is_small = timestamp.get() == lsn.get();
        for (key, change) in writes {
            let left = buffer.push(key, Version { timestamp, change }, bounds);
            if let Some(number) = left.filter(|_| is_small) {
                buffer.note_left(number);
            }
        }
        let after = buffer.bytes();
        self.bytes.store(after, Ordering::Relaxed);
        // The smallest, since commits may come to a buffer in another order than to the log.
        let first = self.first_lsn.load(Ordering::Relaxed);
        if first == 0 || lsn.get() < first {
            self.first_lsn.store(lsn.get(), Ordering::Release);
        }
        Applied { growth: after as isize - before as isize, left: buffer.left.len() - left }
    }

    /// Drops what no snapshot can see any more, if there may be enough of it; the bytes that were dropped. The buffer is not frozen.
    pub(crate) fn sweep(&self, bounds: PruneBounds<'_>) -> usize {
        let mut buffer = self.buffer.write();
        if buffer.sizes.older < buffer.sizes.all / SWEEP_SHARE {
            return 0;
        }
        let dropped = buffer.sweep(bounds);
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
