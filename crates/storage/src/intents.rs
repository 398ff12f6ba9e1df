//! Intents: which transaction updates which key, and the last commit that did. They make the first updater
//! win.
//!
//! # Terms
//! - *Fingerprint*: 64 bits of hash over tree and key. Two keys with one fingerprint conflict without need;
//!   that happens once in 2⁶⁴ pairs and costs a retry.
//! - *Intent*: a transaction's claim on a fingerprint, from its first update of the key to its end.
//! - *Settled* entry: one without an owner, kept because a transaction older than its commit may still update
//!   the key.
//!
//! # Algorithm
//! 1. [`Intents::acquire`] fails where another transaction owns the fingerprint, or a commit later than the
//!    caller's snapshot settled it. Otherwise the caller owns it.
//! 2. [`Intents::commit`] settles the owner's entries at its timestamp; [`Intents::release`] restores the
//!    state before.
//! 3. A shard that has doubled is swept: settled entries that every live snapshot sees can no longer refuse a
//!    transaction.
//! 4. A shard still above its cap evicts the older half of its settled entries, and remembers the latest
//!    commit among them. From then on a snapshot older than that commit conflicts on every key that the shard
//!    does not know. So memory is bounded, and eviction costs false conflicts, never a missed one.
//!
//! # Transactions with very many keys
//! A table entry takes some 70 bytes. A transaction that has claimed [`CLAIMS_MAX`] keys ([`Claims`]) claims
//! further ones *widely*: in filters, one in each shard. They take 10 to 40 bits a key, at most 112 MB in
//! all. A claim of a key that such a filter may contain conflicts, two times in a hundred without need. A
//! commit settles the filters as it settles entries. They go when every live snapshot sees the commit.
//!
//! # Whole ranges
//! A transaction can claim all keys of a range, also those that no transaction has claimed: see [`ranges`].
//!
//! # The order at commit
//! An engine assigns the timestamp, calls `commit` here, and only then lets snapshots see that timestamp. A
//! transaction that sees the commit therefore finds its intents free. One client's transactions, one after
//! another, never conflict with themselves.
//!
//! # Invariants
//! - The oldest snapshot told to [`Intents::set_oldest_snapshot`] is at most that of every live and future
//!   transaction.
//! - An owned entry is never swept or evicted.
//! - An entry without owner has a commit timestamp above zero.

use pando_environment::sync::atomic::{AtomicU64, Ordering};
use std::num::NonZeroU64;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use pando_environment::sync::Mutex;

use crate::error::StorageError;
use crate::fingerprint::fingerprint;
use crate::identifiers::{CommitTimestamp, SnapshotTimestamp, TreeId};
use crate::key_filter::GrowingFilter;
use crate::key_range::KeyRange;

mod claims;
mod ranges;

pub use claims::{CLAIMS_MAX, Claims};
pub use ranges::RANGE_CLAIMS_MAX;
use ranges::{KeyStart, RangeClaims};

/// A power of two; enough that a few dozen threads seldom meet.
const SHARDS: usize = 64;

/// Settled entries kept in all shards together unless the engine says otherwise: about 45 MB.
const ENTRIES_MAX: usize = 1 << 20;

/// Below this many entries a shard is never swept.
const SWEEP_ENTRIES_MIN: usize = 128;

/// A transaction as its engine numbers it; never zero, never reused while the engine is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TransactionId(NonZeroU64);

impl TransactionId {
    /// The transaction of this number.
    ///
    /// # Panics
    /// For zero, which means nobody.
    pub const fn new(number: u64) -> TransactionId {
        match NonZeroU64::new(number) {
            Some(number) => TransactionId(number),
            None => panic!("transactions are numbered from one"),
        }
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0.get()
    }
}

/// A claim that a transaction holds, to be given back by [`Intents::commit`] or [`Intents::release`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Intent {
    fingerprint: u64,
    owner: TransactionId,
}

struct Slot {
    fingerprint: u64,
    owner: Option<TransactionId>,
    /// The last commit that updated the key; zero: none that anybody need know of.
    committed: CommitTimestamp,
    /// For claims of ranges.
    key: KeyStart,
}

/// A key on its way into the table.
#[derive(Clone, Copy)]
struct Claimed {
    fingerprint: u64,
    key: KeyStart,
}

struct Shard {
    table: HashTable<Slot>,
    /// Sweep when the table has grown to this many entries.
    sweep_at: usize,
    /// The latest commit among evicted entries.
    evicted_to: CommitTimestamp,
    /// Keys that transactions with very many keys have claimed or updated.
    wide: Vec<Wide>,
}

