//! The membership of a server in a store that several servers have open.
//!
//! The catalog of each server has the descriptions of collections in memory. So a change on one server has to
//! wait for the others. The tree `servers` ([`records`]) is where they meet.
//!
//! # Terms
//! - *Member*: an open catalog of the store, by a number that is never given twice.
//! - *Version*: the number of changes of the catalog tree so far. A member tells the version that it has
//!   *seen*: the one by which it works.
//! - *Barrier*: a collection that one member changes. A member *stands behind* it while it keeps its own
//!   statements from writing to the collection.
//! - *Beat*: a write of a member's own record. A member that has beaten lately is *trusted*, by its own
//!   clock. One whose record stands still for longer is *dead* to the others: they take the record out.
//! - *Epoch*: the time of a member between two lapses of its trust. A transaction commits in the epoch in
//!   which it has begun.
//!
//! # Algorithm
//! 1. Each member looks at the tree every [`LOOK_EVERY`], takes over the changes of others, and stands behind
//!    the barriers of others ([`Catalog::follow`](crate::Catalog::follow)).
//! 2. A change of a collection raises a barrier, and waits until all other members stand behind it. No
//!    statement writes to the collection then, on any server. The change commits; the barrier is lowered.
//!    A member lets its statements write again when it has taken the change over.
//! 3. A flag of an index (`flag_log`) changes plans, and needs no barrier: before the document that raises it
//!    commits, all other members have seen the version with the flag.
//! 4. Trees that a change has made useless are dropped when all members have seen the change.
//! 5. A member may ask others ([`questions`]): they find the question at their next look, and answer it.
//!
//! # Invariants
//! - A trusted member writes to a collection by the description that the catalog tree has.
//! - Two changes of the catalog tree conflict: each writes the version.
//! - A commit that begins within [`TRUSTED_FOR`] ends before [`EXPIRES_AFTER`]: the engine lets it take
//!   [`SHARED_COMMIT_MAX`]. All are measured by the clock of one process, so that the clocks of two machines
//!   need not agree.
//!
//! # Limits
//! A process that stands still while it sends a commit, until [`MARGIN`] after the end of its time, may
//! commit by an old description.

mod questions;
mod records;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use pando_environment::{Clock, Monotonic};
use pando_storage::{
    Begin, BlockingMode, Durability, ErrorKind, SHARED_COMMIT_MAX, SharedEngine, SharedTime,
    SnapshotTimestamp, StorageError, Transaction, TreeId,
};
use parking_lot::{ArcRwLockWriteGuard, Mutex, RawRwLock, RwLock};

use questions::Questions;
pub use questions::{Answer, Answers, Asked, Question};
pub(crate) use records::{BarrierRecord, Board, MemberRecord};
use records::{LAST_NUMBER, LAST_TREE, VERSION, barrier_key, member_key, name_key, number_at};

/// The name of the tree that the members share.
pub(crate) const SERVERS_TREE: &str = "servers";

/// How often a member looks at the tree.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(200);
/// The same while a barrier is up.
pub(crate) const LOOK_AT_BARRIERS_EVERY: Duration = Duration::from_millis(20);
/// How often a member writes its record at least.
const BEAT_EVERY: Duration = Duration::from_secs(3);
/// How long a member is trusted after it has beaten.
const TRUSTED_FOR: Duration = Duration::from_secs(12);
/// How long a record stands still before its member is dead to the others: it may begin a commit as long as
/// it is trusted.
const EXPIRES_AFTER: Duration =
    Duration::from_secs(TRUSTED_FOR.as_secs() + SHARED_COMMIT_MAX.as_secs() + MARGIN.as_secs());
/// The time that a request to the cluster may be on its way after its sender has given it up.
const MARGIN: Duration = Duration::from_secs(4);
/// The pause between two looks at the answers of others.
const ANSWERS_EVERY: Duration = Duration::from_millis(5);
/// How often a change of the tree is tried again after a conflict.
const CHANGES_TRIED: u32 = 1_000;
/// The pause before that.
const CONFLICT_WAIT: Duration = Duration::from_millis(2);

/// The version that a member has seen before it has read any.
const NOTHING_SEEN: u64 = u64::MAX;

