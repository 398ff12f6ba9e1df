//! The hand-off of a connection's session between its I/O thread and a thread of the blocking pool.
//!
//! The pool thread sends the reply itself and then leaves the session in the I/O thread's inbox. As a rule
//! that needs no wake-up. The client reads the reply, its next request wakes the I/O thread, and the thread
//! finds the session in its inbox. Only if the client's next bytes come first does the I/O thread *await* the
//! session, and the pool thread wakes it:
//!
//! ```text
//!             submit               await_return             complete
//!   (HOME) ----------> IN_POOL ------------------> AWAITED ---------> HOME, and the I/O thread is woken
//!                         \                        complete
//!                          \----------------------------------------> HOME, and no thread is woken
//! ```
//!
//! Invariant: the session is in the inbox before `complete`. So a thread that sees HOME finds it there.

use std::sync::atomic::{AtomicU8, Ordering};

const HOME: u8 = 0;
const IN_POOL: u8 = 1;
const AWAITED: u8 = 2;

/// The whereabouts of a connection's session.
#[derive(Debug, Default)]
pub(crate) struct PoolHandoff {
    state: AtomicU8,
}

/// Whether the I/O thread has to be woken after a completed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wakeup {
    /// It awaits the session.
    Needed,
    /// It finds the session when it wakes for something else.
    NotNeeded,
}

impl PoolHandoff {
    /// The I/O thread submits a request, and the session with it.
    pub(crate) fn submit(&self) {
        self.state.store(IN_POOL, Ordering::Release);
    }

    /// The I/O thread has more to do for the connection. A session that is still in the pool wakes it on its
    /// return; one that is in the inbox already is found there before the thread sleeps.
    pub(crate) fn await_return(&self) {
        // Failing means that the session is back or awaited already.
        let _ = self.state.compare_exchange(IN_POOL, AWAITED, Ordering::AcqRel, Ordering::Acquire);
    }

    /// The pool thread has left the session in the inbox.
    pub(crate) fn complete(&self) -> Wakeup {
        match self.state.swap(HOME, Ordering::AcqRel) {
            AWAITED => Wakeup::Needed,
            _ => Wakeup::NotNeeded,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_awaited_session_wakes_its_thread() {
        let handoff = PoolHandoff::default();
        handoff.submit();
        assert_eq!(handoff.complete(), Wakeup::NotNeeded);
        handoff.await_return();
        handoff.submit();
        handoff.await_return();
        handoff.await_return();
        assert_eq!(handoff.complete(), Wakeup::Needed);
    }
}
