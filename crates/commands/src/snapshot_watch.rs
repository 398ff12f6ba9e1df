//! The watch over open snapshots: which of them pin much history, and for whom.
//!
//! The engine keeps a replaced version of a document for as long as an open snapshot sees it. One forgotten
//! cursor can so hold every version of a busy collection.
//!
//! # Algorithm
//! 1. A chore looks for snapshots behind which [`PINNED_COMMITS_LOGGED`] commits were made.
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

/// The figures of all open snapshots.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SnapshotFigures {
    /// Transactions of the engine that are open, reading ones included.
    pub open: u64,
    /// The age of the oldest one.
    pub oldest_age: Duration,
    /// The commits since the oldest snapshot.
    pub pinned_commits: u64,
}

/// The figures of this moment.
pub(crate) fn figures(shared: &SharedState) -> Result<SnapshotFigures, StorageError> {
    let engine = shared.catalog.engine();
    let live = engine.live_transactions();
    let newest = engine.begin(Begin::READ)?.snapshot();
    let pinned = live.iter().map(|live| commits_behind(newest, live.snapshot)).max();
    Ok(SnapshotFigures {
        open: live.len() as u64,
        oldest_age: live.iter().map(|live| live.age).max().unwrap_or_default(),
        pinned_commits: pinned.unwrap_or(0),
    })
}

fn commits_behind(newest: SnapshotTimestamp, snapshot: SnapshotTimestamp) -> u64 {
    newest.get().saturating_sub(snapshot.get())
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
    old.retain(|live| commits_behind(newest, live.snapshot) >= PINNED_COMMITS_LOGGED);
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
            commits = commits_behind(newest, live.snapshot),
            "an old snapshot pins the versions that these commits have replaced; close the cursor, end the transaction or \
             lower minSnapshotHistoryWindowInSeconds"
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
