//! Housekeeping: the periodic work of a store, in the server and in an application's own process alike.
//!
//! 1. [`CHORES`] lists the work, each with its period.
//! 2. One background task runs the chores that are due, and sleeps until the next one is.
//! 3. `serverStatus` shows the figures of each.
//! 4. Closing the store stops the task, after the chore under way.
//!
//! A chore that panics is counted and logged, and runs again when it is due.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use pando_catalog::{Interruption, SharedTime};
use pando_environment::{Step, Task};
use parking_lot::Mutex;

use crate::clock_store;
use crate::departures::{LostClient, host_of};
use crate::identity::SESSION_TIMEOUT_MINUTES;
use crate::sessions;
use crate::shared_state::SharedState;
use crate::snapshot_watch;
use crate::system_profile;

/// A piece of periodic work.
struct Chore {
    name: &'static str,
    period: Duration,
    run: fn(&SharedState),
}

/// All periodic work.
const CHORES: &[Chore] = &[
    Chore { name: "clusterClock", period: clock_store::STORE_PERIOD, run: clock_store::store },
    Chore {
        name: "cursorExpiry",
        period: Duration::from_secs(5),
        run: |shared| shared.cursors.expire(shared.now_ms()),
    },
    Chore { name: "departedClients", period: Duration::from_secs(1), run: tell_departed_clients },
    Chore { name: "profileWrites", period: Duration::from_secs(1), run: system_profile::write_queue },
    Chore {
        name: "sessionExpiry",
        period: Duration::from_secs(60),
        run: |shared| {
            let minutes = u64::try_from(SESSION_TIMEOUT_MINUTES).unwrap_or(0);
            let limit = Duration::from_secs(60 * minutes);
            shared.cursors.expire_sessions(shared.now_ms(), limit);
            expire_sessions(shared, limit);
        },
    },
    Chore {
        name: "snapshotExpiry",
        period: Duration::from_secs(1),
        run: |shared| shared.held_snapshots.expire(shared.environment.clock().monotonic()),
    },
    Chore { name: "snapshotWatch", period: snapshot_watch::WATCH_PERIOD, run: snapshot_watch::run },
    Chore { name: "transactionExpiry", period: Duration::from_secs(1), run: expire_transactions },
];

/// How far the clocks of servers that share a store may lie apart before a record goes too early.
const CLOCKS_APART_MS: i64 = 3_600_000;

/// Ends the transactions that have outlived their time limit.
fn expire_transactions(shared: &SharedState) {
    let (now, lifetime) = (shared.environment.clock().monotonic(), shared.sessions.lifetime());
    let (ended, busy) = shared.sessions.end_transactions(|_, open| now.since(open.begun.at) >= lifetime);
    if !ended.is_empty() {
        let sessions: Vec<_> = ended.iter().map(|open| open.session).collect();
        shared.running.end_waits_of(&sessions);
    }
    for open in ended {
        tracing::info!(
            session = ?open.session,
            number = open.number,
            client = open.begun.connection.peer(),
            "ended a transaction after {} seconds; transactionLifetimeLimitSeconds is the limit",
            lifetime.as_secs()
        );
        if open.has_cursors() {
            shared.cursors.end_transaction(open.session, open.number);
        }
    }
    if !busy.is_empty() {
        shared.running.interrupt(Interruption::Killed, |request| {
            request.session.is_some_and(|session| busy.contains(&session))
        });
    }
}

/// Tells the log of clients that left after their first `hello` and did not come back.
fn tell_departed_clients(shared: &SharedState) {
    let is_connected = |host: &str| {
        shared.running.connections().iter().any(|connection| host_of(connection.record.peer()) == host)
    };
    for lost in shared.departures.judge(shared.environment.clock().monotonic(), is_connected) {
        let LostClient { host, client, address } = lost;
        tracing::warn!(
            "a client on {host} ({client}) left after its first hello: perhaps it cannot reach {address}, the address \
             that this server gave it; name one that it can reach with --advertise, or set directConnection=true in \
             its connection string"
        );
    }
}

