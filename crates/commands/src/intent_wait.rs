//! The wait of a statement for a key that another transaction has claimed.
//!
//! # Terms
//! - *Statement wait* ([`StatementWait`]): the ticket of a statement, and its place in the queue of a key.
//!   The connection keeps it until the request ends, because the request may be handled again in between.
//! - *Intent wait* ([`IntentWait`]): one wait of it. A server waits without a thread, and handles the request
//!   again at its end; a caller in the same process waits on its thread.
//!
//! # Ends of a wait
//! The key is reserved for the statement; the statement has lost; its time is over; the operation is
//! interrupted, or its client is gone. The statement runs again in each case, and finds out which it was.
//!
//! # Not here
//! The decision whether a statement waits: `unit_of_work`. The queues: [`Intents`](pando_catalog::Intents).

use std::sync::Arc;
use std::time::Duration;

use pando_catalog::{
    Contest, Contested, DurabilityWaker, OperationWait, SnapshotTimestamp, StorageError, Ticket, WaitRequest,
    WaitSignal,
};
use pando_environment::Monotonic;

use crate::operations::{ConnectionRecord, ListedWait};
use crate::reply_wait::ReplyWait;
use crate::shared_state::SharedState;

/// The first pause of a statement that has its key, and whose snapshot is too old. Each further one is twice
/// as long.
const UNSEEN_PAUSE_MIN: Duration = Duration::from_micros(50);
/// The longest such pause.
const UNSEEN_PAUSE_MAX: Duration = Duration::from_millis(5);
/// The time after which such a statement gives up.
const UNSEEN_TIME_MAX: Duration = Duration::from_secs(100);

/// See the module's head.
pub(crate) struct StatementWait {
    shared: Arc<SharedState>,
    ticket: Ticket,
    /// The time after which the statement gives up, if there is a limit.
    deadline: Option<Monotonic>,
    /// The key whose queue it stands in, or that is reserved for it.
    place: Option<Arc<Contested>>,
    /// The request, listed as one that waits.
    listed: Option<ListedWait>,
    unseen: Option<UnseenCommit>,
}

/// A commit that keeps a statement from the key which is reserved for it, because new snapshots do not see it
/// yet. No signal tells of their sight, so the statement tries again after growing pauses.
#[derive(Clone, Copy, Debug)]
struct UnseenCommit {
    met: Monotonic,
    pause: Duration,
}

impl StatementWait {
    /// The first wait of a statement; `None` where the engine has no queues.
    pub fn begin(shared: &Arc<SharedState>, limit: Option<Duration>) -> Option<StatementWait> {
        let ticket = shared.catalog.engine().intents()?.new_ticket();
        let now = shared.environment.clock().monotonic();
        let deadline = limit.map(|limit| now.plus(limit));
        Some(StatementWait {
            shared: Arc::clone(shared),
            ticket,
            deadline,
            place: None,
            listed: None,
            unseen: None,
        })
    }

    /// The place of the statement in the order of arrival.
    pub fn ticket(&self) -> Ticket {
        self.ticket
    }

    /// Whether its time is over.
    pub fn is_over(&self, now: Monotonic) -> bool {
        let is_unseen_for_long = |unseen: UnseenCommit| now.since(unseen.met) >= UNSEEN_TIME_MAX;
        self.deadline.is_some_and(|deadline| deadline <= now) || self.unseen.is_some_and(is_unseen_for_long)
    }

    /// Waits in the queue of a key. A place in the queue of another one is given up first.
    pub fn enqueue(
        &mut self,
        contested: &Arc<Contested>,
        kept_snapshot: Option<SnapshotTimestamp>,
        record: &Arc<ConnectionRecord>,
    ) -> IntentWait {
        let engine = self.shared.catalog.engine();
        if let Some(intents) = engine.intents() {
            let place = self.place.take();
            let was_here = place.as_ref().is_some_and(|place| place.is_same_key(contested));
            if let Some(left) = place.filter(|_| !was_here) {
                intents.leave(self.ticket, &left);
            }
            self.place = Some(Arc::clone(contested));
            let signal = Arc::new(WaitSignal::default());
            let request = WaitRequest {
                contested: Arc::clone(contested),
                ticket: self.ticket,
                kept_snapshot,
                started_ms: self.shared.now_ms(),
                signal: Arc::clone(&signal),
            };
            self.shared.wait_figures.begin();
            intents.enqueue(&request);
            self.unseen = match self.unseen {
                _ if contested.contest != Contest::Committed || !was_here => None,
                None => Some(UnseenCommit { met: self.now(), pause: UNSEEN_PAUSE_MIN }),
                Some(UnseenCommit { met, pause }) => {
                    Some(UnseenCommit { met, pause: (pause * 2).min(UNSEEN_PAUSE_MAX) })
                }
            };
            // The key was the statement's before, and is so again.
            return match self.unseen.filter(|_| signal.is_fired()) {
                Some(UnseenCommit { pause, .. }) => {
                    let mut wait = self.wait_for(Arc::default(), record);
                    wait.end_by(self.now().plus(pause));
                    wait
                }
                None => self.wait_for(signal, record),
            };
        }
        let signal = Arc::new(WaitSignal::default());
        signal.fire();
        self.wait_for(signal, record)
    }

    fn now(&self) -> Monotonic {
        self.shared.environment.clock().monotonic()
    }

