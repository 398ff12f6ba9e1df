//! One connection: what it has sent so far, what it has not taken yet, and what it waits for.
//!
//! # Terms
//! - *Desk*: what the connections of one I/O thread share: the handler, the pool, one buffer for what was read, one for replies.
//! - *Input*: bytes that came and are not handled: part of a frame, or frames that wait for their turn. Empty when idle.
//! - *Output*: bytes of replies that the socket did not take. Empty nearly always.
//! - *Phase*: whether the next frame may be handled.
//!
//! # The life of a request that finds everything in memory
//! 1. The socket reports bytes; one read takes them into the desk's buffer.
//! 2. [`Exchange::run`] decodes the frame in that buffer and appends the reply to the desk's output.
//! 3. One write sends it. Neither buffer belongs to the connection, so nothing was allocated.
//!
//! # Invariants
//! - Replies go out in the order of their requests: while one is away or waits, no further frame is handled, and nothing is
//!   written past bytes that the socket has not taken.
//! - While output is pending, nothing is read: a client that does not read its replies cannot make the server buffer more of
//!   them than one burst.
//! - Input never grows beyond one frame and one read.

use std::io;
use std::sync::Arc;

use pando_wire::frame_length;
use tracing::{debug, warn};

use super::desk::{Accepted, Desk, Slot};
use super::errand::{AwayResult, Errand, Returned, start_wait};
use super::exchange::{Exchanged, LateReply};
use super::handler::{Attempt, Handler, Outcome};
use super::permits::Permit;
use super::reads::{ReadEnd, Taken};
use super::rendezvous::Rendezvous;
use super::stream::{Peer, ReadOutcome, Stream, WriteOutcome};

/// Replies are collected up to this size before they are sent.
const BURST_BYTES: usize = 256 * 1024;
/// Room for one read when part of a frame is there already. What a header claims is believed in steps.
const READ_STEP_BYTES: usize = 64 * 1024;
/// Room beyond a frame's end, so that the read which completes it comes back short, and thereby says that nothing follows.
const READ_BEYOND_BYTES: usize = 512;
/// Reads of blocks that a request waits for one after the other in the event loop. Most are handled from their beginning each time,
/// so that one which needs many is better off with a thread: a document by its index takes four.
const ROUNDS_MAX: u8 = 4;
/// Longer requests are not handled from their beginning again and again.
const READING_FRAME_BYTES_MAX: usize = 16 * 1024;
/// Reads before other connections have their turn.
const READS_MAX: usize = 8;

/// Whether the next frame may be handled.
#[derive(Debug)]
enum Phase {
    /// Yes.
    Serving,
    /// No: a request, whose frame stands first in the input, waits for a read.
    Reading,
    /// No: a request is with the pool, and the session with it.
    Away,
    /// No: a reply waits.
    Waiting(LateReply),
    /// Never again: closed once the output is sent.
    Leaving,
}

/// What the I/O thread does with the connection next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Wait for its socket, or for a note.
    Rest,
    /// Give it another turn after the others.
    Again,
    /// End it.
    Close,
}

/// One connection.
pub(crate) struct Connection<S> {
    stream: Arc<Stream>,
    peer: Peer,
    session: Option<S>,
    input: Vec<u8>,
    output: Vec<u8>,
    phase: Phase,
    /// Reads of blocks that the request at the front of the input has waited for.
    rounds: u8,
    /// The socket has reported bytes, and no read since came back short.
    readable: bool,
    /// The peer has said that it will send no more; a short read does not mean that nothing is left to be told.
    ended: bool,
    rendezvous: Arc<Rendezvous>,
    _permit: Permit,
}

