//! The follower: the tasks of a server that shares its store with other servers.
//!
//! | task | does |
//! |---|---|
//! | `pando-follow` | takes over the changes of other servers, and lets them make theirs ([`Catalog::follow`]) |
//! | | answers their questions (`other_servers`) |
//! | `pando-settings` | reads the default concerns anew where the catalog has changed |
//! | `pando-builds` | ends index builds of servers that are gone |
//!
//! The first has a thread of its own, because other servers wait for it: it reads nothing but the tree in
//! which they meet, and the catalog. Where the catalog has changed, users, roles and default concerns may
//! have, too: they count as a change of it.
//!
//! In a store of one server none of the tasks runs.
//!
//! [`Catalog::follow`]: pando_catalog::Catalog::follow

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pando_catalog::{ErrorKind, Interruption, Operation, StorageError};
use pando_environment::{Monotonic, Step, Task, TaskWaker};
use parking_lot::Mutex;

use crate::default_concerns::DefaultConcerns;
use crate::diagnostic::other_servers;
use crate::shared_state::SharedState;

/// The time between two tries where the cluster could not be reached.
const RETRY_WAIT: Duration = Duration::from_millis(200);
/// The longest time between two looks for changed settings. The first task asks for one when the catalog has
/// changed.
const SETTINGS_PERIOD: Duration = Duration::from_secs(5);
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
    settings: Mutex<Option<Task>>,
    builds: Mutex<Option<Task>>,
}

/// The state of the first task.
struct Following {
    shared: Arc<SharedState>,
    version: Option<u64>,
    logins_renewed: Monotonic,
    /// Whether the last look has failed.
    is_away: bool,
    settings: TaskWaker,
}

/// The state of the second task.
struct Settings {
    shared: Arc<SharedState>,
    /// The version of the catalog by which they were read.
    version: Option<u64>,
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
        let version = shared.catalog.version();
        let mut settings = Settings { shared: Arc::clone(shared), version };
        let settings = spawn(shared, "pando-settings", Box::new(move || settings.step()))?;
        let mut following = Following {
            shared: Arc::clone(shared),
            version,
            logins_renewed: shared.environment.clock().monotonic(),
            is_away: false,
            settings: settings.waker(),
        };
        *follower.settings.lock() = Some(settings);
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
        for task in [&self.builds, &self.settings] {
            let task = task.lock().take();
            drop(task);
        }
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
        self.note_changes();
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

    /// Has the settings that stand in documents be read anew.
    fn note_changes(&mut self) {
        let (shared, now) = (&self.shared, self.shared.environment.clock().monotonic());
        let version = shared.catalog.version();
        let has_changed = version != self.version;
        if has_changed || now.since(self.logins_renewed) >= LOGINS_PERIOD {
            self.logins_renewed = now;
            shared.access.note_change();
        }
        if has_changed {
            self.version = version;
            self.settings.wake();
        }
    }
}

impl Settings {
    /// Takes over the default concerns where the catalog has changed. The cluster may let this wait.
    fn step(&mut self) -> Step {
        let shared = &self.shared;
        let version = shared.catalog.version();
        if version == self.version {
            return Step::Wait(SETTINGS_PERIOD);
        }
        // A request that changes them has its own ones.
        let Some(_turn) = shared.default_concerns_turn.try_lock() else { return Step::Wait(RETRY_WAIT) };
        match DefaultConcerns::stored(&shared.catalog, shared.started_ms) {
            Ok(stored) => {
                shared.default_concerns.store(Arc::new(stored));
                self.version = version;
                Step::Wait(SETTINGS_PERIOD)
            }
            Err(error) => {
                tracing::debug!(%error, "cannot read the default concerns; trying again");
                Step::Wait(RETRY_WAIT)
            }
        }
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
