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
//! # Waiting
//! The loser of a claim may wait for the key until its holder ends: see [`queues`].
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

use std::sync::Arc;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use pando_environment::sync::Mutex;

use crate::contest::{Contest, Contested};
use crate::error::StorageError;
use crate::fingerprint::fingerprint;
use crate::identifiers::{CommitTimestamp, SnapshotTimestamp, TransactionId, TreeId};
use crate::key_filter::GrowingFilter;
use crate::key_range::KeyRange;

mod claims;
mod queues;
mod ranges;

pub use claims::{CLAIMS_MAX, Claims};
use queues::Queue;
pub use queues::{HeldKey, Ticket, WaitRequest};
pub use ranges::RANGE_CLAIMS_MAX;
use ranges::{KeyStart, RangeClaims};

/// A power of two; enough that a few dozen threads seldom meet.
const SHARDS: usize = 64;

/// Settled entries kept in all shards together unless the engine says otherwise: about 45 MB.
const ENTRIES_MAX: usize = 1 << 20;

/// Below this many entries a shard is never swept.
const SWEEP_ENTRIES_MIN: usize = 128;

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

/// A transaction that claims keys.
#[derive(Clone, Copy, Debug)]
struct Claimant {
    owner: TransactionId,
    snapshot: SnapshotTimestamp,
    /// The place of its statement in the queues, if it has waited.
    ticket: Option<Ticket>,
}

impl Claimant {
    /// The cause for which this state of a key keeps the claimant from it.
    fn refusal(&self, owner: Option<TransactionId>, committed: CommitTimestamp) -> Result<(), Contest> {
        match owner {
            Some(holder) if holder == self.owner => Ok(()),
            Some(holder) => Err(Contest::Held(holder)),
            None if !self.snapshot.sees(committed) => Err(Contest::Committed),
            None => Ok(()),
        }
    }
}

