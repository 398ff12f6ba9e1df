//! The wait of a `getMore` at the end of a capped collection, for the next commit to it.
//!
//! # Steps
//! 1. The `getMore` has found nothing. It hands a signal to the collection, which fires it at the next commit
//!    ([`Collection::when_tail_changes`](pando_catalog::Collection::when_tail_changes)), and notes the signal
//!    with the cursor.
//! 2. The server waits without a thread, and handles the request again at the end of the wait. A caller in
//!    the same process waits on its thread.
//!
//! # Ends of a wait
//! A commit; the time of the `getMore`; the end of the cursor (killed, its collection dropped or renamed); an
//! interruption; the client is gone. The request is handled again in each case, and finds out which it was.

use std::sync::Arc;

use pando_catalog::{DurabilityWaker, OperationWait, StorageError, WaitSignal};
use pando_environment::Monotonic;

use crate::cursor_facts::CursorFacts;
use crate::operations::ConnectionRecord;
use crate::reply_wait::ReplyWait;
use crate::shared_state::SharedState;

/// See the module's head.
pub(crate) struct TailWait {
    shared: Arc<SharedState>,
    record: Arc<ConnectionRecord>,
    facts: Arc<CursorFacts>,
    signal: Arc<WaitSignal>,
    deadline: Monotonic,
}

impl TailWait {
    /// A wait of a cursor until this moment. The caller hands its [signal](TailWait::signal) to the
    /// collection.
    pub fn new(
        shared: &Arc<SharedState>,
        record: &Arc<ConnectionRecord>,
        facts: &Arc<CursorFacts>,
        deadline: Monotonic,
    ) -> TailWait {
        let signal = Arc::new(WaitSignal::default());
        facts.begin_wait(&signal, record.id());
        let (shared, record, facts) = (Arc::clone(shared), Arc::clone(record), Arc::clone(facts));
        TailWait { shared, record, facts, signal, deadline }
    }

    /// The signal that ends it.
    pub fn signal(&self) -> &Arc<WaitSignal> {
        &self.signal
    }

    /// Waits on this thread.
    pub fn wait_here(self) {
        let record = Arc::clone(&self.record);
        let _waiting = record.operation().waiting(OperationWait::Tail);
        let ended = Arc::new(WaitSignal::default());
        let at_end = Arc::clone(&ended);
        self.arm(move || at_end.fire());
        ended.wait();
    }

    /// Has interruptions and timers end the wait, and calls back at its end. The callback runs under the lock
    /// of whoever fires the signal, and so must not take one of the record.
    fn arm(self, at_end: impl FnOnce() + Send + 'static) {
        let TailWait { shared, record, facts, signal, deadline } = self;
        let operation = record.operation();
        operation.signal_by(&signal);
        // After `signal_by`, so that a client which goes meanwhile is not missed.
        let end = operation.time_to_end().map(|left| shared.environment.clock().monotonic().plus(left));
        let moment = end.map_or(deadline, |end| end.min(deadline));
        let timer = (!signal.is_fired()).then(|| {
            let timed = Arc::clone(&signal);
            shared.wait_timers.add(moment, Box::new(move |_| timed.fire()))
        });
        signal.when_fired(move || {
            if let Some(timer) = timer {
                shared.wait_timers.cancel(timer);
            }
            record.operation().end_signal();
            facts.end_wait();
            at_end();
        });
    }
}

impl ReplyWait for TailWait {
    fn notify(self: Box<Self>, waker: DurabilityWaker) {
        self.arm(move || waker(Ok(())));
    }

    fn wait(self: Box<Self>) -> Result<(), StorageError> {
        self.wait_here();
        Ok(())
    }
}
