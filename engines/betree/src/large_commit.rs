//! The commit of a transaction that is larger than memory: in parts, and visible at once.
//!
//! # Terms
//! - *Part*: as many of the writes, in order of tree and key, as are put into the buffers at once.
//! - *End*: the log record from which on the commit counts, whatever happens.
//! - *Leap*: the timestamp of the commit lies far ahead ([`crate::log::leap_from`]) of all that are given out meanwhile, and the log
//!   goes on behind it.
//!
//! # How
//! 1. The parts are appended to the log, each a record. Other commits go on, and so do other large ones.
//! 2. The end is appended. It names the timestamp. From here to step 5 only one large commit is under way.
//! 3. Part by part: wait for room as any commit does, append a record that says so, and put the part (read back from the log) into the
//!    buffers, under the timestamp that no snapshot sees yet. Other commits have smaller timestamps, and become visible without waiting.
//! 4. The log is synced, and the last record appended, which leaps: its LSN is the timestamp. It is synced, too.
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
//! # Failures
//! Up to the end an error means that nothing has happened. From the end on the commit waits for what it lacks, such as room on the
//! device; where that cannot come (the log has failed, the engine is closed) the next opening completes it.

mod part;
mod replay;

use std::collections::BTreeSet;

use pando_environment::sync::atomic::{AtomicU64, Ordering};
use pando_environment::sync::{Mutex, MutexGuard};
use pando_storage::{Claims, CommitReceipt, CommitTimestamp, Durability, Lsn, SpillingWrites, TreeId};
use part::Part;

use crate::core::Core;
use crate::error::BetreeError;
use crate::format::record::{Kind, read_part, write_numbers};
use crate::log::{Appended, LogPosition, Packed, ReadBack, leap_from};
use crate::waits::WaitFor;

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
}

