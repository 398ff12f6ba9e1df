//! Buffer: the mutable part of a tree, with committed writes that have not been flushed yet.
//!
//! # Terms
//! - *Chain*: the versions of one key in a buffer, newest first.
//! - *Oldest snapshot*: the oldest that any transaction, present or future, can have. Of the versions at or
//!   before it only the newest can ever be seen.
//! - *Prune* a chain: drop the versions that no snapshot can see. A merge operator is combined with the
//!   version below it first ([`value_merge`](crate::tree::value_merge)). This happens at or below the oldest
//!   snapshot only. Above it, commits that wrote a key blindly may arrive in another order than in the log.
//! - *Superseded* version: a newer one stands above it, but snapshots may need it until the newer commit is
//!   published. A later commit to the same buffer drops it, even if that commit writes other keys. It is the
//!   first commit that knows an oldest snapshot which sees the newer version. So the thread that frees memory
//!   is mostly one that needs some, and the memory is still in the processor's caches.
//! - *Thin* a chain: drop the versions between two snapshots, by the exact list of all snapshots. A key that
//!   every commit writes, such as a counter, would have a chain of any length while an old snapshot lives.
//! - *Sweep*: prune all chains. It finds versions that were still visible when later commits looked, or that
//!   were too many to note.
//!
//! # Invariants
//! - Timestamps descend strictly within a chain.
//! - A frozen buffer never changes: readers never wait for a lock on it.
//! - The byte count is the size of the entries with their share of the map's nodes and table, within about a
//!   tenth.

use pando_environment::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::collections::VecDeque;
use std::ops::Bound;

use pando_environment::sync::{RwLock, RwLockReadGuard};
use pando_storage::{CommitTimestamp, KeyRange, Lsn, SnapshotTimestamp};

use self::chains::{ChainNumber, Chains};
use self::key::BufferKey;
use crate::range_deletes::DeletedRanges;
use crate::tree::version_retention::Retained;

mod chain;
mod chains;
mod key;

#[cfg(test)]
pub(crate) use self::chain::DeleteOrMerge;
pub(crate) use self::chain::{BufferedVersion, Chain, OwnedChange};

/// Bytes of a key without its values: its entry, its slot in a B-tree filled at random, its part of the
/// table.
pub(crate) const SLOT_BYTES: usize = 156;
/// Bytes that the allocator takes beside the bytes it gives.
const ALLOCATION_BYTES: usize = 16;

/// The chains of keys.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    chains: Chains,
    sizes: Sizes,
    /// Chains with a superseded version, in the order of their commits. A snapshot at or after the timestamp
    /// does not need the version.
    superseded: VecDeque<(CommitTimestamp, ChainNumber)>,
}

/// The bounds that decide which versions of a key can be dropped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PruneBounds<'r> {
    /// The oldest snapshot that any transaction, present or future, can have.
    pub(crate) oldest: SnapshotTimestamp,
    /// The range deletes of the tree.
    pub(crate) ranges: &'r DeletedRanges,
}

/// The sizes of a buffer's content, in bytes.
#[derive(Debug, Default)]
struct Sizes {
    all: usize,
    /// The part of them in versions that are not the newest of their key.
    older: usize,
    /// Bytes of keys and newest values, for estimates.
    content: usize,
}

impl Sizes {
    /// Thins the chain of a key.
    fn thin(&mut self, chain: &mut Chain, retained: &Retained) {
        self.content -= chain.newest.content_bytes();
        let (newest, older) = chain.thin(retained);
        self.content += chain.newest.content_bytes();
        self.older = self.older.strict_add_signed(older);
        self.all = self.all.strict_add_signed(newest + older);
    }

    /// Prunes the chain of a key.
    fn prune(&mut self, key: &[u8], chain: &mut Chain, bounds: PruneBounds<'_>) {
        self.content -= chain.newest.content_bytes();
        let (newest, older) = chain.prune(bounds.oldest, bounds.ranges.over(key));
        self.content += chain.newest.content_bytes();
        self.older = self.older.strict_add_signed(older);
        self.all = self.all.strict_add_signed(newest + older);
    }
}

/// Chains with a superseded version that may be noted in any buffer: more than most commits overwrite.
const SUPERSEDED_MIN: usize = 256;
/// The same at most. Pruning them all, when an old snapshot has ended, takes a fraction of a millisecond.
const SUPERSEDED_MAX: usize = 4_096;
/// Between both bounds, the number of chains divided by this may be noted. That is more than the chains of
/// one commit, because the oldest snapshot lags some commits behind while several threads write.
const SUPERSEDED_DIVISOR: usize = 4;

impl Buffer {
    /// Adds a version of a key. Returns its chain if an older version is in it.
    pub(crate) fn push(
        &mut self,
        key: &[u8],
        version: BufferedVersion,
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
        let older = chain.push(version, bounds.oldest);
        self.sizes.content = self.sizes.content - content + chain.newest.content_bytes();
        self.sizes.older += older;
        self.sizes.all = self.sizes.all + chain.newest.heap_bytes() + older - newest;
        self.sizes.prune(key, chain, bounds);
        chain.older.is_some().then_some(number)
    }

    /// Notes that a chain has a superseded version, if there is room for the note.
    fn note_superseded(&mut self, number: ChainNumber) {
        if self.superseded.len()
            < (self.chains.len() / SUPERSEDED_DIVISOR).clamp(SUPERSEDED_MIN, SUPERSEDED_MAX)
        {
            // A version that arrived out of order may stand below the newest. It is dropped with the others,
            // once the newest is seen.
            self.superseded.push_back((self.chains.get(number).newest.timestamp, number));
        }
    }

