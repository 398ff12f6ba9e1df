//! The follower: the tasks of a server that shares its store with other servers.
//!
//! | task | does |
//! |---|---|
//! | `pando-follow` | takes over the changes of other servers, and lets them make theirs ([`Catalog::follow`]) |
//! | | answers their questions (`other_servers`) |
//! | `pando-builds` | ends index builds of servers that are gone |
//!
//! The first has a thread of its own, because other servers wait for it. Where the catalog has changed,
//! users, roles and default concerns may have, too: they count as a change of it.
//!
//! In a store of one server neither task runs.
//!
//! [`Catalog::follow`]: pando_catalog::Catalog::follow

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pando_catalog::{ErrorKind, Interruption, Operation, StorageError};
use pando_environment::{Monotonic, Step, Task};
use parking_lot::Mutex;

use crate::default_concerns::DefaultConcerns;
use crate::diagnostic::other_servers;
use crate::shared_state::SharedState;

/// The time between two tries where the cluster could not be reached.
const RETRY_WAIT: Duration = Duration::from_millis(200);
/// The time between two looks for index builds of servers that are gone.
const BUILDS_PERIOD: Duration = Duration::from_secs(5);
/// The time after which logins are made anew though nobody has told of a change: the server that has made one
/// may have died before it told.
const LOGINS_PERIOD: Duration = Duration::from_secs(30);

/// See the module's head. Dropping it stops the tasks.
#[derive(Default)]
pub(crate) struct Follower {
    is_stopping: Arc<AtomicBool>,
    follow: Mutex<Option<Task>>,
    builds: Mutex<Option<Task>>,
}

/// The state of the first task.
struct Following {
    shared: Arc<SharedState>,
    version: Option<u64>,
    logins_renewed: Monotonic,
    /// Whether the last look has failed.
    is_away: bool,
}

impl Follower {
    /// Starts the tasks, if the store is shared.
    ///
    /// # Errors
    /// The system refuses a thread. The server must not serve then: the others would wait for it.
    pub fn start(shared: &Arc<SharedState>) -> Result<Follower, StorageError> {
        let follower = Follower::default();
        if !shared.catalog.is_shared() {
            return Ok(follower);
        }
        let mut following = Following {
            shared: Arc::clone(shared),
            version: shared.catalog.version(),
            logins_renewed: shared.environment.clock().monotonic(),
            is_away: false,
        };
        let follow = spawn(shared, "pando-follow", Box::new(move || following.step()))?;
        *follower.follow.lock() = Some(follow);
        let (state, is_stopping) = (Arc::clone(shared), Arc::clone(&follower.is_stopping));
        let builds = spawn(shared, "pando-builds", Box::new(move || end_builds(&state, &is_stopping)))?;
        *follower.builds.lock() = Some(builds);
        Ok(follower)
    }

    /// Stops the work that other servers do not wait for.
    pub fn stop_builds(&self, shared: &SharedState) {
        self.is_stopping.store(true, Ordering::SeqCst);
        shared.running.end_background(Interruption::Shutdown);
        let task = self.builds.lock().take();
        drop(task);
    }

    /// Stops all. The server has left the store.
    pub fn stop(&self) {
        let task = self.follow.lock().take();
        drop(task);
    }
}

fn spawn(
    shared: &SharedState,
    name: &str,
    step: Box<dyn FnMut() -> Step + Send>,
) -> Result<Task, StorageError> {
    shared.environment.spawner().spawn(name, step).map_err(|error| {
        let message = format!("cannot start the task that follows the other servers of the store: {error}");
        StorageError::with_source(ErrorKind::Io, message, error)
    })
}

impl Following {
    fn step(&mut self) -> Step {
        let wait = match self.shared.catalog.follow() {
            Ok(wait) => {
                if std::mem::take(&mut self.is_away) {
                    tracing::info!("the cluster of the store is reached again");
                }
                wait
            }
            Err(error) => {
                if !std::mem::replace(&mut self.is_away, true) {
                    tracing::warn!(%error, "the cluster of the store cannot be reached; trying again");
                }
                RETRY_WAIT
            }
        };
        self.take_over();
        self.answer_questions();
        if wait == Duration::MAX { Step::Done } else { Step::Wait(wait) }
    }

    /// Answers the questions of other servers. A failure leaves the question for the next look.
    fn answer_questions(&self) {
        let catalog = &self.shared.catalog;
        for question in catalog.questions() {
            let Some(answer) = other_servers::answer_to(&self.shared, &question) else { continue };
            if let Err(error) = catalog.answer(&question, answer.as_bytes()) {
                tracing::debug!(%error, "cannot answer another server of the store");
            }
        }
    }

    /// Takes over the settings that stand in documents.
    fn take_over(&mut self) {
        let (shared, now) = (&self.shared, self.shared.environment.clock().monotonic());
        let version = shared.catalog.version();
        let has_changed = version != self.version;
        if has_changed || now.since(self.logins_renewed) >= LOGINS_PERIOD {
            self.logins_renewed = now;
            shared.access.note_change();
        }
        if has_changed {
            // A request that changes them may wait for other servers, which wait for this task.
            let Some(_turn) = shared.default_concerns_turn.try_lock() else { return };
            match DefaultConcerns::stored(&shared.catalog, shared.started_ms) {
                Ok(stored) => shared.default_concerns.store(Arc::new(stored)),
                // The next look tries again.
                Err(error) => {
                    tracing::debug!(%error, "cannot read the default concerns");
                    return;
                }
            }
        }
        self.version = version;
    }
}

/// Ends the index builds of servers that are gone.
fn end_builds(shared: &SharedState, is_stopping: &AtomicBool) -> Step {
    let operation = Arc::new(Operation::new(shared.environment.clock()));
    let _entered = shared.running.enter_background("index builds of servers that are gone", &operation);
    if is_stopping.load(Ordering::SeqCst) {
        return Step::Done;
    }
    if let Err(error) = shared.catalog.end_abandoned_builds(&operation) {
        tracing::debug!(%error, "cannot end the index builds of servers that are gone; trying again");
    }
    Step::Wait(BUILDS_PERIOD)
}
