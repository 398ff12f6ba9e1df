//! A signal that ends one wait: fired by any thread, awaited by a thread or by a callback.
//!
//! # Invariants
//! - Only the first firing counts.
//! - No firing is lost: a callback that is set after it is called at once.

use pando_environment::sync::{Condvar, Mutex};

type Callback = Box<dyn FnOnce() + Send>;

/// See the module's head.
#[derive(Default)]
pub struct WaitSignal {
    state: Mutex<State>,
    fired: Condvar,
}

#[derive(Default)]
struct State {
    is_fired: bool,
    callback: Option<Callback>,
}

impl WaitSignal {
    /// Ends the wait.
    pub fn fire(&self) {
        let mut state = self.state.lock();
        state.is_fired = true;
        let callback = state.callback.take();
        drop(state);
        self.fired.notify_all();
        if let Some(callback) = callback {
            callback();
        }
    }

    /// Whether the wait is over.
    pub fn is_fired(&self) -> bool {
        self.state.lock().is_fired
    }

    /// Calls back at the end of the wait, once; at once if it is over.
    pub fn when_fired(&self, callback: impl FnOnce() + Send + 'static) {
        let mut state = self.state.lock();
        if !state.is_fired {
            state.callback = Some(Box::new(callback));
            return;
        }
        drop(state);
        callback();
    }

    /// Waits on this thread.
    pub fn wait(&self) {
        let mut state = self.state.lock();
        while !state.is_fired {
            self.fired.wait(&mut state);
        }
    }
}

impl std::fmt::Debug for WaitSignal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "WaitSignal(fired: {})", self.is_fired())
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn a_callback_is_called_once_before_or_after_the_firing() {
        let calls = Arc::new(AtomicUsize::new(0));
        for is_late in [false, true] {
            let signal = WaitSignal::default();
            let counted = Arc::clone(&calls);
            let count = move || {
                counted.fetch_add(1, Ordering::SeqCst);
            };
            if is_late {
                signal.fire();
                signal.when_fired(count);
            } else {
                signal.when_fired(count);
                signal.fire();
            }
            signal.fire();
            signal.wait();
        }
        assert_eq!(calls.load(Ordering::SeqCst), 2);
    }
}