/// The keys of a shard that one transaction claims widely, or has updated so.
struct Wide {
    owner: Option<TransactionId>,
    committed: CommitTimestamp,
    keys: GrowingFilter,
    /// The trees that the keys belong to.
    trees: Vec<TreeId>,
}

/// The table of intents of one engine.
pub struct Intents {
    shards: Box<[Mutex<Shard>]>,
    oldest_snapshot: AtomicU64,
    shard_entries_max: usize,
    ranges: RangeClaims,
}

impl Default for Intents {
    fn default() -> Intents {
        Intents::new()
    }
}

impl Intents {
    /// An empty table of the usual size.
    pub fn new() -> Intents {
        Intents::with_entries_max(ENTRIES_MAX)
    }

    /// An empty table that keeps at most about this many settled entries (at least 4 in each of its 64
    /// shards).
    pub fn with_entries_max(entries_max: usize) -> Intents {
        let shard = || {
            let shard = Shard {
                table: HashTable::new(),
                sweep_at: SWEEP_ENTRIES_MIN,
                evicted_to: CommitTimestamp::ZERO,
                wide: Vec::new(),
            };
            Mutex::new(shard)
        };
        Intents {
            shards: (0..SHARDS).map(|_| shard()).collect(),
            oldest_snapshot: AtomicU64::new(0),
            shard_entries_max: (entries_max / SHARDS).max(4),
            ranges: RangeClaims::default(),
        }
    }

    /// Claims a key for a transaction, or [`Conflict`](crate::ErrorKind::Conflict). A transaction may claim a
    /// key again; either of the two intents then gives it back.
    pub fn acquire(
        &self,
        owner: TransactionId,
        snapshot: SnapshotTimestamp,
        tree: TreeId,
        key: &[u8],
    ) -> Result<Intent, StorageError> {
        let fingerprint = fingerprint(tree, key);
        let mut shard = self.shard(fingerprint).lock();
        if shard.table.len() >= shard.sweep_at {
            shard.make_room(self.oldest(), self.shard_entries_max);
        }
        shard.check_wide(fingerprint, owner, snapshot, || self.oldest())?;
        self.ranges.check(owner, snapshot, tree, key)?;
        shard.claim(Claimed { fingerprint, key: KeyStart::of(tree, key) }, owner, snapshot)?;
        Ok(Intent { fingerprint, owner })
    }

    /// Claims all keys of a range, or [`Conflict`](crate::ErrorKind::Conflict); until
    /// [`Intents::commit_ranges`] or [`Intents::release_ranges`]. False if there are too many such claims
    /// already: then the keys are to be claimed one by one.
    fn acquire_range(
        &self,
        owner: TransactionId,
        snapshot: SnapshotTimestamp,
        tree: TreeId,
        range: &KeyRange,
    ) -> Result<bool, StorageError> {
        if !self.ranges.add(owner, snapshot, tree, range)? {
            return Ok(false);
        }
        let oldest = self.oldest();
        let is_free =
            |shard: &Mutex<Shard>| shard.lock().allows_range(owner, (snapshot, oldest), tree, range);
        if self.shards.iter().all(is_free) {
            return Ok(true);
        }
        self.ranges.take_back(owner);
        Err(StorageError::conflict())
    }

    /// Settles the ranges that a transaction has claimed.
    fn commit_ranges(&self, owner: TransactionId, timestamp: CommitTimestamp) {
        self.ranges.commit(owner, timestamp);
    }

    /// Gives back the ranges that a transaction has claimed.
    fn release_ranges(&self, owner: TransactionId) {
        self.ranges.release(owner);
    }

    /// Claims a key widely, or [`Conflict`](crate::ErrorKind::Conflict); until [`Intents::commit_wide`] or
    /// [`Intents::release_wide`].
    fn acquire_wide(
        &self,
        owner: TransactionId,
        snapshot: SnapshotTimestamp,
        tree: TreeId,
        key: &[u8],
    ) -> Result<(), StorageError> {
        let fingerprint = fingerprint(tree, key);
        let mut shard = self.shard(fingerprint).lock();
        shard.check_wide(fingerprint, owner, snapshot, || self.oldest())?;
        self.ranges.check(owner, snapshot, tree, key)?;
        shard.claim_widely(tree, fingerprint, owner, snapshot)
    }

    /// Settles the wide claims of a transaction.
    fn commit_wide(&self, owner: TransactionId, timestamp: CommitTimestamp) {
        for shard in &self.shards {
            let mut shard = shard.lock();
            for wide in shard.wide.iter_mut().filter(|wide| wide.owner == Some(owner)) {
                wide.owner = None;
                wide.committed = timestamp;
            }
        }
    }

