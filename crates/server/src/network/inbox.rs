//! What other threads tell an I/O thread.
//!
//! A thread that sleeps in `poll` must be woken, which costs a system call and a context switch; one that is at work looks
//! here by itself before it sleeps. So the inbox knows which of the two it is, under its one lock, and a burst of messages
//! (a synced log that frees a hundred replies) wakes the thread once.

use std::io;

use mio::{Poll, Token, Waker};
use parking_lot::Mutex;

/// The token under which the waker reports.
pub(crate) const WAKE_TOKEN: Token = Token(usize::MAX);

/// Whether a message is worth waking a sleeping thread for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Urgency {
    /// Wake it.
    Now,
    /// It can wait until the thread wakes for something else.
    WhenAwake,
}

/// Messages of type `M` for one thread.
pub(crate) struct Inbox<M> {
    state: Mutex<State<M>>,
    waker: Waker,
}

struct State<M> {
    messages: Vec<M>,
    sleeping: bool,
}

impl<M> Inbox<M> {
    /// The inbox of the thread that polls `poll`.
    pub(crate) fn new(poll: &Poll) -> io::Result<Inbox<M>> {
        let waker = Waker::new(poll.registry(), WAKE_TOKEN)?;
        Ok(Inbox { state: Mutex::new(State { messages: Vec::new(), sleeping: false }), waker })
    }

    /// Leaves a message.
    pub(crate) fn push(&self, message: M, urgency: Urgency) {
        let mut state = self.state.lock();
        state.messages.push(message);
        let wake = urgency == Urgency::Now && std::mem::take(&mut state.sleeping);
        drop(state);
        if wake {
            self.wake();
        }
    }

    /// Wakes the thread if it sleeps, so that it looks at what is there.
    pub(crate) fn nudge(&self) {
        if std::mem::take(&mut self.state.lock().sleeping) {
            self.wake();
        }
    }

    /// Takes all messages, in exchange for an empty vector that keeps its room.
    pub(crate) fn take(&self, into: &mut Vec<M>) {
        assert!(into.is_empty(), "messages that were taken must be dealt with first");
        std::mem::swap(&mut self.state.lock().messages, into);
    }

    /// Whether the thread may sleep now: yes if there is nothing to do, and from then on a message wakes it.
    pub(crate) fn may_sleep(&self) -> bool {
        let mut state = self.state.lock();
        state.sleeping = state.messages.is_empty();
        state.sleeping
    }

    /// The thread is up again.
    pub(crate) fn awake(&self) {
        self.state.lock().sleeping = false;
    }

    fn wake(&self) {
        if let Err(error) = self.waker.wake() {
            // The counter behind it is full only if the thread was woken 2^64 times without looking.
            tracing::error!(%error, "cannot wake an I/O thread");
        }
    }
}