    /// Prunes the noted chains whose newer version the oldest snapshot sees.
    fn drop_superseded(&mut self, bounds: PruneBounds<'_>) {
        while let Some((timestamp, number)) = self.superseded.front()
            && bounds.oldest.sees(*timestamp)
        {
            let (key, chain) = self.chains.get_mut(*number);
            self.sizes.prune(key, chain, bounds);
            self.superseded.pop_front();
        }
    }

    /// Prunes all chains. Returns the bytes that it freed.
    fn sweep(&mut self, bounds: PruneBounds<'_>) -> usize {
        let before = self.sizes.all;
        for (key, chain) in self.chains.all_mut() {
            self.sizes.prune(key, chain, bounds);
        }
        before.strict_sub(self.sizes.all)
    }

    /// Thins the chains of these keys, where they are long and no range delete lies over them.
    fn thin<'k>(&mut self, keys: impl Iterator<Item = &'k [u8]>, retained: &Retained) {
        for key in keys {
            let Some(number) = self.chains.find(key) else { continue };
            let (key, chain) = self.chains.get_mut(number);
            if chain.is_to_be_thinned() && retained.deletes_over(key).is_empty() {
                self.sizes.thin(chain, retained);
            }
        }
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

/// A buffer that commits fill, lookups and scans read, and a flush empties.
#[derive(Debug)]
pub(crate) struct SharedBuffer {
    buffer: RwLock<Buffer>,
    bytes: AtomicUsize,
    /// The first log record that has a write here; 0 while there is none.
    first_lsn: AtomicU64,
    /// Reads that met the buffer while it had entries, up to [`READS_WORTH`].
    reads: AtomicU8,
}

/// The effect of applied writes on a buffer.
pub(crate) struct Applied {
    /// The bytes by which it grew.
    pub(crate) growth: isize,
    /// Chains newly noted with a superseded version, which later commits are to drop.
    pub(crate) superseded: usize,
    /// A chain has become so long that it is to be [thinned](SharedBuffer::thin).
    pub(crate) has_long_chain: bool,
}

/// A sweep looks at every chain. It is worthwhile if the buffer's bytes, divided by this, belong to versions
/// that are not the newest.
const SWEEP_DIVISOR: usize = 16;

/// Reads that make a buffer worth flushing in idle times. The count ends here.
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
        buffer.drop_superseded(bounds);
        let noted = buffer.superseded.len();
        // A part of a large commit has the timestamp of the whole commit, which no snapshot sees for long.
        // The notes behind it in the queue would wait for it.
        let is_small = timestamp.get() == lsn.get();
        let mut has_long_chain = false;
        for (key, change) in writes {
            let chain = buffer.push(key, BufferedVersion { timestamp, change }, bounds);
            if let Some(number) = chain.filter(|_| is_small) {
                buffer.note_superseded(number);
                has_long_chain |= buffer.chains.get(number).is_to_be_thinned();
            }
        }
        let after = buffer.bytes();
        self.bytes.store(after, Ordering::Relaxed);
        // The smallest one: commits may arrive at a buffer in another order than in the log.
        let first = self.first_lsn.load(Ordering::Relaxed);
        if first == 0 || lsn.get() < first {
            self.first_lsn.store(lsn.get(), Ordering::Release);
        }
        let superseded = buffer.superseded.len() - noted;
        Applied { growth: after as isize - before as isize, superseded, has_long_chain }
    }

    /// Thins the chains of keys that a commit has just written. Returns the bytes by which the buffer grew.
    /// The buffer is not frozen.
    pub(crate) fn thin<'k>(&self, keys: impl Iterator<Item = &'k [u8]>, retained: &Retained) -> isize {
        let mut buffer = self.buffer.write();
        let before = buffer.bytes();
        buffer.thin(keys, retained);
        let after = buffer.bytes();
        self.bytes.store(after, Ordering::Relaxed);
        after as isize - before as isize
    }

    /// Sweeps the buffer, if enough bytes belong to older versions. Returns the bytes that it freed. The
    /// buffer is not frozen.
    pub(crate) fn sweep(&self, bounds: PruneBounds<'_>) -> usize {
        let mut buffer = self.buffer.write();
        if buffer.sizes.older < buffer.sizes.all / SWEEP_DIVISOR {
            return 0;
        }
        let dropped = buffer.sweep(bounds);
        self.bytes.store(buffer.bytes(), Ordering::Relaxed);
        dropped
    }

    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Buffer> {
        self.buffer.read()
    }

    /// Notes that a lookup or scan reads it.
    pub(crate) fn note_read(&self) {
        if self.reads.load(Ordering::Relaxed) < READS_WORTH {
            self.reads.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Whether it was read often.
    pub(crate) fn is_wanted(&self) -> bool {
        self.reads.load(Ordering::Relaxed) >= READS_WORTH
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Whether it has no entries. It takes no lock, so that an empty buffer costs a lookup one load.
    pub(crate) fn is_empty(&self) -> bool {
        self.first_lsn.load(Ordering::Acquire) == 0
    }

    /// The first log record that has a write here.
    pub(crate) fn first_lsn(&self) -> Option<Lsn> {
        match self.first_lsn.load(Ordering::Acquire) {
            0 => None,
            lsn => Some(Lsn::new(lsn)),
        }
    }
}

#[cfg(test)]
mod tests;
