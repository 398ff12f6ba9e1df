//! The store behind the engine and its transactions: the cluster, and the state kept beside it in memory.
//!
//! # Timestamps
//! All are TiKV's own, from the placement driver. A transaction reads at the timestamp of its begin. The
//! timestamp of a commit is its LSN, too: what has been committed is on the devices of most replicas.
//!
//! # Claims and conflicts
//! Writers of this server meet in the table of intents, as they do over every engine: the first updater wins,
//! and others may wait for it. Claims are settled after the cluster has committed; until then nobody else of
//! this server updates those keys. TiKV checks the same once more, and alone decides between transactions of
//! several servers. So a commit of such a store has the timestamp of its snapshot as its start.
//!
//! # A commit without an answer
//! One of its values has the number of the commit. The store reads that key until the cluster answers, which
//! resolves the commit's locks: it has happened if the number is there. Where several servers write, another
//! one may have overwritten it meanwhile: then nobody knows. A commit in one phase may still be on its way:
//! it is rolled back before its caller hears that it has not happened.
//!
//! # The end of a commit
//! A commit that is under way when others take the store over, or take this server out, would write behind
//! their back. So it ends [`COMMITS_END_AFTER`](servers::COMMITS_END_AFTER) after the lease was renewed last:
//! one server may renew it meanwhile. The commit of one of several servers ends that long after the renewal
//! before its *begin*; one that has waited longer for other servers conflicts, and is begun anew. The catalog
//! adds this time to that for which it trusts its own membership.
//!
//! # Locks, in the order in which they are taken
//! 1. `ddl`: one tree is made or dropped at a time.
//! 2. `merge_gate`: commits that add to counters share it; one that puts, deletes or merges otherwise in a
//!    merging tree has it alone, so that the order of pending merges is that of their commits.
//! 3. `live`, `trees`, `counted_merges`: for moments, and never across a call to the cluster.

mod merging;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use pando_environment::{Clock, FolderLock, Monotonic};
use pando_storage::{
    Claims, CommitReceipt, CommitTimestamp, ErrorKind, Intents, Lsn, ReadClaims, SnapshotTimestamp,
    StorageError, TreeId, WriteSet,
};
use parking_lot::{Mutex, RwLock};
use tikv_client::Transaction;

use crate::cluster::{Cluster, CommitFailure, Mutation, TIMESTAMP_BITS, Unfinished, earlier, start_of};
use crate::commit::{Commit, MergeUse, PreparedCommit, TouchedTrees, plan_merges};
use crate::failure::{closed, corrupt, invalid, no_tree, undetermined};
use crate::kept::Kept;
use crate::layout::Keyspace;
use crate::lease;
use crate::live::{Entered, LiveTransactions};
use crate::newest::Newest;
use crate::opening;
use crate::options::TikvOptions;
use crate::pending_merges;
use crate::servers::{self, Membership};
use crate::tree_record::TreeRecord;
use crate::tree_totals;
use crate::trees::{Merging, TreeFigures, Trees};
use crate::value::number_of;

/// Keys whose values are compared at two snapshots at once.
const KEYS_COMPARED_AT_ONCE: usize = 256;
/// How long ago the newest timestamp may have been asked for that a reader begins at, where one server has
/// the store: all that it has committed is at or before it. Versions of that time are not removed yet, and a
/// server that has stood still asks anew.
const RECENT: Duration = Duration::from_secs(1);
/// Merges of a key after which they are folded.
const MERGES_BEFORE_FOLD: u32 = 64;

