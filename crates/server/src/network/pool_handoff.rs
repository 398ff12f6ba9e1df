//! The hand-off of a connection's session between its I/O thread and a thread of the blocking pool.
//!
//! The pool thread sends the reply itself and then leaves the session in the I/O thread's inbox. As a rule
//! that needs no wake-up. The client reads the reply, its next request wakes the I/O thread, and the thread
//! finds the session in its inbox. Only if the client's next bytes come first does the I/O thread *await* the
//! session, and the pool thread wakes it:
//!
//! 1. The I/O thread submits a request and keeps its [`Ticket`] in it. A connection has one request in the
//!    pool at a time.
//! 2. It awaits the return as soon as it has more to do for the connection.
//! 3. The pool thread leaves the session in the inbox, and completes the ticket. It wakes the I/O thread if
//!    that awaits this ticket.
//!
//! # Invariants
//! - The session is in the inbox before its ticket is completed. The inbox has a lock, under which the I/O
//!   thread looks before it sleeps. So either that thread finds the session, or the pool thread sees that it
//!   is awaited.
//! - Between the inbox and the completion the I/O thread may have taken the session and submitted the next
//!   request. The completion of the earlier one must not change anything for the later one: tickets differ.

use std::sync::atomic::{AtomicU32, Ordering};

/// The bit of the state that says that the newest ticket is awaited. The others are its number.
const AWAITED: u32 = 1;

/// The whereabouts of a connection's session.
#[derive(Debug, Default)]
pub(crate) struct PoolHandoff {
    state: AtomicU32,
}

/// One stay of the session in the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket(u32);

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
    pub(crate) fn submit(&self) -> Ticket {
        // Only the I/O thread writes.
        let ticket = (self.state.load(Ordering::Relaxed) & !AWAITED).wrapping_add(AWAITED + 1);
        self.state.store(ticket, Ordering::Release);
        Ticket(ticket)
    }

    /// The I/O thread has more to do for the connection. A session that is still in the pool wakes it on its
    /// return; one that is in the inbox already is found there before the thread sleeps.
    pub(crate) fn await_return(&self) {
        self.state.fetch_or(AWAITED, Ordering::AcqRel);
    }

    /// The pool thread has left the session in the inbox.
    pub(crate) fn complete(&self, ticket: Ticket) -> Wakeup {
        match self.state.load(Ordering::Acquire) == ticket.0 | AWAITED {
            true => Wakeup::Needed,
            false => Wakeup::NotNeeded,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_awaited_session_wakes_its_thread() {
        let handoff = PoolHandoff::default();
        let first = handoff.submit();
        assert_eq!(handoff.complete(first), Wakeup::NotNeeded);
        handoff.await_return();
        let second = handoff.submit();
        assert_eq!(handoff.complete(second), Wakeup::NotNeeded);
        handoff.await_return();
        handoff.await_return();
        assert_eq!(handoff.complete(second), Wakeup::Needed);
    }

    #[test]
    fn a_late_completion_leaves_the_next_request_awaited() {
        let handoff = PoolHandoff::default();
        let first = handoff.submit();
        // The I/O thread has found the first session in its inbox already.
        let second = handoff.submit();
        handoff.await_return();
        assert_eq!(handoff.complete(first), Wakeup::NotNeeded);
        assert_eq!(handoff.complete(second), Wakeup::Needed);
    }
}
