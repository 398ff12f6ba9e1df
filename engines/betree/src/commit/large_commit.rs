//! Large commits: the commit of a transaction that is larger than memory, in parts that become visible at
//! once.
//!
//! # Terms
//! - *Part*: the writes, in order of tree and key, that are put into the buffers at once. Merge operators
//!   have a part of their own, the last.
//! - *End record*: the decision. Once it is in the log, the commit happens; steps 3 to 5 complete it.
//! - *Whole record*: the last record of the commit. Its LSN is the commit's timestamp.
//! - *Gap*: the timestamp lies far ahead ([`crate::log::lsn_after_gap`]) of all that are given out meanwhile.
//!   The whole record leaves a gap in the LSNs, and the log goes on behind it.
//!
//! # Steps
//! 1. The parts are appended to the log, each as a record. Other commits go on, large ones too.
//! 2. The end record is appended. It names the timestamp. From here to step 5 only one large commit is under
//!    way.
//! 3. For each part: wait for room as any commit does, append an applied record, and read the part back from
//!    the log. Put it into the buffers under the timestamp, which no snapshot sees yet. Other commits have
//!    smaller timestamps, and become visible without waiting.
//! 4. The log is synced, and the whole record is appended. With it the part of merge operators goes into the
//!    buffers. The ranges that the commit deletes, which the end record names, enter the lists of their
//!    trees. The whole record is synced, too.
//! 5. The claims are settled, and the timestamp is published: snapshots see all parts at once.
//!
//! ```text
//! log:  part part part  END  applied applied applied  WHOLE
//!       |<- undone if ->|    |<- completed when the ->|
//!           no END               store is opened
//! ```
//!
//! # Why it is atomic across a crash
//! - Without the end record no write of it was ever put into a buffer, and replay skips the parts.
//! - With the end record, replay puts the parts in where the records of step 3 stand, each under the LSN of
//!   that record. A partition that has the part already skips it, as with any commit. The rest is completed
//!   when the store is opened.
//! - A checkpoint syncs the log before its superblock. So an image that holds a part of it has an end record
//!   in the log.
//! - As long as any of it may have to be replayed, replay begins before its first part
//!   ([`LargeCommits::keep_whole`](crate::commit_order::LargeCommits::keep_whole)).
//! - No snapshot sees it before all earlier commits are durable (step 4). If it survives a power cut and an
//!   earlier commit does not, no transaction had seen it.
//!
//! # Blind merge operators beside it
//! The timestamps of a key have to descend on the way down a tree, and the parts have a timestamp that lies
//! ahead. Writers with intents cannot meet the parts, since their keys are claimed. Blind merge operators
//! can. So a commit with blind merge operators first checks whether the large commit under way has claimed
//! one of its keys ([`LargeCommits::merge_beside`](crate::commit_order::LargeCommits::merge_beside)). If so,
//! it waits for the end of that commit before it takes its place in the log. The merge operators of the large
//! commit itself go in with its whole record, in the order of the log. So a large commit to a shared counter
//! delays no other commit to it. Therefore they have to fit into one record.
//!
//! # Failures
//! An error before the end record leaves the store unchanged. From then on the commit waits for anything that
//! it lacks, such as room on the device. If that cannot come (the log has failed, the engine is closed), the
//! next opening completes it.

mod part;

use std::collections::BTreeSet;

use pando_storage::{
    Claims, CommitReceipt, CommitTimestamp, Durability, Lsn, SpillingWrites, TransactionId, TreeId,
};
use part::Part;

use super::Committer;
use crate::base::LogPosition;
use crate::error::BetreeError;
use crate::format::record_payload::{Kind, LargeEnd, read_part, write_end, write_numbers};
use crate::log::{Appended, Packed, ReadBack, lsn_after_gap};
use crate::range_deletes::encoding::DeletedRange;

/// Bytes of keys and values up to which a commit is one record.
pub(crate) const SMALL_BYTES_MAX: usize = 16 << 20;

/// The parts of a large commit in the log.
#[derive(Debug, Default)]
pub(crate) struct LoggedParts {
    pub(crate) first: Option<Lsn>,
    pub(crate) places: Vec<LogPosition>,
    /// The part of merges, if there is one.
    pub(crate) merges: Option<LogPosition>,
}

