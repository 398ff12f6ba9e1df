//! The inbox of a thread that polls: messages from other threads.
//!
//! A thread that sleeps in `poll` must be woken, which costs a system call and a context switch. A thread
//! that is awake looks into its inbox before it sleeps. The inbox knows which of the two holds, under its one
//! lock. So a burst of messages wakes the thread once: a synced log may release a hundred replies.

use std::io;

use mio::{Poll, Token, Waker};
use parking_lot::Mutex;

/// The token under which the waker reports.
pub(crate) const WAKE_TOKEN: Token = Token(usize::MAX);

/// Whether a message is worth waking a sleeping thread for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Urgency {
    /// Yes.
    Now,
    /// No. The thread finds it when it wakes for something else.
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

    /// Wakes the thread if it sleeps, so that it reads its messages.
    pub(crate) fn wake_if_asleep(&self) {
        if std::mem::take(&mut self.state.lock().sleeping) {
            self.wake();
        }
    }

    /// Takes all messages in exchange for an empty vector, whose room is kept.
    pub(crate) fn take(&self, into: &mut Vec<M>) {
        assert!(into.is_empty(), "the messages that were taken last must be handled first");
        std::mem::swap(&mut self.state.lock().messages, into);
    }

    /// Whether the thread may sleep: yes if there is no message. From then on a message wakes it.
    pub(crate) fn may_sleep(&self) -> bool {
        let mut state = self.state.lock();
        state.sleeping = state.messages.is_empty();
        state.sleeping
    }

    /// Notes that the thread is awake again.
    pub(crate) fn awake(&self) {
        self.state.lock().sleeping = false;
    }

    fn wake(&self) {
        if let Err(error) = self.waker.wake() {
            // Cannot happen with an eventfd: its counter is full only after 2^64 wake-ups of a thread that
            // never looks.
            tracing::error!(
                "cannot wake a network thread ({error}); replies may be late; restart the server"
            );
        }
    }
}
