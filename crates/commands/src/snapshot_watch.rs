//! The watch over open snapshots: which of them pin much history, and for whom.
//!
//! The engine keeps a replaced version of a document for as long as an open snapshot sees it. One forgotten
//! cursor can so hold every version of a busy collection.
//!
//! # Algorithm
//! 1. A chore looks for snapshots behind which [`PINNED_COMMITS_LOGGED`] commits were made. An engine whose
//!    timestamps do not count commits tells their age only: one of [`AGE_LOGGED`] is looked for there.
//! 2. It logs each once, with the client that has opened it: of a cursor, of a session's transaction, or of a
//!    snapshot that is held for later reads. A request under way holds one that none of these has.
//!
//! # Not here
//! Ending them: cursors, transactions and held snapshots have their own time limits.

use std::collections::BTreeMap;
use std::time::Duration;

use pando_catalog::{Begin, LiveTransaction, SnapshotTimestamp, StorageError};

use crate::shared_state::SharedState;

/// The period of the chore.
pub(crate) const WATCH_PERIOD: Duration = Duration::from_secs(10);
/// Commits behind a snapshot from which on it is logged.
const PINNED_COMMITS_LOGGED: u64 = 1_000_000;

/// The age of a snapshot from which on it is logged, where nobody counts the commits behind it.
const AGE_LOGGED: Duration = Duration::from_secs(600);

/// The figures of all open snapshots.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SnapshotFigures {
    /// Transactions of the engine that are open, reading ones included.
    pub open: u64,
    /// The age of the oldest one.
    pub oldest_age: Duration,
    /// The commits since the oldest snapshot, where the engine counts them.
    pub pinned_commits: Option<u64>,
}

/// The figures of this moment.
pub(crate) fn figures(shared: &SharedState) -> Result<SnapshotFigures, StorageError> {
    let engine = shared.catalog.engine();
    let live = engine.live_transactions();
    let newest = engine.begin(Begin::READ)?.snapshot();
    let pinned = live.iter().map(|live| engine.commits_between(live.snapshot, newest)).max();
    Ok(SnapshotFigures {
        open: live.len() as u64,
        oldest_age: live.iter().map(|live| live.age).max().unwrap_or_default(),
        pinned_commits: pinned.unwrap_or_else(|| engine.commits_between(newest, newest)),
    })
}

/// Whether a snapshot pins much: `commits` were made behind it, if the engine counts them.
fn pins_much(age: Duration, commits: Option<u64>) -> bool {
    commits.map_or(age >= AGE_LOGGED, |commits| commits >= PINNED_COMMITS_LOGGED)
}

/// The chore.
pub(crate) fn run(shared: &SharedState) {
    if let Err(error) = try_run(shared) {
        tracing::warn!(?error, "cannot look for snapshots that pin much history; trying again");
    }
}

fn try_run(shared: &SharedState) -> Result<(), StorageError> {
    let engine = shared.catalog.engine();
    let newest = engine.begin(Begin::READ)?.snapshot();
    let mut old: Vec<LiveTransaction> = engine.live_transactions();
    old.retain(|live| pins_much(live.age, engine.commits_between(live.snapshot, newest)));
    let mut logged = shared.logged_snapshots.lock();
    logged.retain(|snapshot| old.iter().any(|live| live.snapshot == *snapshot));
    old.retain(|live| !logged.contains(&live.snapshot));
    if old.is_empty() {
        return Ok(());
    }
    let holders = holders(shared);
    for live in old {
        if logged.contains(&live.snapshot) {
            continue;
        }
        logged.push(live.snapshot);
        let unknown = Holder { kind: "a request under way, see currentOp", client: String::new() };
        let Holder { kind, client } = holders.get(&live.snapshot).unwrap_or(&unknown);
        tracing::warn!(
            holder = kind,
            client,
            age_seconds = live.age.as_secs(),
            commits = engine.commits_between(live.snapshot, newest),
            "an old snapshot pins the versions that were replaced since; close the cursor, end the transaction or lower \
             minSnapshotHistoryWindowInSeconds"
        );
    }
    Ok(())
}

/// The user of a snapshot.
struct Holder {
    kind: &'static str,
    client: String,
}

/// The users of snapshots that wait for their clients.
fn holders(shared: &SharedState) -> BTreeMap<SnapshotTimestamp, Holder> {
    let mut holders = BTreeMap::new();
    for held in shared.held_snapshots.all() {
        let client = held.connection.peer().to_owned();
        holders.insert(held.snapshot, Holder { kind: "a snapshot that is held for later reads", client });
    }
    for cursor in shared.cursors.idle() {
        if let Some(snapshot) = cursor.snapshot {
            holders.insert(snapshot, Holder { kind: "a cursor", client: cursor.client.clone() });
        }
    }
    for open in shared.sessions.idle() {
        let snapshot = open.lock().ok().and_then(|held| Some(held.as_ref()?.reader().snapshot()));
        if let Some(snapshot) = snapshot {
            let client = open.begun.connection.peer().to_owned();
            holders.insert(snapshot, Holder { kind: "a transaction", client });
        }
    }
    holders
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_is_old_by_its_commits_or_by_its_age_where_timestamps_are_the_time() {
        let minute = Duration::from_secs(60);
        assert!(pins_much(minute, Some(PINNED_COMMITS_LOGGED)));
        assert!(!pins_much(100 * minute, Some(PINNED_COMMITS_LOGGED - 1)));
        assert!(pins_much(10 * minute, None) && !pins_much(9 * minute, None));
    }
}