/// A large commit whose end is in the log.
#[derive(Debug)]
pub(crate) struct Decided {
    pub(crate) first: Lsn,
    pub(crate) timestamp: CommitTimestamp,
    pub(crate) places: Vec<LogPosition>,
    pub(crate) merges: Option<LogPosition>,
    /// The next part to be put into the buffers.
    pub(crate) next: usize,
    /// Ranges that the whole record deletes.
    pub(crate) ranges: Vec<DeletedRange>,
    pub(crate) at: Stage,
}

/// When a large commit is completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// While it is made. Other commits need room, too, so it waits for its own.
    Commit,
    /// When the store is opened. A full device does not stop it, so that room can be made there.
    Replay,
}

impl Committer {
    /// Commits writes of a transaction that may be larger than memory.
    pub(crate) fn commit_large(
        &self,
        owner: TransactionId,
        writes: &SpillingWrites,
        ranges: &[DeletedRange],
        claims: &Claims,
        durability: Durability,
    ) -> Result<CommitReceipt, BetreeError> {
        self.back_pressure.make_room(0, 0)?;
        let mut parts = LoggedParts::default();
        let outcome = self.log_parts(writes, &mut parts).and_then(|trees| {
            self.check_room_for(writes.bytes() as u64)?;
            let turn = self.large.exclude();
            let kept_off = self.large.keep_merges_off(owner);
            Ok((turn, kept_off, self.decide(&mut parts, &trees, ranges)?))
        });
        let (turn, kept_off, mut decided) =
            outcome.inspect_err(|_| parts.first.into_iter().for_each(|first| self.large.give_up(first)))?;
        let timestamp = decided.timestamp;
        self.complete(&mut decided, |timestamp| claims.commit(&self.visibility.intents, timestamp))?;
        drop(kept_off);
        drop(turn);
        self.counters.commits.add(1);
        self.counters.large_commits.add(1);
        self.counters.write_bytes.add(writes.bytes() as u64);
        self.visibility.refresh();
        let lsn = Lsn::new(timestamp.get());
        if durability == Durability::Logged {
            self.gate.log().write_through(lsn)?;
        }
        Ok(CommitReceipt { timestamp, lsn })
    }

    /// Appends all parts. Returns the trees that they write to.
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

    /// Appends a part. Returns its place.
    fn log_part(&self, part: &Part, first: &mut Option<Lsn>) -> Result<LogPosition, BetreeError> {
        let payload = part.payload(*first);
        let payload_bytes = payload.len() as u64;
        let packed = Packed::of(payload, self.options.log_compression);
        let appended = self.append_part(&packed, first.is_none())?;
        let first = *first.get_or_insert(appended.lsn);
        self.large.add_bytes(first, packed.bytes());
        self.visibility.publish(CommitTimestamp::new(appended.lsn.get()));
        self.checkpointer.state.add_log_bytes(payload_bytes);
        self.counters.payload_bytes.add(payload_bytes);
        self.counters.large_parts.add(1);
        self.counters.writes.add(part.len() as u64);
        if self.checkpointer.log_bytes_since_checkpoint() >= self.checkpointer.checkpoint_log_bytes() {
            self.backlog.wake_checkpointer();
        }
        Ok(appended.place)
    }

    fn append_part(&self, packed: &Packed, is_first: bool) -> Result<Appended, BetreeError> {
        // A checkpoint that does not see the first part begins its replay before it.
        let _gate = self.gate.enter();
        self.gate.check_open()?;
        let appended = self.gate.log().append_packed(Kind::LargePart.into(), packed)?;
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
            let _gate = self.gate.enter();
            self.gate.check_open()?;
            let of_ranges = ranges.iter().map(|range| &range.tree);
            trees.iter().chain(of_ranges).try_for_each(|tree| self.trees.check_live(*tree))?;
            let timestamp = CommitTimestamp::new(lsn_after_gap(self.gate.log().appended_lsn()).get());
            let count = parts.places.len() + usize::from(parts.merges.is_some());
            let has_merges = parts.merges.is_some();
            let (parts, ranges) = (count as u64, ranges.to_vec());
            let payload = write_end(&LargeEnd { first, parts, timestamp, has_merges, ranges });
            (self.gate.log().append(Kind::LargeEnd.into(), &[&payload])?, timestamp)
        };
        self.visibility.publish(CommitTimestamp::new(end.get()));
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

