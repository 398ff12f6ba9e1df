//! Timers for replies that wait for a moment, such as that of an awaitable `hello`. No thread waits for each
//! of them: one task wakes all that are due.

use std::collections::BTreeMap;
use std::sync::Arc;

use pando_catalog::{DurabilityWaker, StorageError};
use pando_environment::{Environment, Monotonic, Step, Task};
use parking_lot::Mutex;

use crate::reply_wait::ReplyWait;

/// The waits of a store.
pub(crate) struct ReplyTimers {
    environment: Environment,
    state: Arc<Mutex<State>>,
    /// Started with the first wait.
    task: Mutex<Option<Task>>,
}

/// A wait, by its moment, and by its number where several have the same one.
pub(crate) type TimerKey = (Monotonic, u64);

#[derive(Default)]
struct State {
    waits: BTreeMap<TimerKey, DurabilityWaker>,
    last_number: u64,
    is_closed: bool,
}

impl ReplyTimers {
    pub fn new(environment: &Environment) -> ReplyTimers {
        ReplyTimers { environment: environment.clone(), state: Arc::default(), task: Mutex::default() }
    }

    /// Calls `waker` at this moment; at once where waits are over.
    pub fn add(&self, moment: Monotonic, waker: DurabilityWaker) -> TimerKey {
        let mut state = self.state.lock();
        state.last_number += 1;
        let key = (moment, state.last_number);
        if state.is_closed {
            drop(state);
            waker(Ok(()));
            return key;
        }
        state.waits.insert(key, waker);
        let is_first = state.waits.first_key_value().is_some_and(|(first, _)| *first == key);
        drop(state);
        if is_first {
            self.wake();
        }
        key
    }

    /// Forgets a wait that has not ended.
    pub fn cancel(&self, key: TimerKey) {
        let cancelled = self.state.lock().waits.remove(&key);
        drop(cancelled);
    }

    /// Has the task look at the waits, because the first of them is a new one.
    fn wake(&self) {
        let mut task = self.task.lock();
        match &*task {
            Some(task) => task.wake(),
            None => {
                let (environment, state) = (self.environment.clone(), Arc::clone(&self.state));
                let step = Box::new(move || step(&environment, &state));
                match self.environment.spawner().spawn("pando-timers", step) {
                    Ok(started) => *task = Some(started),
                    Err(error) => {
                        tracing::warn!(%error, "no thread for timers: replies are sent at once, and waits for keys end");
                        drop(task);
                        self.release();
                    }
                }
            }
        }
    }

    /// Ends all waits.
    fn release(&self) {
        let waits = std::mem::take(&mut self.state.lock().waits);
        waits.into_values().for_each(|waker| waker(Ok(())));
    }

    /// Ends all waits, also those that still come.
    pub fn close(&self) {
        self.state.lock().is_closed = true;
        self.release();
    }

    /// Ends the task.
    pub fn stop(&self) {
        self.close();
        drop(self.task.lock().take());
    }
}

/// Wakes the waits that are due.
fn step(environment: &Environment, state: &Mutex<State>) -> Step {
    loop {
        let now = environment.clock().monotonic();
        let mut state = state.lock();
        let Some(first) = state.waits.first_entry() else { return Step::Sleep };
        let moment = first.key().0;
        if moment > now {
            return Step::Wait(moment.since(now));
        }
        let waker = first.remove();
        drop(state);
        waker(Ok(()));
    }
}

/// A reply that waits for a moment.
pub(crate) struct TimerWait {
    pub timers: Arc<ReplyTimers>,
    pub moment: Monotonic,
}

impl ReplyWait for TimerWait {
    fn notify(self: Box<Self>, waker: DurabilityWaker) {
        self.timers.add(self.moment, waker);
    }

    fn wait(self: Box<Self>) -> Result<(), StorageError> {
        let (sender, receiver) = std::sync::mpsc::channel();
        self.timers.add(self.moment, Box::new(move |outcome| drop(sender.send(outcome))));
        receiver.recv().unwrap_or(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn waits_end_in_their_order_and_all_of_them_at_the_close() {
        let environment = Environment::real();
        let timers = Arc::new(ReplyTimers::new(&environment));
        let now = environment.clock().monotonic();
        let wait = |milliseconds| {
            let moment = now.plus(Duration::from_millis(milliseconds));
            Box::new(TimerWait { timers: Arc::clone(&timers), moment })
        };
        let (sender, receiver) = std::sync::mpsc::channel();
        for milliseconds in [40, 20, 60_000] {
            let sender = sender.clone();
            wait(milliseconds).notify(Box::new(move |_| sender.send(milliseconds).unwrap()));
        }
        assert_eq!(receiver.recv().unwrap(), 20);
        assert_eq!(receiver.recv().unwrap(), 40);
        let begun = Instant::now();
        timers.close();
        assert_eq!(receiver.recv().unwrap(), 60_000);
        wait(60_000).wait().unwrap();
        assert!(begun.elapsed() < Duration::from_secs(10));
        timers.stop();
    }
}
