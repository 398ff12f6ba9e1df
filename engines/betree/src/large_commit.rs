//! The commit of a transaction that is larger than memory: in parts, and visible at once.
//!
//! # Terms
//! - *Part*: as many of the writes, in order of tree and key, as are put into the buffers at once. Merges have a part of their own, the last.
//! - *End*: the log record from which on the commit counts, whatever happens.
//! - *Leap*: the timestamp of the commit lies far ahead ([`crate::log::leap_from`]) of all that are given out meanwhile, and the log
//!   goes on behind it.
//!
//! # How
//! 1. The parts are appended to the log, each a record. Other commits go on, and so do other large ones.
//! 2. The end is appended. It names the timestamp. From here to step 5 only one large commit is under way.
//! 3. Part by part: wait for room as any commit does, append a record that says so, and put the part (read back from the log) into the
//!    buffers, under the timestamp that no snapshot sees yet. Other commits have smaller timestamps, and become visible without waiting.
//! 4. The log is synced, and the last record appended, which leaps: its LSN is the timestamp. With it the part of merges goes into the
//!    buffers, as any commit's writes do with its record, and ranges that the commit deletes, which the end names, enter the lists of their
//!    trees. It is synced, too.
//! 5. The claims are settled, and the timestamp is published: snapshots see all parts at once.
//!
//! # Why it is whole after a crash
//! - Without the end nothing was ever put into a buffer, and replay passes the parts over.
//! - With the end replay puts the parts in where the records of step 3 stand, each under the LSN of that record, so that a partition which
//!   has it already leaves it out, as of any commit. What is missing at the log's end is completed when the store is opened.
//! - A checkpoint syncs the log before its superblock. So an image that contains a part of it has an end in the log.
//! - As long as anything of it may have to be replayed, replay begins before its first part ([`LargeCommits::keep_whole`]).
//! - Nobody saw it before all that came before it in time was durable (step 4): where it is there after a power cut, and an earlier
//!   commit is not, nobody had seen it.
//!
//! # Merges beside it
//! Of each key times have to descend on the way down, and the parts have one that lies ahead. Who writes with an intent cannot meet
//! them: their keys are claimed. Blind merges can. So a commit of some looks, before it takes its place in the log, whether one of its keys is
//! claimed by the large commit that is under way ([`LargeCommits::merge_beside`]), and waits for that one's end if so. The merges of the large
//! commit itself go in at its end, in the order of the log, so that a counter which everybody merges into holds nobody up; therefore
//! they have to fit into one record.
//!
//! # Failures
//! Up to the end an error means that nothing has happened. From the end on the commit waits for what it lacks, such as room on the
//! device; where that cannot come (the log has failed, the engine is closed) the next opening completes it.

mod part;
mod replay;

use std::collections::BTreeSet;

use pando_environment::sync::atomic::{AtomicU64, Ordering};
use pando_environment::sync::{Mutex, MutexGuard, RwLock};
use pando_storage::{
    Claims, CommitReceipt, CommitTimestamp, Durability, Intents, Lsn, SpillingWrites, TransactionId, TreeId,
};
use part::Part;

use crate::base::LogPosition;
use crate::base::WaitFor;
use crate::core::Core;
use crate::error::BetreeError;
use crate::format::record::{Kind, LargeEnd, read_part, write_end, write_numbers};
use crate::log::{Appended, Packed, ReadBack, leap_from};
use crate::range_deletes::encoding::DeletedRange;

pub(crate) use replay::LargeReplay;

/// Bytes of keys and values up to which a commit is one record.
pub(crate) const SMALL_BYTES_MAX: usize = 16 << 20;

/// What the log holds of large commits.
#[derive(Debug, Default)]
pub(crate) struct LargeCommits {
    /// Held from the end of one to its publication.
    turn: Mutex<()>,
    logged: Mutex<Vec<Logged>>,
    /// Of all in `logged`.
    bytes: AtomicU64,
    /// The transaction whose parts are being put into the buffers; 0 for none.
    applying: AtomicU64,
    /// Held shared by commits of blind merges, from their look at `applying` until they are in the buffers.
    merging: RwLock<()>,
}