/// See the module's head. The folder's lock is dropped last.
pub(crate) struct Store {
    pub(crate) cluster: Cluster,
    pub(crate) keyspace: Keyspace,
    pub(crate) options: TikvOptions,
    pub(crate) server: u64,
    /// `Some`: other servers may have the store open.
    pub(crate) membership: Option<Membership>,
    pub(crate) live: Mutex<LiveTransactions>,
    pub(crate) trees: RwLock<Trees>,
    pub(crate) ddl: Mutex<()>,
    pub(crate) merge_gate: RwLock<()>,
    pub(crate) counted_merges: Mutex<HashMap<(TreeId, Vec<u8>), u32>>,
    pub(crate) intents: Intents,
    pub(crate) read_claims: ReadClaims,
    pub(crate) newest: Newest,
    pub(crate) kept: Kept,
    /// The number of the last commit. Begins at the timestamp of the opening.
    pub(crate) numbers: AtomicU64,
    pub(crate) renewed_at: Mutex<Monotonic>,
    pub(crate) failure: OnceLock<StorageError>,
    pub(crate) is_closed: AtomicBool,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) _lock: FolderLock,
}

/// A transaction that was just begun.
pub(crate) struct Begun {
    pub(crate) snapshot: u64,
    pub(crate) entered: Entered,
    /// TiKV's transaction, if this one writes at the newest snapshot.
    pub(crate) transaction: Option<Transaction>,
    /// How often others had taken this server out.
    pub(crate) lapses: u64,
}

/// The time that a commit has for the sake of others.
struct CommitTime {
    /// When one of several servers ends it. `None`: a server that has the store alone goes by its lease as
    /// that is then.
    leased: Option<Monotonic>,
}

/// Whether a transaction needs one of TiKV's for its commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Writing {
    Yes,
    No,
}

impl Store {
    pub(crate) fn check_open(&self) -> Result<(), StorageError> {
        if self.is_closed.load(Ordering::Acquire) {
            return Err(closed());
        }
        self.failure.get().map_or(Ok(()), |failure| Err(failure.clone()))
    }

    /// Whether this server does the work that one server of a store does for all.
    pub(crate) fn does_work_of_all(&self) -> bool {
        self.membership.as_ref().is_none_or(Membership::is_first)
    }

    /// Refuses to read for a transaction where others may have removed what it reads.
    pub(crate) fn check_readable(&self, begun: &Begun) -> Result<(), StorageError> {
        self.check_membership(begun.lapses)?;
        self.kept.check(begun.snapshot, self.clock.as_ref())
    }

    /// Refuses to go on with a transaction where other servers may have removed what it reads.
    pub(crate) fn check_membership(&self, lapses: u64) -> Result<(), StorageError> {
        self.check_lease()?;
        if self.membership.as_ref().is_none_or(|membership| membership.lapses() == lapses) {
            return Ok(());
        }
        let message = "this server could not reach the TiKV cluster for so long that the other servers of the store have gone \
                       on without it: begin the transaction or the query again";
        Err(StorageError::new(ErrorKind::Unavailable, message))
    }

    /// Refuses reads and commits of a server whose lease may have been taken over.
    fn check_lease(&self) -> Result<(), StorageError> {
        let since = self.clock.monotonic().since(*self.renewed_at.lock());
        if since <= servers::TRUSTED_FOR { Ok(()) } else { Err(self.away(since)) }
    }

    /// The error of a server whose lease is old.
    fn away(&self, since: Duration) -> StorageError {
        let message = format!(
            "the TiKV cluster could not be reached for {} s: nothing is read or committed until it can be",
            since.as_secs()
        );
        StorageError::new(ErrorKind::Unavailable, message)
    }

    /// The snapshot of a reader that need not ask for one: it sees all commits of this server, and those that
    /// others made before this long.
    pub(crate) fn recent_snapshot(&self, within: Duration) -> Option<u64> {
        self.newest.within(within, self.clock.monotonic())
    }