/// Forgets the sessions that were not used for a time, with their records.
fn expire_sessions(shared: &SharedState, limit: Duration) {
    let limit_ms = i64::try_from(limit.as_millis()).unwrap_or(i64::MAX);
    let since_ms = shared.now_ms().saturating_sub(limit_ms);
    let is_used = shared.sessions.forget_before(since_ms);
    if !shared.catalog.keeps_house() {
        return;
    }
    let records_since_ms = records_since(since_ms, shared.catalog.shared_time(), limit_ms);
    match sessions::remove_records(&shared.catalog, records_since_ms, &is_used) {
        Ok(()) => {}
        // A session that is used again at this moment keeps its record, and the next run looks once more.
        Err(error) if error.is_conflict() => {}
        Err(error) => {
            tracing::warn!(%error, "cannot remove the records of old sessions; trying again in a minute")
        }
    }
}

/// The moment before which the record of a session is old. Servers that share a store date records by their
/// own clocks. So the moment is one of the clock that they share, and records are kept for longer.
fn records_since(own_ms: i64, shared: Option<SharedTime>, limit_ms: i64) -> i64 {
    let Some(now) = shared else { return own_ms };
    let now_ms = i64::try_from(now.millis()).unwrap_or(i64::MAX);
    now_ms.saturating_sub(limit_ms).saturating_sub(CLOCKS_APART_MS)
}

/// The names of all chores.
pub(crate) fn chore_names() -> impl Iterator<Item = &'static str> {
    CHORES.iter().map(|chore| chore.name)
}

/// The task that runs the chores. Dropping it stops them.
pub(crate) struct Housekeeper {
    task: Mutex<Option<Task>>,
}

impl Housekeeper {
    /// Starts the chores of a store.
    pub fn start(shared: &Arc<SharedState>) -> Housekeeper {
        let keeper = Arc::clone(shared);
        let began = shared.environment.clock().monotonic();
        for (chore, figures) in CHORES.iter().zip(shared.housekeeping.iter()) {
            figures.set_next(began.plus(chore.period));
        }
        let started = shared.environment.spawner().spawn("pando-house", Box::new(move || step(&keeper)));
        let task = started
            .inspect_err(|error| {
                tracing::error!(
                    "cannot start the task that closes unused cursors ({error}); raise the limit of threads of this user \
                     (ulimit -u) and restart"
                );
            })
            .ok();
        Housekeeper { task: Mutex::new(task) }
    }

    /// Stops the chores. When this returns, none runs any more.
    pub fn stop(&self) {
        let task = self.task.lock().take();
        drop(task);
    }
}

/// Runs the chores that are due.
fn step(shared: &SharedState) -> Step {
    let clock = shared.environment.clock();
    let mut wait = Duration::MAX;
    for (chore, figures) in CHORES.iter().zip(shared.housekeeping.iter()) {
        let begun = clock.monotonic();
        if figures.next() <= begun {
            let outcome = catch_unwind(AssertUnwindSafe(|| (chore.run)(shared)));
            let ended = clock.monotonic();
            figures.add_run(ended.since(begun), ended.plus(chore.period));
            if outcome.is_err() {
                figures.add_failure();
                tracing::error!(
                    "the periodic work {} has panicked, and runs again later; report this defect with the log line of the \
                     panic",
                    chore.name
                );
            }
        }
        wait = wait.min(figures.next().since(clock.monotonic()));
    }
    Step::Wait(wait)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_other_servers_are_kept_though_the_clock_of_this_one_is_ahead() {
        const HOUR: i64 = 3_600_000;
        assert_eq!(records_since(5 * HOUR, None, HOUR / 2), 5 * HOUR, "one server has its own clock");
        let noon = SharedTime::of_parts(12 * HOUR as u64, 0);
        // The clock of this server shows a time of tomorrow.
        assert_eq!(records_since(40 * HOUR, Some(noon), HOUR / 2), 10 * HOUR + HOUR / 2);
    }
}
