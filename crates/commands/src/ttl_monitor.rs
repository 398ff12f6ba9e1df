//! The monitor of TTL indexes: a background task that removes expired documents.
//!
//! # Terms
//! - *Pass*: one look at all indexes with `expireAfterSeconds`, every `ttlMonitorSleepSecs` seconds.
//! - *Removal*: the deletion of expired documents by one index, bounded in documents ([`expiry`]). It is an
//!   operation: `currentOp` lists it, and `killOp` ends it until the next pass.
//!
//! The task keeps the partitions that follow the time, too ([`PartitionKeeper`]).
//!
//! # Steps
//! 1. A pass begins with a queue of all such indexes.
//! 2. Each step of the task takes one index from the queue, and carries one removal out. An index with more
//!    expired documents goes to the end of the queue, so that a large one does not keep the others waiting.
//! 3. The pass ends with an empty queue.
//!
//! # Invariants
//! - A removal waits at the gate of writers, as every delete does. It waits for no transaction that has
//!   changed the same documents: one that stays open would keep all indexes of the store waiting.
//! - Of several servers with one store, the one that keeps house removes documents.
//! - Closing the store interrupts the removal under way and then waits for it.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pando_catalog::{Interruption, Namespace, Operation};
use pando_environment::{Monotonic, Step, Task};
use parking_lot::Mutex;

use crate::accounts::store;
use crate::connection::ConnectionState;
use crate::context::{Addressed, Attempt, Context};
use crate::crud::expiry::{self, Dropping};
use crate::partition_keeper::PartitionKeeper;
use crate::shared_state::SharedState;
use crate::write_gate::WriterKind;
use crate::{CommandError, ErrorCode};

/// The longest wait between two looks at the parameters.
const LOOK_WAIT: Duration = Duration::from_secs(1);

/// See the module's head. Dropping it stops the task.
pub(crate) struct TtlMonitor {
    shared: Arc<SharedState>,
    is_stopping: Arc<AtomicBool>,
    task: Mutex<Option<Task>>,
}

/// An index whose documents expire.
struct ExpiringIndex {
    namespace: Namespace,
    name: String,
}

/// The work of the task.
struct Passes {
    shared: Arc<SharedState>,
    is_stopping: Arc<AtomicBool>,
    /// The rest of the pass under way.
    queue: VecDeque<ExpiringIndex>,
    /// The end of the last pass.
    ended: Monotonic,
    keeper: PartitionKeeper,
}

impl TtlMonitor {
    /// Starts the task of a store.
    pub fn start(shared: &Arc<SharedState>) -> TtlMonitor {
        let is_stopping = Arc::new(AtomicBool::new(false));
        let mut passes = Passes {
            shared: Arc::clone(shared),
            is_stopping: Arc::clone(&is_stopping),
            queue: VecDeque::new(),
            ended: shared.environment.clock().monotonic(),
            keeper: PartitionKeeper::new(shared),
        };
        let started = shared.environment.spawner().spawn("pando-ttl", Box::new(move || passes.step()));
        let task = started
            .inspect_err(|error| {
                tracing::error!(
                    "cannot start the task that removes expired documents ({error}); raise the limit of threads of this \
                     user (ulimit -u) and restart"
                );
            })
            .ok();
        TtlMonitor { shared: Arc::clone(shared), is_stopping, task: Mutex::new(task) }
    }

    /// Stops the task. When this returns, it removes no more documents.
    pub fn stop(&self) {
        self.is_stopping.store(true, Ordering::SeqCst);
        self.shared.running.end_background(Interruption::Shutdown);
        let task = self.task.lock().take();
        drop(task);
    }
}

impl Passes {
    fn step(&mut self) -> Step {
        if self.is_stopping.load(Ordering::SeqCst) {
            return Step::Done;
        }
        let shared = Arc::clone(&self.shared);
        self.keeper.visit(&shared, &self.is_stopping);
        if !shared.ttl.is_enabled() || !shared.catalog.keeps_house() {
            self.queue.clear();
            return Step::Wait(LOOK_WAIT);
        }
        let now = shared.environment.clock().monotonic();
        if self.queue.is_empty() {
            let rest = shared.ttl.sleep().saturating_sub(now.since(self.ended));
            if !rest.is_zero() {
                return Step::Wait(rest.min(LOOK_WAIT));
            }
            self.queue = expiring_indexes(&shared, &self.keeper);
        }
        if let Some(index) = self.queue.pop_front() {
            self.remove(index);
        }
        if self.queue.is_empty() {
            shared.ttl.count_pass();
            self.ended = shared.environment.clock().monotonic();
        }
        Step::Again
    }

    /// Carries one removal out.
    fn remove(&mut self, index: ExpiringIndex) {
        let mut removed = 0;
        let outcome = catch_unwind(AssertUnwindSafe(|| self.try_remove(&index, &mut removed)));
        self.shared.ttl.count_removed(removed);
        let ExpiringIndex { namespace, name } = &index;
        if store::has(namespace.database(), namespace.collection()) {
            // A user may have expired. Also after a failure: a part may have been removed.
            self.shared.access.note_change();
        }
        match outcome {
            Ok(Ok(())) if removed >= expiry::REMOVAL_DOCUMENTS_MAX => self.queue.push_back(index),
            Ok(Ok(())) => {}
            Ok(Err(CommandError::Failed(failure))) if is_ended_from_outside(failure.code) => {}
            Ok(Err(error)) => {
                tracing::warn!(%error, %namespace, index = name, "cannot remove expired documents; trying again in the next pass");
            }
            Err(_) => tracing::error!(
                %namespace,
                index = name,
                "the removal of expired documents has panicked, and runs again later; report this defect with the log \
                 line of the panic"
            ),
        }
    }

    fn try_remove(&self, index: &ExpiringIndex, removed: &mut u64) -> Result<(), CommandError> {
        let shared = &self.shared;
        let clock = shared.environment.clock();
        let operation = Arc::new(Operation::new(clock));
        let entered = shared.running.enter_background("TTLMonitor", &operation);
        if self.is_stopping.load(Ordering::SeqCst) {
            return Ok(());
        }
        let attempt = Attempt::of_server(entered.record(), clock.monotonic());
        let addressed = Addressed::of_server(index.namespace.database());
        let mut connection = ConnectionState::new(0, "");
        let mut context = Context::new(shared, &mut connection, attempt, addressed);
        expiry::list(&mut context, &index.namespace, &index.name)?;
        let _pass = shared.write_gate.enter(WriterKind::Alone, context.caller(), &**clock)?;
        if expiry::drop_partitions(&context, &index.namespace, &index.name, removed)? == Dropping::Later {
            return Ok(());
        }
        expiry::remove(&mut context, &index.namespace, &index.name, removed)
    }
}

/// Whether a removal was ended on purpose.
fn is_ended_from_outside(code: ErrorCode) -> bool {
    code.is_interruption() || code == ErrorCode::QueryPlanKilled
}

/// All indexes of the store whose documents expire.
fn expiring_indexes(shared: &SharedState, keeper: &PartitionKeeper) -> VecDeque<ExpiringIndex> {
    let catalog = &shared.catalog;
    let mut found = VecDeque::new();
    for database in catalog.databases() {
        for collection in catalog.collections(&database) {
            let by_schedule = keeper.may_drop(shared, &collection).then(|| expiry::by_schedule(&collection));
            for name in expiry::expiring_indexes(&collection).into_iter().chain(by_schedule.flatten()) {
                found.push_back(ExpiringIndex { namespace: collection.namespace().clone(), name });
            }
        }
    }
    found
}