    /// Begins a transaction and enters it into the list of live ones.
    pub(crate) fn begin(
        &self,
        at: Option<SnapshotTimestamp>,
        writing: Writing,
    ) -> Result<Begun, StorageError> {
        self.check_open()?;
        let lapses = self.membership.as_ref().map_or(0, Membership::lapses);
        self.check_membership(lapses)?;
        let now = self.clock.monotonic();
        let entered = {
            let mut live = self.live.lock();
            // All commits to a store of one server are its own.
            let is_alone = self.membership.is_none() && writing == Writing::No;
            let own = if is_alone { self.newest.within(RECENT, now) } else { None };
            match at.map(SnapshotTimestamp::get).or(own) {
                // Its snapshot will not be older than this.
                None => live.enter(self.newest.get(), now),
                Some(snapshot)
                    if own == Some(snapshot) || live.is_held(snapshot) || self.is_kept(snapshot) =>
                {
                    let entered = live.enter(snapshot, now);
                    return Ok(Begun { snapshot, entered, transaction: None, lapses });
                }
                Some(snapshot) => {
                    return Err(invalid(format!(
                        "the snapshot {snapshot} is neither the newest snapshot nor that of a live transaction, and too old to be read"
                    )));
                }
            }
        };
        let begun = match writing {
            Writing::Yes => {
                self.cluster.begin().map(|transaction| (start_of(&transaction), Some(transaction)))
            }
            Writing::No => self.cluster.timestamp().map(|timestamp| (timestamp, None)),
        };
        let (snapshot, transaction) = begun.inspect_err(|_| self.end(entered.number))?;
        self.newest.was_given(snapshot, now);
        self.live.lock().settle(entered.number, snapshot);
        Ok(Begun { snapshot, entered, transaction, lapses })
    }

    /// Whether a transaction may begin at a timestamp that none holds. Where several servers share a store,
    /// one of them may have given it out: half of the time for which the cluster keeps old versions leaves
    /// enough to tell the others of the new snapshot. Trees that are dropped meanwhile are not removed: a
    /// transaction with an old snapshot counts as one that has begun then.
    fn is_kept(&self, at: u64) -> bool {
        let newest = self.newest.get();
        let is_recent = |history| {
            let is_young = at <= newest && at >= earlier(newest, history / 2);
            is_young && self.kept.check(at, self.clock.as_ref()).is_ok()
        };
        at == newest || self.membership.is_some() && self.options.history.is_some_and(is_recent)
    }

    /// Takes a transaction from the list of live ones.
    pub(crate) fn end(&self, number: u64) {
        let mut live = self.live.lock();
        live.leave(number);
        let oldest = live.oldest_snapshot().unwrap_or_else(|| self.newest.get());
        self.intents.set_oldest_snapshot(SnapshotTimestamp::new(oldest));
    }

    /// Commits a transaction's changes, and settles its claims.
    pub(crate) fn commit(
        &self,
        writes: &WriteSet,
        claims: &Claims,
        begun: &mut Begun,
    ) -> Result<CommitReceipt, StorageError> {
        // Before all that may take time.
        let time = self.commit_time();
        let _whole = self.cluster.to_the_end();
        self.check_open()?;
        self.check_membership(begun.lapses)?;
        let trees = self.touched(writes)?;
        let plan = plan_merges(writes, &trees);
        for tree in &plan.first_merges {
            self.make_merging(*tree)?;
        }
        self.tell_of_merges(&plan.merged)?;
        // The first merges have changed what is known of their trees.
        let trees = if plan.first_merges.is_empty() { trees } else { self.touched(writes)? };
        let (_shared, _alone) = match plan.usage {
            MergeUse::None => (None, None),
            MergeUse::Adds => (Some(self.merge_gate.read()), None),
            MergeUse::Orders => (None, Some(self.merge_gate.write())),
        };
        // Only a new timestamp sees all merges that such a commit covers. Several servers need the old one.
        let is_kept = self.membership.is_some() || plan.usage != MergeUse::Orders;
        let held = begun.transaction.take().filter(|_| is_kept);
        let is_newer = held.is_none();
        let transaction = held.map_or_else(|| self.cluster.begin(), Ok)?;
        let at = start_of(&transaction);
        if self.membership.is_some() && is_newer {
            self.check_unchanged(writes, begun.snapshot, at)?;
        }
        let number = self.number(at, plan.usage)?;
        // Merges that came after the snapshot conflict with a put or a delete that covers them.
        let at = if self.membership.is_some() { number } else { at };
        let (cluster, keyspace) = (&self.cluster, &self.keyspace);
        let prepared = Commit { cluster, keyspace, writes, trees: &trees, at, number }.prepare()?;
        let timestamp = self.send(transaction, prepared, number, &trees, &time)?;
        self.newest.saw(timestamp);
        claims.commit(&self.intents, CommitTimestamp::new(timestamp));
        Ok(CommitReceipt { timestamp: CommitTimestamp::new(timestamp), lsn: Lsn::new(timestamp) })
    }