    /// Puts the parts of a decided commit into the buffers and publishes it; `settle` is called before
    /// snapshots see it.
    pub(crate) fn complete(
        &self,
        decided: &mut Decided,
        settle: impl FnOnce(CommitTimestamp),
    ) -> Result<(), BetreeError> {
        let mut log =
            ReadBack::new(&self.environment, self.blocks.store().folder(), self.blocks.store().vault());
        let outcome =
            self.apply_parts(decided, &mut log).and_then(|()| self.end_large(decided, &mut log, settle));
        outcome.map_err(|error| {
            if matches!(error, BetreeError::Closed) {
                return error;
            }
            // The commit is decided and incomplete: no commit may follow it.
            self.gate.log().stop(Lsn::new(decided.timestamp.get()), error.into()).into()
        })
    }

    fn apply_parts(&self, decided: &mut Decided, log: &mut ReadBack) -> Result<(), BetreeError> {
        self.gate.log().write_through(self.gate.log().appended_lsn())?;
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
            let _gate = self.gate.enter();
            self.gate.check_open()?;
            let lsn = self.gate.log().append(Kind::LargeApplied.into(), &[&numbers])?;
            Ok((lsn, self.buffers.apply_payload(lsn, decided.timestamp, writes)))
        })?;
        self.visibility.publish(CommitTimestamp::new(lsn.get()));
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
            Stage::Replay => self.scheduler.make_replay_room(self.buffers.budget())?,
        }
        Ok(writes)
    }

    fn end_large(
        &self,
        decided: &Decided,
        read_back: &mut ReadBack,
        settle: impl FnOnce(CommitTimestamp),
    ) -> Result<(), BetreeError> {
        let log = self.gate.log();
        log.sync(log.appended_lsn())?;
        let merges = match decided.merges {
            Some(place) => self.part_with_room(place, decided.at, read_back)?,
            None => &[],
        };
        let timestamp = decided.timestamp;
        let payload = write_numbers(&[decided.first.get()]);
        let (whole, applied) = self.persist(decided.at, || {
            let _gate = self.gate.pass(&decided.ranges);
            self.gate.check_open()?;
            let to = Lsn::new(timestamp.get());
            let whole = log.append_after_gap(Kind::LargeWhole.into(), &payload, to)?;
            self.range_delete_applier.record(&decided.ranges, timestamp, to);
            let applied = self.buffers.apply_payload(whole.lsn, timestamp, merges);
            Ok((whole, applied))
        })?;
        let synced = log.sync(whole.lsn);
        self.large.set_whole(decided.first, whole.lsn);
        settle(timestamp);
        // It is published even after a failed sync, since later commits wait for it.
        self.visibility.publisher.publish_after_gap(whole.before, timestamp);
        synced?;
        applied.map(|_| ())
    }

    /// Waits for room for a part, as a commit does, but without end: the part cannot be given up.
    fn wait_for_room(&self, bytes: usize) -> Result<(), BetreeError> {
        loop {
            match self.back_pressure.make_room(bytes, bytes / AVERAGE_WRITE_BYTES) {
                // If no task makes room, more is buffered; the log bounds it.
                Err(BetreeError::Stalled(_)) if !self.runs_by_itself => return Ok(()),
                Err(BetreeError::Stalled(_)) => self.monitor.wait_for_room(),
                outcome => return outcome,
            }
        }
    }

    /// Repeats an attempt that fails only for lack of room in the log.
    fn persist<T>(
        &self,
        at: Stage,
        mut attempt: impl FnMut() -> Result<T, BetreeError>,
    ) -> Result<T, BetreeError> {
        let may_block = self.runs_by_itself && at == Stage::Commit;
        loop {
            match attempt() {
                Err(error) if error.is_no_log_space() && may_block => self.monitor.wait_for_room(),
                outcome => return outcome,
            }
        }
    }
}

/// The assumed size of a write, for the memory that it takes beside its bytes.
const AVERAGE_WRITE_BYTES: usize = 128;

#[cfg(test)]
mod tests;