/// The latch of a collection, held alone.
type Latch = ArcRwLockWriteGuard<RawRwLock, ()>;

/// See the module's head.
pub(crate) struct Sharing {
    engine: SharedEngine,
    tree: TreeId,
    clock: Arc<dyn Clock>,
    /// The name of this server for people, and for requests that name it.
    name: String,
    /// The number of this member. Another one after a lapse in which it was taken out.
    member: AtomicU64,
    epoch: AtomicU64,
    beaten_at: Mutex<Option<Monotonic>>,
    seen: AtomicU64,
    /// The moment of the store's clock up to which all changes of the catalog tree are taken over.
    looked_at: AtomicU64,
    /// The moment at which the last of them was found.
    found_at: AtomicU64,
    /// A version that all members have seen.
    seen_by_all: AtomicU64,
    /// Whether no member has a smaller number.
    is_first: AtomicBool,
    /// Whether it has taken itself out.
    has_left: AtomicBool,
    /// Held while a barrier is raised.
    raising: Mutex<()>,
    /// The barriers of this member, by namespace.
    raised: Mutex<BTreeMap<String, BarrierRecord>>,
    following: Mutex<Following>,
    questions: Questions,
}

/// The state of the work that follows the others. One thread has it at a time.
#[derive(Default)]
pub(crate) struct Following {
    /// The barriers of others behind which this member stands, each with the latch of its collection.
    pub standing: BTreeMap<u64, Option<Latch>>,
    /// The latches of collections that have changed while this member was not trusted. Statements that hold
    /// one have to end before it is trusted again.
    pub stale: Vec<Arc<RwLock<()>>>,
    told: MemberRecord,
    watched: BTreeMap<u64, Watched>,
}

/// The record of another member, and since when it has stood still.
struct Watched {
    record: MemberRecord,
    since: Monotonic,
}

impl Sharing {
    /// A new member. It is not trusted before it has followed the others once.
    pub(crate) fn join(
        engine: SharedEngine,
        tree: TreeId,
        clock: Arc<dyn Clock>,
        name: &str,
    ) -> Result<Sharing, StorageError> {
        let sharing = Sharing {
            engine,
            tree,
            clock,
            name: name.to_owned(),
            member: AtomicU64::new(0),
            epoch: AtomicU64::new(0),
            beaten_at: Mutex::new(None),
            seen: AtomicU64::new(NOTHING_SEEN),
            looked_at: AtomicU64::new(0),
            found_at: AtomicU64::new(0),
            seen_by_all: AtomicU64::new(0),
            is_first: AtomicBool::new(false),
            has_left: AtomicBool::new(false),
            raising: Mutex::default(),
            raised: Mutex::default(),
            following: Mutex::default(),
            questions: Questions::default(),
        };
        sharing.register()?;
        Ok(sharing)
    }

    /// Gives this member a number and a record.
    pub(crate) fn register(&self) -> Result<(), StorageError> {
        let number = self.change(|transaction| {
            let number = self.next(transaction, LAST_NUMBER, 0)?;
            let record = MemberRecord::default();
            transaction.put(self.tree, &member_key(number), &record.encode())?;
            transaction.put(self.tree, &name_key(number), self.name.as_bytes())?;
            Ok(number)
        })?;
        *self.beaten_at.lock() = None;
        self.epoch.fetch_add(1, Ordering::AcqRel);
        self.member.store(number, Ordering::Release);
        Ok(())
    }

    /// Takes this member out for good: nobody waits for it any more.
    pub(crate) fn leave(&self) -> Result<(), StorageError> {
        self.has_left.store(true, Ordering::Release);
        // A look that has begun ends first.
        let _following = self.following.lock();
        *self.beaten_at.lock() = None;
        let member = self.member();
        self.change(|transaction| {
            transaction.delete(self.tree, &name_key(member))?;
            transaction.delete(self.tree, &member_key(member))
        })
    }

    pub(crate) fn has_left(&self) -> bool {
        self.has_left.load(Ordering::Acquire)
    }

    pub(crate) fn member(&self) -> u64 {
        self.member.load(Ordering::Acquire)
    }

