//! A request's errand through the blocking pool, from the I/O thread that sent it away to the inbox that it comes back to.
//!
//! 1. The connection packs session, frame and what is needed to answer, and is *away*.
//! 2. A thread of the pool handles the request, which may wait there, and writes the reply to the socket itself: handing it to
//!    the I/O thread instead would cost a wake-up and a context switch per request.
//! 3. The session goes into the inbox; see [`Rendezvous`] for who is woken.

use std::io;
use std::sync::Arc;

use tracing::debug;

use super::blocking_pool::Workspace;
use super::desk::{Note, Slot};
use super::exchange::{Exchanged, LateReply};
use super::handler::{Attempt, Handler, Wait};
use super::inbox::{Inbox, Urgency};
use super::rendezvous::{Rendezvous, Welcome};
use super::stream::{Peer, Stream, WriteOutcome};

/// What comes back from the pool.
pub(crate) struct Returned<S> {
    pub(crate) session: S,
    pub(crate) frame: Vec<u8>,
    pub(crate) result: AwayResult,
}

/// How it went there.
pub(crate) enum AwayResult {
    /// Answered; the socket did not take these bytes (mostly none).
    Answered(Vec<u8>),
    /// The reply has to wait.
    Later(LateReply),
    /// To be closed after these bytes.
    Close(Vec<u8>),
}

/// Has a note sent when a wait is over.
pub(crate) fn start_wait<S: Send + 'static>(wait: Wait, slot: Slot, inbox: &Arc<Inbox<Note<S>>>) {
    let inbox = Arc::clone(inbox);
    wait(Box::new(move |outcome| inbox.push(Note::WaitOver(slot, outcome), Urgency::Now)));
}

/// A request on its way through the pool, with everything that is needed to answer it there.
pub(crate) struct Errand<H: Handler> {
    pub(crate) slot: Slot,
    pub(crate) session: H::Session,
    pub(crate) frame: Vec<u8>,
    pub(crate) peer: Peer,
    pub(crate) stream: Arc<Stream>,
    pub(crate) handler: Arc<H>,
    pub(crate) inbox: Arc<Inbox<Note<H::Session>>>,
    pub(crate) rendezvous: Arc<Rendezvous>,
}

impl<H: Handler> Errand<H> {
    /// Handles the request, sends the reply, and leaves the session in the inbox.
    pub(crate) fn run(mut self, workspace: &mut Workspace) {
        let Workspace { exchange, out } = workspace;
        let handler = &*self.handler;
        let exchanged =
            exchange.run(handler, &mut self.session, &self.peer, &self.frame, Attempt::MayBlock, out);
        let mut wait_to_start = None;
        let (result, urgency) = match exchanged {
            Exchanged::Done => match self.write(out) {
                Ok(unsent) if unsent.is_empty() => (AwayResult::Answered(unsent), Urgency::WhenAwake),
                Ok(unsent) => (AwayResult::Answered(unsent), Urgency::Now),
                Err(error) => {
                    debug!(peer = %self.peer, %error, "connection lost");
                    (AwayResult::Close(Vec::new()), Urgency::Now)
                }
            },
            Exchanged::Later(reply, wait) => {
                wait_to_start = Some(wait);
                (AwayResult::Later(reply), Urgency::WhenAwake)
            }
            Exchanged::Close => (AwayResult::Close(self.write(out).unwrap_or_default()), Urgency::Now),
            Exchanged::WouldBlock(_) => {
                unreachable!("the exchange asserts that who may block does not decline")
            }
        };
        let returned = Returned { session: self.session, frame: self.frame, result };
        self.inbox.push(Note::Back(self.slot, returned), urgency);
        if self.rendezvous.come_back() == Welcome::Awaited {
            self.inbox.nudge();
        }
        // Only now: its end must find the reply in the inbox.
        if let Some(wait) = wait_to_start {
            start_wait(wait, self.slot, &self.inbox);
        }
    }

    /// Writes to the socket; gives what it did not take.
    fn write(&self, out: &[u8]) -> io::Result<Vec<u8>> {
        match self.stream.write(out)? {
            WriteOutcome::All => Ok(Vec::new()),
            WriteOutcome::Partly(written) => Ok(out[written..].to_vec()),
        }
    }
}