impl<S: Send + 'static> Connection<S> {
    pub(crate) fn new(accepted: Accepted, session: S) -> Connection<S> {
        Connection {
            stream: Arc::new(accepted.stream),
            peer: accepted.peer,
            session: Some(session),
            input: Vec::new(),
            output: Vec::new(),
            phase: Phase::Serving,
            rounds: 0,
            readable: false,
            ended: false,
            rendezvous: Arc::default(),
            _permit: accepted.permit,
        }
    }

    pub(crate) fn raw_socket(&self) -> std::os::fd::RawFd {
        self.stream.raw()
    }

    /// Takes the session out at the end. `None` while it is with the pool.
    pub(crate) fn take_session(&mut self) -> Option<S> {
        self.session.take()
    }

    /// Whether the connection can be closed without cutting off an answer.
    pub(crate) fn is_at_rest(&self) -> bool {
        matches!(self.phase, Phase::Serving | Phase::Leaving) && self.output.is_empty()
    }

    /// Handles no further request: the server stops.
    pub(crate) fn dismiss(&mut self) {
        match self.phase {
            Phase::Serving => self.phase = Phase::Leaving,
            // Whoever brings it back has to wake the thread, which would otherwise sleep until its deadline.
            Phase::Away => {
                let _whereabouts = self.rendezvous.want();
            }
            Phase::Reading | Phase::Waiting(_) | Phase::Leaving => {}
        }
    }

    /// The socket has something to say.
    pub(crate) fn note_event(&mut self, event: &mio::event::Event) {
        self.readable |= event.is_readable() || event.is_read_closed() || event.is_error();
        self.ended |= event.is_read_closed() || event.is_error();
    }

    /// Does what can be done now.
    pub(crate) fn advance<H: Handler<Session = S>>(&mut self, slot: Slot, desk: &mut Desk<H>) -> Next {
        match self.try_advance(slot, desk) {
            Ok(next) => next,
            Err(error) => {
                debug!(peer = %self.peer, %error, "connection lost");
                self.lost()
            }
        }
    }

    /// The socket is gone, or the connection cannot go on. What is with the pool or waits has to come home first; the next
    /// read after that ends the connection.
    pub(crate) fn lost(&mut self) -> Next {
        self.output = Vec::new();
        self.readable = true;
        self.ended = true;
        match self.phase {
            Phase::Serving | Phase::Leaving => Next::Close,
            Phase::Reading | Phase::Away | Phase::Waiting(_) => Next::Rest,
        }
    }

    fn try_advance<H: Handler<Session = S>>(&mut self, slot: Slot, desk: &mut Desk<H>) -> io::Result<Next> {
        for _ in 0..READS_MAX {
            self.flush()?;
            match self.phase {
                Phase::Leaving if self.output.is_empty() => return Ok(Next::Close),
                Phase::Leaving | Phase::Reading | Phase::Waiting(_) => return Ok(Next::Rest),
                Phase::Away => {
                    if self.readable || !self.input.is_empty() {
                        // If it is in the inbox, the thread finds it there before it sleeps.
                        let _whereabouts = self.rendezvous.want();
                    }
                    return Ok(Next::Rest);
                }
                Phase::Serving if !self.output.is_empty() => {
                    if let Some(session) = &mut self.session {
                        desk.handler.stalled(session);
                    }
                    return Ok(Next::Rest);
                }
                Phase::Serving => {}
            }
            self.serve_input(slot, desk)?;
            if !matches!(self.phase, Phase::Serving) || !self.output.is_empty() {
                // Once more around, to see what the new phase asks for; no further bytes are read in it.
                continue;
            }
            if !self.readable {
                return Ok(Next::Rest);
            }
            if self.read(slot, desk)? == ReadOutcome::Ended {
                return Ok(Next::Close);
            }
        }
        Ok(Next::Again)
    }

    /// Reads once: into the desk's buffer, whose frames are handled right there, or behind the part of a frame that is here.
    fn read<H: Handler<Session = S>>(&mut self, slot: Slot, desk: &mut Desk<H>) -> io::Result<ReadOutcome> {
        let outcome = if self.input.is_empty() {
            let mut received = std::mem::take(&mut desk.received);
            received.clear();
            let outcome = self.stream.read(&mut received);
            let served = self.serve_frames(slot, &received, desk);
            if let Ok(consumed) = served {
                self.keep(&received[consumed..], desk);
            }
            desk.received = received;
            served?;
            outcome?
        } else {
            let missing =
                frame_length(&self.input).ok().flatten().map_or(0, |length| length - self.input.len());
            let step = missing.min(READ_STEP_BYTES.max(self.input.len()));
            self.input.reserve_exact(step + READ_BEYOND_BYTES);
            self.stream.read(&mut self.input)?
        };
        if outcome == ReadOutcome::Drained {
            self.readable = self.ended;
        }
        Ok(outcome)
    }

    /// Keeps bytes that were not handled.
    fn keep<H: Handler<Session = S>>(&mut self, rest: &[u8], desk: &mut Desk<H>) {
        if !rest.is_empty() {
            let expected = frame_length(rest).ok().flatten().unwrap_or(0).max(rest.len());
            self.input = desk.spare.take(expected);
            self.input.extend_from_slice(rest);
        }
    }

    /// Handles the whole frames of the input.
    fn serve_input<H: Handler<Session = S>>(&mut self, slot: Slot, desk: &mut Desk<H>) -> io::Result<()> {
        // An impossible length goes on, to be reported.
        let waits_for_more = match frame_length(&self.input) {
            Ok(length) => length.is_none_or(|length| length > self.input.len()),
            Err(_) => false,
        };
        if waits_for_more {
            return Ok(());
        }
        let mut input = std::mem::take(&mut self.input);
        let consumed = self.serve_frames(slot, &input, desk)?;
        if consumed == input.len() {
            desk.spare.put(input);
        } else {
            input.drain(..consumed);
            self.input = input;
        }
        Ok(())
    }

    /// Handles the whole frames at the front of `bytes` as far as the phase allows, and sends their replies. Gives the number
    /// of bytes that are dealt with.
    fn serve_frames<H: Handler<Session = S>>(
        &mut self,
        slot: Slot,
        bytes: &[u8],
        desk: &mut Desk<H>,
    ) -> io::Result<usize> {
        let mut at = 0;
        while matches!(self.phase, Phase::Serving) && self.output.is_empty() {
            let end = match frame_length(&bytes[at..]) {
                Ok(Some(length)) if at + length <= bytes.len() => at + length,
                Ok(_) => break,
                Err(error) => {
                    warn!(peer = %self.peer, %error, "closing a connection: it sent no message");
                    self.phase = Phase::Leaving;
                    at = bytes.len();
                    break;
                }
            };
            if self.serve_frame(slot, &bytes[at..end], desk)? == Served::NotYet {
                break;
            }
            at = end;
        }
        self.send(desk)?;
        Ok(at)
    }

    /// Handles one frame. Its reply is in the desk's output, or the phase says where it is.
    fn serve_frame<H: Handler<Session = S>>(
        &mut self,
        slot: Slot,
        frame: &[u8],
        desk: &mut Desk<H>,
    ) -> io::Result<Served> {
        let session = self.session.as_mut().expect("a connection that serves has its session");
        let exchange = &mut desk.exchange;
        match exchange.run(&*desk.handler, session, &self.peer, frame, Attempt::CachedOnly, &mut desk.out) {
            Exchanged::Done => {
                self.rounds = 0;
                if desk.out.len() > BURST_BYTES {
                    self.send(desk)?;
                }
            }
            Exchanged::WouldBlock(missed) => {
                if let Some(missed) = missed
                    && self.rounds < ROUNDS_MAX
                    && frame.len() <= READING_FRAME_BYTES_MAX
                    && desk.reads.push(slot, &missed) == Taken::Yes
                {
                    self.rounds += 1;
                    self.phase = Phase::Reading;
                    return Ok(Served::NotYet);
                }
                // The pool writes its reply itself, so everything before it has to be gone.
                self.send(desk)?;
                if !self.output.is_empty() {
                    return Ok(Served::NotYet);
                }
                self.send_away(slot, frame, desk);
            }
            Exchanged::Later(reply, wait) => {
                self.rounds = 0;
                self.phase = Phase::Waiting(reply);
                start_wait(wait, slot, &desk.inbox);
            }
            Exchanged::Close => self.phase = Phase::Leaving,
        }
        Ok(Served::Yes)
    }

    /// Hands a request to the pool.
    fn send_away<H: Handler<Session = S>>(&mut self, slot: Slot, frame: &[u8], desk: &mut Desk<H>) {
        let session = self.session.take().expect("a connection that serves has its session");
        let mut copy = desk.spare.take(frame.len());
        copy.extend_from_slice(frame);
        let errand = Errand {
            slot,
            session,
            frame: copy,
            peer: self.peer.clone(),
            stream: Arc::clone(&self.stream),
            handler: Arc::clone(&desk.handler),
            inbox: Arc::clone(&desk.inbox),
            rendezvous: Arc::clone(&self.rendezvous),
        };
        self.phase = Phase::Away;
        self.rounds = 0;
        self.rendezvous.depart();
        desk.pool.submit(Box::new(move |workspace| errand.run(workspace)));
    }

    /// The read that the first request of the input waited for has ended; the request is handled again.
    pub(crate) fn end_read(&mut self, end: ReadEnd) {
        assert!(matches!(self.phase, Phase::Reading), "only who waits for a read hears of its end");
        self.phase = Phase::Serving;
        if end == ReadEnd::Failed {
            // The pool reads again, and tells the client.
            self.rounds = ROUNDS_MAX;
        }
    }

    /// A request has come back from the pool.
    pub(crate) fn come_back<H: Handler<Session = S>>(&mut self, returned: Returned<S>, desk: &mut Desk<H>) {
        assert!(matches!(self.phase, Phase::Away), "only what was sent away comes back");
        self.session = Some(returned.session);
        desk.spare.put(returned.frame);
        match returned.result {
            AwayResult::Answered(unsent) => {
                self.output = unsent;
                self.phase = Phase::Serving;
            }
            AwayResult::Later(reply) => self.phase = Phase::Waiting(reply),
            AwayResult::Close(unsent) => {
                self.output = unsent;
                self.phase = Phase::Leaving;
            }
        }
    }

    /// The reply that waited may go.
    pub(crate) fn end_wait<H: Handler<Session = S>>(&mut self, outcome: Outcome, desk: &mut Desk<H>) {
        let Phase::Waiting(reply) = std::mem::replace(&mut self.phase, Phase::Serving) else {
            panic!("only a reply that waits can be released");
        };
        match outcome {
            Outcome::Send => desk.out.extend_from_slice(&reply.frame),
            Outcome::Close => {
                warn!(peer = %self.peer, "closing a connection: its write cannot be made durable");
                self.phase = Phase::Leaving;
            }
        }
        if let Err(error) = self.send(desk) {
            debug!(peer = %self.peer, %error, "connection lost");
            self.lost();
        }
    }

    /// Sends the desk's output; what the socket does not take stays with the connection.
    fn send<H: Handler<Session = S>>(&mut self, desk: &mut Desk<H>) -> io::Result<()> {
        if desk.out.is_empty() {
            return Ok(());
        }
        let outcome =
            if self.output.is_empty() { self.stream.write(&desk.out) } else { Ok(WriteOutcome::Partly(0)) };
        if let Ok(WriteOutcome::Partly(written)) = outcome {
            self.output.extend_from_slice(&desk.out[written..]);
        }
        desk.out.clear();
        desk.out.shrink_to(2 * BURST_BYTES);
        outcome.map(drop)
    }

    /// Tries again to send what the socket did not take.
    fn flush(&mut self) -> io::Result<()> {
        if self.output.is_empty() {
            return Ok(());
        }
        match self.stream.write(&self.output)? {
            WriteOutcome::All => self.output = Vec::new(),
            WriteOutcome::Partly(written) => drop(self.output.drain(..written)),
        }
        Ok(())
    }
}

/// Whether a frame was dealt with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Served {
    Yes,
    /// Nothing was done; it has to be offered again.
    NotYet,
}