    /// Whether this is the member that does the work that one does for all.
    pub(crate) fn is_first(&self) -> bool {
        self.is_first.load(Ordering::Acquire) && self.check_trusted().is_ok()
    }

    pub(crate) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    pub(crate) fn now(&self) -> Monotonic {
        self.clock.monotonic()
    }

    /// Refuses to go on where others may hold this member for dead.
    pub(crate) fn check_trusted(&self) -> Result<(), StorageError> {
        let now = self.now();
        let beaten_at = *self.beaten_at.lock();
        if beaten_at.is_some_and(|at| now.since(at) <= TRUSTED_FOR) {
            return Ok(());
        }
        let message = "this server has not reached the cluster of its store for a while, in which other servers may have \
                       changed collections: it goes on as soon as it reaches the cluster";
        Err(StorageError::new(ErrorKind::Unavailable, message))
    }

    /// The same for the commit of a transaction that has begun in an epoch.
    pub(crate) fn check_commit(&self, epoch: u64) -> Result<(), StorageError> {
        self.check_trusted()?;
        if self.epoch() == epoch { Ok(()) } else { Err(StorageError::conflict()) }
    }

    /// Begins an epoch where this member is not trusted any more; tells whether it is so.
    pub(crate) fn note_lapse(&self) -> bool {
        let has_lapsed = self.check_trusted().is_err();
        if has_lapsed {
            *self.beaten_at.lock() = None;
            self.epoch.fetch_add(1, Ordering::AcqRel);
        }
        has_lapsed
    }

    pub(crate) fn read_board(&self) -> Result<Board, StorageError> {
        let reader = self.engine.begin(Begin::READ)?;
        let board = Board::read(&*reader, self.tree);
        reader.rollback();
        board
    }

    /// Makes a change in a transaction of its own, again after a conflict.
    pub(crate) fn change<T>(
        &self,
        mut make: impl FnMut(&mut dyn Transaction) -> Result<T, StorageError>,
    ) -> Result<T, StorageError> {
        let mut tries = 0;
        loop {
            let mut transaction = self.engine.begin(Begin::WRITE)?;
            let made = match make(&mut *transaction) {
                Ok(made) if !transaction.has_writes() => {
                    transaction.rollback();
                    Ok(made)
                }
                Ok(made) => transaction.commit(Durability::Logged).map(|_| made),
                Err(error) => {
                    transaction.rollback();
                    Err(error)
                }
            };
            match made {
                Err(error) if error.is_conflict() && tries < CHANGES_TRIED => {
                    // The other transaction may stand still at this moment.
                    std::thread::sleep(CONFLICT_WAIT);
                    tries += 1;
                }
                made => return made,
            }
        }
    }

    fn next(&self, transaction: &mut dyn Transaction, key: &[u8], above: u64) -> Result<u64, StorageError> {
        let next = number_at(transaction, self.tree, key)?.max(above) + 1;
        transaction.put(self.tree, key, &next.to_be_bytes())?;
        Ok(next)
    }

    /// A number for a new tree, above another one.
    pub(crate) fn next_tree_number(&self, above: u64) -> Result<u64, StorageError> {
        self.change(|transaction| self.next(transaction, LAST_TREE, above))
    }

    /// The version of the catalog tree that a transaction sees.
    pub(crate) fn version_at(&self, transaction: &dyn Transaction) -> Result<u64, StorageError> {
        number_at(transaction, self.tree, VERSION)
    }

    /// Counts a change of the catalog tree in the transaction that makes it. Gives the new version.
    pub(crate) fn count_change(&self, transaction: &mut dyn Transaction) -> Result<u64, StorageError> {
        self.next(transaction, VERSION, 0)
    }

    /// The same for a change that rests on the descriptions in memory: a conflict where they are not those
    /// that the transaction sees.
    pub(crate) fn count_change_of_seen(
        &self,
        transaction: &mut dyn Transaction,
    ) -> Result<u64, StorageError> {
        if self.version_at(transaction)? != self.seen() {
            return Err(StorageError::conflict());
        }
        self.count_change(transaction)
    }

    pub(crate) fn seen(&self) -> u64 {
        self.seen.load(Ordering::Acquire)
    }