#[derive(Debug)]
struct Logged {
    first: Lsn,
    /// The last record; `None` until it is appended.
    whole: Option<Lsn>,
    bytes: u64,
    /// An image has all of it; the one before may not.
    is_in_image: bool,
}

/// The parts of a large commit in the log.
#[derive(Debug, Default)]
pub(crate) struct LoggedParts {
    first: Option<Lsn>,
    places: Vec<LogPosition>,
    /// The part of merges, if there is one.
    merges: Option<LogPosition>,
}

/// A large commit whose end is in the log.
#[derive(Debug)]
pub(crate) struct Decided {
    first: Lsn,
    timestamp: CommitTimestamp,
    places: Vec<LogPosition>,
    merges: Option<LogPosition>,
    /// The next part to be put into the buffers.
    next: usize,
    /// Deleted with the last record.
    ranges: Vec<DeletedRange>,
    at: Stage,
}

/// When a large commit is completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// As it is made: others want room, too, and it waits for its own.
    Commit,
    /// When the store is opened: on a full device, too, so that there can be made room.
    Replay,
}

impl LargeCommits {
    /// Where replay has to begin (behind this record) that would otherwise begin behind another.
    pub(crate) fn keep_whole(&self, from: Lsn) -> Lsn {
        let logged = self.logged.lock();
        let cut = logged.iter().filter(|one| one.whole.is_none_or(|whole| from < whole));
        cut.map(|one| Lsn::new(one.first.get() - 1)).fold(from, Lsn::min)
    }

    /// An image is durable from which replay begins behind this record.
    pub(crate) fn forget_before(&self, from: Lsn) {
        self.logged.lock().retain_mut(|one| {
            let is_in_image = one.whole.is_some_and(|whole| whole <= from);
            let is_kept = !(is_in_image && one.is_in_image);
            one.is_in_image = is_in_image;
            if !is_kept {
                self.bytes.fetch_sub(one.bytes, Ordering::Relaxed);
            }
            is_kept
        });
    }

    /// Bytes of large commits that the log has to keep.
    pub(crate) fn log_bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Returns when no large commit is between its end and its publication, and keeps them so.
    pub(crate) fn exclude(&self) -> MutexGuard<'_, ()> {
        self.turn.lock()
    }

    /// Keeps blind merges off the keys of a transaction, which has the turn, until the guard is dropped. Those that are under way come
    /// before it.
    fn keep_merges_off(&self, owner: TransactionId) -> MergesKeptOff<'_> {
        self.applying.store(owner.get(), Ordering::SeqCst);
        drop(self.merging.write());
        MergesKeptOff(self)
    }

    /// Does what a commit of blind merges of these keys does, once no large commit that has claimed one of them is under way.
    pub(crate) fn merge_beside<'w, T>(
        &self,
        intents: &Intents,
        keys: impl Iterator<Item = (TreeId, &'w [u8])> + Clone,
        commit: impl FnOnce() -> T,
    ) -> T {
        loop {
            let merging = self.merging.read();
            let is_claimed = match self.applying.load(Ordering::SeqCst) {
                0 => false,
                owner => {
                    let owner = TransactionId::new(owner);
                    keys.clone().any(|(tree, key)| intents.is_claimed_by(owner, tree, key))
                }
            };
            if !is_claimed {
                let outcome = commit();
                drop(merging);
                return outcome;
            }
            drop(merging);
            drop(self.exclude());
        }
    }

    fn begin(&self, first: Lsn) {
        self.logged.lock().push(Logged { first, whole: None, bytes: 0, is_in_image: false });
    }

    fn change(&self, first: Lsn, change: impl FnOnce(&mut Logged)) {
        let mut logged = self.logged.lock();
        let one = logged.iter_mut().find(|one| one.first == first);
        change(one.expect("a large commit is known from its first part on"));
    }

    fn add_bytes(&self, first: Lsn, bytes: u64) {
        self.change(first, |one| one.bytes += bytes);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    fn set_whole(&self, first: Lsn, whole: Lsn) {
        self.change(first, |one| one.whole = Some(whole));
    }

    /// There will be no end: replay passes the parts over.
    fn give_up(&self, first: Lsn) {
        let mut logged = self.logged.lock();
        if let Some(at) = logged.iter().position(|one| one.first == first) {
            self.bytes.fetch_sub(logged.remove(at).bytes, Ordering::Relaxed);
        }
    }
}