    /// Gives back the wide claims of a transaction.
    fn release_wide(&self, owner: TransactionId) {
        for shard in &self.shards {
            shard.lock().wide.retain(|wide| wide.owner != Some(owner));
        }
    }

    /// Whether a live transaction has claimed a key; once in a while also if it has not. Never so in a tree
    /// of which it has claimed no key: a key that is only merged into blindly must not be taken for claimed
    /// for as long as a large commit takes.
    pub fn is_claimed_by(&self, owner: TransactionId, tree: TreeId, key: &[u8]) -> bool {
        let fingerprint = fingerprint(tree, key);
        let shard = self.shard(fingerprint).lock();
        let slot = shard.table.find(fingerprint, |slot| slot.fingerprint == fingerprint);
        slot.is_some_and(|slot| slot.owner == Some(owner))
            || shard.wide.iter().any(|wide| {
                wide.owner == Some(owner) && wide.trees.contains(&tree) && wide.keys.may_contain(fingerprint)
            })
    }

    fn oldest(&self) -> SnapshotTimestamp {
        SnapshotTimestamp::new(self.oldest_snapshot.load(Ordering::Acquire))
    }

    /// Bytes of memory of all wide claims.
    #[cfg(test)]
    fn wide_memory(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().wide_memory()).sum()
    }

    /// Bytes of memory of all that is claimed or settled.
    pub fn memory(&self) -> usize {
        self.shards
            .iter()
            .map(|shard| {
                let shard = shard.lock();
                shard.table.allocation_size() + shard.wide_memory()
            })
            .sum()
    }

    /// Settles a transaction's intents at its commit.
    pub fn commit(&self, intents: &[Intent], timestamp: CommitTimestamp) {
        for intent in intents {
            let mut shard = self.shard(intent.fingerprint).lock();
            if let Some(slot) = shard.owned(intent) {
                slot.owner = None;
                slot.committed = timestamp;
            }
        }
    }

    /// Gives a transaction's intents back as if it had never been.
    pub fn release(&self, intents: &[Intent]) {
        for intent in intents {
            self.shard(intent.fingerprint).lock().release(intent);
        }
    }

    /// Tells the oldest snapshot that any live or future transaction has. Never goes back.
    pub fn set_oldest_snapshot(&self, oldest: SnapshotTimestamp) {
        self.oldest_snapshot.fetch_max(oldest.get(), Ordering::AcqRel);
        self.ranges.forget_seen_by(oldest);
    }

    /// Entries, owned and settled.
    pub fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().table.len()).sum()
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn shard(&self, fingerprint: u64) -> &Mutex<Shard> {
        // The table's buckets come from the lowest bits and its tags from the highest: the shard takes
        // others.
        &self.shards[(fingerprint >> 40) as usize % SHARDS]
    }
}

impl std::fmt::Debug for Intents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Intents({} entries)", self.len())
    }
}

impl Shard {
    fn wide_memory(&self) -> usize {
        self.wide.iter().map(|wide| wide.keys.memory()).sum()
    }

    /// Refuses a key that another transaction has claimed widely, or updated so after the snapshot.
    fn check_wide(
        &mut self,
        fingerprint: u64,
        owner: TransactionId,
        snapshot: SnapshotTimestamp,
        oldest: impl Fn() -> SnapshotTimestamp,
    ) -> Result<(), StorageError> {
        if self.wide.is_empty() {
            return Ok(());
        }
        let oldest = oldest();
        self.wide.retain(|wide| wide.owner.is_some() || !oldest.sees(wide.committed));
        let refuses = |wide: &Wide| match wide.owner {
            Some(holder) => holder != owner,
            None => !snapshot.sees(wide.committed),
        };
        if self.wide.iter().any(|wide| refuses(wide) && wide.keys.may_contain(fingerprint)) {
            return Err(StorageError::conflict());
        }
        Ok(())
    }

    fn claim_widely(
        &mut self,
        tree: TreeId,
        fingerprint: u64,
        owner: TransactionId,
        snapshot: SnapshotTimestamp,
    ) -> Result<(), StorageError> {
        match self.table.find(fingerprint, |slot| slot.fingerprint == fingerprint) {
            Some(slot) if slot.owner == Some(owner) => return Ok(()),
            Some(slot) if slot.owner.is_some() || !snapshot.sees(slot.committed) => {
                return Err(StorageError::conflict());
            }
            Some(_) => {}
            None if !snapshot.sees(self.evicted_to) => return Err(StorageError::conflict()),
            None => {}
        }
        let own = self.wide.iter().position(|wide| wide.owner == Some(owner));
        let at = own.unwrap_or_else(|| {
            let (keys, trees) = (GrowingFilter::default(), Vec::new());
            self.wide.push(Wide { owner: Some(owner), committed: CommitTimestamp::ZERO, keys, trees });
            self.wide.len() - 1
        });
        self.wide[at].keys.add(fingerprint);
        if !self.wide[at].trees.contains(&tree) {
            self.wide[at].trees.push(tree);
        }
        Ok(())
    }