    /// The descriptions in memory are those of a version. The caller holds the catalog's mutex.
    pub(crate) fn set_seen(&self, version: u64) {
        self.seen.store(version, Ordering::Release);
    }

    /// The moment up to which all changes of the catalog tree are taken over.
    pub(crate) fn looked_at(&self) -> SharedTime {
        SharedTime::new(self.looked_at.load(Ordering::Acquire))
    }

    /// The descriptions in memory are those of a snapshot, or newer.
    pub(crate) fn note_look(&self, snapshot: SnapshotTimestamp) {
        self.looked_at.fetch_max(SharedTime::of_snapshot(snapshot).get(), Ordering::AcqRel);
    }

    /// The moment at which the last change of another member was found. Its collections and indexes count
    /// as published from then on.
    pub(crate) fn found_at(&self) -> SharedTime {
        SharedTime::new(self.found_at.load(Ordering::Acquire))
    }

    /// The descriptions in memory have been made those of a snapshot. The caller holds the catalog's mutex.
    pub(crate) fn note_find(&self, snapshot: SnapshotTimestamp) {
        self.found_at.store(SharedTime::of_snapshot(snapshot).get(), Ordering::Release);
    }

    /// Waits until all members work by a version or a later one, or are dead.
    pub(crate) fn wait_until_seen(&self, version: u64) -> Result<(), StorageError> {
        while !self.is_seen(version)? {
            std::thread::sleep(ANSWERS_EVERY);
        }
        Ok(())
    }

    /// The same, for a while at most; false where some member has not seen the version by then.
    pub(crate) fn is_seen_within(&self, version: u64, limit: Duration) -> Result<bool, StorageError> {
        let begun = self.now();
        while !self.is_seen(version)? {
            if self.now().since(begun) >= limit {
                return Ok(false);
            }
            std::thread::sleep(ANSWERS_EVERY);
        }
        Ok(true)
    }

    /// Whether all members work by a version or a later one.
    fn is_seen(&self, version: u64) -> Result<bool, StorageError> {
        if self.seen_by_all.load(Ordering::Acquire) >= version {
            return Ok(true);
        }
        self.check_trusted()?;
        let board = self.read_board()?;
        let others = board.members.iter().filter(|(member, _)| **member != self.member());
        let least = others.map(|(_, record)| record.seen).min().unwrap_or(board.version);
        self.seen_by_all.fetch_max(least, Ordering::AcqRel);
        Ok(least >= version)
    }

    /// Raises a barrier; `None` where there is one already.
    pub(crate) fn raise(&self, namespace: &str) -> Result<Option<BarrierRecord>, StorageError> {
        self.check_trusted()?;
        let _turn = self.raising.lock();
        let (key, owner) = (barrier_key(namespace), self.member());
        let mut is_noted = false;
        let raised = self.change(|transaction| {
            if transaction.get(self.tree, &key, BlockingMode::MayBlock)?.is_some() {
                return Ok(None);
            }
            let number = self.next(transaction, LAST_NUMBER, 0)?;
            let barrier = BarrierRecord { owner, number };
            // Before the commit: the follower lowers barriers of this member that it does not know.
            self.raised.lock().insert(namespace.to_owned(), barrier);
            is_noted = true;
            transaction.put(self.tree, &key, &barrier.encode())?;
            Ok(Some(barrier))
        });
        if is_noted && !matches!(raised, Ok(Some(_))) {
            self.raised.lock().remove(namespace);
        }
        raised
    }

    /// Lowers a barrier of this member.
    pub(crate) fn lower(&self, namespace: &str, barrier: BarrierRecord) -> Result<(), StorageError> {
        let lowered = self.remove_if(&barrier_key(namespace), &barrier.encode());
        // After an error the follower tries again. Another thread may have raised the next one already.
        let mut raised = self.raised.lock();
        if raised.get(namespace) == Some(&barrier) {
            raised.remove(namespace);
        }
        lowered
    }

    /// Whether all other members stand behind a barrier.
    pub(crate) fn is_stood_behind(&self, barrier: BarrierRecord) -> Result<bool, StorageError> {
        self.check_trusted()?;
        let board = self.read_board()?;
        let mut others = board.members.iter().filter(|(member, _)| **member != self.member());
        let is_everyone = others.all(|(_, record)| record.held.contains(&barrier.number));
        if !is_everyone {
            std::thread::sleep(ANSWERS_EVERY);
        }
        Ok(is_everyone)
    }