/// See [`LargeCommits::keep_merges_off`].
struct MergesKeptOff<'l>(&'l LargeCommits);

impl Drop for MergesKeptOff<'_> {
    fn drop(&mut self) {
        self.0.applying.store(0, Ordering::SeqCst);
    }
}

/// Commits writes of a transaction that may be larger than memory.
pub(crate) fn commit_large(
    core: &Core,
    owner: TransactionId,
    writes: &SpillingWrites,
    ranges: &[DeletedRange],
    claims: &Claims,
    durability: Durability,
) -> Result<CommitReceipt, BetreeError> {
    core.make_room(0, 0)?;
    let mut parts = LoggedParts::default();
    let outcome = core.log_parts(writes, &mut parts).and_then(|trees| {
        core.check_room_for(writes.bytes() as u64)?;
        let turn = core.large.exclude();
        let kept_off = core.large.keep_merges_off(owner);
        Ok((turn, kept_off, core.decide(&mut parts, &trees, ranges)?))
    });
    let (turn, kept_off, mut decided) =
        outcome.inspect_err(|_| parts.first.into_iter().for_each(|first| core.large.give_up(first)))?;
    let timestamp = decided.timestamp;
    core.complete(&mut decided, |timestamp| claims.commit(&core.intents, timestamp))?;
    drop(kept_off);
    drop(turn);
    core.counters.commits.add(1);
    core.counters.large_commits.add(1);
    core.counters.write_bytes.add(writes.bytes() as u64);
    core.refresh_horizon();
    let lsn = Lsn::new(timestamp.get());
    if durability == Durability::Logged {
        core.log().write_through(lsn)?;
    }
    Ok(CommitReceipt { timestamp, lsn })
}

impl Core {
    /// Appends all parts; the trees that they write to.
    fn log_parts(
        &self,
        writes: &SpillingWrites,
        parts: &mut LoggedParts,
    ) -> Result<BTreeSet<TreeId>, BetreeError> {
        let mut merged = writes.merged().map_err(BetreeError::Spill)?;
        let (mut part, mut merges, mut trees) = (Part::default(), Part::default(), BTreeSet::new());
        while part.fill(&mut merged, self.options.part_bytes(), &mut merges).map_err(BetreeError::Spill)? {
            trees.extend(part.trees());
            let place = self.log_part(&part, &mut parts.first)?;
            parts.places.push(place);
        }
        if merges.bytes() > SMALL_BYTES_MAX {
            return Err(BetreeError::TooManyMerges { limit: SMALL_BYTES_MAX });
        }
        if !merges.is_empty() {
            trees.extend(merges.trees());
            parts.merges = Some(self.log_part(&merges, &mut parts.first)?);
        }
        Ok(trees)
    }