/// A large commit whose end is in the log.
#[derive(Debug)]
pub(crate) struct Decided {
    first: Lsn,
    timestamp: CommitTimestamp,
    places: Vec<LogPosition>,
    /// The next part to be put into the buffers.
    next: usize,
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

/// Commits writes that may be larger than memory.
pub(crate) fn commit_large(
    core: &Core,
    writes: &SpillingWrites,
    claims: &Claims,
    durability: Durability,
) -> Result<CommitReceipt, BetreeError> {
    core.make_room(0, 0)?;
    let mut parts = LoggedParts::default();
    let outcome = core.log_parts(writes, &mut parts).and_then(|trees| {
        core.check_room_for(writes.bytes() as u64)?;
        let turn = core.large.exclude();
        Ok((turn, core.decide(&mut parts, &trees)?))
    });
    let (turn, mut decided) =
        outcome.inspect_err(|_| parts.first.into_iter().for_each(|first| core.large.give_up(first)))?;
    let timestamp = decided.timestamp;
    core.complete(&mut decided, |timestamp| claims.commit(&core.intents, timestamp))?;
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
        let (mut part, mut trees) = (Part::default(), BTreeSet::new());
        while part.fill(&mut merged, self.options.part_bytes()).map_err(BetreeError::Spill)? {
            trees.extend(part.trees());
            let payload = part.payload(parts.first);
            let payload_bytes = payload.len() as u64;
            let packed = Packed::of(payload, self.options.log_compression);
            let appended = self.append_part(&packed, parts.first.is_none())?;
            parts.places.push(appended.place);
            let first = *parts.first.get_or_insert(appended.lsn);
            self.large.add_bytes(first, packed.bytes());
            self.publisher.publish(CommitTimestamp::new(appended.lsn.get()));
            self.checkpoint.add_log_bytes(payload_bytes);
            self.counters.payload_bytes.add(payload_bytes);
            self.counters.large_parts.add(1);
            self.counters.writes.add(part.len() as u64);
            if self.log_bytes_since_checkpoint() >= self.checkpoint_log_bytes() {
                self.wake_checkpointer();
            }
        }
        Ok(trees)
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
    fn decide(&self, parts: &mut LoggedParts, trees: &BTreeSet<TreeId>) -> Result<Decided, BetreeError> {
        let first = parts.first.expect("a commit has writes");
        let (end, timestamp) = {
            let _gate = self.waits.read(WaitFor::Gate, &self.gate);
            self.check_open()?;
            trees.iter().try_for_each(|tree| self.live_tree(*tree).map(|_| ()))?;
            let timestamp = CommitTimestamp::new(leap_from(self.log().appended_lsn()).get());
            let payload = write_numbers(&[first.get(), parts.places.len() as u64, timestamp.get()]);
            (self.log().append(Kind::LargeEnd.into(), &[&payload])?, timestamp)
        };
        self.publisher.publish(CommitTimestamp::new(end.get()));
        Ok(Decided {
            first,
            timestamp,
            places: std::mem::take(&mut parts.places),
            next: 0,
            at: Stage::Commit,
        })
    }

    /// Puts the parts of a decided commit into the buffers and publishes it; `settle` is called before snapshots see it.
    pub(crate) fn complete(
        &self,
        decided: &mut Decided,
        settle: impl FnOnce(CommitTimestamp),
    ) -> Result<(), BetreeError> {
        let outcome = self.apply_parts(decided).and_then(|()| self.end_large(decided, settle));
        outcome.map_err(|error| {
            if matches!(error, BetreeError::Closed) {
                return error;
            }
            // It counts, and is not there: nothing may be committed after it.
            self.log().stop(Lsn::new(decided.timestamp.get()), error.into()).into()
        })
    }

    fn apply_parts(&self, decided: &mut Decided) -> Result<(), BetreeError> {
        self.log().write_through(self.log().appended_lsn())?;
        let mut log = ReadBack::new(&self.environment, self.blocks.store().folder());
        while decided.next < decided.places.len() {
            self.apply_part(decided, &mut log)?;
        }
        Ok(())
    }

    /// Puts the next part into the buffers.
    fn apply_part(&self, decided: &mut Decided, log: &mut ReadBack) -> Result<(), BetreeError> {
        let place = decided.places[decided.next];
        let lsn = place.lsn();
        let (_, writes) =
            read_part(log.payload(place)?).map_err(|source| BetreeError::Record { lsn, source })?;
        match decided.at {
            Stage::Commit => self.wait_for_room(writes.len())?,
            Stage::Replay => self.make_replay_room(self.buffer_budget())?,
        }
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

    fn end_large(&self, decided: &Decided, settle: impl FnOnce(CommitTimestamp)) -> Result<(), BetreeError> {
        let log = self.log();
        log.sync(log.appended_lsn())?;
        let timestamp = decided.timestamp;
        let payload = write_numbers(&[decided.first.get()]);
        let whole = self.persist(decided.at, || {
            let _gate = self.waits.read(WaitFor::Gate, &self.gate);
            self.check_open()?;
            let to = Lsn::new(timestamp.get());
            Ok(log.append_leaping(Kind::LargeWhole.into(), &payload, to)?)
        })?;
        let synced = log.sync(whole.lsn);
        self.large.set_whole(decided.first, whole.lsn);
        settle(timestamp);
        // Even where the sync has failed: what comes behind waits for it.
        self.publisher.publish_leap(whole.before, timestamp);
        Ok(synced?)
    }

    /// Waits for room for a part, as a commit does, but longer: it cannot be given up.
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
        let is_patient = self.runs_by_itself && at == Stage::Commit;
        loop {
            match attempt() {
                Err(error) if error.is_no_log_space() && is_patient => self.wait_for_merge(),
                outcome => return outcome,
            }
        }
    }
}

/// What a write is taken to have, for the memory that it takes beside its bytes.
const AVERAGE_WRITE_BYTES: usize = 128;

#[cfg(test)]
mod tests;
