//! The old versions of entries: what the stores of a cluster still read, and the removal of the rest.
//!
//! The cluster removes versions below one timestamp, its *safepoint*, for all stores in it. So each server
//! tells the others the oldest snapshot that it needs, whatever its own options are.
//!
//! # Steps
//! 1. A server tells its oldest snapshot every [`TOLD_EVERY`]. It reads only as long as it can (`kept`).
//! 2. One server of each store with a `history` collects: it moves the safepoint to the oldest snapshot that
//!    any store has told, a quarter of its `history` after the last time. That takes minutes where the
//!    cluster is large, and goes on beside the telling.
//! 3. A server that has told nothing for [`FORGOTTEN_AFTER`] is closed or dead, and holds nothing back.
//!
//! # Other programs
//! With `history` = `off` another program moves the safepoint, such as TiDB, which knows nothing of snapshots
//! here. Transactions end at the age of [`UNHELD_FOR`] then, the time for which TiDB keeps versions by
//! default. The client tells nobody where the safepoint is. Where it lies beyond the timestamp that a server
//! wants to move it to, the snapshots up to that timestamp fail there.

use std::sync::Arc;
use std::time::Duration;

use pando_environment::{Monotonic, Step};
use pando_storage::StorageError;

use crate::cluster::{Collected, Collecting, Mutation, Order, earlier};
use crate::kept::{FORGOTTEN_AFTER, TOLD_EVERY, UNHELD_FOR};
use crate::layout::Keyspace;
use crate::servers::Membership;
use crate::store::Store;

/// The time between two turns.
const TURN: Duration = Duration::from_secs(5);
/// Servers of all stores of one cluster.
const SERVERS_MAX: u32 = 10_000;

/// See the module's head.
pub(crate) struct Versions {
    store: Arc<Store>,
    told_at: Option<Monotonic>,
    collected_at: Monotonic,
    collecting: Option<Collecting>,
}

impl Versions {
    pub(crate) fn new(store: &Arc<Store>) -> Versions {
        let collected_at = store.clock.monotonic();
        Versions { store: Arc::clone(store), told_at: None, collected_at, collecting: None }
    }

    /// One turn. A failure is tried again at the next one.
    pub(crate) fn step(&mut self) -> Step {
        let is_due = self.told_at.is_none_or(|at| self.store.clock.monotonic().since(at) >= TOLD_EVERY);
        if is_due {
            let _later = self.tell();
        }
        self.end_collecting();
        if let Err(error) = self.collect() {
            tracing::warn!(%error, "cannot let the TiKV cluster remove old versions; trying again");
        }
        Step::Wait(TURN)
    }

    /// Tells the other stores the oldest snapshot of this server.
    fn tell(&mut self) -> Result<(), StorageError> {
        let store = &self.store;
        let asked_at = store.clock.monotonic();
        let now = store.cluster.timestamp()?;
        if store.options.history.is_none() {
            store.kept.lost_before(earlier(now, UNHELD_FOR));
        }
        let mine = self.oldest(now);
        let told = [mine.to_be_bytes(), now.to_be_bytes()].concat();
        let key = store.keyspace.oldest_snapshot(store.membership.as_ref().map(Membership::number));
        store.cluster.change(|_| Ok(vec![Mutation::Put(key.clone(), told.clone())]))?;
        store.kept.told(asked_at, now);
        self.told_at = Some(asked_at);
        Ok(())
    }

    /// No transaction that this server has or will begin reads before this.
    fn oldest(&self, now: u64) -> u64 {
        let history = self.store.options.history.unwrap_or_default();
        let oldest = self.store.live.lock().oldest_snapshot();
        oldest.unwrap_or(now).min(earlier(now, history))
    }

    /// Begins to let the cluster remove the versions that no transaction of any store of Pando reads.
    fn collect(&mut self) -> Result<(), StorageError> {
        let Some(history) = self.store.options.history else { return Ok(()) };
        let now = self.store.clock.monotonic();
        let is_due = self.collecting.is_none() && now.since(self.collected_at) >= history / 4;
        if !is_due || self.told_at.is_none() || !self.store.does_work_of_all() {
            return Ok(());
        }
        self.collected_at = now;
        let cluster = &self.store.cluster;
        let now = cluster.timestamp()?;
        let mine = self.oldest(now);
        let forgotten = earlier(now, FORGOTTEN_AFTER);
        let all = cluster.scan(now, &Keyspace::oldest_snapshots(), Order::Ascending, SERVERS_MAX)?;
        let known = all.iter().filter_map(|(_, told)| oldest_told(told, forgotten));
        self.collecting = Some(cluster.collect_garbage(known.min().unwrap_or(mine).min(mine)));
        Ok(())
    }

    fn end_collecting(&mut self) {
        let Some(collecting) = &mut self.collecting else { return };
        let Some(collected) = self.store.cluster.collected(collecting) else { return };
        let before = collecting.before;
        self.collecting = None;
        match collected {
            Ok(Collected::Done) => {}
            Ok(Collected::ByOthers) => {
                // The safepoint lies behind this timestamp.
                self.store.kept.lost_before(before.saturating_add(1));
                tracing::warn!(
                    "the TiKV cluster already removes younger versions than this store has asked for: a store with a longer \
                     history was opened lately, another store was quicker, or another program such as TiDB moves the safepoint; \
                     in the last case start the servers with the option `history` = off"
                );
            }
            Err(error) => {
                tracing::warn!(%error, "the TiKV cluster has not removed old versions; trying again");
            }
        }
    }
}

/// The oldest snapshot of a server that has told it after a moment.
fn oldest_told(told: &[u8], after: u64) -> Option<u64> {
    let (oldest, told_at) = told.split_first_chunk::<8>()?;
    let told_at = u64::from_be_bytes(told_at.try_into().ok()?);
    (told_at >= after).then(|| u64::from_be_bytes(*oldest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_heard_until_it_has_been_silent_for_long() {
        let told = [7_u64.to_be_bytes(), 100_u64.to_be_bytes()].concat();
        assert_eq!(oldest_told(&told, 100), Some(7));
        assert_eq!(oldest_told(&told, 101), None);
        assert_eq!(oldest_told(&told[..15], 0), None);
    }
}