    /// Appends a part; its place.
    fn log_part(&self, part: &Part, first: &mut Option<Lsn>) -> Result<LogPosition, BetreeError> {
        let payload = part.payload(*first);
        let payload_bytes = payload.len() as u64;
        let packed = Packed::of(payload, self.options.log_compression);
        let appended = self.append_part(&packed, first.is_none())?;
        let first = *first.get_or_insert(appended.lsn);
        self.large.add_bytes(first, packed.bytes());
        self.publisher.publish(CommitTimestamp::new(appended.lsn.get()));
        self.checkpoint.add_log_bytes(payload_bytes);
        self.counters.payload_bytes.add(payload_bytes);
        self.counters.large_parts.add(1);
        self.counters.writes.add(part.len() as u64);
        if self.log_bytes_since_checkpoint() >= self.checkpoint_log_bytes() {
            self.wake_checkpointer();
        }
        Ok(appended.place)
    }

    fn append_part(&self, packed: &Packed, is_first: bool) -> Result<Appended, BetreeError> {
        // A checkpoint that does not see the first part begins its replay before it.
        let _gate = self.waits.read(WaitFor::Gate, &self.gate);
        self.check_open()?;
        let appended = self.log().append_packed(Kind::LargePart.into(), packed)?;
        if is_first {
            self.large.begin(appended.lsn);
        }
        Ok(appended)
    }

    /// Refuses a commit whose writes would fill the device when they leave the buffers.
    fn check_room_for(&self, wanted: u64) -> Result<(), BetreeError> {
        let store = self.blocks.store();
        let on_device = self.environment.files().free_bytes(store.folder()).unwrap_or(u64::MAX);
        let free = on_device.saturating_add(store.statistics().free_bytes);
        if free < wanted { Err(BetreeError::NoRoomForCommit { wanted, free }) } else { Ok(()) }
    }

    /// Appends the end. The caller has the turn.
    fn decide(
        &self,
        parts: &mut LoggedParts,
        trees: &BTreeSet<TreeId>,
        ranges: &[DeletedRange],
    ) -> Result<Decided, BetreeError> {
        let first = parts.first.expect("a commit has writes");
        let (end, timestamp) = {
            let _gate = self.waits.read(WaitFor::Gate, &self.gate);
            self.check_open()?;
            let of_ranges = ranges.iter().map(|range| &range.tree);
            trees.iter().chain(of_ranges).try_for_each(|tree| self.check_live(*tree))?;
            let timestamp = CommitTimestamp::new(leap_from(self.log().appended_lsn()).get());
            let count = parts.places.len() + usize::from(parts.merges.is_some());
            let has_merges = parts.merges.is_some();
            let (parts, ranges) = (count as u64, ranges.to_vec());
            let payload = write_end(&LargeEnd { first, parts, timestamp, has_merges, ranges });
            (self.log().append(Kind::LargeEnd.into(), &[&payload])?, timestamp)
        };
        self.publisher.publish(CommitTimestamp::new(end.get()));
        Ok(Decided {
            first,
            timestamp,
            places: std::mem::take(&mut parts.places),
            merges: parts.merges,
            next: 0,
            ranges: ranges.to_vec(),
            at: Stage::Commit,
        })
    }

    /// Puts the parts of a decided commit into the buffers and publishes it; `settle` is called before snapshots see it.
    pub(crate) fn complete(
        &self,
        decided: &mut Decided,
        settle: impl FnOnce(CommitTimestamp),
    ) -> Result<(), BetreeError> {
        let mut log = ReadBack::new(&self.environment, self.blocks.store().folder());
        let outcome =
            self.apply_parts(decided, &mut log).and_then(|()| self.end_large(decided, &mut log, settle));
        outcome.map_err(|error| {
            if matches!(error, BetreeError::Closed) {
                return error;
            }
            // It counts, and is not there: nothing may be committed after it.
            self.log().stop(Lsn::new(decided.timestamp.get()), error.into()).into()
        })
    }

    fn apply_parts(&self, decided: &mut Decided, log: &mut ReadBack) -> Result<(), BetreeError> {
        self.log().write_through(self.log().appended_lsn())?;
        while decided.next < decided.places.len() {
            self.apply_part(decided, log)?;
        }
        Ok(())
    }