    /// The number of a commit that starts at a timestamp. No other commit has it. One that orders merges
    /// comes behind all merges of this server so far, and before all later ones.
    fn number(&self, start: u64, usage: MergeUse) -> Result<u64, StorageError> {
        let Some(membership) = &self.membership else {
            return Ok(self.numbers.fetch_add(1, Ordering::AcqRel) + 1);
        };
        match usage {
            MergeUse::None => Ok(start),
            MergeUse::Adds if start > membership.last_ordered() => Ok(start),
            MergeUse::Adds => self.cluster.timestamp(),
            MergeUse::Orders => {
                let number = self.cluster.timestamp()?;
                membership.note_ordered(number);
                Ok(number)
            }
        }
    }

    /// Refuses a commit whose keys have got other values between its snapshot and its start, where TiKV does
    /// not look.
    fn check_unchanged(&self, writes: &WriteSet, snapshot: u64, start: u64) -> Result<(), StorageError> {
        let keys: Vec<Vec<u8>> =
            writes.iter().map(|write| self.keyspace.entry(write.tree, write.key)).collect();
        for keys in keys.chunks(KEYS_COMPARED_AT_ONCE) {
            let mut values = [self.cluster.get_all(snapshot, keys)?, self.cluster.get_all(start, keys)?];
            values.iter_mut().for_each(|values| values.sort_unstable());
            if values[0] != values[1] {
                return Err(StorageError::conflict());
            }
        }
        Ok(())
    }

    /// The trees that the writes change. One that is not there (any more) fails the commit.
    fn touched(&self, writes: &WriteSet) -> Result<TouchedTrees, StorageError> {
        let (trees, mut touched) = (self.trees.read(), TouchedTrees::new());
        for write in writes.iter() {
            if let Entry::Vacant(place) = touched.entry(write.tree) {
                place.insert(trees.get(write.tree)?.clone());
            }
        }
        Ok(touched)
    }

    /// The time of a commit that begins now. See the module's head.
    fn commit_time(&self) -> CommitTime {
        let leased = self.membership.as_ref().map(|_| servers::commits_end_at(*self.renewed_at.lock()));
        CommitTime { leased }
    }

    fn send(
        &self,
        transaction: Transaction,
        prepared: PreparedCommit,
        number: u64,
        trees: &TouchedTrees,
        time: &CommitTime,
    ) -> Result<u64, StorageError> {
        let PreparedCommit { mutations, recognised_by, growth, merged } = prepared;
        let patient_until = self.clock.monotonic().plus(self.options.patience);
        let left = || {
            let leased = time.leased.unwrap_or_else(|| servers::commits_end_at(*self.renewed_at.lock()));
            patient_until.min(leased).since(self.clock.monotonic())
        };
        if left().is_zero() {
            let since = self.clock.monotonic().since(*self.renewed_at.lock());
            // It has waited for others, such as a dead server at the first merge of a tree. Begun anew it has
            // its whole time.
            return Err(if since <= servers::TRUSTED_FOR {
                StorageError::conflict()
            } else {
                self.away(since)
            });
        }
        let timestamp = match self.cluster.commit(transaction, mutations, &left) {
            Ok(timestamp) => timestamp,
            Err(CommitFailure::Failed(error)) => return Err(error),
            Err(CommitFailure::Unknown(error, unfinished)) => {
                let outcome = self.find_out(recognised_by, number, error, unfinished);
                if outcome.is_err() {
                    self.newest.lost_track(self.clock.monotonic());
                }
                outcome?
            }
        };
        for (tree, (entries, bytes)) in growth {
            if let Some(tree) = trees.get(&tree) {
                tree.figures.change(entries, bytes);
            }
        }
        self.count_merges(merged);
        Ok(timestamp)
    }