    fn wait_for(&self, signal: Arc<WaitSignal>, record: &Arc<ConnectionRecord>) -> IntentWait {
        let (shared, record) = (Arc::clone(&self.shared), Arc::clone(record));
        let began = self.now();
        IntentWait { shared, record, signal, began, deadline: self.deadline }
    }

    /// Has lists of operations show the request while it waits without a thread. It keeps its place there
    /// where it is handled again on an event loop, which takes no time.
    pub fn list(&mut self, list: impl FnOnce() -> ListedWait) {
        self.listed.get_or_insert_with(list);
    }

    /// The request is handled again on a thread that may wait, and is listed as such.
    pub fn end_list(&mut self) {
        self.listed = None;
    }
}

impl Drop for StatementWait {
    fn drop(&mut self) {
        if let (Some(place), Some(intents)) = (&self.place, self.shared.catalog.engine().intents()) {
            intents.leave(self.ticket, place);
        }
    }
}

impl std::fmt::Debug for StatementWait {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "StatementWait({:?})", self.ticket)
    }
}

/// See the module's head.
pub(crate) struct IntentWait {
    shared: Arc<SharedState>,
    record: Arc<ConnectionRecord>,
    signal: Arc<WaitSignal>,
    began: Monotonic,
    deadline: Option<Monotonic>,
}

impl IntentWait {
    /// Ends the wait at this moment at the latest.
    fn end_by(&mut self, moment: Monotonic) {
        self.deadline = self.deadline.into_iter().chain([moment]).min();
    }

    /// Waits on this thread until the end of the wait, or until this moment.
    pub fn wait_until(mut self, moment: Option<Monotonic>) {
        moment.into_iter().for_each(|moment| self.end_by(moment));
        let record = Arc::clone(&self.record);
        let _waiting = record.operation().waiting(OperationWait::Intent);
        let signal = Arc::clone(&self.signal);
        let ended = Arc::new(WaitSignal::default());
        let at_end = Arc::clone(&ended);
        self.arm(move || at_end.fire());
        signal.wait();
        ended.wait();
    }

    /// Has interruptions and timers end the wait, and calls back at its end.
    fn arm(self, at_end: impl FnOnce() + Send + 'static) {
        let IntentWait { shared, record, signal, began, deadline } = self;
        let operation = record.operation();
        operation.signal_by(&signal);
        // After `signal_by`, so that a client which goes meanwhile is not missed.
        let end = operation.time_to_end().map(|left| shared.environment.clock().monotonic().plus(left));
        let timer = deadline.into_iter().chain(end).min().filter(|_| !signal.is_fired()).map(|moment| {
            let timed = Arc::clone(&signal);
            shared.wait_timers.add(moment, Box::new(move |_| timed.fire()))
        });
        signal.when_fired(move || {
            if let Some(timer) = timer {
                shared.wait_timers.cancel(timer);
            }
            record.operation().end_signal();
            shared.wait_figures.end(shared.environment.clock().monotonic().since(began));
            at_end();
        });
    }
}

impl ReplyWait for IntentWait {
    fn notify(self: Box<Self>, waker: DurabilityWaker) {
        self.arm(move || waker(Ok(())));
    }

    fn wait(self: Box<Self>) -> Result<(), StorageError> {
        self.wait_until(None);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use pando_catalog::{Operation, SharedEngine, TransactionId, TreeId};
    use pando_environment::Environment;
    use pando_storage::{Claims, CommitTimestamp};

    use super::*;
    use crate::CommandsOptions;

    #[test]
    fn a_statement_pauses_while_no_snapshot_sees_the_commit_before_it() {
        let environment = Environment::real();
        let engine: SharedEngine = Arc::new(pando_memory::MemoryEngine::new(&environment));
        let commands =
            crate::Commands::open(engine, environment.clone(), CommandsOptions::default()).unwrap();
        let shared = commands.shared();
        let intents = shared.catalog.engine().intents().expect("the engine has queues");
        let (tree, snapshot) = (TreeId::new(900), SnapshotTimestamp::new(0));
        let claims = |owner| Claims::new(TransactionId::new(owner), snapshot);
        let mut holder = claims(1 << 40);
        holder.claim(intents, tree, b"a").expect("nobody has it");
        holder.commit(intents, CommitTimestamp::new(1 << 40));
        let lost = claims((1 << 40) + 1).claim(intents, tree, b"a").expect_err("its snapshot is too old");
        let contested = lost.contested_key().expect("the key is told");
        assert_eq!(contested.contest, Contest::Committed);
        let operation = Arc::new(Operation::new(environment.clock()));
        operation.begin();
        let record = Arc::new(ConnectionRecord::new(1, "test", operation));
        let mut wait = StatementWait::begin(shared, None).expect("the engine has queues");
        let now = environment.clock().monotonic();
        let first = wait.enqueue(contested, None, &record);
        assert!(first.signal.is_fired(), "the key is free");
        first.wait_until(None);
        for pause in [50, 100, 200] {
            let again = wait.enqueue(contested, None, &record);
            assert!(!again.signal.is_fired());
            let begun = again.began;
            again.wait_until(None);
            assert!(environment.clock().monotonic().since(begun) >= Duration::from_micros(pause));
        }
        assert!(!wait.is_over(now) && wait.is_over(wait.now().plus(UNSEEN_TIME_MAX)));
        drop(wait);
        assert!(intents.waits().is_empty());
    }
}