    /// Puts the next part into the buffers.
    fn apply_part(&self, decided: &mut Decided, log: &mut ReadBack) -> Result<(), BetreeError> {
        let writes = self.part_with_room(decided.places[decided.next], decided.at, log)?;
        let numbers = write_numbers(&[decided.first.get(), decided.next as u64]);
        let (lsn, applied) = self.persist(decided.at, || {
            let _gate = self.waits.read(WaitFor::Gate, &self.gate);
            self.check_open()?;
            let lsn = self.log().append(Kind::LargeApplied.into(), &[&numbers])?;
            Ok((lsn, self.apply_payload(lsn, decided.timestamp, writes)))
        })?;
        self.publisher.publish(CommitTimestamp::new(lsn.get()));
        decided.next += 1;
        applied.map(|_| ())
    }

    /// The writes of a part, read back, once there is room for them in the buffers.
    fn part_with_room<'l>(
        &self,
        place: LogPosition,
        at: Stage,
        log: &'l mut ReadBack,
    ) -> Result<&'l [u8], BetreeError> {
        let lsn = place.lsn();
        let (_, writes) =
            read_part(log.payload(place)?).map_err(|source| BetreeError::Record { lsn, source })?;
        match at {
            Stage::Commit => self.wait_for_room(writes.len())?,
            Stage::Replay => self.make_replay_room(self.buffer_budget())?,
        }
        Ok(writes)
    }

    fn end_large(
        &self,
        decided: &Decided,
        read_back: &mut ReadBack,
        settle: impl FnOnce(CommitTimestamp),
    ) -> Result<(), BetreeError> {
        let log = self.log();
        log.sync(log.appended_lsn())?;
        let merges = match decided.merges {
            Some(place) => self.part_with_room(place, decided.at, read_back)?,
            None => &[],
        };
        let timestamp = decided.timestamp;
        let payload = write_numbers(&[decided.first.get()]);
        let (whole, applied) = self.persist(decided.at, || {
            let _gate = self.pass_gate(&decided.ranges);
            self.check_open()?;
            let to = Lsn::new(timestamp.get());
            let whole = log.append_leaping(Kind::LargeWhole.into(), &payload, to)?;
            self.delete_ranges(&decided.ranges, timestamp, to);
            let applied = self.apply_payload(whole.lsn, timestamp, merges);
            Ok((whole, applied))
        })?;
        let synced = log.sync(whole.lsn);
        self.large.set_whole(decided.first, whole.lsn);
        settle(timestamp);
        // Even where the sync has failed: what comes behind waits for it.
        self.publisher.publish_leap(whole.before, timestamp);
        synced?;
        applied.map(|_| ())
    }

    /// LockWaits for room for a part, as a commit does, but longer: it cannot be given up.
    fn wait_for_room(&self, bytes: usize) -> Result<(), BetreeError> {
        loop {
            match self.make_room(bytes, bytes / AVERAGE_WRITE_BYTES) {
                // Where nobody else makes room more is buffered: the log has it.
                Err(BetreeError::Stalled(_)) if !self.runs_by_itself => return Ok(()),
                Err(BetreeError::Stalled(_)) => self.wait_for_merge(),
                outcome => return outcome,
            }
        }
    }

    /// Tries again and again what only the lack of room in the log keeps from being done.
    fn persist<T>(
        &self,
        at: Stage,
        mut attempt: impl FnMut() -> Result<T, BetreeError>,
    ) -> Result<T, BetreeError> {
        let may_block = self.runs_by_itself && at == Stage::Commit;
        loop {
            match attempt() {
                Err(error) if error.is_no_log_space() && may_block => self.wait_for_merge(),
                outcome => return outcome,
            }
        }
    }
}

/// What a write is taken to have, for the memory that it takes beside its bytes.
const AVERAGE_WRITE_BYTES: usize = 128;

#[cfg(test)]
mod tests;
