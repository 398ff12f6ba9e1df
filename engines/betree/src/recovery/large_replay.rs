//! Replay of large commits, in the order of the log.
//!
//! Replay only notes where a part stands. The end record decides. The records behind it give the order in
//! which parts go into the buffers; the parts are read back then. So replay holds one part in memory, and 32
//! bytes for each of the others.

use std::collections::HashMap;
use std::sync::Arc;

use pando_storage::Lsn;

use crate::base::FormatError;
use crate::base::LogPosition;
use crate::commit::large_commit::{Decided, LoggedParts, Stage};
use crate::error::BetreeError;
use crate::format::record_payload::{Kind, LargeEnd, read_end, read_numbers, read_part};
use crate::log::{LogRecord, ReadBack, is_gap};
use crate::recovery::replay_writes;
use crate::store::Store;

/// See the module's head. A commit whose first part lies before the beginning of the replay is in the image
/// whole. Replay passes over those of its records that it meets.
pub(crate) struct LargeReplay {
    /// The first record that replay may meet.
    start: Lsn,
    /// The commits without an end so far, by their first part.
    open: HashMap<Lsn, LoggedParts>,
    /// The commit that has its end and is not whole.
    decided: Option<Decided>,
    log: ReadBack,
}

impl LargeReplay {
    pub(crate) fn new(store: &Store, start: Lsn) -> LargeReplay {
        let blocks = store.blocks.store();
        let log = ReadBack::new(&store.environment, blocks.folder(), blocks.vault());
        LargeReplay { start, open: HashMap::new(), decided: None, log }
    }

    /// Replays a record of a large commit.
    pub(crate) fn replay(
        &mut self,
        store: &Arc<Store>,
        kind: Kind,
        record: &LogRecord<'_>,
    ) -> Result<(), BetreeError> {
        let lsn = record.lsn;
        let damaged = |source| BetreeError::Record { lsn, source };
        let (first, _) = read_part(record.payload).map_err(damaged)?;
        let first = first.unwrap_or(lsn);
        if first < self.start {
            store.gate.set_replayed(lsn);
            return Ok(());
        }
        match kind {
            Kind::LargePart => {
                let parts = self.open.entry(first).or_default();
                parts.first = Some(first);
                parts.places.push(record.place);
            }
            Kind::LargeEnd => {
                let LargeEnd { first, parts: count, timestamp, has_merges, ranges } =
                    read_end(record.payload).map_err(damaged)?;
                let mut parts = self.open.remove(&first).unwrap_or_default();
                let is_first_there = parts.places.first().is_some_and(|place| place.lsn() == first);
                if self.decided.is_some()
                    || !is_first_there
                    || parts.places.len() as u64 != count
                    || !is_gap(lsn, Lsn::new(timestamp.get()))
                {
                    return Err(damaged(disorder("end")));
                }
                store.large.begin(first);
                let merges = if has_merges { parts.places.pop() } else { None };
                let (places, at) = (parts.places, Stage::Replay);
                self.decided = Some(Decided { first, timestamp, places, merges, next: 0, ranges, at });
            }
            Kind::LargeApplied => {
                let numbers = read_numbers(record.payload).map_err(damaged)?;
                return self.apply(store, lsn, numbers);
            }
            _ => {
                let [first] = read_numbers(record.payload).map_err(damaged)?;
                let whole = self.decided.take().filter(|decided| {
                    decided.first.get() == first
                        && decided.next == decided.places.len()
                        && decided.timestamp.get() == lsn.get()
                });
                let whole = whole.ok_or_else(|| damaged(disorder("last record")))?;
                store.range_delete_applier.record(&whole.ranges, whole.timestamp, lsn);
                if let Some(place) = whole.merges {
                    let (_, writes) = read_part(self.log.payload(place)?).map_err(damaged)?;
                    replay_writes(store, lsn, whole.timestamp, &[], writes)?;
                }
                store.large.set_whole(whole.first, lsn);
            }
        }
        store.gate.set_replayed(lsn);
        Ok(())
    }

    fn apply(&mut self, store: &Arc<Store>, lsn: Lsn, [first, index]: [u64; 2]) -> Result<(), BetreeError> {
        let damaged = |source| BetreeError::Record { lsn, source };
        let decided = self.decided.as_mut();
        let expected = decided.filter(|one| one.first.get() == first && one.next as u64 == index);
        let Some((decided, place)) = expected.and_then(|one| {
            let place: Option<LogPosition> = one.places.get(one.next).copied();
            place.map(|place| (one, place))
        }) else {
            return Err(damaged(disorder("part")));
        };
        let payload = self.log.payload(place)?;
        let (_, writes) = read_part(payload).map_err(damaged)?;
        store.large.add_bytes(decided.first, payload.len() as u64);
        replay_writes(store, lsn, decided.timestamp, &[], writes)?;
        decided.next += 1;
        Ok(())
    }

    /// Completes the commit that has its end and is not whole, now that the log can be written.
    pub(crate) fn finish(self, store: &Arc<Store>) -> Result<(), BetreeError> {
        let Some(mut decided) = self.decided else { return Ok(()) };
        store.counters.large_commits.add(1);
        store.committer.complete(&mut decided, |_nobody_has_claims| ())
    }
}

/// A record of a large commit that does not follow those before it.
fn disorder(field: &'static str) -> FormatError {
    FormatError::Disorder { block: "log record of a large commit", field, at: 0 }
}