    /// Whether nothing in the shard keeps a transaction from claiming a range.
    fn allows_range(
        &mut self,
        owner: TransactionId,
        (snapshot, oldest): (SnapshotTimestamp, SnapshotTimestamp),
        tree: TreeId,
        range: &KeyRange,
    ) -> bool {
        self.wide.retain(|wide| wide.owner.is_some() || !oldest.sees(wide.committed));
        let refuses = |holder: Option<TransactionId>, committed: CommitTimestamp| match holder {
            Some(holder) => holder != owner,
            None => !snapshot.sees(committed),
        };
        let is_refused_by =
            |slot: &Slot| refuses(slot.owner, slot.committed) && slot.key.may_lie_within(tree, range);
        snapshot.sees(self.evicted_to)
            && !self.wide.iter().any(|wide| refuses(wide.owner, wide.committed))
            && !self.table.iter().any(is_refused_by)
    }

    fn claim(
        &mut self,
        Claimed { fingerprint, key }: Claimed,
        owner: TransactionId,
        snapshot: SnapshotTimestamp,
    ) -> Result<(), StorageError> {
        let same = |slot: &Slot| slot.fingerprint == fingerprint;
        match self.table.entry(fingerprint, same, |slot| slot.fingerprint) {
            Entry::Occupied(mut entry) => {
                let slot = entry.get_mut();
                match slot.owner {
                    Some(holder) if holder == owner => Ok(()),
                    Some(_) => Err(StorageError::conflict()),
                    None if !snapshot.sees(slot.committed) => Err(StorageError::conflict()),
                    None => {
                        slot.owner = Some(owner);
                        Ok(())
                    }
                }
            }
            // The key may be among the evicted ones, committed at any time up to `evicted_to`.
            Entry::Vacant(_) if !snapshot.sees(self.evicted_to) => Err(StorageError::conflict()),
            Entry::Vacant(entry) => {
                let committed = CommitTimestamp::ZERO;
                entry.insert(Slot { fingerprint, owner: Some(owner), committed, key });
                Ok(())
            }
        }
    }

    fn owned(&mut self, intent: &Intent) -> Option<&mut Slot> {
        self.table.find_mut(intent.fingerprint, |slot| is_owned(slot, intent))
    }

    fn release(&mut self, intent: &Intent) {
        let Ok(mut entry) = self.table.find_entry(intent.fingerprint, |slot| is_owned(slot, intent)) else {
            return;
        };
        if entry.get().committed == CommitTimestamp::ZERO {
            // Left in place it would vouch that no commit updated the key, which an eviction may have made
            // untrue.
            entry.remove();
        } else {
            entry.get_mut().owner = None;
        }
    }

    fn make_room(&mut self, oldest: SnapshotTimestamp, entries_max: usize) {
        self.table.retain(|slot| slot.owner.is_some() || !oldest.sees(slot.committed));
        self.evict(entries_max);
        // Else sweeping again and again would find nothing while a great transaction holds what there is.
        self.sweep_at = (self.table.len() * 2).max(SWEEP_ENTRIES_MIN.min(entries_max));
        self.table.shrink_to(self.sweep_at, |slot| slot.fingerprint);
    }

    /// Drops the older half of the settled entries if there are too many.
    fn evict(&mut self, entries_max: usize) {
        let mut settled: Vec<CommitTimestamp> =
            self.table.iter().filter(|slot| slot.owner.is_none()).map(|slot| slot.committed).collect();
        if settled.len() <= entries_max / 2 {
            return;
        }
        let middle = settled.len() / 2;
        let (_, &mut until, _) = settled.select_nth_unstable(middle);
        self.table.retain(|slot| slot.owner.is_some() || slot.committed > until);
        self.evicted_to = self.evicted_to.max(until);
    }
}

fn is_owned(slot: &Slot, intent: &Intent) -> bool {
    slot.fingerprint == intent.fingerprint && slot.owner == Some(intent.owner)
}

#[cfg(test)]
mod tests;

#[cfg(all(test, shuttle))]
mod schedules;