    /// Finds out whether a commit without an answer has happened.
    fn find_out(
        &self,
        recognised_by: Option<Vec<u8>>,
        number: u64,
        error: StorageError,
        unfinished: Unfinished,
    ) -> Result<u64, StorageError> {
        let Some(key) = recognised_by else { return Err(undetermined(error)) };
        let now = self.cluster.timestamp().map_err(undetermined)?;
        let stored = self.cluster.get(now, &key).map_err(undetermined)?;
        match stored.as_deref().and_then(number_of) {
            Some(found) if found == number => Ok(now),
            // A later one may have overwritten it.
            found if self.membership.is_some() && found.is_none_or(|found| found > number) => {
                Err(undetermined(error))
            }
            _ => {
                self.cluster.fence(unfinished).map_err(undetermined)?;
                Err(error)
            }
        }
    }

    fn count_merges(&self, merged: Vec<(TreeId, Vec<u8>)>) {
        if !merged.is_empty() {
            let mut counted = self.counted_merges.lock();
            for key in merged {
                *counted.entry(key).or_default() += 1;
            }
        }
    }

    /// Notes that a read has found so many pending merges of a key.
    pub(crate) fn found_merges(&self, tree: TreeId, key: &[u8], count: usize) {
        if count >= MERGES_BEFORE_FOLD as usize {
            let count = u32::try_from(count).unwrap_or(u32::MAX);
            self.counted_merges.lock().insert((tree, key.to_vec()), count);
        }
    }

    /// Folds the merges of a key that has many, if there is one.
    pub(crate) fn fold_merges(&self) -> Result<bool, StorageError> {
        let due = {
            let counted = self.counted_merges.lock();
            counted.iter().find(|(_, count)| **count >= MERGES_BEFORE_FOLD).map(|(key, _)| key.clone())
        };
        let Some((tree, key)) = due else { return Ok(false) };
        let is_there = self.trees.read().get(tree).is_ok();
        if is_there {
            let _shared = self.merge_gate.read();
            pending_merges::fold(&self.cluster, &self.keyspace, tree, &key)?;
        }
        self.counted_merges.lock().remove(&(tree, key));
        Ok(true)
    }

    pub(crate) fn create_tree(&self, name: &str) -> Result<TreeId, StorageError> {
        let _turn = self.ddl.lock();
        self.check_open()?;
        self.check_lease()?;
        self.trees.read().check_name_is_free(name)?;
        let (mut made, live) = (None, TreeRecord::Live { name: name.to_owned(), merging: Merging::No });
        self.cluster.change(|at| {
            // A try without an answer may have made it.
            if let Some(made) = made
                && self.record_at(at, made)?.as_ref() == Some(&live)
            {
                return Ok(Vec::new());
            }
            if self.membership.is_some() {
                self.check_name_is_free_at(at, name)?;
            }
            let next = match self.cluster.get(at, &self.keyspace.next_tree())? {
                None => 1,
                Some(bytes) => {
                    let bytes = bytes.as_slice().try_into();
                    u32::from_be_bytes(bytes.map_err(|_| corrupt("the next tree's number makes no sense"))?)
                }
            };
            let after = next.checked_add(1).ok_or_else(|| invalid("all numbers for trees have been used"))?;
            let new = TreeId::new(next);
            made = Some(new);
            Ok(vec![
                Mutation::Put(self.keyspace.next_tree(), after.to_be_bytes().to_vec()),
                Mutation::Put(self.keyspace.tree_record(new), live.encode()),
            ])
        })?;
        let made = made.expect("the change has given it a number");
        self.trees.write().insert(made, name, Merging::No, TreeFigures::default());
        Ok(made)
    }