struct Shard {
    table: HashTable<Slot>,
    /// Sweep when the table has grown to this many entries.
    sweep_at: usize,
    /// The latest commit among evicted entries.
    evicted_to: CommitTimestamp,
    /// Keys that transactions with very many keys have claimed or updated.
    wide: Vec<Wide>,
    /// The keys for which statements wait.
    queues: Vec<Queue>,
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
    /// The last ticket that was given out.
    last_ticket: AtomicU64,
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
                queues: Vec::new(),
            };
            Mutex::new(shard)
        };
        Intents {
            shards: (0..SHARDS).map(|_| shard()).collect(),
            oldest_snapshot: AtomicU64::new(0),
            shard_entries_max: (entries_max / SHARDS).max(4),
            ranges: RangeClaims::default(),
            last_ticket: AtomicU64::new(0),
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
        self.acquire_as(Claimant { owner, snapshot, ticket: None }, tree, key)
    }

    fn acquire_as(&self, claimant: Claimant, tree: TreeId, key: &[u8]) -> Result<Intent, StorageError> {
        let fingerprint = fingerprint(tree, key);
        let mut shard = self.shard(fingerprint).lock();
        if shard.table.len() >= shard.sweep_at {
            shard.make_room(self.oldest(), self.shard_entries_max);
        }
        let claimed = Claimed { fingerprint, key: KeyStart::of(tree, key) };
        let outcome = shard
            .check_wide(fingerprint, claimant, || self.oldest())
            .and_then(|()| self.ranges.check(claimant, tree, key))
            .and_then(|()| shard.claim(claimed, claimant));
        drop(shard);
        outcome.map_err(|contest| contested(fingerprint, claimant, contest, (tree, key)))?;
        Ok(Intent { fingerprint, owner: claimant.owner })
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
        // Statements may have found the range meanwhile.
        self.hand_over_all();
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
    fn acquire_wide(&self, claimant: Claimant, tree: TreeId, key: &[u8]) -> Result<(), StorageError> {
        let fingerprint = fingerprint(tree, key);
        let mut shard = self.shard(fingerprint).lock();
        let outcome = shard
            .check_wide(fingerprint, claimant, || self.oldest())
            .and_then(|()| self.ranges.check(claimant, tree, key))
            .and_then(|()| shard.claim_widely(tree, fingerprint, claimant));
        drop(shard);
        outcome.map_err(|contest| contested(fingerprint, claimant, contest, (tree, key)))
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

    /// Settles a transaction's intents at its commit. Tells whether statements may wait for one of them.
    pub fn commit(&self, intents: &[Intent], timestamp: CommitTimestamp) -> bool {
        let mut is_awaited = false;
        for intent in intents {
            let mut shard = self.shard(intent.fingerprint).lock();
            if let Some(slot) = shard.owned(intent) {
                slot.owner = None;
                slot.committed = timestamp;
            }
            is_awaited |= !shard.queues.is_empty();
        }
        is_awaited
    }

    /// Gives a transaction's intents back as if it had never been.
    pub fn release(&self, intents: &[Intent]) {
        if self.free(intents) {
            self.hand_over(intents);
        }
    }

    /// The same without the statements that wait. Tells whether some may wait for one of them.
    fn free(&self, intents: &[Intent]) -> bool {
        let mut is_awaited = false;
        for intent in intents {
            let mut shard = self.shard(intent.fingerprint).lock();
            shard.release(intent);
            is_awaited |= !shard.queues.is_empty();
        }
        is_awaited
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
        claimant: Claimant,
        oldest: impl Fn() -> SnapshotTimestamp,
    ) -> Result<(), Contest> {
        if self.wide.is_empty() {
            return Ok(());
        }
        let oldest = oldest();
        self.wide.retain(|wide| wide.owner.is_some() || !oldest.sees(wide.committed));
        self.wide.iter().try_for_each(|wide| match claimant.refusal(wide.owner, wide.committed) {
            Err(contest) if wide.keys.may_contain(fingerprint) => Err(contest),
            _ => Ok(()),
        })
    }

    fn claim_widely(&mut self, tree: TreeId, fingerprint: u64, claimant: Claimant) -> Result<(), Contest> {
        let Claimant { owner, snapshot, ticket } = claimant;
        match self.table.find(fingerprint, |slot| slot.fingerprint == fingerprint) {
            Some(slot) if slot.owner == Some(owner) => return Ok(()),
            Some(slot) => claimant.refusal(slot.owner, slot.committed)?,
            None if !snapshot.sees(self.evicted_to) => return Err(Contest::Committed),
            None => {}
        }
        if !self.queues.is_empty() {
            if self.is_reserved(fingerprint, ticket) {
                return Err(Contest::Reserved);
            }
            self.end_reservation(fingerprint);
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

    fn claim(&mut self, Claimed { fingerprint, key }: Claimed, claimant: Claimant) -> Result<(), Contest> {
        let is_queued = !self.queues.is_empty();
        let is_reserved = is_queued && self.is_reserved(fingerprint, claimant.ticket);
        let same = |slot: &Slot| slot.fingerprint == fingerprint;
        match self.table.entry(fingerprint, same, |slot| slot.fingerprint) {
            Entry::Occupied(mut entry) => {
                let slot = entry.get_mut();
                claimant.refusal(slot.owner, slot.committed)?;
                if slot.owner.is_some() {
                    return Ok(());
                }
                if is_reserved {
                    return Err(Contest::Reserved);
                }
                slot.owner = Some(claimant.owner);
            }
            // The key may be among the evicted ones, committed at any time up to `evicted_to`.
            Entry::Vacant(_) if !claimant.snapshot.sees(self.evicted_to) => return Err(Contest::Committed),
            Entry::Vacant(_) if is_reserved => return Err(Contest::Reserved),
            Entry::Vacant(entry) => {
                let committed = CommitTimestamp::ZERO;
                entry.insert(Slot { fingerprint, owner: Some(claimant.owner), committed, key });
            }
        }
        if is_queued {
            self.end_reservation(fingerprint);
        }
        Ok(())
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

/// The error of a lost claim.
#[cold]
fn contested(
    fingerprint: u64,
    claimant: Claimant,
    contest: Contest,
    (tree, key): (TreeId, &[u8]),
) -> StorageError {
    let contested = Contested { fingerprint, requester: claimant.owner, contest, tree, key: key.into() };
    StorageError::contested(Arc::new(contested))
}

fn is_owned(slot: &Slot, intent: &Intent) -> bool {
    slot.fingerprint == intent.fingerprint && slot.owner == Some(intent.owner)
}

#[cfg(test)]
mod tests;

#[cfg(all(test, not(shuttle)))]
mod queue_tests;

#[cfg(all(test, shuttle))]
mod schedules;
