//! A request on its way through the blocking pool, from its I/O thread and back to the inbox of that thread.
//!
//! 1. The connection packs the session, the frame and all that is needed to answer into a [`PoolRequest`].
//! 2. A thread of the pool handles the request, which may wait there, and writes the reply to the socket
//!    itself. Leaving that to the I/O thread would cost a wake-up and a context switch for each request.
//! 3. The session goes into the inbox; [`PoolHandoff`] says whether the I/O thread is woken for it.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use pando_commands::{BlockingMode, Priority, ReplyWait};
use tracing::{debug, error};

use super::blocking_pool::Workspace;
use super::handler::Handler;
use super::inbox::{Inbox, Urgency};
use super::pool_handoff::{PoolHandoff, Ticket, Wakeup};
use super::responder::{Exchange, LateReply, Response, Sequel};
use super::stream::{Peer, Stream};
use super::thread_state::{Slot, ThreadMessage};
use crate::error_text::panic_text;

/// A request that comes back from the pool.
pub(crate) struct PoolReply<S> {
    pub(crate) session: S,
    pub(crate) frame: Vec<u8>,
    pub(crate) outcome: PoolOutcome,
}

/// The outcome of a request in the pool.
pub(crate) enum PoolOutcome {
    /// It is answered. These bytes, as a rule none, are what the socket did not take.
    Answered(Vec<u8>, Sequel),
    /// Its reply has to wait.
    Later(LateReply),
    /// It is to be handled again after a wait.
    Again,
    /// It is answered, but its peer is gone. A further reply, if it has one, is due to nobody.
    Lost(Sequel),
    /// Its connection is to be closed after these bytes.
    Close(Vec<u8>),
}

/// Has a message sent to the I/O thread when a wait is over.
pub(crate) fn start_wait<S: Send + 'static>(
    wait: Box<dyn ReplyWait>,
    slot: Slot,
    inbox: &Arc<Inbox<ThreadMessage<S>>>,
) {
    let inbox = Arc::clone(inbox);
    wait.notify(Box::new(move |outcome| inbox.push(ThreadMessage::WaitOver(slot, outcome), Urgency::Now)));
}

/// The frame of a request, and the pool that it goes to.
pub(crate) struct PoolFrame {
    pub(crate) bytes: Vec<u8>,
    pub(crate) priority: Priority,
}

/// A request for the pool, with all that is needed to answer it there.
pub(crate) struct PoolRequest<H: Handler> {
    pub(crate) slot: Slot,
    pub(crate) session: H::Session,
    pub(crate) frame: Vec<u8>,
    pub(crate) peer: Peer,
    pub(crate) stream: Arc<Stream>,
    pub(crate) handler: Arc<H>,
    pub(crate) inbox: Arc<Inbox<ThreadMessage<H::Session>>>,
    pub(crate) handoff: Arc<PoolHandoff>,
    pub(crate) ticket: Ticket,
}

impl<H: Handler> PoolRequest<H> {
    /// Handles the request, sends the reply, and leaves the session in the inbox.
    pub(crate) fn run(mut self, workspace: &mut Workspace) {
        let response = self.respond(workspace);
        let out = &workspace.out;
        let mut wait_to_start = None;
        let (outcome, urgency) = match response {
            Response::Done(sequel) => match self.write(out) {
                Ok(unsent) if unsent.is_empty() && sequel == Sequel::None => {
                    (PoolOutcome::Answered(unsent, sequel), Urgency::WhenAwake)
                }
                Ok(unsent) => (PoolOutcome::Answered(unsent, sequel), Urgency::Now),
                Err(error) => {
                    debug!(peer = %self.peer, %error, "connection lost");
                    (PoolOutcome::Lost(sequel), Urgency::Now)
                }
            },
            Response::Later(reply, wait) => {
                wait_to_start = Some(wait);
                (PoolOutcome::Later(reply), Urgency::WhenAwake)
            }
            Response::Again(wait) => {
                wait_to_start = Some(wait);
                (PoolOutcome::Again, Urgency::WhenAwake)
            }
            Response::Close => (PoolOutcome::Close(self.write(out).unwrap_or_default()), Urgency::Now),
            Response::WouldBlock(..) => {
                unreachable!("the responder asserts that a handler which may block does not decline")
            }
        };
        let reply = PoolReply { session: self.session, frame: self.frame, outcome };
        self.inbox.push(ThreadMessage::Returned(self.slot, reply), urgency);
        if self.handoff.complete(self.ticket) == Wakeup::Needed {
            self.inbox.wake_if_asleep();
        }
        // After the push, because the end of the wait must find the late reply or the request at its
        // connection.
        if let Some(wait) = wait_to_start {
            start_wait(wait, self.slot, &self.inbox);
        }
    }

    /// Asks the handler. A panic of the network side closes the connection; without an answer here it would
    /// hang. (The panics of a handler are caught closer to it.)
    fn respond(&mut self, workspace: &mut Workspace) -> Response {
        let Workspace { responder, out } = workspace;
        let mut exchange = Exchange {
            handler: &*self.handler,
            session: &mut self.session,
            peer: &self.peer,
            blocking: BlockingMode::MayBlock,
            out,
        };
        let frame = &self.frame;
        match catch_unwind(AssertUnwindSafe(|| responder.respond(&mut exchange, frame))) {
            Ok(response) => response,
            Err(panic) => {
                error!(
                    "closing connection {}: serving it in the blocking pool panicked ({}); report this defect with the \
                     log line of the panic",
                    self.peer,
                    panic_text(panic.as_ref())
                );
                // Both may be half changed.
                *workspace = Workspace::default();
                Response::Close
            }
        }
    }

    /// Sends to the socket. Gives the bytes that it did not take.
    fn write(&self, out: &[u8]) -> io::Result<Vec<u8>> {
        let mut unsent = Vec::new();
        self.stream.send(out, &mut unsent)?;
        Ok(unsent)
    }
}
