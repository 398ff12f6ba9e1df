//! The commit of a transaction: from a private write set to visible and logged.
//!
//! 1. Wait, if buffers or log are fuller than they should be ([`crate::background::back_pressure`]).
//! 2. Write the payload of the log record.
//! 3. Pass the commit gate. Append the record to the log; its LSN is the commit's timestamp. Put the writes
//!    into the buffers, and deleted ranges into the lists of their trees.
//! 4. Settle the intents, then publish: from here on new snapshots see the commit.
//! 5. For `Logged`, hand the bytes of the log to the kernel. For `Synced`, the log itself calls a waker.
//!
//! An error before the append leaves the store unchanged. After it only the log's device can fail, and then
//! the engine takes no further commits.

pub(crate) mod large_commit;

use std::sync::Arc;

use pando_environment::Environment;
use pando_storage::{
    Change, Claim, Claims, CommitReceipt, CommitTimestamp, Durability, Lsn, TreeId, Write, WriteSet,
};

use crate::background::back_pressure::BackPressure;
use crate::background::backlog::Backlog;
use crate::background::checkpointer::Checkpointer;
use crate::background::flush_monitor::FlushMonitor;
use crate::background::flush_scheduler::FlushScheduler;
use crate::background::range_delete_applier::RangeDeleteApplier;
use crate::background::write_buffers::WriteBuffers;
use crate::commit_order::{CommitGate, LargeCommits, Visibility};
use crate::counters::Counters;
use crate::error::BetreeError;
use crate::format::record_payload::{CommitWriter, Kind};
use crate::log::Packed;
use crate::options::live_options::LiveOptions;
use crate::range_deletes::encoding::DeletedRange;
use crate::tree::registry::KeyWrite;
use crate::tree::registry::TreeRegistry;
use crate::tree::tree_blocks::Blocks;

/// The number of commits between two looks for the oldest snapshot.
const HORIZON_COMMITS: u64 = 64;
/// The number of superseded versions for which a look is made earlier.
const HORIZON_LEFT: usize = 64;

/// Commits transactions. See the module's head.
pub(crate) struct Committer {
    pub(crate) environment: Environment,
    /// Whether background tasks have threads of their own.
    pub(crate) runs_by_itself: bool,
    pub(crate) options: Arc<LiveOptions>,
    pub(crate) blocks: Arc<Blocks>,
    pub(crate) trees: Arc<TreeRegistry>,
    pub(crate) gate: Arc<CommitGate>,
    pub(crate) visibility: Arc<Visibility>,
    pub(crate) large: Arc<LargeCommits>,
    pub(crate) buffers: Arc<WriteBuffers>,
    pub(crate) backlog: Arc<Backlog>,
    pub(crate) monitor: Arc<FlushMonitor>,
    pub(crate) scheduler: Arc<FlushScheduler>,
    pub(crate) range_delete_applier: Arc<RangeDeleteApplier>,
    pub(crate) checkpointer: Arc<Checkpointer>,
    pub(crate) back_pressure: Arc<BackPressure>,
    pub(crate) counters: Arc<Counters>,
}

impl Committer {
    /// Commits a write set and the ranges to be deleted under it; at least one of both is not empty.
    pub(crate) fn commit(
        &self,
        writes: &WriteSet,
        ranges: &[DeletedRange],
        claims: &Claims,
        durability: Durability,
    ) -> Result<CommitReceipt, BetreeError> {
        let range_bytes: usize = ranges.iter().map(|range| range.span.bytes()).sum();
        self.back_pressure.make_room(writes.bytes() + range_bytes, writes.keys() + ranges.len())?;
        let sorted = writes.sorted();
        let mut groups: Vec<(TreeId, Vec<KeyWrite<'_>>)> = Vec::new();
        for write in &sorted {
            match groups.last_mut() {
                Some((tree, group)) if *tree == write.tree => group.push((write.key, write.change)),
                _ => groups.push((write.tree, vec![(write.key, write.change)])),
            }
        }
        let payload = payload_of(ranges, &groups, writes.bytes() + range_bytes + sorted.len() * 8);
        // The time of a replay depends on the bytes to be applied, not on their compressed size in the log.
        let replayed_bytes = payload.len() as u64;
        let packed = Packed::of(payload, self.options.log_compression);
        if self.visibility.superseded() >= HORIZON_LEFT {
            // The look comes with a later commit: right after its own commit, a transaction is still live
            // with its older snapshot.
            self.visibility.refresh();
        }
        let blind_merges = sorted.iter().filter(|write| is_blind_merge(write));
        let lsn = if blind_merges.clone().next().is_some() {
            let keys = blind_merges.map(|write| (write.tree, write.key));
            self.large.merge_beside(&self.visibility.intents, keys, || {
                self.append_and_apply(ranges, &groups, &packed)
            })?
        } else {
            self.append_and_apply(ranges, &groups, &packed)?
        };
        self.checkpointer.state.add_log_bytes(replayed_bytes);
        self.counters.payload_bytes.add(replayed_bytes);
        let timestamp = CommitTimestamp::new(lsn.get());
        claims.commit(&self.visibility.intents, timestamp);
        self.visibility.publish(timestamp);
        if !ranges.is_empty() {
            self.backlog.wake_flushers();
        }
        self.counters.commits.add(1);
        self.counters.writes.add((sorted.len() + ranges.len()) as u64);
        self.counters.write_bytes.add((writes.bytes() + range_bytes) as u64);
        if lsn.get().is_multiple_of(HORIZON_COMMITS) {
            self.visibility.refresh();
        }
        match durability {
            Durability::Logged => self.gate.log().write_through(lsn)?,
            // The append of a large record may have failed to write it, and nobody asks again.
            Durability::None => self.gate.log().check_poison()?,
            Durability::Synced => {}
        }
        Ok(CommitReceipt { timestamp, lsn })
    }

    fn append_and_apply(
        &self,
        ranges: &[DeletedRange],
        groups: &[(TreeId, Vec<KeyWrite<'_>>)],
        packed: &Packed,
    ) -> Result<Lsn, BetreeError> {
        let _gate = self.gate.pass(ranges);
        self.gate.check_open()?;
        let trees = groups.iter().map(|(tree, _)| self.trees.live(*tree)).collect::<Result<Vec<_>, _>>()?;
        ranges.iter().try_for_each(|range| self.trees.check_live(range.tree))?;
        let kind = if ranges.is_empty() { Kind::Commit } else { Kind::RangeCommit };
        let lsn = self.gate.log().append_packed(kind.into(), packed)?.lsn;
        self.range_delete_applier.record(ranges, CommitTimestamp::new(lsn.get()), lsn);
        for (tree, (_, group)) in trees.iter().zip(groups) {
            self.buffers.apply(tree, lsn, CommitTimestamp::new(lsn.get()), group);
        }
        Ok(lsn)
    }
}

fn is_blind_merge(write: &Write<'_>) -> bool {
    matches!((write.change, write.claim), (Change::Merge(_), Claim::Blind))
}

fn payload_of(ranges: &[DeletedRange], groups: &[(TreeId, Vec<KeyWrite<'_>>)], bytes: usize) -> Vec<u8> {
    let mut writer = match ranges {
        [] => CommitWriter::with_capacity(bytes),
        ranges => CommitWriter::of_ranges(ranges, bytes),
    };
    for (tree, group) in groups {
        writer.group(*tree, group.len());
        for (key, change) in group {
            writer.write(key, *change);
        }
    }
    writer.finish()
}