    /// Removes a tree. Its entries go once no transaction reads them.
    pub(crate) fn drop_tree(&self, tree: TreeId) -> Result<(), StorageError> {
        let _turn = self.ddl.lock();
        self.check_open()?;
        self.check_lease()?;
        self.trees.read().get(tree)?;
        let (record, mut has_tried) = (self.keyspace.tree_record(tree), false);
        self.cluster.change(|at| {
            let is_live = matches!(self.record_at(at, tree)?, Some(TreeRecord::Live { .. }));
            match std::mem::replace(&mut has_tried, true) {
                false if !is_live => return Err(no_tree(tree)),
                // The try before has dropped it, or another server meanwhile.
                true if !is_live => return Ok(Vec::new()),
                _ => {}
            }
            Ok(vec![Mutation::Put(record.clone(), TreeRecord::Dropped.encode())])
        })?;
        let live = self.live.lock();
        self.trees.write().drop_tree(tree, live.begun());
        Ok(())
    }

    /// Refuses a name that a tree of any server has.
    fn check_name_is_free_at(&self, at: u64, name: &str) -> Result<(), StorageError> {
        for (_, record) in opening::read_all(&self.cluster, at, self.keyspace.tree_records())? {
            if matches!(TreeRecord::decode(&record)?, TreeRecord::Live { name: taken, .. } if taken == name) {
                return Err(invalid(format!("there is a tree `{name}` already")));
            }
        }
        Ok(())
    }

    fn record_at(&self, at: u64, tree: TreeId) -> Result<Option<TreeRecord>, StorageError> {
        let record = self.cluster.get(at, &self.keyspace.tree_record(tree))?;
        record.as_deref().map(TreeRecord::decode).transpose()
    }

    /// Takes over the trees that other servers have made and dropped. Gives the timestamp at which it has
    /// read the list.
    pub(crate) fn read_trees(&self, membership: &Membership) -> Result<u64, StorageError> {
        // No tree of this server is made or dropped meanwhile.
        let _turn = self.ddl.lock();
        let asked_at = self.clock.monotonic();
        let at = self.cluster.timestamp()?;
        self.newest.was_given(at, asked_at);
        let (mut found, mut dropped) = (BTreeMap::new(), Vec::new());
        for (key, record) in opening::read_all(&self.cluster, at, self.keyspace.tree_records())? {
            let tree = self.keyspace.tree_of(&key);
            let tree = tree.ok_or_else(|| corrupt("the number of a tree makes no sense"))?;
            match TreeRecord::decode(&record)? {
                TreeRecord::Live { name, merging } => drop(found.insert(tree, (name, merging))),
                TreeRecord::Dropped => dropped.push(tree),
            }
        }
        let youngest = self.live.lock().begun();
        self.trees.write().take_over(found, youngest);
        membership.note_dropped(&dropped, at);
        Ok(at)
    }

    /// Ends all further work, and gives the lease back.
    pub(crate) fn close(&self) -> Result<(), StorageError> {
        if self.is_closed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        self.write_figures()?;
        match &self.membership {
            None => lease::release(&self.cluster, &self.keyspace, self.server),
            Some(membership) => servers::leave(&self.cluster, &self.keyspace, membership.number()),
        }
    }

    /// Brings the figures of changed trees into the cluster.
    pub(crate) fn write_figures(&self) -> Result<(), StorageError> {
        let (cluster, keyspace) = (&self.cluster, &self.keyspace);
        match &self.membership {
            None => tree_totals::write(cluster, keyspace, &self.trees),
            Some(_) => tree_totals::add(cluster, keyspace, &self.trees),
        }
    }

    /// How long the oldest live transaction's snapshot lies behind.
    pub(crate) fn snapshot_age(&self) -> Duration {
        let oldest = self.live.lock().oldest_snapshot();
        let behind = oldest.map_or(0, |oldest| self.newest.get().saturating_sub(oldest));
        Duration::from_millis(behind >> TIMESTAMP_BITS)
    }
}