    /// Has a change of a collection conflict with the removal of its barrier, if this member has raised one.
    ///
    /// # Errors
    /// The barrier is gone: the others have held this member for dead.
    pub(crate) fn hold(
        &self,
        transaction: &mut dyn Transaction,
        namespace: &str,
    ) -> Result<(), StorageError> {
        let Some(barrier) = self.raised.lock().get(namespace).copied() else { return Ok(()) };
        let key = barrier_key(namespace);
        let stored = transaction.get(self.tree, &key, BlockingMode::MayBlock)?;
        if stored.as_deref() == Some(&*barrier.encode()) {
            return transaction.put(self.tree, &key, &barrier.encode());
        }
        let message = format!(
            "{namespace} was not changed: other servers have held this one for dead meanwhile; try again"
        );
        Err(StorageError::new(ErrorKind::Io, message))
    }

    fn remove_if(&self, key: &[u8], stored: &[u8]) -> Result<(), StorageError> {
        self.change(|transaction| {
            match transaction.get(self.tree, key, BlockingMode::MayBlock)?.as_deref() == Some(stored) {
                true => transaction.delete(self.tree, key),
                false => Ok(()),
            }
        })
    }

    pub(crate) fn following(&self) -> &Mutex<Following> {
        &self.following
    }

    /// Writes the record of this member where it has changed or is old. It is trusted from `now` on, which
    /// was before it looked at the tree.
    pub(crate) fn beat(&self, following: &mut Following, now: Monotonic) -> Result<(), StorageError> {
        let held: Vec<u64> = following.standing.keys().copied().collect();
        let told = &following.told;
        let record = MemberRecord { beats: told.beats + 1, seen: self.seen(), held };
        let is_old = self.beaten_at.lock().is_none_or(|at| now.since(at) >= BEAT_EVERY);
        if !is_old && record.seen == told.seen && record.held == told.held {
            return Ok(());
        }
        let key = member_key(self.member());
        let is_there = self.change(|transaction| {
            let is_there = transaction.get(self.tree, &key, BlockingMode::MayBlock)?.is_some();
            if is_there {
                transaction.put(self.tree, &key, &record.encode())?;
            }
            Ok(is_there)
        })?;
        // One that was taken out at this moment registers again at the next look.
        if is_there {
            *self.beaten_at.lock() = Some(now);
            following.told = record;
        }
        Ok(())
    }

    /// Takes out members whose records stand still, and barriers whose owners are gone.
    pub(crate) fn clear(
        &self,
        following: &mut Following,
        board: &Board,
        now: Monotonic,
    ) -> Result<(), StorageError> {
        let member = self.member();
        self.is_first.store(board.members.keys().next() == Some(&member), Ordering::Release);
        following.watched.retain(|other, _| board.members.contains_key(other));
        for (other, record) in board.members.iter().filter(|(other, _)| **other != member) {
            let watched = Watched { record: record.clone(), since: now };
            match following.watched.get(other) {
                Some(last) if last.record == *record => {
                    if now.since(last.since) >= EXPIRES_AFTER {
                        tracing::warn!(
                            member = other,
                            "another server of the store has fallen silent: it is taken out"
                        );
                        self.remove_if(&member_key(*other), &record.encode())?;
                    }
                }
                _ => drop(following.watched.insert(*other, watched)),
            }
        }
        let raised: BTreeSet<u64> = self.raised.lock().values().map(|barrier| barrier.number).collect();
        for (namespace, barrier) in &board.barriers {
            let is_own = barrier.owner == member;
            let is_kept = if is_own {
                raised.contains(&barrier.number)
            } else {
                board.members.contains_key(&barrier.owner)
            };
            if !is_kept {
                self.remove_if(&barrier_key(namespace), &barrier.encode())?;
            }
        }
        self.clear_questions(board)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_stops_before_others_take_it_for_dead() {
        assert!(BEAT_EVERY < TRUSTED_FOR && TRUSTED_FOR + SHARED_COMMIT_MAX < EXPIRES_AFTER);
    }
}
