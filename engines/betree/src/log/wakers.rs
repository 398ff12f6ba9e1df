//! Wakers: callbacks for callers that wait for a record to become logged or durable, without blocking a
//! thread.

use std::collections::BTreeMap;

use pando_environment::sync::Mutex;
use pando_storage::Lsn;

use super::LogError;

/// A callback. It is called once, on any thread, when the record has arrived or never will. It must be fast.
pub(crate) type LogWaker = Box<dyn FnOnce(Result<(), LogError>) + Send>;

/// The wakers, by the record that they wait for.
#[derive(Default)]
pub(super) struct Wakers {
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    /// The second part of the key keeps wakers of the same record apart, in their order.
    wakers: BTreeMap<(Lsn, u64), LogWaker>,
    next: u64,
}

impl Wakers {
    /// Adds one, and returns their number.
    pub(super) fn add(&self, lsn: Lsn, waker: LogWaker) -> usize {
        let mut waiting = self.waiting.lock();
        let number = waiting.next;
        waiting.next += 1;
        waiting.wakers.insert((lsn, number), waker);
        waiting.wakers.len()
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.lock().wakers.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.lock().wakers.is_empty()
    }

    /// Calls the wakers whose record has been reached.
    pub(super) fn serve(&self, reached: Lsn) {
        let served = {
            let mut waiting = self.waiting.lock();
            match waiting.wakers.first_key_value() {
                Some(((lsn, _), _)) if *lsn <= reached => {}
                _ => return,
            }
            let later = waiting.wakers.split_off(&(reached, u64::MAX));
            std::mem::replace(&mut waiting.wakers, later)
        };
        served.into_values().for_each(|waker| waker(Ok(())));
    }

    /// Calls all with an error.
    pub(super) fn fail(&self, error: impl Fn() -> LogError) {
        let failed = std::mem::take(&mut self.waiting.lock().wakers);
        failed.into_values().for_each(|waker| waker(Err(error())));
    }
}
